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
pub(crate) mod error;
pub(crate) mod lost;
mod suggest;

pub(crate) use attempt::{Lacking, LiveThere, MadeExit, TriedAssumption, assume, optimize, sort};
use attempt::{SpeculationAttempt, repeated};
use check::{Checked, CheckedEntry};
pub use error::SpeculateError;
use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::{Function, Inst, Module, Point, Value};
pub(crate) use lost::EdgeLogs;
pub use lost::Lost;
use osr::{Version, VersionTree};
pub use passes::{Assumption, Expected};
use passes::{PinnedAssumption, Pipeline};
use std::collections::BTreeMap;
use std::fmt;
pub use suggest::{
    COST, DIRECT, JOIN, Observed, SPOILED, SuggestOptions, Suggester, Suggestion, suggest,
};
use transition::mapping::Mapping;

/// Assumptions of one version.
pub const MAX_ASSUMPTIONS: usize = 4096;

/// Turns in which values are pinned for assumptions without an exit.
pub const PIN_TURNS: usize = 3;

/// Values pinned for one assumption on demand.
pub const MAX_PINS: usize = 64;

/// Turns in which assumptions without an exit are left out. Leaving some out changes what the
/// passes do, and so may take the exit of another; after the last turn none is left.
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
}

impl<'a> Plan<'a> {
    /// A plan that pins values on demand.
    pub fn new(assume: &'a [Assumption], pipeline: &'a Pipeline) -> Plan<'a> {
        Plan { assume, pipeline, pins: Pins::OnDemand }
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

/// Why an assumption was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// No proved entry leads back from it.
    NoExit(Lost),
    /// The place is in code that no run reaches.
    NeverReached,
    /// In inlined code, the value is a constant with other bits.
    NeverHolds,
    /// In each turn, leaving out some assumptions took the exits of others.
    NoTurnLeft,
}

impl Dropped {
    /// The name of the reason in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Dropped::NoExit(lost) => lost.name(),
            Dropped::NeverReached => "never_reached",
            Dropped::NeverHolds => "never_holds",
            Dropped::NoTurnLeft => "no_turn_left",
        }
    }
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dropped::NoExit(lost) => write!(f, "no entry leads back from it: {lost}"),
            Dropped::NeverReached => f.write_str("no run reaches it"),
            Dropped::NeverHolds => f.write_str("the value is a constant with other bits there"),
            Dropped::NoTurnLeft => {
                f.write_str("assumptions still lost their exits after the last turn")
            }
        }
    }
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
/// the turns, of which there are at most eight.
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
    let mut search = SpeculationSearch::new(tree.function(from), plan.assume, plan.pins);
    for turn in 0.. {
        let attempt = SpeculationAttempt::new(module, (tree, from), &search.made, plan);
        if attempt.lacking().is_empty() {
            return Ok(attempt.publish(tree, search.dropped));
        }
        search.amend(attempt.from(), attempt.lacking(), turn)?;
    }
    unreachable!("a version without assumptions of its own lacks no exit of them")
}

/// The assumptions to try, each with the values to pin for it, and those left out so far.
pub(crate) struct SpeculationSearch {
    pins: Pins,
    pub(crate) made: Vec<TriedAssumption>,
    pub(crate) dropped: Vec<(Assumption, Dropped)>,
}

impl SpeculationSearch {
    pub(crate) fn new(from: &Function, assume: &[Assumption], pins: Pins) -> SpeculationSearch {
        let cfg = Cfg::new(from);
        let is_reached = |a: &Assumption| cfg.is_reachable(from.inst_block(a.at.inst()));
        let (reached, unreached): (Vec<Assumption>, Vec<Assumption>) =
            assume.iter().partition(|a| is_reached(a));
        let live = (pins == Pins::Live).then(|| Liveness::new(from, &cfg));
        let pinned = |a: &Assumption| match &live {
            Some(live) => live.live_before(from, a.at).iter().collect(),
            None => Vec::new(),
        };
        SpeculationSearch {
            pins,
            made: reached
                .into_iter()
                .map(|a| PinnedAssumption { assumption: a, pins: pinned(&a) })
                .map(|pinned| TriedAssumption { pinned, is_repeated: false })
                .collect(),
            dropped: unreached.into_iter().map(|a| (a, Dropped::NeverReached)).collect(),
        }
    }

    /// Pins a value for each assumption without an exit, or leaves the assumption out. `from` is
    /// the version speculated on.
    ///
    /// # Errors
    /// If an assumption of an earlier speculation has lost its exit, and none of this one is left
    /// to blame.
    pub(crate) fn amend<'a>(
        &mut self,
        from: &Function,
        lacking: &'a [Lacking],
        turn: usize,
    ) -> Result<(), SpeculateError> {
        let may_pin = self.pins == Pins::OnDemand && turn < PIN_TURNS;
        let own = |lacks: &'a Lacking| lacks.index.map(|index| (index, lacks));
        let earlier: Vec<&Lacking> = lacking.iter().filter(|lacks| lacks.index.is_none()).collect();
        let lacking: BTreeMap<usize, &Lacking> = lacking.iter().filter_map(own).collect();
        if let Some(lacks) = earlier.first().filter(|_| self.made.is_empty() && !may_pin) {
            return Err(SpeculateError::LosesExit { inst: lacks.inst });
        }
        let repeated: Vec<TriedAssumption> = earlier
            .iter()
            .filter(|_| may_pin)
            .filter_map(|lacks| repeated(from, lacks.inst, &lacks.to_keep))
            .collect();
        // An assumption made earlier cannot be left out, so all of this plan are.
        let is_last = turn >= PIN_TURNS + DROP_TURNS || repeated.len() < earlier.len();
        for (index, mut kept) in std::mem::take(&mut self.made).into_iter().enumerate() {
            let lost = lacking.get(&index);
            // A reason names one value, and others may be missing. The last turn pins all of them.
            let is_last_pin = turn + 1 == PIN_TURNS;
            let missing = |lacks: &Lacking| {
                if is_last_pin && !lacks.to_keep.is_empty() {
                    lacks.gone.clone()
                } else {
                    lacks.to_keep.clone()
                }
            };
            if may_pin && lost.is_some_and(|lacks| pin(&mut kept.pinned.pins, &missing(lacks))) {
                self.made.push(kept);
                continue;
            }
            let why = match lost {
                Some(lacks) => Dropped::NoExit(lacks.lost),
                None if is_last => Dropped::NoTurnLeft,
                None => {
                    self.made.push(kept);
                    continue;
                }
            };
            if !kept.is_repeated {
                self.dropped.push((kept.pinned.assumption, why));
            }
        }
        self.made.extend(repeated);
        Ok(())
    }
}

/// Pins more values, as many as fit. Returns whether there were any.
fn pin(pins: &mut Vec<Value>, more: &[Value]) -> bool {
    let before = pins.len();
    for value in more {
        if pins.len() < MAX_PINS && !pins.contains(value) {
            pins.push(*value);
        }
    }
    pins.len() > before
}
