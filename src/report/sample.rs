//! The test of blame on a sample of the points without an entry
//! ([`crate::driver::counterfactual`]).
//!
//! The sample consists of the points with the lowest ranks of all functions. The rank of a point is
//! a hash of its place, so the sample depends neither on the number of threads nor on their order.
//! A point is told by its place in the version, since another run of the pipeline gives the
//! instructions that it creates other ids.

use crate::driver::counterfactual::{Counterfactual, SourcePoint};
use crate::driver::{NoObserver, Recipe, Retry, Secured, derive_certified};
use crate::schema::BlameCheck;
use ir::{Func, Function, Inst, Module, Point};
use osr::{Level, Unmapped};
use passes::Pipeline;
use std::collections::BTreeMap;
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
}

/// The points of a function for which synthesis found no entry at a level, at most so many, lowest
/// ranks first. Cost: near linear in the versions.
///
/// # Panics
/// If the mappings lack the level.
pub fn ranked_gaps(
    func: Func,
    base: &Function,
    secured: &Secured,
    level: Level,
    most: usize,
) -> Vec<RankedGap> {
    let mut gaps = Vec::new();
    for side in Side::BOTH {
        let version = version(base, secured, side);
        let lacking: BTreeMap<Inst, &Unmapped> =
            lacking(secured, level, side).map(|u| (u.point.inst(), u)).collect();
        for (place, inst) in in_order(version).enumerate() {
            if lacking.contains_key(&inst) {
                let number = (u64::from(func.as_u32()) << 33) + ((place as u64) << 1);
                let rank = mixed(number + side as u64);
                gaps.push(RankedGap { rank, func, side, place: place as u32 });
            }
        }
    }
    gaps.sort_unstable();
    gaps.truncate(most);
    gaps
}

/// Tests the blame at points of one function, as [`ranked_gaps`] gave them for the same pipeline,
/// level and retry. Cost: one version, and then one for each rewrite that is blamed.
///
/// # Panics
/// As [`crate::driver::derive()`], and if the points are others.
pub fn check_blame(
    module: &Module,
    base: &Function,
    (pipeline, retry): (&Pipeline, Retry),
    level: Level,
    gaps: &[RankedGap],
) -> BlameCheck {
    let recipe = Recipe { retry, ..Recipe::new(pipeline, &Level::ALL) };
    let secured = derive_certified(module, base, &recipe, &mut NoObserver);
    let given_up = secured.retried.given_up.iter().map(|given_up| given_up.numbers()).collect();
    let mut test = Counterfactual::new(module, (base, &secured.derived), pipeline, given_up);
    let mut check = BlameCheck { points: gaps.len() as u64, ..BlameCheck::default() };
    let mut blamed: BTreeMap<u64, Vec<SourcePoint>> = BTreeMap::new();
    for gap in gaps {
        let inst = in_order(version(base, &secured, gap.side)).nth(gap.place as usize);
        let point = Point::before(inst.expect("the version has the instruction"));
        let unmapped = lacking(&secured, level, gap.side).find(|u| u.point == point);
        match unmapped.expect("the point has no entry").blame {
            None => check.unnamed += 1,
            Some(action) => {
                let rewrite = secured.derived.log.actions()[action].origin().rewrite();
                blamed.entry(rewrite).or_default().push((gap.side, point));
            }
        }
    }
    for (rewrite, points) in blamed {
        let fates = test.fates_without(rewrite, level, &points);
        check.right += fates.iter().filter(|fate| fate.is_mended()).count() as u64;
    }
    check
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
fn lacking(secured: &Secured, level: Level, side: Side) -> impl Iterator<Item = &Unmapped> {
    let levels = &secured.certified.levels;
    let made = levels.iter().find(|made| made.level == level);
    let made = made.expect("mappings were made at the level").of(side);
    made.unmapped.iter().filter(move |unmapped| {
        let mut lower = levels.iter().filter(|made| made.level < level);
        lower.all(|made| !made.of(side).mapping.has_entry(unmapped.point))
    })
}

/// A hash of a number (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
