//! Pairs with many live values.
//!
//! Example: a function of 15,000 instructions that reads 2,000 words first and adds them up last.
//! Thousands of values are live at most of its points, and an entry names each of them. Lists of
//! all live values at all points, and of all entries, take 100 bytes for each value at each point.
//!
//! Such a pair is mapped in *parts*: some of its points at a time, with the lists of live values
//! for these points and for the points where their entries may land. Between the parts stay
//! liveness between blocks, the values that entries require and that are not live, and the entries.
//! These are packed ([`EntryStore`]). The mapping equals the mapping made at once
//! (`a_pair_in_parts_has_the_entries_of_a_pair_at_once`).
//!
//! Two limits remain: of the live values at all points, for time, and of the words of the packed
//! entries, for memory. A pair beyond them has entries at its loop headers and at its calls, as far
//! as half of a limit goes, and at other points spread evenly over each version. The other points
//! have no entries, for the reason [`Reason::ManyValues`]. [`crate::synthesize_at`] answers for
//! each of them.

use crate::level::Level;
use crate::live::{BlockLiveness, ExtraUses, add_unlive_of};
use crate::pair::VersionPair;
use crate::reason::{Missing, Obstacle, Reason};
use crate::search::{Search, SearchResult, first_round};
use crate::synthesize::{Arrow, LevelResult, SynthesizedMapping};
use ir::{Point, Value};
use std::collections::BTreeSet;
use transition::mapping::{EntryStore, Mapping, SharedEntry};
use transition::{Pair, Side};

/// Bounds of memory and time for the mappings of a pair. An entry names each value that it
/// provides: one for each live value where it lands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingLimits {
    /// The live values at all points of a version up to which the pair is mapped at once, with
    /// lists that are not packed.
    pub whole: usize,
    /// Beyond that, the live values at the source points of a part.
    pub part: usize,
    /// The largest number of live values at the source points of both versions that have entries.
    /// Each such value costs a few steps, and the live values at the landing points cost the same
    /// again.
    pub values: usize,
    /// The words of the packed entries of all levels, at four bytes.
    pub words: usize,
}

impl Default for MappingLimits {
    /// Mapped at once, 2^21 values take some two hundred megabytes, and a part some twenty. 2^26
    /// words take 256. Parts take two to three times as long, so middling pairs are mapped at once.
    /// A function of 60,000 instructions reaches 2^28 values with 2,200 live at each point.
    fn default() -> MappingLimits {
        MappingLimits { whole: 1 << 21, part: 1 << 20, values: 1 << 28, words: 1 << 26 }
    }
}

/// The mappings of a pair at several levels, in parts, with entries at these points or at all. Each
/// level has the first choice of points that suffices for it: entries at higher levels keep more
/// values, and must cost a lower level nothing.
pub(crate) fn in_parts(
    pair: &VersionPair<'_>,
    levels: &[Level],
    asked: Option<&Pair<BTreeSet<Point>>>,
    limits: MappingLimits,
) -> Vec<LevelResult> {
    let parts = Parts::new(pair, limits);
    let mut made: Vec<Option<Vec<SearchResult>>> = levels.iter().map(|_| None).collect();
    let mut values = limits.values;
    while values > 0 && made.iter().any(Option::is_none) {
        let chosen = parts.chosen(asked, values);
        let is_left = |at: &usize| made[*at].is_none();
        let left: Vec<usize> = (0..levels.len()).filter(is_left).collect();
        let left_levels: Vec<Level> = left.iter().map(|at| levels[*at]).collect();
        let found = parts.make(&left_levels, chosen.as_ref().or(asked));
        for (at, mut found) in left.into_iter().zip(found) {
            if let (Some(found), true) = (&mut found, chosen.is_some()) {
                let all = |of: &mut SearchResult| of.count_all_points(pair, asked);
                found.iter_mut().for_each(all);
            }
            made[at] = found;
        }
        values = values.min(parts.total(chosen.as_ref().or(asked))) / 2;
    }
    let none = |level: Level| {
        let searches = parts.searches(level, asked);
        let given_up = |mut search: Search<'_, '_>| {
            search.give_up();
            search.finish()
        };
        searches.into_iter().map(given_up).collect()
    };
    let result = |(mappings, level): (Option<_>, &Level)| LevelResult {
        is_too_long: mappings.is_none(),
        mappings: mappings.unwrap_or_else(|| none(*level)),
    };
    made.into_iter().zip(levels).map(result).collect()
}

/// More values or words than the limits allow.
struct TooMany;

