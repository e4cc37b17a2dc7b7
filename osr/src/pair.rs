//! Two versions of a function, with the analyses that their mappings share.

pub(crate) mod analyzed;
pub(crate) mod lone_writes;

pub(crate) use analyzed::{Analyzed, members};

use crate::accesses::{LeastSizes, access_index};
use crate::anchors::bounding_anchors;
use crate::facts::Facts;
use crate::known::KnownValue;
use crate::landings::{OwnPlaces, landings_to_try};
use crate::paired::PairedWrites;
use crate::paths::PathEnd;
use crate::stores::lone_writes;
use crate::traps::Traps;
use fixedbitset::FixedBitSet;
use ir::edit::{ActionLog, ReplayError};
use ir::loops::LoopForest;
use ir::{Block, Function, Inst, Module, Point, Value};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::{Correspondence, Demand, Pair, Side};

/// The knowledge about the values of a version, by value index.
type KnownValues = Box<[OnceCell<Box<KnownValue>>]>;

/// Two versions of one function and the log that leads from one to the other. It holds all analyses
/// that mappings in both directions and at every level need, computed once.
#[derive(Debug)]
pub struct VersionPair<'v> {
    pub(crate) versions: Pair<Analyzed<'v>>,
    pub(crate) facts: Facts,
    pub(crate) anchors: FixedBitSet,
    /// Writes that both versions execute, and that are no bounding anchors.
    pub(crate) paired: PairedWrites,
    pub(crate) demand: Demand,
    /// The sizes of memories on which entries may rely.
    pub(crate) least: LeastSizes,
    /// By target version. Found at the first request of an entry: entries on demand often leave
    /// from one version alone.
    traps: Pair<OnceCell<Traps>>,
    /// By target version and value index: found at the first request of an entry.
    known: Pair<OnceCell<KnownValues>>,
    /// By source version. A pair in parts requests them for each part.
    places: Pair<OnceCell<OwnPlaces>>,
}

