//! Loops that run by themselves: the entries into regions of a derived version and out of these
//! regions.

use super::{Derived, Observer, Proved, prove_at};
use ir::loops::LoopForest;
use ir::{Function, Module, Point};
use osr::{Level, LoopRegion, VersionPair, synthesize_at};
use std::collections::{BTreeMap, BTreeSet};
use transition::Pair;

/// A loop of the derived version that a run may enter from the base without the rest of the
/// version.
#[derive(Clone, Debug)]
pub struct EnteredRegion {
    /// The code of the loop.
    pub region: LoopRegion,
    /// The points behind the loop at which runs go back to the base. Each has an entry.
    pub cut: Vec<Point>,
}

/// Makes the entries from a base at some points, such as its loop headers, into the loops of the
/// derived version, and the entries behind these loops back to the base. The checker judges all of
/// them. They are armed for each other: a run may go from loop to loop. Also returns the region in
/// which each accepted entry into a loop lands, by point of the base.
///
/// Cost: one [`prove_at`], after one synthesis that finds the landing points.
///
/// # Panics
/// Like [`prove_at`].
pub fn prove_regions(
    module: &Module,
    base: &Function,
    derived: &Derived,
    level: Level,
    at: BTreeSet<Point>,
    observer: &mut dyn Observer,
) -> (Proved, BTreeMap<Point, EnteredRegion>) {
    let version = &derived.function;
    let mut landed = BTreeMap::new();
    let asked = |pair: &VersionPair<'_>| {
        // Only this synthesis finds the landing points, and thus the loops that runs enter.
        let made = synthesize_at(pair, level, &Pair::new(at, BTreeSet::new()));
        let entries = made.forward.mapping.shared_entries();
        // One forest for all landing points: a forest for each is quadratic in the loops.
        let forest = LoopForest::of(version);
        let around = |target: Point| {
            let innermost = forest.innermost(version.inst_block(target.inst()))?;
            Some(LoopRegion::of(version, &forest, innermost))
        };
        landed = entries.filter_map(|(at, e)| Some((at, around(e.target())?))).collect();
        let exits = landed.values().flat_map(|region: &LoopRegion| region.exit_points(version));
        Pair::new(landed.keys().copied().collect(), exits.collect())
    };
    let proved = prove_at(module, base, derived, level, asked, observer);
    let Pair { before: up, after: down } = proved.highest().as_ref().map(|way| &way.mapping);
    let accepted = landed.into_iter().filter(|(at, _)| up.has_entry(*at));
    let regions = accepted.map(|(at, region)| {
        let cut = region.cut(version, |point| down.has_entry(point));
        (at, EnteredRegion { region, cut })
    });
    let regions = regions.collect();
    (proved, regions)
}
