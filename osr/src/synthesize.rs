//! Whole mappings, those of all versions that are to be hopped between together.
//!
//! *provides* covers live+: what is live at the landing point when the target version's own armed
//! entries count as uses of what they require. Those entries belong to the mappings that leave the
//! target version, wherever they lead, so the mappings between a set of versions depend on each
//! other and are made together, to a fixpoint: entries that require what is not live, and so make
//! more live are found, the entries that land there are built again to provide it, and an entry
//! that cannot is dropped for good. Uses only grow, so this ends.

use crate::level::Level;
use crate::live::{ExtraUses, LiveTable, add_unlive};
use crate::pair::{Demand, Heading, Side, VersionPair};
use crate::reason::Unmapped;
use crate::search::{Made, Search};
use ir::mapping::Mapping;
use std::collections::BTreeSet;

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

/// Makes the mappings between two versions at a level, in both directions. Cost: for each source
/// point, the landing points of its gap times what is live there.
pub fn synthesize(pair: &VersionPair<'_>, level: Level) -> Synthesis {
    let (_, synthesis) =
        synthesize_levels(pair, &[level]).pop().expect("a synthesis for each level");
    synthesis
}

/// Makes the mappings at several levels, each as [`synthesize`] makes it; lowest level first, each
/// once. Cost: less than apart: what is live is computed once, and an entry that the level below
/// has shown to be the best is taken over.
pub fn synthesize_levels(pair: &VersionPair<'_>, levels: &[Level]) -> Vec<(Level, Synthesis)> {
    let versions = [&pair.sides[0], &pair.sides[1]];
    let arrows = Arrow::both_ways(pair, [0, 1]);
    let plain = Plain::of_all(&versions, pair.demand);
    let mut made: Vec<Vec<Made>> = Vec::new();
    for level in Level::ALL.into_iter().filter(|level| levels.contains(level)) {
        made.push(make(
            &versions,
            &arrows,
            &plain,
            (pair.demand, level),
            made.last().map(Vec::as_slice),
        ));
    }
    let of_level = |made: Vec<Made>| {
        let [forward, backward]: [Made; 2] =
            made.try_into().ok().expect("a direction for each arrow");
        (forward.level, Synthesis { forward: forward.direction, backward: backward.direction })
    };
    made.into_iter().map(of_level).collect()
}

/// A mapping to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrow<'a, 'v> {
    pub(crate) pair: &'a VersionPair<'v>,
    pub(crate) heading: Heading,
    /// The version it leaves from, by its place in a list of versions.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl<'a, 'v> Arrow<'a, 'v> {
    /// Those between the versions of a pair, whose places are given.
    pub(crate) fn both_ways(
        pair: &'a VersionPair<'v>,
        [before, after]: [usize; 2],
    ) -> [Arrow<'a, 'v>; 2] {
        [
            Arrow { pair, heading: Heading::Forward, from: before, to: after },
            Arrow { pair, heading: Heading::Backward, from: after, to: before },
        ]
    }

    fn touches(&self, versions: &BTreeSet<usize>) -> bool {
        versions.contains(&self.from) || versions.contains(&self.to)
    }
}

/// Makes all mappings between a list of versions, to their common fixpoint. Those from and to
/// versions with too many live values are empty. `below` are the same mappings at a lower level.
pub(crate) fn make<'p, 'v>(
    versions: &[&Side<'v>],
    arrows: &[Arrow<'p, 'v>],
    plain: &[Option<Plain>],
    (demand, level): (Demand, Level),
    below: Option<&'p [Made]>,
) -> Vec<Made> {
    let live = |v: usize, uses: &ExtraUses| {
        LiveTable::of_run(versions[v].f, &versions[v].decided, demand, uses)
    };
    let mut too_long: BTreeSet<usize> =
        (0..versions.len()).filter(|v| plain[*v].is_none()).collect();
    loop {
        let mut searches: Vec<Search<'p, 'v>> = Vec::new();
        for (at, arrow) in arrows.iter().enumerate() {
            searches.push(Search::new(
                (arrow.pair, arrow.heading),
                level,
                below.map(|made| &made[at]),
            ));
        }
        let given_up =
            arrows.iter().zip(&mut searches).filter(|(arrow, _)| arrow.touches(&too_long));
        given_up.for_each(|(_, search)| search.give_up());
        match meet(arrows, &mut searches, &too_long, plain, live) {
            Ok(()) => return searches.into_iter().map(Search::finish).collect(),
            // Found late, when armed entries kept too much alive.
            Err(version) => too_long.insert(version),
        };
    }
}

/// What is live in a version when nothing is armed.
pub(crate) struct Plain {
    in_text: LiveTable,
    /// Where that differs.
    in_run: Option<LiveTable>,
}

impl Plain {
    /// That of each version; `None` for one with too many live values.
    pub(crate) fn of_all(versions: &[&Side<'_>], demand: Demand) -> Vec<Option<Plain>> {
        versions.iter().map(|v| Plain::new(v, demand)).collect()
    }

    fn new(side: &Side<'_>, demand: Demand) -> Option<Plain> {
        let in_text = LiveTable::of_text(side.f, &side.cfg, demand)?;
        let in_run = match side.decided.is_empty() {
            true => None,
            false => Some(LiveTable::of_run(side.f, &side.decided, demand, &ExtraUses::new())?),
        };
        Some(Plain { in_text, in_run })
    }

    fn in_run(&self) -> &LiveTable {
        self.in_run.as_ref().unwrap_or(&self.in_text)
    }
}

/// Brings all searches to their common fixpoint. `Err` names a version that has come to have too
/// many live values.
fn meet(
    arrows: &[Arrow<'_, '_>],
    searches: &mut [Search<'_, '_>],
    too_long: &BTreeSet<usize>,
    plain: &[Option<Plain>],
    live: impl Fn(usize, &ExtraUses) -> Option<LiveTable>,
) -> Result<(), usize> {
    let mut uses = vec![ExtraUses::new(); plain.len()];
    let mut plus: Vec<Option<LiveTable>> = plain.iter().map(|_| None).collect();
    loop {
        for (arrow, search) in
            arrows.iter().zip(searches.iter_mut()).filter(|(a, _)| !a.touches(too_long))
        {
            let at_source = plain[arrow.from].as_ref().ok_or(arrow.from)?;
            let needed = plus[arrow.to]
                .as_ref()
                .or(plain[arrow.to].as_ref().map(Plain::in_run))
                .ok_or(arrow.to)?;
            search.update(&at_source.in_text, needed);
        }
        let mut grown = BTreeSet::new();
        for (arrow, search) in arrows.iter().zip(searches.iter()) {
            if let Some(plain) = &plain[arrow.from]
                && add_unlive(&search.mapping, plain.in_run(), &mut uses[arrow.from])
            {
                grown.insert(arrow.from);
            }
        }
        if grown.is_empty() {
            return Ok(());
        }
        for version in grown {
            plus[version] = Some(live(version, &uses[version]).ok_or(version)?);
        }
    }
}
