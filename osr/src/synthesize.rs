//! Whole mappings, both directions together.
//!
//! *provides* covers live+: what is live at the landing point when the target version's own armed entries
//! count as uses of their kept values. Those entries are the other direction's, so the two mappings of
//! a pair depend on each other and are made together, to a fixpoint: entries whose kept values make
//! more live are found, the entries that land there are built again to provide it, and an entry that
//! cannot is dropped for good. Uses only grow, so this ends.

use crate::derive::Deriver;
use crate::entry::{self, Cost};
use crate::level::Level;
use crate::lines::Lines;
use crate::pair::{Demand, Heading, VersionPair};
use crate::reason::{Obstacle, Reason, Unmapped};
use crate::source::{Here, SourcePoint};
use ir::liveness::Liveness;
use ir::mapping::{Entry, Mapping};
use ir::{Inst, Point, Value};
use std::collections::BTreeMap;

/// Landing points tried from one source point. A longer gap is sampled at both ends and around the
/// point's own place.
const MAX_LANDINGS: usize = 24;

/// Landing points tried, times values to be provided at the first of them: with many values to provide,
/// fewer landing points are tried.
const MAX_VALUES_TRIED: usize = 1 << 13;

/// Live values of a version, summed over its points, beyond which it gets no mappings: an entry names every
/// value it provides, so a mapping has the size of this sum.
const MAX_LIVE_VALUES: usize = 1 << 24;

/// The mapping in one direction, and what has none.
#[derive(Clone, Debug)]
pub struct Direction {
    /// The entries.
    pub mapping: Mapping,
    /// All points of the source version, unreachable ones included.
    pub points: usize,
    /// Points in code proved never to run. They have no entry and are not unmapped.
    pub unreachable: usize,
    /// The reachable points without an entry, ascending.
    pub unmapped: Vec<Unmapped>,
}

/// The mappings of a pair of versions at one level.
#[derive(Clone, Debug)]
pub struct Synthesis {
    /// From the version before the log to the one after.
    pub forward: Direction,
    /// From the version after the log to the one before.
    pub backward: Direction,
}

/// Makes the mappings between two versions at a level, in both directions. Cost: for each source point, the
/// landing points of its gap times what is live there.
pub fn synthesize(pair: &VersionPair<'_>, level: Level) -> Synthesis {
    let mut directions = [Search::new(pair, Heading::Forward, level), Search::new(pair, Heading::Backward, level)];
    if meet(pair, &mut directions).is_none() {
        directions = [Search::new(pair, Heading::Forward, level), Search::new(pair, Heading::Backward, level)];
        directions.iter_mut().for_each(Search::give_up);
    }
    let [forward, backward] = directions.map(Search::finish);
    Synthesis { forward, backward }
}

/// Brings both directions to their common fixpoint; `None` when a version has too many live values.
fn meet(pair: &VersionPair<'_>, directions: &mut [Search<'_, '_>; 2]) -> Option<()> {
    let plain = [LiveTable::plain(pair, 0)?, LiveTable::plain(pair, 1)?];
    let mut uses = [ExtraUses::new(), ExtraUses::new()];
    let mut plus = [None, None];
    loop {
        for (heading, search) in directions.iter_mut().enumerate() {
            let needed = plus[1 - heading].as_ref().unwrap_or(&plain[1 - heading]);
            search.update(&plain[heading], needed);
        }
        let mut grew = false;
        for (side, search) in directions.iter().enumerate() {
            if search.add_kept(&mut uses[side]) {
                grew = true;
                plus[side] = Some(LiveTable::new(pair, side, &uses[side])?);
            }
        }
        if !grew {
            return Some(());
        }
    }
}

/// Kept values, as uses at source points.
type ExtraUses = BTreeMap<Inst, Vec<Value>>;

/// What is live at each point of a version, by instruction index.
struct LiveTable {
    at: Vec<Box<[Value]>>,
}

impl LiveTable {
    fn plain(pair: &VersionPair<'_>, side: usize) -> Option<LiveTable> {
        LiveTable::new(pair, side, &ExtraUses::new())
    }

