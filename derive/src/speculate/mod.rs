//! Speculation: versions that are right under assumptions, and the ways out of them.
//!
//! A JIT knows that `%x` was 7 in every call so far. [`speculate()`] makes a version that assumes
//! so, optimizes it, and proves for each assumption an entry back to a version without it, for the
//! run in which `%x` is 8. Passes see neither the exits nor the state that they need: the entries
//! follow from the logs, as everywhere in Osier.
//!
//! Each speculation adds two versions to a tree, with a log between each two:
//!
//! ```text
//! base --speculate, refine--> assuming --optimize--> optimized
//! ```
//!
//! In the first pair, the result of an assumption is its operand, and no entry lands behind it from
//! the base. In the second pair, both versions make the assumption, and its result is the constant.
//! Each pair is proved for itself, without conditions. The way out is composed of both. With one
//! pair alone, the operand would be the constant above the assumption, too
//! (`docs/speculation.md`).
//!
//! The optimized version may be speculated on again. A failed assumption then leads to the nearest
//! version without it: one of the second speculation to the first optimized version, one of the
//! first to the base.

mod attempt;
mod dropped;
pub(crate) mod error;
pub(crate) mod lost;
mod search;
mod suggest;
#[cfg(test)]
mod tests;

use attempt::SpeculationAttempt;
pub(crate) use attempt::{Lacking, LiveThere, MadeExit, TriedAssumption, assume, optimize, sort};
use check::{Checked, CheckedEntry};
pub use dropped::Dropped;
pub use error::SpeculateError;
use ir::{Inst, Module, Point, Value};
pub(crate) use lost::EdgeLogs;
pub use lost::Lost;
use osr::{Version, VersionTree};
use passes::Pipeline;
pub use passes::{Assumption, Expected};
pub(crate) use search::SpeculationSearch;
use std::collections::BTreeMap;
pub use suggest::{
    COST, DIRECT, JOIN, Observed, SPOILED, SuggestOptions, Suggester, Suggestion, suggest,
};
use transition::mapping::Mapping;

/// Assumptions of one speculation. Those behind, in the order of the plan, are left out
/// ([`Dropped::TooMany`]).
pub const MAX_ASSUMPTIONS: usize = 4096;

/// Turns in which values are pinned for assumptions without an exit
/// ([`Dropped::NoPinTurnLeft`]).
pub const PIN_TURNS: usize = 3;

/// Values pinned for one assumption on demand ([`Dropped::TooManyPins`]).
pub const MAX_PINS: usize = 64;

/// Turns in which assumptions without an exit are left out, and no others. Leaving some out changes
/// what the passes do, and so may take the exit of another. Each later turn also leaves out the
/// second half of the assumptions left, in the order of the plan ([`Dropped::NoTurnLeft`]). Of
/// [`MAX_ASSUMPTIONS`], the first remains for ten more turns.
const DROP_TURNS: usize = 3;

/// Which values assumptions keep as operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pins {
    /// Those that exits turn out to lack, found in at most [`PIN_TURNS`] turns.
    #[default]
    OnDemand,
    /// None. An assumption whose exit lacks a value is left out.
    Never,
    /// All that are live in the version before, as compilers do that carry frame states through
    /// their passes. For comparison.
    Live,
}

/// What to assume, and how to optimize under it.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The assumptions, in terms of the version to speculate on.
    pub assume: &'a [Assumption],
    /// The passes that run on the version with the assumptions.
    pub pipeline: &'a Pipeline,
    /// The values that assumptions keep.
    pub pins: Pins,
    /// The most work of the search, in instructions. A turn costs those of all versions from the
    /// base to the optimized one. If the next turn would exceed it, all assumptions left are
    /// dropped ([`Dropped::NoWorkLeft`]), and one more turn makes the version without them. An
    /// instruction costs about 50 microseconds.
    pub work: u64,
}

impl<'a> Plan<'a> {
    /// The usual work of a search: a turn of a function of 300,000 instructions, or all turns of
    /// one of 20,000.
    pub const WORK: u64 = 1_000_000;

