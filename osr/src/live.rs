//! Liveness at the points of a version, with armed entries counted as uses.
//!
//! Where constants decide branches ([`ir::decided`]), two answers differ.
//!
//! - An entry may *read* without keeping it any value that the text of its source version still
//!   reads.
//! - An entry has to *provide* the values that a run of its target version still reads. These are
//!   fewer: code that never runs may read a value that the other version lost together with that
//!   code.
//!
//! Values that an entry requires are provided to every run that lands before it, live in the text
//! or not ([`add_required`]).

use crate::pair::Analyzed;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::liveness::{CountedUses, LiveSet, Liveness, LocalLiveness};
use ir::{Block, Function, Inst, Point, Value};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use transition::Demand;
use transition::ascending::missing;
use transition::mapping::{Mapping, SharedEntry};

/// The limit of live values in a table, summed over its points. Beyond it, a pair is mapped in
/// parts ([`crate::partial`]), and the edges of a [`crate::VersionGraph`] from and to the version
/// have no entries. Real functions have 5 to 60 live values at a point, so functions of up to
/// 70,000 instructions stay below the limit.
pub(crate) const MAX_LIVE_VALUES: usize = 1 << 22;

/// If more than one in [`FEW_BLOCKS`] blocks of a version has requested points, liveness is
/// computed for all blocks at once. Below this share, each such block costs a search of its
/// reachable blocks.
const FEW_BLOCKS: usize = 64;

/// Values that entries read, as uses at source points.
pub(crate) type ExtraUses = BTreeMap<Inst, Vec<Value>>;

/// Adds to the uses of a version the values that entries of a mapping from it require and that are
/// not live in its runs. `is_text` says that liveness in runs equals liveness in the text: then
/// only entries with kept values add uses. Returns whether a use is new.
pub(crate) fn add_unlive(
    mapping: &Mapping,
    in_run: &LiveTable,
    is_text: bool,
    uses: &mut ExtraUses,
) -> bool {
    let mut grew = false;
    for (point, entry) in mapping.shared_entries() {
        if !is_text || !entry.kept().is_empty() {
            grew |= add_unlive_of(&entry.requires().values(), point, in_run.live(point), uses);
        }
    }
    grew
}

/// As [`add_unlive`], for an entry at one point that requires these values, where others are live
/// in runs.
pub(crate) fn add_unlive_of(
    requires: &[Value],
    point: Point,
    live: &[Value],
    uses: &mut ExtraUses,
) -> bool {
    // All required values, not only kept values. A value that only excluded code reads is live in
    // the text, so it is not kept. No run would find it provided
    // (`values_that_entries_read_are_provided_though_only_excluded_code_reads_them`).
    let mut grew = false;
    for value in missing(live, requires) {
        let at = uses.entry(point.inst()).or_default();
        if !at.contains(&value) {
            at.push(value);
            grew = true;
        }
    }
    grew
}

/// Adds to the uses of a version all values that the entries of a mapping from it require. A value
/// that is live in any case changes nothing.
pub(crate) fn add_required(mapping: &Mapping, uses: &mut ExtraUses) {
    for (point, entry) in mapping.shared_entries() {
        uses.entry(point.inst()).or_default().extend(&*entry.requires().values());
    }
}

/// The live values at points of a version, ascending.
#[derive(Default)]
pub(crate) struct LiveTable {
    /// By instruction index, from the first instruction with a place.
    at: Vec<Box<[Value]>>,
    first: usize,
    /// The live values of all sets.
    total: usize,
}

impl LiveTable {
    /// Liveness in the text of a version; `None` beyond [`MAX_LIVE_VALUES`].
    pub(crate) fn of_text(f: &Function, cfg: &Cfg, demand: Demand) -> Option<LiveTable> {
        let none = ExtraUses::new();
        let liveness = match demand {
            Demand::Needed => Liveness::of_needed(f, cfg, &none),
            Demand::Live => Liveness::with_extra_uses(f, cfg, &none),
        };
        LiveTable::of(f, cfg, &liveness)
    }

    /// The values to provide where transitions land, when the listed values count as used too;
    /// `None` beyond [`MAX_LIVE_VALUES`]. Code that never runs needs nothing, and no entry lands
    /// there.
    pub(crate) fn of_run(
        f: &Function,
        decided: &Decided,
        demand: Demand,
        uses: &ExtraUses,
    ) -> Option<LiveTable> {
        match demand {
            Demand::Needed => LiveTable::of(f, decided.cfg(), &Liveness::of_run(f, decided, uses)),
            Demand::Live => {
                let cfg = Cfg::new(f);
                LiveTable::of(f, &cfg, &Liveness::with_extra_uses(f, &cfg, uses))
            }
        }
    }

