//! Whole mappings: makes all mappings between a set of versions together, to one fixpoint.
//!
//! An entry provides *live+*: the values live at the landing point when the target version's own
//! armed entries count as uses of the values they require. These armed entries belong to the
//! mappings that leave the target version, wherever they lead. So the mappings between a set of
//! versions depend on each other.
//!
//! Example: an entry that leaves q keeps `v`, which is dead in q. Every entry that lands in q above
//! that point must provide `v`, and may have to keep a value of its own version for it.
//!
//! 1. each search makes its entries for the liveness known so far;
//! 2. entries that require a value not live at their source point add a use of it there;
//! 3. entries that land where that use makes a value live are built again to provide it. An entry
//!    that cannot is dropped for good.
//!
//! The rounds repeat these steps until no use is new. Uses only grow and dropped entries stay
//! dropped, so the rounds end.

use crate::copies::LinkedUses;
use crate::level::Level;
use crate::live::{ExtraUses, LiveTable, add_unlive};
use crate::pair::{Analyzed, VersionPair};
use crate::partial::{MappingLimits, in_parts};
use crate::reason::{Missing, Obstacle};
use crate::search::{Search, SearchResult, first_round};
use ir::Point;
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Demand, Pair, Side};

/// The mapping in one direction, and the points without an entry.
#[derive(Clone, Debug)]
pub struct SynthesizedMapping {
    /// The entries.
    pub mapping: Mapping,
    /// All points of the source version, or the requested points ([`synthesize_at`]), unreachable
    /// points included.
    pub points: usize,
    /// Points of these in code proved never to run. They have no entry and do not count as
    /// missing.
    pub unreachable: usize,
    /// The reachable points of these without an entry, ascending.
    pub missing: Vec<Missing<Obstacle>>,
}

/// The mappings of a pair of versions at one level.
#[derive(Clone, Debug)]
pub struct Synthesis {
    /// From the version before the log to the version after it.
    pub forward: SynthesizedMapping,
    /// From the version after the log to the version before it.
    pub backward: SynthesizedMapping,
}

/// Makes the mappings between two versions at a level, in both directions. Cost: for each source
/// point, the landing points of its gap times the values live there.
pub fn synthesize(pair: &VersionPair<'_>, level: Level) -> Synthesis {
    let (_, synthesis) =
        synthesize_levels(pair, &[level]).pop().expect("a synthesis for each level");
    synthesis
}

/// Makes the entries at some points alone: `asked` has the source points, each under the side that
/// its entry leaves from. A point that its version lacks is left out.
///
/// Live+ counts these entries and no others, so an entry may provide fewer values than the entry
/// that [`synthesize`] makes at the same point, and may land elsewhere. Only entries of one answer
/// may be armed together; answers in one direction alone arm nothing against each other. Several
/// calls with parts of a set are therefore not one call with the set.
///
/// Example: `asked` has a loop header of the version before the log and no point of the version
/// after. The entry then provides the values live at its landing point, and no entry back needs
/// more.
///
/// Cost: one pass over each version that an entry leaves from or lands in. Then, for each block
/// with such a point, a search of the blocks reachable from it; and for each point, the landing
/// points of its gap times the values live there.
pub fn synthesize_at(
    pair: &VersionPair<'_>,
    level: Level,
    asked: &Pair<BTreeSet<Point>>,
) -> Synthesis {
    let asked = Pair::from_fn(|side| {
        let f = pair.source(side).f;
        asked[side].iter().copied().filter(|p| f.has_inst(p.inst())).collect::<BTreeSet<Point>>()
    });
    let mut made = levels_at(pair, &[level], &asked).pop().expect("one level was made");
    if made.is_too_long {
        let mut parts = in_parts(pair, &[level], Some(&asked), MappingLimits::default());
        made = parts.pop().expect("one level was made");
    }
    both_ways(made.mappings).1
}

/// The mappings at one level.
pub(crate) struct LevelResult {
    /// One for each arrow.
    pub(crate) mappings: Vec<SearchResult>,
    /// Whether one is empty because a version has too many live values at this level.
    pub(crate) is_too_long: bool,
}

/// The mappings at each level whose entries leave from these points of their version.
fn levels_at(
    pair: &VersionPair<'_>,
    levels: &[Level],
    asked: &Pair<BTreeSet<Point>>,
) -> Vec<LevelResult> {
    let versions: Vec<&Analyzed<'_>> = pair.versions.iter().collect();
    let mut arrows = Arrow::both_ways(pair, Pair::new(0, 1));
    arrows.before.asked = Some(&asked.before);
    arrows.after.asked = Some(&asked.after);
    let plain = PlainLiveness::at_points(pair, pair.demand, asked);
    let arrows: Vec<Arrow<'_, '_>> = arrows.into_iter().collect();
    make_levels(&versions, &arrows, OuterUses::NONE, &plain, pair.demand, levels)
}