    /// A plan that pins values on demand, with the usual work.
    pub fn new(assume: &'a [Assumption], pipeline: &'a Pipeline) -> Plan<'a> {
        Plan { assume, pipeline, pins: Pins::OnDemand, work: Plan::WORK }
    }
}

/// A version that is right while its assumptions hold.
#[derive(Clone, Debug)]
pub struct Speculative {
    /// The version that was speculated on.
    pub from: Version,
    /// The version that makes the assumptions, derived from it.
    pub assuming: Version,
    /// The optimized version, derived from that one.
    pub optimized: Version,
    /// The assumptions that the optimized version makes, each with an accepted entry to a version
    /// without it. Those of earlier speculations come first.
    pub exits: Vec<Exit>,
    /// The assumptions of the plan that a pass has proved or removed with code that never runs: the
    /// optimized version does not make them, and needs no exits for them.
    pub settled: Vec<Assumption>,
    /// The assumptions of the plan that were left out.
    pub dropped: Vec<(Assumption, Dropped)>,
    /// From [`Speculative::from`] to the optimized version: no entry lands behind an assumption.
    pub forward: Checked<Mapping>,
    /// From the optimized version to each version that an exit leads to, to [`Speculative::from`],
    /// and to the base. An exit to another version may have no entry to the base.
    pub backward: BTreeMap<Version, Checked<Mapping>>,
    /// The work of all turns, as [`Plan::work`] counts it.
    pub work: u64,
}

/// An assumption of the optimized version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The instruction, in the assuming version and behind.
    pub inst: Inst,
    /// The assumption of the plan; `None` if an earlier speculation has made it. An assumption made
    /// earlier may have been made once more, to pin values: then `to` is the version speculated on,
    /// which makes it, too, so that the run leaves that version in turn.
    pub assumption: Option<Assumption>,
    /// The nearest version without the assumption, where the run goes on.
    pub to: Version,
    /// The values that the assumption keeps as operands, in terms of [`Speculative::from`].
    pub pins: Vec<Value>,
}

impl Speculative {
    /// The version and the entry that a run takes when the assumption of this instruction fails.
    /// `None` if the optimized version makes no such assumption.
    pub fn exit(&self, inst: Inst) -> Option<(Version, CheckedEntry<'_>)> {
        let to = self.exits.iter().find(|exit| exit.inst == inst)?.to;
        Some((to, self.backward.get(&to)?.checked_entry(Point::before(inst))?))
    }
}

/// Makes a version that makes these assumptions, and optimizes it. Adds both to the tree, behind
/// `from`. If an exit lacks a value, the assumption pins it, and both are made again. An assumption
/// without a proved exit is left out. Cost: that of the pairs of versions from the base on, times
/// the turns, of which there are at most eighteen, within [`Plan::work`]. Most plans take one turn,
/// or two if an assumption is left out.
///
/// # Errors
/// [`SpeculateError`]; the tree is unchanged then.
///
/// # Panics
/// As [`crate::driver::derive`], and if the tree has no such version.
pub fn speculate(
    module: &Module,
    tree: &mut VersionTree,
    from: Version,
    plan: &Plan<'_>,
) -> Result<Speculative, SpeculateError> {
    error::check_all(module, tree.function(from), plan.assume)?;
    tree.set_module(module);
    let mut search =
        SpeculationSearch::new(tree.function(from), plan.assume, (plan.pins, plan.work));
    // The versions of the first turn have at least these instructions.
    let line = tree.path(VersionTree::BASE, from).into_iter().chain([from]);
    search.afford(line.map(|version| tree.function(version).inst_count() as u64).sum());
    for turn in 0.. {
        let attempt = SpeculationAttempt::new(module, (tree, from), &search.made, plan);
        search.spend(attempt.work());
        if attempt.lacking().is_empty() {
            return Ok(attempt.publish(tree, search));
        }
        search.amend(attempt.from(), attempt.lacking(), turn)?;
        search.afford(attempt.work());
    }
    unreachable!("a version without assumptions of its own lacks no exit of them")
}