/// A pair, and the values live at the start and the end of each block of its versions, from which
/// liveness at points follows.
struct Parts<'a, 'v> {
    pair: &'a VersionPair<'v>,
    limits: MappingLimits,
    text: Pair<BlockLiveness<'a>>,
    /// Liveness in runs, where it differs.
    run: Pair<Option<BlockLiveness<'a>>>,
    /// By instruction index: the values live there in the text.
    sizes: Pair<Vec<usize>>,
}

impl<'a, 'v> Parts<'a, 'v> {
    fn new(pair: &'a VersionPair<'v>, limits: MappingLimits) -> Parts<'a, 'v> {
        let text = Pair::from_fn(|side| BlockLiveness::of_text(pair.source(side), pair.demand));
        let run = Pair::from_fn(|side| {
            let version = pair.source(side);
            let of_run = || BlockLiveness::of_run(version, pair.demand, &ExtraUses::new());
            (!version.decided.is_empty()).then(of_run)
        });
        let sizes = text.as_ref().map(BlockLiveness::sizes);
        Parts { pair, limits, text, run, sizes }
    }

    fn run(&self, side: Side) -> &BlockLiveness<'a> {
        self.run[side].as_ref().unwrap_or(&self.text[side])
    }

    fn size(&self, side: Side, point: Point) -> usize {
        self.sizes[side][point.inst().as_u32() as usize]
    }

    /// The live values at these points, or at all.
    fn total(&self, asked: Option<&Pair<BTreeSet<Point>>>) -> usize {
        let of = |side: Side| match asked {
            Some(asked) => asked[side].iter().map(|point| self.size(side, *point)).sum::<usize>(),
            None => self.sizes[side].iter().sum(),
        };
        Side::BOTH.into_iter().map(of).sum()
    }

    /// The requested points with at most `values` live values together: loop headers and calls for
    /// at most half of them, then other points, spread evenly over the function. `None` for all.
    fn chosen(
        &self,
        asked: Option<&Pair<BTreeSet<Point>>>,
        values: usize,
    ) -> Option<Pair<BTreeSet<Point>>> {
        let total = self.total(asked);
        (total > values).then(|| {
            Pair::from_fn(|side| {
                let (all, _) = points_of(self.pair, side);
                let is_asked = |p: &Point| asked.is_none_or(|asked| asked[side].contains(p));
                let all: Vec<Point> = all.into_iter().filter(is_asked).collect();
                let size = |point: &Point| self.size(side, *point);
                let sum: usize = all.iter().map(size).sum();
                // Each version has its share.
                let values = (sum as u128 * values as u128 / total as u128) as usize;
                let wanted = self.pair.loop_headers(side).into_iter().chain(self.pair.calls(side));
                let of_all: BTreeSet<Point> = all.iter().copied().collect();
                let wanted: Vec<Point> = wanted.filter(|point| of_all.contains(point)).collect();
                let mut chosen = spread(&wanted, size, values / 2);
                let rest = values - chosen.iter().map(size).sum::<usize>();
                let others: Vec<Point> =
                    all.into_iter().filter(|point| !chosen.contains(point)).collect();
                chosen.extend(spread(&others, size, rest));
                chosen
            })
        })
    }

    /// The searches of a level, one for each direction, without entries.
    fn searches<'s>(
        &'s self,
        level: Level,
        asked: Option<&'s Pair<BTreeSet<Point>>>,
    ) -> Pair<Search<'s, 'v>> {
        let arrows = Arrow::both_ways(self.pair, Pair::new(0, 1));
        Pair::from_fn(|side| {
            let asked = asked.map(|asked| &asked[side]);
            Search::new(&Arrow { asked, ..arrows[side] }, level)
        })
    }

    /// The mappings at each level; `None` for a level beyond the limits.
    fn make(
        &self,
        levels: &[Level],
        asked: Option<&Pair<BTreeSet<Point>>>,
    ) -> Vec<Option<Vec<SearchResult>>> {
        let Ok(started) = self.started(levels, asked) else {
            return levels.iter().map(|_| None).collect();
        };
        let finished = |(mut searches, store): (Pair<Search<'_, 'v>>, &EntryStore)| {
            self.meet(&mut searches, store).ok()?;
            Some(searches.into_iter().map(Search::finish).collect())
        };
        let (searches, store) = started;
        searches.into_iter().map(|searches| finished((searches, &store))).collect()
    }

    /// The searches of each level after their first round, part by part.
    fn started<'s>(
        &'s self,
        levels: &[Level],
        asked: Option<&'s Pair<BTreeSet<Point>>>,
    ) -> Result<(Vec<Pair<Search<'s, 'v>>>, EntryStore), TooMany> {
        let store = EntryStore::default();
        let mut of_sides: Vec<std::vec::IntoIter<Search<'s, 'v>>> = Vec::new();
        for side in Side::BOTH {
            let new = |level: &Level| match side {
                Side::Before => self.searches(*level, asked).before,
                Side::After => self.searches(*level, asked).after,
            };
            let mut searches: Vec<Search<'s, 'v>> = levels.iter().map(new).collect();
            searches.iter_mut().for_each(|search| search.pack(&store));
            // Each search counts its points.
            let points = searches.iter_mut().map(Search::source_points).last().unwrap_or_default();
            for part in self.parts(side, &points) {
                self.first_round(&mut searches, side, part);
                self.check(&store)?;
            }
            of_sides.push(searches.into_iter());
        }
        let [before, after]: [_; 2] = of_sides.try_into().ok().expect("two sides");
        let pairs = before.zip(after).map(|(before, after)| Pair::new(before, after));
        Ok((pairs.collect(), store))
    }

    fn check(&self, store: &EntryStore) -> Result<(), TooMany> {
        if store.words() <= self.limits.words { Ok(()) } else { Err(TooMany) }
    }

    /// Divides source points, each part with a bounded number of live values.
    fn parts<'p>(&self, side: Side, points: &'p [Point]) -> impl Iterator<Item = &'p [Point]> {
        let mut rest = points;
        std::iter::from_fn(move || {
            let mut values = 0;
            let is_over = |point: &Point| {
                values += 1 + self.size(side, *point);
                values > self.limits.part
            };
            let count = rest.iter().position(is_over).unwrap_or(rest.len()).max(1);
            let part = rest.split_off(..count.min(rest.len()))?;
            (!part.is_empty()).then_some(part)
        })
    }

    /// The first round at these source points. If the tables for all of them are too large, the
    /// round takes one half of the points after the other.
    fn first_round(&self, searches: &mut [Search<'_, 'v>], side: Side, points: &[Point]) {
        let sources: BTreeSet<Point> = points.iter().copied().collect();
        let landings = self.pair.landing_candidates(side, &sources);
        let tables = (self.text[side].table(&sources), self.run(side.other()).table(&landings));
        match (tables, points) {
            ((Some(live), Some(needed)), _) => first_round(searches, points, &live, &needed),
            (_, [point]) => searches.iter_mut().for_each(|search| search.give_up_at(*point)),
            _ => {
                let (first, second) = points.split_at(points.len() / 2);
                self.first_round(searches, side, first);
                self.first_round(searches, side, second);
            }
        }
    }

    /// Brings the searches of a level to their common fixpoint, like [`crate::synthesize`].
    fn meet(&self, searches: &mut Pair<Search<'_, 'v>>, store: &EntryStore) -> Result<(), TooMany> {
        let mut uses = Pair::<ExtraUses>::default();
        let mut plus: Pair<Option<BlockLiveness<'_>>> = Pair::new(None, None);
        loop {
            let mut grown = Pair::new(false, false);
            for side in Side::BOTH {
                if !searches[side.other()].mapping.is_empty() {
                    let mapping = &searches[side].mapping;
                    grown[side] = self.add_unlive(mapping, side, &mut uses[side])?;
                }
            }
            if grown == Pair::new(false, false) {
                return Ok(());
            }
            for side in Side::BOTH.into_iter().filter(|side| grown[*side]) {
                let version = self.pair.source(side);
                plus[side] = Some(BlockLiveness::of_run(version, self.pair.demand, &uses[side]));
            }
            for side in Side::BOTH {
                if let Some(needed) = &plus[side.other()] {
                    self.update(&mut searches[side], side, needed)?;
                    self.check(store)?;
                }
            }
        }
    }

    /// Adds to the uses of a version the values that entries from it require and that are not live
    /// in its runs. Returns whether a use is new.
    fn add_unlive(
        &self,
        mapping: &Mapping,
        side: Side,
        uses: &mut ExtraUses,
    ) -> Result<bool, TooMany> {
        let points: Vec<Point> = mapping.points().collect();
        let mut grew = false;
        for part in self.parts(side, &points) {
            // Where liveness in runs equals liveness in the text, only kept values are new uses.
            let sources = || part.iter().copied().collect();
            let table = match &self.run[side] {
                Some(run) => Some(run.table(&sources()).ok_or(TooMany)?),
                None => None,
            };
            for &point in part {
                let Some(entry) = mapping.shared(point) else { continue };
                grew |= match &table {
                    Some(table) => {
                        add_unlive_of(&entry.requires().values(), point, table.live(point), uses)
                    }
                    None => add_all(&entry.kept(), point, uses),
                };
            }
        }
        Ok(grew)
    }

    /// Rebuilds the entries that provide less than their landing points need.
    fn update(
        &self,
        search: &mut Search<'_, 'v>,
        side: Side,
        needed: &BlockLiveness<'_>,
    ) -> Result<(), TooMany> {
        let points: Vec<Point> = search.mapping.points().collect();
        for part in self.parts(side, &points) {
            let target = |point: &Point| search.mapping.shared(*point).map(SharedEntry::target);
            let table = needed.table(&part.iter().filter_map(target).collect());
            let table = table.ok_or(TooMany)?;
            let lacks = |point: &&Point| {
                search.mapping.shared(**point).is_some_and(|entry| table.lacks(entry))
            };
            let lacking: Vec<Point> = part.iter().filter(lacks).copied().collect();
            if !lacking.is_empty() {
                self.update_at(search, side, needed, &lacking);
            }
        }
        Ok(())
    }

    fn update_at(
        &self,
        search: &mut Search<'_, 'v>,
        side: Side,
        needed: &BlockLiveness<'_>,
        points: &[Point],
    ) {
        let sources: BTreeSet<Point> = points.iter().copied().collect();
        let landings = self.pair.landing_candidates(side, &sources);
        match (self.text[side].table(&sources), needed.table(&landings), points) {
            (Some(live), Some(needed), _) => search.update_at(points, &live, &needed),
            (_, _, [point]) => {
                search.mapping.remove(*point);
                search.give_up_at(*point);
            }
            _ => {
                let (first, second) = points.split_at(points.len() / 2);
                self.update_at(search, side, needed, first);
                self.update_at(search, side, needed, second);
            }
        }
    }
}

