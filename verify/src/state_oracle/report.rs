//! The report of the oracle: counts, and divergences.

use super::FrameChains;
use crate::end::RunEnd;
use ir::{Func, Inst, Point, TrapKind, Value};
use std::fmt;
use transition::Side;

/// The most activations of a landing that are counted apart.
pub const DEPTHS: usize = 5;

/// Counts of the comparisons in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Entries fired and compared.
    pub transitions: u64,
    /// The same, by the number of activations that the entry lands in, less one; the last counts
    /// all with more.
    pub by_depth: [u64; DEPTHS],
    /// Transitions with compensation code that does something.
    pub with_code: u64,
    /// Transitions with a source point inside a loop.
    pub in_loops: u64,
    /// Values compared.
    pub compared: u64,
    /// Transitions after which a copy of the run continued in the other version.
    pub going_on: u64,
    /// Copies that a limit ended, without a comparison of their ends.
    pub going_on_exhausted: u64,
    /// Copies whose ends were compared.
    pub ends: u64,
    /// Entries fired and compared at visits of assumptions that hold.
    pub holding: u64,
    /// Entries fired and compared at visits of assumptions that fail. If the other version does not
    /// make the assumption, the run has left by the entry, and continued.
    pub failing: u64,
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: &Counts) {
        self.transitions += other.transitions;
        self.by_depth.iter_mut().zip(other.by_depth).for_each(|(sum, more)| *sum += more);
        self.with_code += other.with_code;
        self.in_loops += other.in_loops;
        self.compared += other.compared;
        self.going_on += other.going_on;
        self.going_on_exhausted += other.going_on_exhausted;
        self.ends += other.ends;
        self.holding += other.holding;
        self.failing += other.failing;
    }
}

/// A fault that an entry has regardless of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryFault {
    /// The source or the target version lacks the instruction.
    NoSuchPoint {
        /// The point.
        point: Point,
    },
    /// No code is inlined in the place of a call within which the entry makes an activation wait.
    NotInlined {
        /// The call.
        call: Inst,
    },
    /// The innermost activation would wait, or an outer one would not.
    Misplaced {
        /// Its number, from the innermost, 0, outward.
        frame: usize,
    },
    /// A required value is not available at the source point.
    RequiredUnavailable {
        /// The value.
        value: Value,
    },
    /// The compensation code reads a value that the entry does not require, which is poison.
    NotRequired {
        /// The value.
        value: Value,
    },
    /// A provided value is not available at the target point.
    ProvidedUnavailable {
        /// The value.
        value: Value,
    },
    /// The compensation code reads a step that has not run.
    NoSuchStep {
        /// Its index.
        step: usize,
    },
    /// The compensation code makes an object, which the oracle has no allocator for.
    NoObject {
        /// The allocator that it calls.
        func: Func,
    },
    /// A replayed store is no write of one place, or has another number of operands.
    MalformedReplay {
        /// Its index.
        replay: usize,
    },
    /// A step is no operation on values, or its operands or types do not fit the operation.
    MalformedStep {
        /// Its index.
        step: usize,
    },
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryFault::NoSuchPoint { point } => {
                write!(f, "its version has no instruction {}", point.inst())
            }
            EntryFault::NotInlined { call } => {
                write!(f, "it lands within {call}, where no code of the callee is inlined")
            }
            EntryFault::Misplaced { frame } => {
                write!(f, "activation {frame} cannot be where the entry lands")
            }
            EntryFault::RequiredUnavailable { value } => {
                write!(f, "{value} is required but not available at the source point")
            }
            EntryFault::NotRequired { value } => {
                write!(f, "the compensation code reads {value}, which is not required")
            }
            EntryFault::ProvidedUnavailable { value } => {
                write!(f, "{value} is provided but not available at the target point")
            }
            EntryFault::NoSuchStep { step } => {
                write!(f, "the compensation code reads step {step}, which has not run")
            }
            EntryFault::NoObject { func } => {
                write!(f, "the compensation code makes an object by {func}, and nothing makes it")
            }
            EntryFault::MalformedReplay { replay } => {
                write!(
                    f,
                    "replayed store {replay} is no write of one place, or has a wrong number of operands"
                )
            }
            EntryFault::MalformedStep { step } => {
                write!(
                    f,
                    "step {step} of the compensation code is no operation on values, or has wrong operands"
                )
            }
        }
    }
}