    /// `None` beyond [`MAX_LIVE_VALUES`].
    fn new(pair: &VersionPair<'_>, side: usize, uses: &ExtraUses) -> Option<LiveTable> {
        let side = &pair.sides[side];
        let liveness = match pair.demand {
            Demand::Needed => Liveness::of_needed(side.f, &side.cfg, uses),
            Demand::Live => Liveness::with_extra_uses(side.f, &side.cfg, uses),
        };
        let mut at = vec![Box::default(); side.f.inst_bound()];
        let mut total = 0;
        for &block in side.cfg.rpo() {
            liveness.for_each_point(side.f, block, |point, live| {
                total += live.len();
                if total <= MAX_LIVE_VALUES {
                    at[point.inst().as_u32() as usize] = live.as_slice().into();
                }
            });
        }
        (total <= MAX_LIVE_VALUES).then_some(LiveTable { at })
    }

    fn live(&self, point: Point) -> &[Value] {
        &self.at[point.inst().as_u32() as usize]
    }
}

/// One direction being made.
struct Search<'a, 'v> {
    heading: Heading,
    pair: &'a VersionPair<'v>,
    deriver: Deriver<'a, 'v>,
    here: SourcePoint,
    started: bool,
    mapping: Mapping,
    points: usize,
    unreachable: usize,
    unmapped: Vec<(Point, Obstacle)>,
}

impl<'a, 'v> Search<'a, 'v> {
    fn new(pair: &'a VersionPair<'v>, heading: Heading, level: Level) -> Search<'a, 'v> {
        let (p, q) = (pair.source(heading), pair.target(heading));
        let entry = Point::before(p.f.first_inst(p.f.entry()));
        Search {
            heading,
            pair,
            deriver: Deriver::new(pair, p, q, level),
            here: SourcePoint::new(entry),
            started: false,
            mapping: Mapping::new(p.f, q.f),
            points: 0,
            unreachable: 0,
            unmapped: Vec::new(),
        }
    }

    /// Builds every entry the first time; later those again that do not provide all that is needed where
    /// they land.
    fn update(&mut self, live: &LiveTable, needed: &LiveTable) {
        let points = if std::mem::replace(&mut self.started, true) { self.lacking(needed) } else { self.all_points() };
        for point in points {
            match self.best_entry(point, live, needed) {
                Ok(entry) => self.mapping.insert(point, entry),
                Err(obstacle) => {
                    self.mapping.remove(point);
                    self.unmapped.push((point, obstacle));
                }
            }
        }
    }

    /// No entries at all.
    fn give_up(&mut self) {
        let points = self.all_points();
        self.unmapped = points.into_iter().map(|p| (p, Obstacle::new(Reason::TooLong))).collect();
    }

    fn all_points(&mut self) -> Vec<Point> {
        let f = self.deriver.p.f;
        let mut points = Vec::new();
        for block in f.blocks() {
            let here = f.block_insts(block).map(Point::before);
            if self.pair.is_unreachable(self.heading, block) {
                self.unreachable += here.count();
            } else {
                points.extend(here);
            }
        }
        self.points = points.len() + self.unreachable;
        points
    }

    fn lacking(&self, needed: &LiveTable) -> Vec<Point> {
        let provides_all = |e: &Entry| needed.live(e.target).iter().all(|v| e.provides_value(*v));
        self.mapping.entries().filter(|(_, e)| !provides_all(e)).map(|(p, _)| p).collect()
    }

    /// Adds this direction's kept values to the uses of its source version; says whether there are new ones.
    fn add_kept(&self, uses: &mut ExtraUses) -> bool {
        let mut grew = false;
        for (point, entry) in self.mapping.entries().filter(|(_, e)| !e.kept.is_empty()) {
            let at = uses.entry(point.inst()).or_default();
            for &value in &entry.kept {
                if !at.contains(&value) {
                    at.push(value);
                    grew = true;
                }
            }
        }
        grew
    }

