//! The test of blame on a sample of the points without an entry
//! ([`derive::driver::counterfactual`]).
//!
//! The sample consists of the points with the lowest ranks of all functions. The rank of a point is
//! a hash of its place, so the sample depends neither on the number of threads nor on their order.
//! A point is identified by its place in the version: another run of the pipeline gives created
//! instructions other ids.

use super::{UNBLAMED, weights};
use crate::schema::{BlameCheck, FunctionReport};
use derive::driver::counterfactual::{
    Counterfactual, Culprit, CulpritEffort, Culprits, SearchBound, SourcePoint,
};
use derive::driver::{NoObserver, Recipe, Retry, Secured, derive_proved};
use ir::{Func, Function, Inst, Module, Point};
use osr::{Level, Missing, Obstacle};
use passes::Pipeline;
use profile::FunctionProfile;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// A point without an entry that a test may take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RankedGap {
    rank: u64,
    /// The function.
    pub func: Func,
    side: Side,
    /// The number of the instruction, in layout order of the version.
    place: u32,
    /// The visits of the point, with a profile.
    visits: u64,
}

/// The points for which the test blames another pass than the log suggests.
#[derive(Clone, Debug, Default)]
pub struct BetterBlame(Vec<BlamedElsewhere>);

#[derive(Clone, Copy, Debug)]
struct BlamedElsewhere {
    side: Side,
    reason: &'static str,
    /// The pass that the log suggests, and the pass that the test blames.
    passes: [&'static str; 2],
    visits: u64,
}

impl BetterBlame {
    /// Counts the points at the passes that the test blames.
    pub fn correct(&self, report: &mut FunctionReport) {
        for BlamedElsewhere { side, reason, passes, visits } in &self.0 {
            let figures = match side {
                Side::Before => &mut report.forward,
                Side::After => &mut report.backward,
            };
            figures.blame_another(reason, *passes, *visits);
        }
    }
}

/// At most `most` points of a function for which synthesis found no entry at a level, lowest ranks
/// first. Cost: near linear in the versions.
///
/// # Panics
/// If the mappings lack the level.
pub fn ranked_gaps(
    func: Func,
    base: &Function,
    secured: &Secured,
    level: Level,
    profile: Option<&FunctionProfile>,
    most: usize,
) -> Vec<RankedGap> {
    let mut gaps = Vec::new();
    for side in Side::BOTH {
        let version = version(base, secured, side);
        let log = (side == Side::After).then_some(&secured.derived.log);
        let weights = profile.and_then(|profile| weights(profile, base, log));
        let lacking: BTreeSet<Inst> =
            lacking(secured, level, side).map(|missing| missing.point.inst()).collect();
        for (place, inst) in in_order(version).enumerate() {
            if lacking.contains(&inst) {
                let number = (u64::from(func.as_u32()) << 33) + ((place as u64) << 1);
                let rank = mixed(number + side as u64);
                let block = version.inst_block(inst);
                let visits = weights.as_ref().map_or(0, |weights| weights[block]);
                gaps.push(RankedGap { rank, func, side, place: place as u32, visits });
            }
        }
    }
    gaps.sort_unstable();
    gaps.truncate(most);
    gaps
}

/// Tests the blame at points of one function, as [`ranked_gaps`] gave them for the same pipeline,
/// level and retry. Cost: the mappings of one version, one version for each rewrite that the log
/// suggests, and a search of bounded effort.
///
/// # Panics
/// As [`derive::driver::derive()`], and if `gaps` come from another version.
pub fn check_blame(
    module: &Module,
    base: &Function,
    pipeline: &Pipeline,
    retry: Retry,
    level: Level,
    gaps: &[RankedGap],
) -> (BlameCheck, BetterBlame) {
    let recipe = Recipe { retry, ..Recipe::new(pipeline, &Level::ALL) };
    let secured = derive_proved(module, base, &recipe, &mut NoObserver);
    let given_up = secured.retried.given_up.iter().map(|given_up| given_up.numbers()).collect();
    let mut test = Counterfactual::new(module, base, &secured.derived, pipeline, given_up);
    let all: Vec<Missing<Obstacle>> =
        gaps.iter().map(|gap| missing(base, &secured, level, gap)).collect();
    let at = |(gap, one): (&RankedGap, &Missing<Obstacle>)| (gap.side, one.point);
    let points: Vec<SourcePoint> = gaps.iter().zip(&all).map(at).collect();
    let mut check = BlameCheck { points: gaps.len() as u64, ..BlameCheck::default() };
    let mut blamed: BTreeMap<u64, Vec<SourcePoint>> = BTreeMap::new();
    for (missing, point) in all.iter().zip(&points) {
        match missing.why.blame {
            None => check.unnamed += 1,
            Some(blame) => {
                let action = &secured.derived.log.actions()[blame.action];
                let rewrite = action.origin().rewrite();
                blamed.entry(rewrite).or_default().push(*point);
            }
        }
    }
    for (rewrite, points) in blamed {
        // `None`: the passes make the rewrite again whenever it is left out, so its absence mends
        // no point.
        let fates = test.fates_without(rewrite, level, &points).unwrap_or_default();
        check.right += fates.iter().filter(|fate| fate.is_mended()).count() as u64;
    }
    let mut better = BetterBlame::default();
    for answer in test.culprits_of(&points, level, CulpritEffort::default()) {
        let count = answer.points.len() as u64;
        let culprits = match answer.culprits {
            Culprits::NotFound(SearchBound::Work) => {
                check.over_work += count;
                continue;
            }
            Culprits::NotFound(_) => {
                check.not_found += count;
                continue;
            }
            Culprits::Found { culprits, .. } => culprits,
        };
        check.add_found(culprits.len(), count);
        let Some(found) = culprits.first().map(|culprit| pass_of(&secured, culprit)) else {
            continue;
        };
        for point in answer.points {
            let (why, RankedGap { side, visits, .. }) = (all[point].why, gaps[point]);
            let passes = [why.blame.map_or(UNBLAMED, |blame| blame.pass), found];
            let reason = why.reason.name();
            better.0.push(BlamedElsewhere { side, reason, passes, visits });
        }
    }
    (check, better)
}

/// The pass that makes a rewrite.
fn pass_of(secured: &Secured, culprit: &Culprit) -> &'static str {
    let log = match &culprit.run {
        None => &secured.derived.log,
        Some(run) => &run.1.log,
    };
    log.actions()[culprit.action].origin().pass()
}