fn add_all(values: &[Value], point: Point, uses: &mut ExtraUses) -> bool {
    let mut grew = false;
    for value in values {
        let at = uses.entry(point.inst()).or_default();
        if !at.contains(value) {
            at.push(*value);
            grew = true;
        }
    }
    grew
}

/// Points of a list with at most `values` values together, spread evenly over the list.
fn spread(points: &[Point], size: impl Fn(&Point) -> usize, values: usize) -> BTreeSet<Point> {
    let all: u128 = points.iter().map(|point| 1 + size(point) as u128).sum();
    let (mut due, mut left) = (0, values);
    let mut chosen = BTreeSet::new();
    for point in points {
        // Each point earns its share of a place: a list with twice the values gives every other.
        due += (values as u128).min(all);
        if due >= all && size(point) < left {
            due -= all;
            left -= 1 + size(point);
            chosen.insert(*point);
        }
    }
    chosen
}

impl SearchResult {
    /// Counts these points of the version that the mapping leaves from, or all points, instead of
    /// the chosen points. The other points have no entry, for the reason [`Reason::ManyValues`].
    fn count_all_points(&mut self, pair: &VersionPair<'_>, asked: Option<&Pair<BTreeSet<Point>>>) {
        let (mut reachable, mut unreachable) = points_of(pair, self.from);
        if let Some(asked) = asked.map(|asked| &asked[self.from]) {
            reachable.retain(|point| asked.contains(point));
            unreachable = asked.len() - reachable.len();
        }
        let SynthesizedMapping { mapping, missing, .. } = &mut self.synthesized;
        let known: BTreeSet<Point> = missing.iter().map(|one| one.point).collect();
        let others = reachable.iter().copied();
        let others = others.filter(|p| !mapping.has_entry(*p) && !known.contains(p));
        missing.extend(others.map(|point| {
            let first = &pair.facts.first;
            let blame = first.of_inst(point.inst()).map(|action| first.blame(action));
            Missing { point, why: Obstacle { blame, ..Obstacle::new(Reason::ManyValues) } }
        }));
        missing.sort_by_key(|one| one.point);
        self.synthesized.unreachable = unreachable;
        self.synthesized.points = reachable.len() + unreachable;
    }
}

/// The reachable points of the version on side `from`, in the order of the function, and the number
/// of unreachable points.
pub(crate) fn points_of(pair: &VersionPair<'_>, from: Side) -> (Vec<Point>, usize) {
    let f = pair.source(from).f;
    let (mut reachable, mut unreachable) = (Vec::new(), 0);
    for block in f.blocks() {
        let here = f.block_insts(block).map(Point::before);
        if pair.is_unreachable(from, block) {
            unreachable += here.count();
        } else {
            reachable.extend(here);
        }
    }
    (reachable, unreachable)
}