    /// The cheapest entry from a point: fewest kept values, then fewest kept arguments, then shortest
    /// compensation code, then earliest landing point.
    fn best_entry(&mut self, point: Point, live: &LiveTable, needed: &LiveTable) -> Result<Entry, Obstacle> {
        if self.pair.facts.effect_changed.is_some() {
            return Err(Obstacle::new(Reason::Effect));
        }
        let (p, q) = (self.deriver.p, self.deriver.q);
        let Some(end) = p.lines.end(p.f, point.inst()) else { return Err(Obstacle::new(Reason::NoLanding)) };
        self.here.enter(p, point, live.live(point), &end.jumps);
        self.deriver.restart();
        let mut best: Option<(Cost, Entry)> = None;
        let mut obstacle = None;
        for target in landings_to_try(&q.lines, end.anchor, point, |at| needed.live(at).len()) {
            if let Some(trap) = self.skipped_trap(target) {
                let why = Obstacle { inst: Some(trap), ..Obstacle::new(Reason::TrapNotReached) };
                obstacle.get_or_insert(why);
                continue;
            }
            match entry::build(&mut self.deriver, &self.here, target, needed.live(target)) {
                Ok(entry) => {
                    let cost = entry::cost(&entry, p);
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, entry));
                    }
                    if cost == (0, 0, 0) {
                        break;
                    }
                }
                // A value that cannot be had says more than a trap in the way of another landing.
                Err(why) if obstacle.is_none_or(|o: Obstacle| o.value.is_none()) => obstacle = Some(why),
                Err(_) => {}
            }
        }
        best.map(|(_, entry)| entry).ok_or(obstacle.unwrap_or(Obstacle::new(Reason::NoLanding)))
    }

    fn skipped_trap(&self, target: Point) -> Option<Inst> {
        let (p, q) = (self.deriver.p, self.deriver.q);
        self.pair.traps(self.heading).skipped(q, target, |w| self.here.look_up(p, w) != Here::Absent)
    }

    fn finish(self) -> Direction {
        let Search { pair, mut unmapped, mapping, points, unreachable, deriver, .. } = self;
        unmapped.sort_by_key(|(point, _)| *point);
        let blamed = |(point, o): (Point, Obstacle)| {
            let blame = blame(pair, &deriver, &o, point);
            Unmapped { point, reason: o.reason, value: o.value, blame }
        };
        let unmapped = unmapped.into_iter().map(blamed).collect();
        Direction { mapping, points, unreachable, unmapped }
    }
}

/// The landing points worth trying, earliest first: all of a short gap; of a long one, or with many values to
/// provide, some at its start, at its end and around the source point's own place. Cost: their number,
/// however long the gap is.
fn landings_to_try(lines: &Lines, anchor: Inst, source: Point, values: impl Fn(Point) -> usize) -> Vec<Point> {
    let landings = lines.landings(anchor);
    let count = landings.len();
    let Some(first) = landings.first() else { return Vec::new() };
    let most = (MAX_VALUES_TRIED / values(*first).max(1)).clamp(3, MAX_LANDINGS);
    if count <= most {
        return landings.to_vec();
    }
    let third = most / 3;
    let own = lines.landing_number(anchor, source).unwrap_or(count / 2);
    let near_start = own.saturating_sub(third / 2).clamp(third, count - third);
    let near_end = (own + third.div_ceil(2)).clamp(near_start, count - third);
    let chosen = (0..third).chain(near_start..near_end).chain(count - third..count);
    chosen.map(|i| landings[i]).collect()
}

/// The first action in the log that has to do with what stands in the way: with the value, its definition
/// or a use of it; with the instruction that may trap; with the effect; or with the point's own
/// instruction.
fn blame(pair: &VersionPair<'_>, deriver: &Deriver<'_, '_>, obstacle: &Obstacle, point: Point) -> Option<usize> {
    let facts = &pair.facts;
    if obstacle.reason == Reason::Effect {
        return facts.effect_changed;
    }
    let q = deriver.q.f;
    let of_value = obstacle.value.and_then(|v| {
        let of_users = || q.users(v).iter().filter_map(|u| facts.first_of_inst(*u)).min();
        facts.first_of_value(v).or_else(of_users)
    });
    let of_inst = || obstacle.inst.and_then(|i| facts.first_of_inst(i));
    of_value.or_else(of_inst).or_else(|| facts.first_of_inst(point.inst()))
}