impl<'v> VersionPair<'v> {
    /// Prepares two versions. Cost: near linear in their size and the log's.
    ///
    /// `after` must be the version that the log leads to. This is not checked here
    /// ([`ir::edit::check_replay`] does): with another version, the mappings are wrong, or the
    /// analyses panic.
    ///
    /// # Errors
    /// When the log does not apply to `before`.
    pub fn new(
        before: &'v Function,
        after: &'v Function,
        log: &ActionLog,
    ) -> Result<VersionPair<'v>, ReplayError> {
        let facts = Facts::read(before, log)?;
        let mut anchors = bounding_anchors(before, after, &facts);
        let functions = Pair::new(before, after);
        let mut versions = Pair::from_fn(|side| Analyzed::new(functions[side], side, &facts));
        let mut paired = PairedWrites::default();
        // The index of accesses costs memory, and only pairs with lone writes need it.
        if versions.iter().any(|version| version.has_lone_writes(&anchors)) {
            for version in versions.as_mut() {
                version.accesses = access_index(version, &facts);
            }
            paired = PairedWrites::new(&versions, &facts, &anchors);
            for version in versions.as_mut() {
                version.lone_writes = lone_writes(version, &anchors, &facts, paired.writes());
            }
            anchors.difference_with(paired.writes());
        }
        versions.as_mut().into_iter().for_each(|version| version.bound(&anchors, &facts));
        let (demand, traps, known) = (Demand::default(), Pair::default(), Pair::default());
        let places = Pair::default();
        let least = LeastSizes::default();
        Ok(VersionPair { versions, facts, anchors, paired, demand, least, traps, known, places })
    }

    /// The same pair, as versions of a function of this module. An access at a constant address
    /// below the declared minimum of its memory then bars no landing, since it never traps.
    #[must_use]
    pub fn in_module(self, module: &Module) -> VersionPair<'v> {
        self.with_sizes(LeastSizes::of(module))
    }

    pub(crate) fn with_sizes(self, least: LeastSizes) -> VersionPair<'v> {
        VersionPair { least, traps: Pair::default(), ..self }
    }

    /// The same pair, with another demand on its entries.
    #[must_use]
    pub fn providing(self, demand: Demand) -> VersionPair<'v> {
        VersionPair { demand, ..self }
    }

    /// The bounding anchors: instructions that both versions have, that the log moved nowhere, and
    /// that are terminators, have effects or may trap. Pure instructions count where no other
    /// bounding anchor follows for dozens of blocks. On every path, both versions execute the same
    /// bounding anchors in the same order.
    pub fn bounding_anchors(&self) -> impl Iterator<Item = Inst> + '_ {
        self.anchors.ones().map(|i| Inst::from_u32(i as u32))
    }

    /// Whether a version has a write that is missing or elsewhere in the other version. If so,
    /// memory may differ at a bounding anchor.
    pub(crate) fn has_lone_writes(&self) -> bool {
        self.versions.iter().any(|version| version.lone_writes.exist)
    }

    /// The first point of each loop header of a version: the points at which engines enter a hot
    /// loop. Cost: near linear in the blocks and edges.
    pub fn loop_headers(&self, side: Side) -> BTreeSet<Point> {
        let Analyzed { f, cfg, .. } = &self.versions[side];
        let forest = LoopForest::new(f, cfg);
        forest.loops().map(|l| Point::before(f.first_inst(forest.header(l)))).collect()
    }

    /// The points before the calls of a version that are reachable. Cost: linear in its
    /// instructions.
    pub fn calls(&self, side: Side) -> BTreeSet<Point> {
        let Analyzed { f, cfg, .. } = &self.versions[side];
        let is_call = |i: &Inst| f.inst(*i).opcode.is_call();
        let insts = cfg.rpo().iter().flat_map(|block| f.block_insts(*block));
        insts.filter(is_call).map(Point::before).collect()
    }

    /// The hints of the log about both versions, for a certifier to start from. Cost: linear in the
    /// versions.
    pub fn correspondence(&self) -> Correspondence<'v> {
        let control = &self.facts.control;
        Correspondence {
            versions: self.versions.as_ref().map(|version| version.f),
            decided: self.versions.as_ref().map(|version| Arc::clone(&version.decided)),
            anchors: self.anchors.clone(),
            paired: self.paired.writes().clone(),
            joined_params: control.joined_params().clone(),
            joined_blocks: control.joined_blocks().clone(),
            folded: control.folded().clone(),
            replaced: self.replaced_params(),
            has_lone_writes: self.has_lone_writes(),
        }
    }

    /// The parameters that only the version after has, each with the parameters that only the
    /// version before has and that links lead from to it.
    fn replaced_params(&self) -> BTreeMap<Value, SmallVec<[Value; 2]>> {
        let Pair { before, after } = self.versions.as_ref();
        let params = after.f.blocks().flat_map(|b| after.f.block_params(b).iter().copied());
        let is_replaced =
            |p: &Value| !after.f.has_value(*p) && before.f.defining_inst(*p).is_none();
        let replaced = |p: Value| {
            (p, before.holders(p).iter().copied().filter(is_replaced).collect::<SmallVec<_>>())
        };
        let new = params.filter(|p| !before.f.has_value(*p)).map(replaced);
        new.filter(|(_, found)| !found.is_empty()).collect()
    }

    /// The source version of transitions that leave `from`.
    pub(crate) fn source(&self, from: Side) -> &Analyzed<'v> {
        &self.versions[from]
    }

    /// The target version of transitions that leave `from`.
    pub(crate) fn target(&self, from: Side) -> &Analyzed<'v> {
        &self.versions[from.other()]
    }

    /// The possible traps of the target version that bar landings behind them, for transitions that
    /// leave `from`.
    pub(crate) fn traps(&self, from: Side) -> &Traps {
        let (p, q) = (self.source(from), self.target(from));
        let new = || Traps::new(p, q, &self.facts, &self.least, &self.anchors);
        self.traps[from.other()].get_or_init(new)
    }

    /// The places of the points of the version on side `from` in the other version.
    pub(crate) fn own_places(&self, from: Side) -> &OwnPlaces {
        let new = || OwnPlaces::new(&self.facts, self.source(from), self.target(from));
        self.places[from].get_or_init(new)
    }

    /// The points at which entries from these points may land: all that [`landings_to_try`] may
    /// give.
    pub(crate) fn landing_candidates(
        &self,
        from: Side,
        points: &BTreeSet<Point>,
    ) -> BTreeSet<Point> {
        let (p, q) = (self.source(from), self.target(from));
        if points.is_empty() {
            return BTreeSet::new();
        }
        let places = self.own_places(from);
        let ends = points
            .iter()
            .filter_map(|at| Some((self.aim(from, *at), p.paths.end(p.f, at.inst())?.anchor)));
        // With fewer values to provide, more points are tried, and among them all that are tried
        // with more values (`fewer_landing_points_are_among_more`).
        let tried = |(at, anchor)| landings_to_try(&q.paths, places, anchor, at, None, |_| 0);
        ends.flat_map(tried).collect()
    }

    /// The knowledge about a value of the version on side `target`, for entries that land there.
    pub(crate) fn known_of(&self, target: Side, value: Value) -> &KnownValue {
        let (p, q) = (&self.versions[target.other()], &self.versions[target]);
        let all = self.known[target]
            .get_or_init(|| (0..q.f.value_bound()).map(|_| OnceCell::new()).collect());
        let of = &all[value.as_u32() as usize];
        of.get_or_init(|| Box::new(KnownValue::new(&self.facts, p, q, value)))
    }

    /// Whether a lone write of the source version is covered by a paired write that the path from a
    /// point behind it passes.
    pub(crate) fn cover_in_gap(&self, from: Side, write: Inst, end: Option<&PathEnd>) -> bool {
        let p = self.source(from);
        let covered = self.paired.cover(write).and_then(|cover| p.paths.end(p.f, cover));
        covered.zip(end).is_some_and(|(covered, end)| covered.anchor == end.anchor)
    }

    /// The place to look for landing points from a point: the point itself, or the point behind the
    /// last write that covers a lone write of the source version.
    pub(crate) fn aim(&self, from: Side, point: Point) -> Point {
        let (p, q) = (self.source(from), self.target(from).f);
        let open = p.lone_writes.open(point.inst()).iter();
        let covers = open.filter_map(|write| self.paired.cover(*write));
        let last = covers.reduce(|x, y| if p.f.stands_before(x, y) { y } else { x });
        last.and_then(|cover| q.next_inst(cover)).map_or(point, Point::before)
    }

    /// Whether a block was proved never to run: constants make it unreachable, the log removed it
    /// as unreachable, or the other version has the block and cannot reach it.
    pub(crate) fn is_unreachable(&self, from: Side, block: Block) -> bool {
        let (p, q) = (self.source(from), self.target(from));
        let removed = from == Side::Before && self.facts.control.is_removed(block);
        !p.decided.cfg().is_reachable(block)
            || removed
            || (q.f.has_block(block) && !q.cfg.is_reachable(block))
    }
}