    /// As [`LiveTable::of_text`], at these points alone. The sets of other points are empty.
    pub(crate) fn of_text_at(
        version: &Analyzed<'_>,
        demand: Demand,
        points: &BTreeSet<Point>,
    ) -> Option<LiveTable> {
        LiveTable::at(version, in_text(version, demand), &ExtraUses::new(), points)
    }

    /// As [`LiveTable::of_run`], at these points alone. The sets of other points are empty.
    pub(crate) fn of_run_at(
        version: &Analyzed<'_>,
        demand: Demand,
        uses: &ExtraUses,
        points: &BTreeSet<Point>,
    ) -> Option<LiveTable> {
        LiveTable::at(version, in_run(version, demand), uses, points)
    }

    fn at(
        version: &Analyzed<'_>,
        counted: CountedUses<'_>,
        uses: &ExtraUses,
        points: &BTreeSet<Point>,
    ) -> Option<LiveTable> {
        let (f, mut table) = (version.f, LiveTable::for_points(points));
        let blocks: BTreeSet<Block> = points.iter().map(|p| f.inst_block(p.inst())).collect();
        if blocks.is_empty() {
            return Some(table);
        }
        let mut set = |point: Point, live: &LiveSet| {
            if points.contains(&point) {
                table.set(point, live);
            }
        };
        if blocks.len() > version.cfg.rpo().len() / FEW_BLOCKS + 1 {
            let (liveness, cfg) = everywhere(f, counted, uses);
            let is_run = |block: &Block| cfg.is_reachable(*block);
            let blocks = blocks.into_iter().filter(is_run);
            blocks.for_each(|block| liveness.for_each_point(f, block, &mut set));
        } else {
            let starts = blocks.iter().copied();
            let liveness = LocalLiveness::new(f, &version.dom, counted, uses, starts);
            blocks.into_iter().for_each(|block| liveness.for_each_point(f, block, &mut set));
        }
        table.within_limit()
    }

    fn of(f: &Function, cfg: &Cfg, liveness: &Liveness) -> Option<LiveTable> {
        let mut table = LiveTable { at: vec![Box::default(); f.inst_bound()], first: 0, total: 0 };
        for &block in cfg.rpo() {
            liveness.for_each_point(f, block, |point, live| table.set(point, live));
        }
        table.within_limit()
    }

    /// A table without live values, with places for these points. The points of a part have ids
    /// near one another.
    fn for_points(points: &BTreeSet<Point>) -> LiveTable {
        let index = |point: &Point| point.inst().as_u32() as usize;
        let first = points.first().map_or(0, index);
        let end = points.last().map_or(0, |last| index(last) + 1);
        LiveTable { at: vec![Box::default(); end - first], first, total: 0 }
    }

    /// Enters the set of a point. Past the limit it only counts: storing the rest could take
    /// gigabytes.
    fn set(&mut self, point: Point, live: &LiveSet) {
        self.total += live.len();
        if self.total <= MAX_LIVE_VALUES {
            self.at[point.inst().as_u32() as usize - self.first] = live.as_slice().into();
        }
    }

    fn within_limit(self) -> Option<LiveTable> {
        (self.total <= MAX_LIVE_VALUES).then_some(self)
    }

    /// The live values at all points.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn live(&self, point: Point) -> &[Value] {
        let index = (point.inst().as_u32() as usize).checked_sub(self.first);
        index.and_then(|index| self.at.get(index)).map_or(&[], |live| live)
    }

    /// The points of a mapping into this version whose entries lack a value that is live at the
    /// landing point.
    pub(crate) fn lacking(&self, mapping: &Mapping) -> Vec<Point> {
        let entries = mapping.shared_entries();
        entries.filter(|(_, entry)| self.lacks(entry)).map(|(point, _)| point).collect()
    }

    /// Whether an entry lacks a value that is live at its landing point.
    pub(crate) fn lacks(&self, entry: &SharedEntry) -> bool {
        let live = self.live(entry.target());
        // Provided values are live, so equal numbers mean equal sets.
        entry.provided() != live.len() && missing(&entry.provides().values(), live).next().is_some()
    }
}

/// Liveness between the blocks of a version, from which tables are made for points at a time.
pub(crate) struct BlockLiveness<'a> {
    f: &'a Function,
    liveness: Liveness,
    /// The graph of the edges that count.
    cfg: &'a Cfg,
    /// The values live at some points of long blocks, from which a walk may start. Each part of
    /// the points would otherwise cost the blocks of all of them.
    marks: RefCell<BTreeMap<Block, Vec<(Point, LiveSet)>>>,
}