/// The mappings of both directions, and their level.
fn both_ways(made: Vec<SearchResult>) -> (Level, Synthesis) {
    let [forward, backward]: [SearchResult; 2] =
        made.try_into().ok().expect("one mapping for each arrow");
    (forward.level, Synthesis { forward: forward.synthesized, backward: backward.synthesized })
}

/// Makes the mappings at several levels, each as [`synthesize`] makes it. The result has each level
/// once, lowest first. Cost: less than all levels separately; liveness is computed once, and a
/// level takes over entries that the level below proved to be the best.
pub fn synthesize_levels(pair: &VersionPair<'_>, levels: &[Level]) -> Vec<(Level, Synthesis)> {
    synthesize_within(pair, levels, MappingLimits::default())
}

/// As [`synthesize_levels`], within these limits. Beyond [`MappingLimits::whole`] the result is the
/// same, and takes less memory and more time. Beyond the other limits, some points have no entry,
/// for the reason [`crate::Reason::ManyValues`].
pub fn synthesize_within(
    pair: &VersionPair<'_>,
    levels: &[Level],
    limits: MappingLimits,
) -> Vec<(Level, Synthesis)> {
    let levels: Vec<Level> =
        Level::ALL.into_iter().filter(|level| levels.contains(level)).collect();
    let versions: Vec<&Analyzed<'_>> = pair.versions.iter().collect();
    let plain = PlainLiveness::of_all(&versions, pair.demand);
    let is_small = |of: &Option<PlainLiveness>| {
        of.as_ref().is_some_and(|plain| plain.in_text.total() <= limits.whole)
    };
    let made = match plain.iter().all(is_small) {
        true => whole_levels(pair, &levels, plain, limits),
        false => {
            drop(plain);
            in_parts(pair, &levels, None, limits)
        }
    };
    made.into_iter().map(|result| both_ways(result.mappings)).collect()
}

/// The mappings at each level, made at once, or in parts if armed entries make too much live.
fn whole_levels(
    pair: &VersionPair<'_>,
    levels: &[Level],
    plain: Vec<Option<PlainLiveness>>,
    limits: MappingLimits,
) -> Vec<LevelResult> {
    let versions: Vec<&Analyzed<'_>> = pair.versions.iter().collect();
    let arrows: Vec<Arrow<'_, '_>> = Arrow::both_ways(pair, Pair::new(0, 1)).into_iter().collect();
    let mut made = make_levels(&versions, &arrows, OuterUses::NONE, &plain, pair.demand, levels);
    drop(plain);
    let is_left = |(_, result): &(&Level, &LevelResult)| result.is_too_long;
    let left: Vec<Level> =
        levels.iter().zip(&made).filter(is_left).map(|(level, _)| *level).collect();
    if !left.is_empty() {
        let parts = in_parts(pair, &left, None, limits);
        let mut results = made.iter_mut().filter(|result| result.is_too_long);
        parts.into_iter().for_each(|part| {
            *results.next().expect("a level for each result") = part;
        });
    }
    made
}

/// A mapping to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrow<'a, 'v> {
    pub(crate) pair: &'a VersionPair<'v>,
    /// The side of the pair that the mapping leaves from.
    pub(crate) from: Side,
    /// The source version, as an index into a list of versions.
    pub(crate) source: usize,
    /// The target version, likewise.
    pub(crate) target: usize,
    /// The source points of its entries; `None` for all.
    pub(crate) asked: Option<&'a BTreeSet<Point>>,
    /// Source points whose entries land before the same instruction: the calls within which frames
    /// wait.
    pub(crate) staying: Option<&'a BTreeSet<Point>>,
    /// The points of the target version at which entries may land; `None` for all.
    pub(crate) landings: Option<&'a BTreeSet<Point>>,
    /// Whether entries land in the place of their source point, if that costs no more than
    /// elsewhere.
    pub(crate) in_place: bool,
}

impl<'a, 'v> Arrow<'a, 'v> {
    /// The two mappings between the versions of a pair, given the indices of the versions: each
    /// under the side that it leaves from.
    pub(crate) fn both_ways(
        pair: &'a VersionPair<'v>,
        indices: Pair<usize>,
    ) -> Pair<Arrow<'a, 'v>> {
        Pair::from_fn(|from| Arrow {
            pair,
            from,
            source: indices[from],
            target: indices[from.other()],
            asked: None,
            staying: None,
            landings: None,
            in_place: false,
        })
    }

    fn touches(&self, versions: &BTreeSet<usize>) -> bool {
        versions.contains(&self.source) || versions.contains(&self.target)
    }
}