/// The record of a sampled point in the mappings.
///
/// # Panics
/// If the mappings have no such record.
fn missing(base: &Function, secured: &Secured, level: Level, gap: &RankedGap) -> Missing<Obstacle> {
    let inst = in_order(version(base, secured, gap.side)).nth(gap.place as usize);
    let point = Point::before(inst.expect("the version has the instruction"));
    let found = lacking(secured, level, gap.side).find(|one| one.point == point);
    found.expect("the point has no entry")
}

fn version<'a>(base: &'a Function, secured: &'a Secured, side: Side) -> &'a Function {
    match side {
        Side::Before => base,
        Side::After => &secured.derived.function,
    }
}

fn in_order(version: &Function) -> impl Iterator<Item = Inst> + '_ {
    version.blocks().flat_map(|block| version.block_insts(block))
}

/// The points without an entry at a level and at all lower ones.
fn lacking(
    secured: &Secured,
    level: Level,
    side: Side,
) -> impl Iterator<Item = Missing<Obstacle>> + '_ {
    let made = secured.proved.at(level).expect("mappings were made at the level");
    made[side].missing.obstacles().filter(move |missing| {
        let mut lower = secured.proved.levels.iter().filter(|(of, _)| *of < level);
        lower.all(|(_, made)| !made[side].mapping.has_entry(missing.point))
    })
}

/// A hash of a number (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