/// The place at which a run waited for the other run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopText {
    /// Before an anchor.
    Anchor {
        /// The function's name.
        function: String,
        /// The anchor.
        point: Point,
        /// The number of the activation, counted over the run.
        activation: u64,
    },
    /// The run ended; a description of its end.
    Ended(String),
}

impl fmt::Display for StopText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopText::Anchor { function, point, activation } => {
                write!(f, "@{function} at {} (activation {activation})", point.inst())
            }
            StopText::Ended(how) => write!(f, "its end ({how})"),
        }
    }
}

/// The difference between the two sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// The two versions, run from the start, do not reach the same anchors. The mapping is not to
    /// blame.
    Stops {
        /// Where the version before stopped.
        before: StopText,
        /// Where the version after stopped.
        after: StopText,
    },
    /// The effects of the two versions differ at an anchor, or at the end.
    LockstepEffects,
    /// The two versions end alike, except for memory or globals.
    FinalMemory,
    /// The entry has a fault regardless of the run.
    Entry(EntryFault),
    /// The entry does not provide a value that is live at its target point. Found without a run.
    NotProvided {
        /// The value.
        value: Value,
    },
    /// The run of the other version did not visit the target point in this gap.
    NoPartner,
    /// A point was visited twice between two anchors, so no visit is the right one to compare.
    Ambiguous,
    /// Compensation code traps.
    Trap {
        /// The index of the step.
        step: usize,
        /// The kind of trap.
        kind: TrapKind,
    },
    /// A provided value has other contents than in the target version.
    Value {
        /// The number of its activation, from the innermost, 0, outward.
        frame: usize,
        /// The value.
        value: Value,
        /// Its bits in the target version.
        expected: u64,
        /// The bits the entry provides.
        found: u64,
    },
    /// Memory or globals differ between source point and target point.
    Memory,
    /// The effects so far differ between source point and target point.
    Effects,
    /// The run that continued in the target version ends differently.
    GoingOn {
        /// The end of the run without a transition.
        expected: String,
        /// The end of the run with the transition.
        found: String,
    },
    /// The machine refused the transition, with this reason.
    Refused(String),
    /// The machine made another activation than the entry says.
    OtherActivation {
        /// Its number, from the innermost, 0, outward.
        frame: usize,
    },
    /// An assumption of a version with inlined code fails, and has no exit.
    NoExit,
    /// A chain of transitions differs from the run of the versions before, in this way.
    Chain(String),
}

impl Difference {
    pub(super) fn going_on(expected: &RunEnd, found: &RunEnd) -> Difference {
        Difference::GoingOn { expected: expected.text(), found: found.text() }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Stops { before, after } => {
                write!(f, "the version before stops at {before}, the version after at {after}")
            }
            Difference::LockstepEffects => f.write_str("the effects of the two versions differ"),
            Difference::FinalMemory => {
                f.write_str("the two versions end with different memory or globals")
            }
            Difference::Entry(fault) => write!(f, "{fault}"),
            Difference::NotProvided { value } => {
                write!(f, "{value} is live at the target point and not provided")
            }
            Difference::NoPartner => f.write_str(
                "the target version did not visit the target point between the same anchors",
            ),
            Difference::Ambiguous => f.write_str("a point was visited twice between two anchors"),
            Difference::Trap { step, kind } => {
                write!(f, "step {step} of the compensation code traps: {kind}")
            }
            Difference::Value { frame, value, expected, found } => {
                if *frame > 0 {
                    write!(f, "activation {frame}: ")?;
                }
                write!(
                    f,
                    "{value} is {expected:#x} in the target version, and {found:#x} after the transition"
                )
            }
            Difference::Memory => {
                f.write_str("memory or globals differ between source point and target point")
            }
            Difference::Effects => {
                f.write_str("the effects so far differ between source point and target point")
            }
            Difference::GoingOn { expected, found } => {
                write!(f, "with the transition the run ends in {found}; without it, in {expected}")
            }
            Difference::Refused(reason) => {
                write!(f, "the machine refused the transition: {reason}")
            }
            Difference::OtherActivation { frame } => {
                write!(f, "the run is not in activation {frame} of the entry")
            }
            Difference::NoExit => f.write_str("a failing assumption has no exit"),
            Difference::Chain(what) => write!(f, "in a chain: {what}"),
        }
    }
}