/// Uses of values of versions, in addition to the uses of the mappings in the making.
#[derive(Clone, Copy)]
pub(crate) struct OuterUses<'a, 'c> {
    /// The uses across copies.
    pub(crate) links: &'a [LinkedUses<'c>],
    /// By version: the uses of frame states armed in it. Empty if no version has armed states.
    pub(crate) armed: &'a [ExtraUses],
}

impl OuterUses<'_, '_> {
    const NONE: Self = OuterUses { links: &[], armed: &[] };
}

/// Makes all mappings between a list of versions, to their common fixpoint. Mappings from and to
/// versions with too many live values are empty.
pub(crate) fn make<'p, 'v>(
    versions: &[&Analyzed<'v>],
    arrows: &[Arrow<'p, 'v>],
    outer: OuterUses<'_, '_>,
    plain: &[Option<PlainLiveness>],
    demand: Demand,
    level: Level,
) -> Vec<SearchResult> {
    let mut made = make_levels(versions, arrows, outer, plain, demand, &[level]);
    made.pop().expect("one level was made").mappings
}

/// As [`make`], at several levels, the lowest first.
fn make_levels<'p, 'v>(
    versions: &[&Analyzed<'v>],
    arrows: &[Arrow<'p, 'v>],
    outer: OuterUses<'_, '_>,
    plain: &[Option<PlainLiveness>],
    demand: Demand,
    levels: &[Level],
) -> Vec<LevelResult> {
    let live = |v: usize, uses: &ExtraUses| match &plain[v].as_ref()?.points {
        Some(points) => LiveTable::of_run_at(versions[v], demand, uses, points),
        None => LiveTable::of_run(versions[v].f, &versions[v].decided, demand, uses),
    };
    let without_liveness: BTreeSet<usize> =
        (0..versions.len()).filter(|v| plain[*v].is_none()).collect();
    let mut made = Vec::new();
    for mut searches in started(arrows, plain, levels, &without_liveness) {
        let level = levels[made.len()];
        let mut too_long = without_liveness.clone();
        // Each turn starts over without the versions in `too_long`. A version can be added to it at
        // most once, so there are at most as many turns as versions, and almost always one.
        while let Err(version) = meet(arrows, outer, &mut searches, &too_long, plain, live) {
            // Armed entries made so much live that the table of this version exceeds its limit. Its
            // entries must go, and with them the uses they added elsewhere: hence a new start.
            too_long.insert(version);
            searches = started(arrows, plain, &[level], &too_long).pop().expect("one level");
        }
        made.push(LevelResult {
            mappings: searches.into_iter().map(Search::finish).collect(),
            is_too_long: !too_long.is_empty(),
        });
    }
    made
}

/// The searches of each level after their first round, one for each arrow. Searches from or to
/// versions in `too_long` have given up.
fn started<'p, 'v>(
    arrows: &[Arrow<'p, 'v>],
    plain: &[Option<PlainLiveness>],
    levels: &[Level],
    too_long: &BTreeSet<usize>,
) -> Vec<Vec<Search<'p, 'v>>> {
    let mut started: Vec<Vec<Search<'p, 'v>>> = levels.iter().map(|_| Vec::new()).collect();
    for arrow in arrows {
        let new = |level: &Level| Search::new(arrow, *level);
        let mut searches: Vec<Search<'p, 'v>> = levels.iter().map(new).collect();
        match (&plain[arrow.source], &plain[arrow.target]) {
            // Entries may read, without keeping it, any value that the *text* of the source version
            // reads. They must provide every value that a *run* of the target version reads, and
            // live+ once it is known ([`meet`]).
            (Some(source), Some(target)) if !arrow.touches(too_long) => {
                // Each search counts its points.
                let points =
                    searches.iter_mut().map(Search::source_points).last().unwrap_or_default();
                first_round(&mut searches, &points, &source.in_text, target.in_run());
            }
            _ => searches.iter_mut().for_each(Search::give_up),
        }
        started.iter_mut().zip(searches).for_each(|(level, search)| level.push(search));
    }
    started
}

/// Liveness of a version without armed entries.
pub(crate) struct PlainLiveness {
    in_text: LiveTable,
    /// Liveness in runs, where constants decide branches and it differs from the text.
    in_run: Option<LiveTable>,
    /// The points that liveness in runs is for; `None` for all.
    points: Option<BTreeSet<Point>>,
}

impl PlainLiveness {
    /// The liveness of each version; `None` for a version with too many live values.
    pub(crate) fn of_all(versions: &[&Analyzed<'_>], demand: Demand) -> Vec<Option<PlainLiveness>> {
        versions.iter().map(|v| PlainLiveness::new(v, demand)).collect()
    }

    /// The liveness of both versions of a pair, for entries that leave at these points.
    pub(crate) fn at_points(
        pair: &VersionPair<'_>,
        demand: Demand,
        asked: &Pair<BTreeSet<Point>>,
    ) -> Vec<Option<PlainLiveness>> {
        let of = |side: Side| {
            let landings = pair.landing_candidates(side.other(), &asked[side.other()]);
            PlainLiveness::at(pair.source(side), demand, &asked[side], landings)
        };
        Side::BOTH.map(of).into()
    }

    fn new(version: &Analyzed<'_>, demand: Demand) -> Option<PlainLiveness> {
        let in_text = LiveTable::of_text(version.f, &version.cfg, demand)?;
        let in_run = match version.decided.is_empty() {
            true => None,
            false => {
                Some(LiveTable::of_run(version.f, &version.decided, demand, &ExtraUses::new())?)
            }
        };
        Some(PlainLiveness { in_text, in_run, points: None })
    }

    /// Liveness at the source points of entries that leave a version, and at the points where
    /// others may land in it; `None` for too many live values.
    fn at(
        version: &Analyzed<'_>,
        demand: Demand,
        sources: &BTreeSet<Point>,
        mut landings: BTreeSet<Point>,
    ) -> Option<PlainLiveness> {
        // The values that entries require count as uses where others land ([`meet`]). They are
        // compared with liveness in runs at their source points.
        if !landings.is_empty() {
            landings.extend(sources);
        }
        let (in_text, in_run) = match version.decided.is_empty() {
            true => {
                let all = sources | &landings;
                (LiveTable::of_text_at(version, demand, &all)?, None)
            }
            false => (
                LiveTable::of_text_at(version, demand, sources)?,
                Some(LiveTable::of_run_at(version, demand, &ExtraUses::new(), &landings)?),
            ),
        };
        Some(PlainLiveness { in_text, in_run, points: Some(landings) })
    }

    fn in_run(&self) -> &LiveTable {
        self.in_run.as_ref().unwrap_or(&self.in_text)
    }
}

/// Brings all searches to their common fixpoint. `Err` names the index of a version that now has
/// too many live values.
fn meet(
    arrows: &[Arrow<'_, '_>],
    outer: OuterUses<'_, '_>,
    searches: &mut [Search<'_, '_>],
    too_long: &BTreeSet<usize>,
    plain: &[Option<PlainLiveness>],
    live: impl Fn(usize, &ExtraUses) -> Option<LiveTable>,
) -> Result<(), usize> {
    let mut uses = match outer.armed {
        [] => vec![ExtraUses::new(); plain.len()],
        armed => armed.to_vec(),
    };
    // No entry provides the armed values of others yet.
    let is_armed = |version: &usize| !uses[*version].is_empty();
    let mut grown: BTreeSet<usize> = (0..uses.len()).filter(is_armed).collect();
    let mut plus: Vec<Option<LiveTable>> = plain.iter().map(|_| None).collect();
    // A round visits every set of uses, then every search. The sets only grow, and each search
    // rebuilds or drops the entries that lack something, so the loop ends when no set grew.
    loop {
        // All uses are collected before any liveness is recomputed: one table for each version and
        // round, instead of one for each mapping that leaves the version.
        let is_landed_in: BTreeSet<usize> = arrows
            .iter()
            .zip(searches.iter())
            .filter(|(_, search)| !search.mapping.is_empty())
            .map(|(arrow, _)| arrow.target)
            .collect();
        for (arrow, search) in arrows.iter().zip(searches.iter()) {
            // Where no entry lands, uses change nothing. Without this condition, one entry up would
            // pay for the liveness of the version that it leaves a second time.
            if let Some(plain) = &plain[arrow.source]
                && is_landed_in.contains(&arrow.source)
                && add_unlive(
                    &search.mapping,
                    plain.in_run(),
                    plain.in_run.is_none(),
                    &mut uses[arrow.source],
                )
            {
                grown.insert(arrow.source);
            }
        }
        for link in outer.links {
            let mapping = |arrow: usize| &searches[arrow].mapping;
            let live = |version: usize| {
                plus[version].as_ref().or(plain[version].as_ref().map(PlainLiveness::in_run))
            };
            grown.extend(link.add(mapping, live, &mut uses));
        }
        if grown.is_empty() {
            return Ok(());
        }
        // Only versions whose uses grew. The other versions would get the table they have.
        for version in std::mem::take(&mut grown) {
            plus[version] = Some(live(version, &uses[version]).ok_or(version)?);
        }
        for (arrow, search) in
            arrows.iter().zip(searches.iter_mut()).filter(|(a, _)| !a.touches(too_long))
        {
            let at_source = plain[arrow.source].as_ref().ok_or(arrow.source)?;
            // Entries into a version without new uses provide all that it needs.
            if let Some(needed) = &plus[arrow.target] {
                search.update(&at_source.in_text, needed);
            }
        }
    }
}