/// Points of a block between two marks. A mark takes the values live there.
const MARKED: usize = 1 << 9;

impl<'a> BlockLiveness<'a> {
    /// Liveness in the text of a version.
    pub(crate) fn of_text(version: &'a Analyzed<'_>, demand: Demand) -> BlockLiveness<'a> {
        BlockLiveness::new(version, in_text(version, demand), &ExtraUses::new())
    }

    /// Liveness in the runs of a version, when the listed values count as used too.
    pub(crate) fn of_run(
        version: &'a Analyzed<'_>,
        demand: Demand,
        uses: &ExtraUses,
    ) -> BlockLiveness<'a> {
        BlockLiveness::new(version, in_run(version, demand), uses)
    }

    fn new(version: &'a Analyzed<'_>, counted: CountedUses<'a>, uses: &ExtraUses) -> Self {
        let (liveness, cfg) = everywhere(version.f, counted, uses);
        BlockLiveness { f: version.f, liveness, cfg, marks: RefCell::default() }
    }

    /// The live values at these points; `None` beyond [`MAX_LIVE_VALUES`].
    pub(crate) fn table(&self, points: &BTreeSet<Point>) -> Option<LiveTable> {
        let mut table = LiveTable::for_points(points);
        let mut set = |point: Point, live: &LiveSet| {
            if points.contains(&point) {
                table.set(point, live);
            }
        };
        let mut marks = self.marks.borrow_mut();
        // By block and number of marks below: the first point.
        let mut stretches: BTreeMap<(Block, usize), Point> = BTreeMap::new();
        let mut walked = BTreeSet::new();
        for &point in points {
            let block = self.f.inst_block(point.inst());
            if !self.cfg.is_reachable(block) || walked.contains(&block) {
                continue;
            }
            let Some(marks) = marks.get(&block) else {
                marks.insert(block, self.walk(block, &mut set));
                walked.insert(block);
                continue;
            };
            // Marks stand from the end of the block upward.
            let below = marks.partition_point(|(mark, _)| self.is_above(point, *mark));
            let first = stretches.entry((block, below)).or_insert(point);
            *first = if self.is_above(point, *first) { point } else { *first };
        }
        for ((block, below), first) in stretches {
            let from = below.checked_sub(1).map(|at| marks[&block][at].clone());
            self.liveness.for_points_above(self.f, block, from, |point, live| {
                set(point, live);
                if point == first { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        table.within_limit()
    }

    fn is_above(&self, first: Point, second: Point) -> bool {
        self.f.stands_before(first.inst(), second.inst())
    }

    /// Visits the points of a block, and marks some.
    fn walk(&self, block: Block, visit: &mut impl FnMut(Point, &LiveSet)) -> Vec<(Point, LiveSet)> {
        let (mut marks, mut count) = (Vec::new(), 0);
        self.liveness.for_each_point(self.f, block, |point, live| {
            count += 1;
            if count % MARKED == 0 {
                marks.push((point, live.clone()));
            }
            visit(point, live);
        });
        marks
    }

    /// The number of values live at each point, by instruction index; 0 in unreachable code.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.f.inst_bound()];
        for &block in self.cfg.rpo() {
            self.liveness.for_each_point(self.f, block, |point, live| {
                sizes[point.inst().as_u32() as usize] = live.len();
            });
        }
        sizes
    }
}

/// The uses that count in the text of a version.
fn in_text<'a>(version: &'a Analyzed<'_>, demand: Demand) -> CountedUses<'a> {
    match demand {
        Demand::Needed => CountedUses::Needed(&version.cfg),
        Demand::Live => CountedUses::All(&version.cfg),
    }
}

/// The uses that count in the runs of a version.
fn in_run<'a>(version: &'a Analyzed<'_>, demand: Demand) -> CountedUses<'a> {
    match demand {
        Demand::Needed => CountedUses::InRun(&version.decided),
        Demand::Live => CountedUses::All(&version.cfg),
    }
}

/// Liveness in all blocks, and the graph that it was computed on.
fn everywhere<'a>(f: &Function, counted: CountedUses<'a>, uses: &ExtraUses) -> (Liveness, &'a Cfg) {
    match counted {
        CountedUses::All(cfg) => (Liveness::with_extra_uses(f, cfg, uses), cfg),
        CountedUses::Needed(cfg) => (Liveness::of_needed(f, cfg, uses), cfg),
        CountedUses::InRun(decided) => (Liveness::of_run(f, decided, uses), decided.cfg()),
    }
}