/// The entry of a divergence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blamed {
    /// The function's name.
    pub function: String,
    /// The direction of the mapping.
    pub direction: Side,
    /// The source point.
    pub point: Point,
    /// The text of the source instruction; empty if the version lacks it.
    pub point_text: String,
    /// The landing point.
    pub target: Point,
    /// The text of the instruction there; empty if the version lacks it.
    pub target_text: String,
    /// The number of the visit of the source point on this input, from 1; `None` if the divergence
    /// was found without a run, or in a chain.
    pub visit: Option<u64>,
}

/// A state that contradicts the claim of an entry, or a difference between the versions themselves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The arguments of the run, as bits; empty if the divergence was found without a run.
    pub input: Vec<u64>,
    /// The entry; `None` if the versions themselves differ. For a difference between runs, one of
    /// which has left at a failing assumption: the last exit taken.
    pub entry: Option<Blamed>,
    /// The difference.
    pub difference: Difference,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_run = !matches!(self.difference, Difference::NotProvided { .. });
        if let Some(entry) = &self.entry {
            let Blamed { function, direction, point, point_text, target, target_text, visit } =
                entry;
            match visit {
                Some(visit) => {
                    writeln!(f, "@{function}, {}, visit {visit}:", direction.direction())?
                }
                None if has_run => writeln!(f, "@{function}, {}:", direction.direction())?,
                None => writeln!(f, "@{function}, {}, without a run:", direction.direction())?,
            }
            writeln!(f, "  from {}  {point_text}", point.inst())?;
            writeln!(f, "  to   {}  {target_text}", target.inst())?;
        }
        write!(f, "  {}", self.difference)?;
        if !has_run {
            return Ok(());
        }
        f.write_str("\n  on input (")?;
        for (index, bits) in self.input.iter().enumerate() {
            write!(f, "{}{bits:#x}", if index == 0 { "" } else { ", " })?;
        }
        f.write_str(")")
    }
}

/// An assumption with an exit, and the visits of it in all runs of an oracle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenAssumption {
    /// The function.
    pub func: Func,
    /// The point before the assumption.
    pub point: Point,
    /// Whether the exit fired, at a visit where the assumption holds or fails.
    pub visited: bool,
    /// Whether the exit fired at a visit where the assumption fails.
    pub failing: bool,
}

/// Counts and divergences of an oracle, summed over any number of runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Inputs run.
    pub runs: u64,
    /// Runs that a trap of the program ended.
    pub trapped: u64,
    /// Runs in which a limit ended one of the versions, and so the comparison.
    pub exhausted: u64,
    /// Gaps between anchors that were compared.
    pub gaps: u64,
    /// Visits that were not compared: in the gap, the other run came several times to where their
    /// entries land. Elsewhere than in inlined code, this is a divergence.
    pub ambiguous: u64,
    /// Transitions that found no room for their activations.
    pub without_room: u64,
    /// Transitions into inlined code again, by copies that had left it.
    pub up_again: u64,
    /// The figures of chains.
    pub chains: FrameChains,
    /// Counts of transitions from the version before.
    pub forward: Counts,
    /// Counts of transitions from the version after.
    pub backward: Counts,
    /// All divergences found, kept or not. In runs, each visit counts; without a run, each value.
    pub divergence_count: u64,
    /// The first divergence of each entry, without a run and in runs, up to the limit of the
    /// options.
    pub divergences: Vec<Divergence>,
}

impl Report {
    /// The counts of a direction.
    pub fn counts(&self, direction: Side) -> &Counts {
        match direction {
            Side::Before => &self.forward,
            Side::After => &self.backward,
        }
    }

    pub(super) fn counts_mut(&mut self, direction: Side) -> &mut Counts {
        match direction {
            Side::Before => &mut self.forward,
            Side::After => &mut self.backward,
        }
    }

    /// The counts of both directions together.
    pub fn total(&self) -> Counts {
        let mut total = self.forward;
        total.add(&self.backward);
        total
    }

    /// Adds the counts of another report, and keeps all its divergences.
    pub fn add(&mut self, other: &Report) {
        self.runs += other.runs;
        self.trapped += other.trapped;
        self.exhausted += other.exhausted;
        self.gaps += other.gaps;
        self.ambiguous += other.ambiguous;
        self.without_room += other.without_room;
        self.up_again += other.up_again;
        self.chains.add(&other.chains);
        self.forward.add(&other.forward);
        self.backward.add(&other.backward);
        self.divergence_count += other.divergence_count;
        self.divergences.extend(other.divergences.iter().cloned());
    }
}
