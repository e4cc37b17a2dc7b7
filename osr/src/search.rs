//! Searches the entries of one direction of a pair: for each source point, the cheapest landing
//! point and its compensation code.

use crate::accesses::{accessed, address};
use crate::blame::{KnownUses, suspects};
use crate::derive::Deriver;
use crate::entry::{self, Derivation, LastKept};
use crate::goal::{DerivationCost, EntryGoal, LostValues, Replays};
use crate::landings::landings_to_try;
use crate::level::Level;
use crate::live::LiveTable;
use crate::outlook::{FEW_LANDINGS, Ruling};
use crate::pair::{Analyzed, VersionPair, members};
use crate::partial::points_of;
use crate::paths::PathEnd;
use crate::reason::{Missing, Obstacle, Reason};
use crate::source::{Here, SourcePoint};
use crate::synthesize::{Arrow, SynthesizedMapping};
use crate::traps::{LandingSource, PassedTraps};
use ir::access::Access;
use ir::{Block, Inst, Point, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use transition::Side;
use transition::mapping::{EntryParts, EntryStore, Mapping, SharedEntry};

/// The mapping that a search has made.
pub(crate) struct SearchResult {
    pub(crate) level: Level,
    pub(crate) from: Side,
    pub(crate) synthesized: SynthesizedMapping,
}

/// The part of the search from a point that is the same at every level.
enum LandingPlan<'g> {
    /// The entry that does nothing.
    AsIs(EntryParts<'g>),
    /// The landing points to try, and the reason why others are barred.
    Landings(Vec<EntryGoal<'g>>, Option<Obstacle>),
}

/// Finds the landing points to try from the points of one direction.
struct Planner<'a, 'v> {
    /// The side that the mapping leaves from.
    from: Side,
    pair: &'a VersionPair<'v>,
    p: &'a Analyzed<'v>,
    q: &'a Analyzed<'v>,
    /// The source points whose entries land before the same instruction.
    staying: Option<&'a BTreeSet<Point>>,
    /// The points at which other entries may land; `None` for all.
    allowed: Option<&'a BTreeSet<Point>>,
    /// Whether they land in the place of their source point, if that costs no more than elsewhere.
    in_place: bool,
    here: SourcePoint,
    passed_traps: RefCell<PassedTraps>,
}

/// The search for one direction.
pub(crate) struct Search<'a, 'v> {
    /// The source points of the entries; `None` for all.
    asked: Option<&'a BTreeSet<Point>>,
    planner: Planner<'a, 'v>,
    /// Keeps nothing.
    deriver: Deriver<'a, 'v>,
    /// Reads the values that the entry at hand keeps.
    keeper: Deriver<'a, 'v>,
    pub(crate) mapping: Mapping,
    points: usize,
    unreachable: usize,
    missing: Vec<Missing<Obstacle>>,
}

/// The first round of searches in one direction at some of their source points, in order, at
/// several levels, the lowest first. `live` is liveness at the source points, `needed` at the
/// landing points.
///
/// The levels have the source points and the landing points in common, and an entry that does
/// nothing is the best at every level. Levels with equal entries share them.
pub(crate) fn first_round(
    searches: &mut [Search<'_, '_>],
    points: &[Point],
    live: &LiveTable,
    needed: &LiveTable,
) {
    let Some(first) = searches.first() else { return };
    let first = &first.planner;
    let mut planner = first.again();
    for &point in points {
        match planner.plan(point, live, needed) {
            Err(why) => searches.iter_mut().for_each(|s| s.missing.push(Missing { point, why })),
            Ok(LandingPlan::AsIs(entry)) => {
                // The mappings of all levels share one store, if there is one.
                let entry = SharedEntry::made(entry, searches[0].mapping.store());
                let insert = |s: &mut Search<'_, '_>| s.mapping.insert_shared(point, entry.clone());
                searches.iter_mut().for_each(insert);
            }
            Ok(LandingPlan::Landings(goals, barred)) => {
                first_round_at(searches, point, &planner.here, &goals, barred.as_ref());
            }
        }
    }
}

/// The first round at one point, with its landing points and the reason why others are barred.
fn first_round_at(
    searches: &mut [Search<'_, '_>],
    point: Point,
    here: &SourcePoint,
    goals: &[EntryGoal<'_>],
    barred: Option<&Obstacle>,
) {
    // The result of the level below, and the index of the search that found it.
    let mut below: Option<(usize, Level, Result<SharedEntry, Obstacle>)> = None;
    for index in 0..searches.len() {
        let level = searches[index].deriver.level;
        // `avail` adds only kept values to `alias`, and an entry that keeps nothing beats any that
        // keeps a value. Between other levels an entry may become cheaper.
        let keeps = |known: Level| known == Level::Alias && level == Level::Avail;
        let (by, found) = match below.take() {
            Some((by, _, found)) if searches[by].deriver.is_same_at(level) => (by, found),
            Some((by, known, Ok(entry))) if keeps(known) => (by, Ok(entry)),
            known => {
                let is_lost = known.as_ref().is_some_and(|(_, known, _)| keeps(*known));
                let found = searches[index].best_entry(here, goals, barred, is_lost);
                // Equal entries are shared: neither certifier nor checker looks at one twice.
                let found = match (known, found) {
                    (Some((_, _, Ok(below))), Ok(entry)) if below == entry => Ok(below),
                    (_, found) => found,
                };
                (index, found)
            }
        };
        match &found {
            Ok(entry) => searches[index].mapping.insert_shared(point, entry.clone()),
            Err(why) => searches[index].missing.push(Missing { point, why: *why }),
        }
        below = Some((by, level, found));
    }
}

impl<'a, 'v> Search<'a, 'v> {
    /// A search without entries, at the points that an arrow requests.
    pub(crate) fn new(arrow: &Arrow<'a, 'v>, level: Level) -> Search<'a, 'v> {
        let (pair, asked) = (arrow.pair, arrow.asked);
        let planner = Planner::new(arrow);
        let (p, q) = (planner.p, planner.q);
        Search {
            asked,
            planner,
            deriver: Deriver::new(pair, p, q, level),
            keeper: Deriver::new(pair, p, q, level),
            mapping: Mapping::new(p.f, q.f),
            points: 0,
            unreachable: 0,
            missing: Vec::new(),
        }
    }

    /// Rebuilds the entries that provide less than `needed` at their landing points. `live` is
    /// liveness at the source points.
    ///
    /// Entries that provide everything stay as they are. Uses only grow from round to round, so a
    /// better entry cannot appear; and a point whose entry was dropped is never tried again, which
    /// ends the fixpoint.
    pub(crate) fn update(&mut self, live: &LiveTable, needed: &LiveTable) {
        self.update_at(&needed.lacking(&self.mapping), live, needed);
    }

    /// Builds the entries at these points again.
    pub(crate) fn update_at(&mut self, points: &[Point], live: &LiveTable, needed: &LiveTable) {
        for &point in points {
            let found = match self.planner.plan(point, live, needed) {
                Err(why) => Err(why),
                Ok(LandingPlan::AsIs(entry)) => Ok(SharedEntry::made(entry, self.mapping.store())),
                Ok(LandingPlan::Landings(goals, barred)) => {
                    let here = std::mem::take(&mut self.planner.here);
                    let found = self.best_entry(&here, &goals, barred.as_ref(), false);
                    self.planner.here = here;
                    found
                }
            };
            match found {
                Ok(entry) => self.mapping.insert_shared(point, entry),
                Err(why) => {
                    self.mapping.remove(point);
                    self.missing.push(Missing { point, why });
                }
            }
        }
    }

    /// Gives up every entry of this direction, for the reason [`Reason::ManyValues`].
    pub(crate) fn give_up(&mut self) {
        let points = self.source_points();
        points.into_iter().for_each(|point| self.give_up_at(point));
    }

    /// Gives up a point without an entry, for the same reason.
    pub(crate) fn give_up_at(&mut self, point: Point) {
        self.missing.push(Missing { point, why: Obstacle::new(Reason::ManyValues) });
    }

    /// Packs the entries that the search finds from here on.
    pub(crate) fn pack(&mut self, store: &EntryStore) {
        let f = (self.planner.p.f, self.planner.q.f);
        self.mapping = Mapping::new(f.0, f.1).packing(store.clone());
    }

    /// The source points, in the order of the function. Counts them.
    pub(crate) fn source_points(&mut self) -> Vec<Point> {
        let f = self.deriver.p.f;
        if let Some(asked) = self.asked {
            let mut points = Vec::new();
            let (pair, from) = (self.planner.pair, self.planner.from);
            let mut blocks: BTreeSet<Block> =
                asked.iter().map(|point| f.inst_block(point.inst())).collect();
            blocks.retain(|block| !pair.is_unreachable(from, *block));
            // In the order of the function, like for all points. Findings of a search at one point
            // carry over to the next, and a reason may name another value in another order.
            for block in f.blocks().filter(|block| blocks.contains(block)) {
                points
                    .extend(f.block_insts(block).map(Point::before).filter(|p| asked.contains(p)));
            }
            (self.points, self.unreachable) = (asked.len(), asked.len() - points.len());
            return points;
        }
        let (points, unreachable) = points_of(self.planner.pair, self.planner.from);
        (self.points, self.unreachable) = (points.len() + unreachable, unreachable);
        points
    }

    /// The cheapest entry from a point: fewest kept values, then fewest kept arguments, then
    /// shortest compensation code, then the point's own place, then the earliest landing point.
    /// `barred` is the reason why other landing points are barred. `is_lost` says that every
    /// entry is known to keep values.
    fn best_entry(
        &mut self,
        here: &SourcePoint,
        goals: &[EntryGoal<'_>],
        barred: Option<&Obstacle>,
        is_lost: bool,
    ) -> Result<SharedEntry, Obstacle> {
        // Outcomes of the deriver hold for one source point alone. With outcomes of the last source
        // point, entries would read values that are not available here.
        self.deriver.come_to(here);
        let found = if is_lost { Err(None) } else { self.without_keeping(here, goals) };
        let found = if found.is_err() && self.deriver.level == Level::Avail {
            self.keeping(here, goals)
        } else {
            found
        };
        // A value that cannot be had says more than a trap that bars another landing point.
        let why = |why: Option<Obstacle>| why.or(barred.copied());
        found.map_err(|o| why(o).unwrap_or(Obstacle::new(Reason::NoLanding)))
    }

    /// The cheapest entry that keeps no value. The error is the obstacle at the first landing point
    /// that has one.
    fn without_keeping(
        &mut self,
        here: &SourcePoint,
        goals: &[EntryGoal<'_>],
    ) -> Result<SharedEntry, Option<Obstacle>> {
        let mut best: Option<(DerivationCost, usize, Derivation)> = None;
        let mut derived = Derivation::new();
        let mut obstacle = None;
        // Values without which landing points have failed.
        let mut lost = LostValues::new();
        // Values that no entry has from this source point, and that no search has looked for.
        let mut hopeless = LostValues::new();
        for (at, goal) in goals.iter().enumerate() {
            // At `empty` no entry is found here, and the first obstacle is known. At the end of a
            // long chain of operations, each further landing point would visit as many nodes in
            // vain again.
            let is_empty = self.deriver.level == Level::Empty;
            if self.deriver.is_spent() || (is_empty && obstacle.is_some()) {
                break;
            }
            // A goal that needs such a value fails as well, and the first obstacle is known. A
            // landing point far away has many odd values, and the remaining odd values need not be
            // found.
            let is_lost = |value: &Value| {
                self.deriver.is_lost(*value) && goal.wants(self.deriver.p, here, *value)
            };
            let wants = |value: &Value| goal.wants(self.deriver.p, here, *value);
            if lost.iter().any(is_lost) || hopeless.iter().any(wants) {
                continue;
            }
            // Each odd value costs a copy, a step or a kept value. Of equal costs the first wins.
            let is_no_less = |least| goal.is_no_less(self.deriver.p, here, least);
            if best.as_ref().is_some_and(|(least, ..)| is_no_less(*least)) {
                continue;
            }
            goal.find_odd(self.deriver.p, here);
            // A landing point of the same cost as the landing point before is no better.
            if at > 0 && goal.costs_as(&goals[at - 1]) {
                continue;
            }
            let is_blamed = obstacle.is_none();
            let least = best.as_ref().map(|(least, ..)| *least);
            if goals.len() > FEW_LANDINGS && (least.is_some() || !is_blamed) {
                match self.deriver.rule(None, here, goal, least) {
                    Ruling::Open => {}
                    Ruling::Out => continue,
                    Ruling::Lost(value) => {
                        hopeless.push(value);
                        continue;
                    }
                }
            }
            match entry::derive(&mut self.deriver, here, goal, is_blamed, &mut derived) {
                Ok(()) if self.deriver.level == Level::Empty => {
                    // At `empty`, compensation code must be empty: even a copy from another id is
                    // an obstacle.
                    let value = entry::changed(&self.deriver, goal, &derived).next();
                    obstacle.get_or_insert(Obstacle { value, ..Obstacle::new(Reason::NotLive) });
                }
                Ok(()) => {
                    let cost = entry::cost(&mut self.deriver, here, goal, &derived);
                    if is_better(cost, best.as_ref().map(|(least, ..)| *least)) {
                        best = Some((cost, at, std::mem::take(&mut derived)));
                    }
                }
                Err(value) => {
                    obstacle.get_or_insert_with(|| self.deriver.explain(here, value));
                    lost.push(value);
                }
            }
        }
        let (cost, at, derived) = best.ok_or(obstacle)?;
        let entry = entry::assemble(&mut self.deriver, here, &goals[at], cost.size, &derived);
        Ok(SharedEntry::made(entry, self.mapping.store()))
    }

    /// The cheapest entry, with the kept values that it needs, or the first obstacle.
    fn keeping(
        &mut self,
        here: &SourcePoint,
        goals: &[EntryGoal<'_>],
    ) -> Result<SharedEntry, Option<Obstacle>> {
        self.deriver.go_on();
        let mut best: Option<(DerivationCost, EntryParts<'_>)> = None;
        let mut derived = Derivation::new();
        let mut obstacle = None;
        // The lost values of the best entry.
        let mut best_lost = LostValues::new();
        let mut last = LastKept::default();
        // Whether the landing point before was tried.
        let mut is_tried = false;
        for (at, goal) in goals.iter().enumerate() {
            if self.deriver.is_spent() {
                break;
            }
            let is_no_better = |least| goal.loses_no_less(self.deriver.p, here, least, &best_lost);
            if best.as_ref().is_some_and(|(least, _)| is_no_better(*least)) {
                is_tried = false;
                continue;
            }
            goal.find_odd(self.deriver.p, here);
            // A landing point of the same cost as the landing point before is no better.
            if at > 0 && goal.costs_as(&goals[at - 1]) {
                let least = best.as_ref().map(|(least, _)| *least);
                let (deriver, keeper) = (&mut self.deriver, &self.keeper);
                if !is_tried || last.is_no_better(deriver, keeper, here, goal, least) {
                    continue;
                }
            }
            // Of landing points that fail, the first obstacle is the answer.
            let least = best.as_ref().map(|(least, _)| *least);
            if goals.len() > FEW_LANDINGS
                && (least.is_some() || obstacle.is_some())
                && self.deriver.rules_out(&self.keeper, here, goal, least)
            {
                is_tried = false;
                continue;
            }
            let lost = entry::lost_values(&mut self.deriver, here, goal);
            // The search for kept values is dear, and the first landing point mostly the best.
            if let Some((best, _)) = &best {
                let deriver = &mut self.deriver;
                let least = entry::least_keeping_cost(deriver, here, goal, &lost)
                    .max(entry::least_cost_of_more(goal, &lost, *best, &best_lost));
                if *best <= least {
                    is_tried = false;
                    continue;
                }
            }
            is_tried = true;
            let all_lost = lost.clone();
            let (deriver, keeper, last) = (&mut self.deriver, &mut self.keeper, &mut last);
            match entry::derive_keeping(deriver, keeper, here, last, goal, lost, &mut derived) {
                Ok(()) => {
                    let cost = entry::cost(&mut self.keeper, here, goal, &derived);
                    if is_better(cost, best.as_ref().map(|(least, _)| *least)) {
                        let keeper = &mut self.keeper;
                        let entry = entry::assemble(keeper, here, goal, cost.size, &derived);
                        best = Some((cost, entry));
                        best_lost = all_lost;
                    }
                }
                Err(why) => obstacle = obstacle.or(Some(why)),
            }
        }
        let (_, entry) = best.ok_or(obstacle)?;
        Ok(SharedEntry::made(entry, self.mapping.store()))
    }

    pub(crate) fn finish(self) -> SearchResult {
        let Search { planner, mut missing, mapping, points, unreachable, deriver, .. } = self;
        let (pair, from) = (planner.pair, planner.from);
        missing.sort_by_key(|one| one.point);
        let mut known = KnownUses::new();
        for one in &mut missing {
            let suspects = suspects(pair, from, *one, 1, &mut known);
            one.why.blame = suspects.first().map(|at| pair.facts.first.blame(*at as usize));
        }
        let synthesized = SynthesizedMapping { mapping, points, unreachable, missing };
        SearchResult { level: deriver.level, from, synthesized }
    }
}

impl<'a, 'v> Planner<'a, 'v> {
    fn new(arrow: &Arrow<'a, 'v>) -> Planner<'a, 'v> {
        let Arrow { pair, from, staying, landings: allowed, in_place, .. } = *arrow;
        let (p, q) = (pair.source(from), pair.target(from));
        let (here, passed_traps) = (SourcePoint::default(), RefCell::default());
        Planner { from, pair, p, q, staying, allowed, in_place, here, passed_traps }
    }

    /// A planner of the same mapping, at no point.
    fn again(&self) -> Planner<'a, 'v> {
        let (here, passed_traps) = (SourcePoint::default(), RefCell::default());
        Planner { here, passed_traps, ..*self }
    }

    /// The landing points to try from a point, unless the empty entry does. Enters the point.
    ///
    /// # Errors
    /// The reason why no entry starts there.
    fn plan<'g>(
        &mut self,
        point: Point,
        live: &LiveTable,
        needed: &'g LiveTable,
    ) -> Result<LandingPlan<'g>, Obstacle>
    where
        'a: 'g,
    {
        let (p, q) = (self.p, self.q);
        let end = self.path_end(point)?;
        // Must precede every question to the derivers: they look values up in `here`, in terms of
        // this source point and the jumps on its path.
        self.here.enter(p, &self.pair.facts, point, live.live(point), &end.jumps);
        let mut barred = None;
        let mut goals: Vec<EntryGoal<'g>> = Vec::new();
        let values = |at: Point| needed.live(at).len();
        let (paths, places) = (&q.paths, self.pair.own_places(self.from));
        let aim = self.pair.aim(self.from, point);
        let mut targets = landings_to_try(paths, places, end.anchor, aim, self.allowed, values);
        if self.staying.is_some_and(|staying| staying.contains(&point)) {
            targets = landings_to_try(paths, places, end.anchor, point, None, values);
            targets.retain(|target| *target == point);
        }
        if self.in_place {
            let place = places.of(aim);
            targets.sort_by_key(|target| Some(*target) != place);
        }
        for target in targets {
            if let Some(why) = self.bar(point, target, !end.jumps.is_empty()) {
                barred = barred.or(Some(why));
                continue;
            }
            let replays = self.replays(point, target);
            let goal = EntryGoal::new(&self.here, target, needed.live(target), replays);
            // The empty entry costs nothing, so no other landing point can beat it. Most points end
            // here.
            if goal.is_met_as_is(p, &self.here) {
                return Ok(LandingPlan::AsIs(goal.as_is()));
            }
            goals.push(goal);
        }
        Ok(LandingPlan::Landings(goals, barred))
    }

    /// The end of the path from a point.
    ///
    /// # Errors
    /// The reason why no entry starts there.
    fn path_end(&self, point: Point) -> Result<PathEnd, Obstacle> {
        let p = self.p;
        if self.pair.facts.first.on_effects().is_some() {
            return Err(Obstacle::new(Reason::Effect));
        }
        let end = p.paths.end(p.f, point.inst());
        // Memory cannot be undone. A source point inside the window of a write of its own has no
        // entries, unless the write that covers it stands in the same gap.
        let is_covered = |write: &Inst| self.pair.cover_in_gap(self.from, *write, end.as_ref());
        let mut open = p.lone_writes.open(point.inst()).iter().copied();
        let first_open = open.find(|write| !self.pair.paired.has(*write) && !is_covered(write));
        if let Some(write) = p.lone_writes.lost(point.inst()).or(first_open) {
            return Err(Obstacle { inst: Some(write), ..Obstacle::new(Reason::MemoryAhead) });
        }
        let end = end.ok_or(Obstacle::new(Reason::NoLanding))?;
        Ok(end)
    }

    /// The reason why no entry from `point` may land at `target`, if there is one. `crosses` says
    /// that the path from `point` runs over jumps.
    fn bar(&self, point: Point, target: Point, crosses: bool) -> Option<Obstacle> {
        if let Some(trap) = self.skipped_trap(target) {
            return Some(Obstacle { inst: Some(trap), ..Obstacle::new(Reason::TrapNotReached) });
        }
        if let Some(assumption) = self.q.lone_assumptions.before(self.q.f, target) {
            return Some(Obstacle { inst: Some(assumption), ..Obstacle::new(Reason::NotAssumed) });
        }
        // The target version must have executed every paired write that the source version has
        // executed, and the writes that cover its lone writes.
        let behind = self.q.lone_writes.open(target.inst());
        let paired = &self.pair.paired;
        let lacks = |write: &Inst| !behind.contains(&paired.cover(*write).unwrap_or(*write));
        if let Some(write) = self.p.lone_writes.open(point.inst()).iter().copied().find(lacks) {
            return Some(Obstacle { inst: Some(write), ..Obstacle::new(Reason::MemoryAhead) });
        }
        self.unreplayable(point, target, crosses, &self.replays(point, target))
    }

    /// The writes that an entry from `point` to `target` replays: the writes whose windows hold the
    /// landing point, except paired writes that the source version has executed, too.
    fn replays(&self, point: Point, target: Point) -> Replays<'a> {
        let (done, open) = (self.p.lone_writes.open(point.inst()), &self.q.lone_writes);
        let open = open.open(target.inst());
        let is_done = |write: &Inst| self.pair.paired.has(*write) && done.contains(write);
        if !open.iter().any(is_done) {
            return Replays::Borrowed(open);
        }
        open.iter().copied().filter(|write| !is_done(write)).collect()
    }

    /// The reason why the entry cannot replay the writes of the target version, if there is one.
    /// Only their places are checked here; the derivation shows whether address and value can be
    /// had.
    fn unreplayable(
        &self,
        point: Point,
        target: Point,
        crosses: bool,
        replays: &[Inst],
    ) -> Option<Obstacle> {
        let (p, q) = (self.p, self.q);
        let facts = &self.pair.facts;
        let is_safe = |write: &Inst| {
            // A global is always there; only an address can be out of bounds. A replay must not
            // trap, so its place must always be there, or an access of at least its bytes must have
            // passed at the same address.
            let Some(access) = accessed(q, facts, *write, |v| v) else { return true };
            let at = |value: Value| {
                let address = Some(address(p, facts, value));
                p.vouches(&Access { address, ..access }, point)
            };
            // A constant address needs no value of `p`.
            let is_constant = access.address.is_some_and(|a| a.constant().is_some());
            self.pair.least.contain(&access)
                || (is_constant && p.vouches(&access, point))
                || members(facts, p, q, q.f.inst(*write).args[0]).into_iter().any(at)
        };
        // Behind a jump the parameters have other instances than at the source point. The checker
        // accepts a replay only if the path to the anchor binds nothing (`docs/certificates.md`,
        // *Entries*).
        let are_late = q.lone_writes.are_late(target.inst()) || crosses;
        let first_late = replays.first().copied().filter(|_| are_late);
        if let Some(write) = q.lone_writes.lost(target.inst()).or(first_late) {
            return Some(Obstacle { inst: Some(write), ..Obstacle::new(Reason::MemoryBehind) });
        }
        let unsafe_one = replays.iter().find(|write| !is_safe(write))?;
        Some(Obstacle { inst: Some(*unsafe_one), ..Obstacle::new(Reason::TrapNotReached) })
    }

    fn skipped_trap(&self, target: Point) -> Option<Inst> {
        let (p, q) = (self.p, self.q);
        let from = Some(&LandingSource { p, here: &self.here });
        let noted = &mut *self.passed_traps.borrow_mut();
        // A witness under any id of its class shows that the source version has passed the trap. It
        // is looked up in terms of the path, since a witness behind the jump counts as well.
        self.pair.traps(self.from).skipped(q, target, from, noted, |w| {
            // A load ahead on the path has not passed, though its contents can be had.
            !matches!(self.here.look_up(p, w), Here::Member(_) | Here::Absent)
        })
    }
}

/// Whether an entry replaces the best so far. Of two entries of equal cost, the first wins.
fn is_better(cost: DerivationCost, least: Option<DerivationCost>) -> bool {
    least.is_none_or(|least| cost < least)
}
