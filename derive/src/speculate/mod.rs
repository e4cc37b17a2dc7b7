//! Speculation: versions that are right under assumptions, and the ways out of these versions.
//!
//! A JIT knows that `%x` was 7 in every call so far. [`speculate()`] makes a version that assumes
//! so, optimizes it, and proves for each assumption an entry back to a version without it, for the
//! run in which `%x` is 8. Passes see neither the exits nor the states that exits need: the entries
//! follow from the logs, as everywhere in Osier.
//!
//! Each speculation adds two versions to a tree, with a log between each two:
//!
//! ```text
//! base --speculate, refine--> assuming --optimize--> optimized
//! ```
//!
//! In the first pair, the result of an assumption equals its operand, and no entry from the base
//! lands behind an assumption. In the second pair, both versions make the assumption, and its
//! result is the constant. The checker proves each pair without conditions, and composes the way
//! out of both. In a single pair, the operand would equal the constant even above the assumption
//! (`docs/speculation.md`).
//!
//! The optimized version may be speculated on again. A failed assumption then leads to the nearest
//! version without it: from the second speculation to the first optimized version, from the first
//! speculation to the base.

mod attempt;
mod dropped;
pub(crate) mod error;
mod missing;
mod search;
mod suggest;
#[cfg(test)]
mod tests;

use attempt::SpeculationAttempt;
pub(crate) use attempt::{
    MadeExit, MissingExit, TriedAssumption, assume, missing_exits, optimize, sort,
};
use check::{Checked, CheckedEntry};
pub use dropped::Dropped;
pub use error::SpeculateError;
use ir::{FrameStates, Inst, Module, Point, Value};
use osr::{Version, VersionTree};
use passes::Pipeline;
pub use passes::{Assumption, Expected};
pub(crate) use search::SpeculationSearch;
use std::collections::{BTreeMap, BTreeSet};
pub use suggest::{
    COST, DIRECT, JOIN, Observed, SPOILED, SuggestOptions, Suggester, Suggestion, suggest,
};
use transition::mapping::Mapping;

/// The most assumptions of one speculation. Later assumptions of the plan are dropped
/// ([`Dropped::TooMany`]).
pub const MAX_ASSUMPTIONS: usize = 4096;

/// The most turns that pin values for assumptions without an exit ([`Dropped::NoPinTurnLeft`]).
pub const PIN_TURNS: usize = 3;

/// The most values pinned for one assumption on demand ([`Dropped::TooManyPins`]).
pub const MAX_PINS: usize = 64;

/// The most turns that drop only the assumptions without an exit. Dropping some changes the
/// rewrites of the passes, and so may take the exit of another. Each later turn also drops the
/// second half of the remaining assumptions, in the order of the plan ([`Dropped::NoTurnLeft`]). Of
/// [`MAX_ASSUMPTIONS`], the first remains for ten more turns.
const DROP_TURNS: usize = 3;

/// Which values assumptions keep as operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pins {
    /// The values that exits turn out to lack, found in at most [`PIN_TURNS`] turns.
    #[default]
    OnDemand,
    /// No values. An assumption whose exit lacks a value is dropped.
    Never,
    /// All values that are live in the version before: compilers that carry frame states through
    /// their passes keep these. For comparison.
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
    /// The most work of the search, in instructions. A turn costs the instructions of all versions
    /// from the base to the optimized one. If the next turn would exceed the bound, the search
    /// drops all remaining assumptions ([`Dropped::NoWorkLeft`]), and one more turn makes the
    /// version without them. An instruction costs about 50 microseconds.
    pub work: u64,
    /// The frame states of the version to speculate on, if all assumptions are about registers.
    /// The plan is refused if a value that it assumes something about is none of a register's at
    /// its place ([`SpeculateError::NotNamed`]). Front ends set this while they are debugged.
    pub states: Option<&'a FrameStates>,
}

impl<'a> Plan<'a> {
    /// The default work of a search: one turn for a function of 300,000 instructions, or all turns
    /// for a function of 20,000.
    pub const WORK: u64 = 1_000_000;

    /// A plan that pins values on demand, with the default work.
    pub fn new(assume: &'a [Assumption], pipeline: &'a Pipeline) -> Plan<'a> {
        Plan { assume, pipeline, pins: Pins::OnDemand, work: Plan::WORK, states: None }
    }
}

/// A version that is right while its assumptions hold.
#[derive(Clone, Debug)]
pub struct Speculative {
    /// The version that was speculated on.
    pub from: Version,
    /// The version that makes the assumptions, derived from `from`.
    pub assuming: Version,
    /// The optimized version, derived from `assuming`.
    pub optimized: Version,
    /// The assumptions that the optimized version makes, each with an accepted entry to a version
    /// without it. Assumptions of earlier speculations come first.
    pub exits: Vec<Exit>,
    /// The assumptions of the plan that a pass has proved, or has removed with unreachable code.
    /// The optimized version makes none of these assumptions, and needs no exits for them.
    pub settled: Vec<Assumption>,
    /// The dropped assumptions of the plan.
    pub dropped: Vec<(Assumption, Dropped)>,
    /// From [`Speculative::from`] to the optimized version: no entry lands behind an assumption.
    pub forward: Checked<Mapping>,
    /// From the optimized version, by target version: the targets of exits, [`Speculative::from`],
    /// and the base. An exit to another version may have no entry to the base.
    pub backward: BTreeMap<Version, Checked<Mapping>>,
    /// The anchors that [`Speculative::from`] and both new versions share. Judges align runs by
    /// them.
    pub events: BTreeSet<Inst>,
    /// The work of all turns, as [`Plan::work`] counts it.
    pub work: u64,
}

/// An assumption of the optimized version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exit {
    /// The instruction, in the assuming version and in versions derived from it.
    pub inst: Inst,
    /// The assumption of the plan; `None` if an earlier speculation has made it. This speculation
    /// may repeat an earlier assumption to pin values. Then `to` is the version speculated on,
    /// which makes the assumption, too, so that the run leaves that version in turn.
    pub assumption: Option<Assumption>,
    /// The nearest version without the assumption, where the run continues.
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

/// Makes a version that makes these assumptions, and optimizes it. Adds both versions to the tree,
/// behind `from`. If an exit lacks a value, the assumption pins the value, and the next turn makes
/// both versions again. An assumption without a proved exit is dropped. Cost of a turn: the
/// derivation and the proof of all pairs of versions from the base on. At most eighteen turns,
/// within [`Plan::work`]; most plans take one turn, or two if an assumption is dropped.
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
    if let Some(states) = plan.states {
        error::check_named(states, tree.function(from), plan.assume)?;
    }
    tree.set_module(module);
    let mut search = SpeculationSearch::new(tree.function(from), plan.assume, plan.pins, plan.work);
    // The versions of the first turn have at least these instructions.
    let line = tree.path(VersionTree::BASE, from).into_iter().chain([from]);
    search.afford(line.map(|version| tree.function(version).inst_count() as u64).sum());
    for turn in 0.. {
        let attempt = SpeculationAttempt::new(module, tree, from, &search.made, plan);
        search.spend(attempt.work());
        if attempt.without_exit().is_empty() {
            return Ok(attempt.publish(tree, search));
        }
        search.amend(attempt.from(), attempt.without_exit(), turn)?;
        search.afford(attempt.work());
    }
    unreachable!("a version without assumptions of its own lacks no exit of them")
}
