//! The ends of runs that differ from the ends of programs: interrupts, failed transitions, wrong
//! code.

use super::action::LinkError;
use crate::error::{CompileError, ContinueError};
use interp::Outcome;
use ir::{DeclaredEffect, Func, Inst, SupplyError, Value};
use std::fmt;

/// The reason why a run is being ended.
#[derive(Clone, Debug)]
pub(super) enum RunStop {
    /// An end that the interpreter has, too.
    Outcome(Outcome),
    /// An end that only machines with native code have.
    Failed(RunError),
}

/// The reason why a run ended without an outcome of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// An [`super::Interrupt`] ended the run.
    Interrupted,
    /// An OSR point fired without a target: an open point and no continuation, or no embedder for
    /// [`super::Action::Hand`].
    Stuck {
        /// The function.
        func: Func,
        /// The number of the point.
        point: usize,
    },
    /// The OSR point that fired belongs to a version that the machine has released or never
    /// adopted.
    Released,
    /// The machine or its memories were exchanged for others.
    Exchanged,
    /// The transition cannot be compiled or executed.
    Continue(ContinueError),
    /// The transition does not fit its point or the machine.
    Link(LinkError),
    /// Code that the run needs cannot be compiled.
    Compile(CompileError),
    /// The bounds of the thread's stack are unknown, or the run is on another stack.
    NoStack {
        /// The error of the system.
        what: String,
    },
    /// A transition found no room for a frame of the base version.
    StackOverflow {
        /// The function.
        func: Func,
    },
    /// A replayed store of a transition is out of bounds: the entry is wrong.
    Store {
        /// The function.
        func: Func,
        /// The landing point of the transition.
        target: Inst,
    },
    /// The embedder's interpreter returned results whose types differ from the function's.
    WrongResults {
        /// The function.
        func: Func,
        /// The difference.
        what: String,
    },
    /// An imported function exceeded its declared effect, or a bound function its promised effect.
    /// Checked runs alone see some effects ([`crate::Config::checked`]).
    Effect {
        /// The function.
        func: Func,
        /// The declared or promised effect.
        promised: DeclaredEffect,
        /// The effect that it had.
        what: String,
    },
    /// The embedder's interpreter, or a function that it called, panicked.
    HandlerPanicked {
        /// The function.
        func: Func,
        /// The message of the panic, or an empty text.
        what: String,
    },
    /// The embedder requests code at a place that no base version has.
    NoSuchPlace {
        /// The function.
        func: Func,
        /// The instruction.
        at: Inst,
    },
    /// The embedder gives no contents of a value that the code for a place reads.
    NotGiven {
        /// The function.
        func: Func,
        /// The value of its base version.
        value: Value,
    },
    /// The body that the embedder supplies does not fit.
    Supply {
        /// The function.
        func: Func,
        /// The difference.
        error: SupplyError,
    },
    /// Native code accessed an address outside of all memories. The code is wrong, which is a bug
    /// of this crate.
    WildAccess {
        /// The address.
        address: usize,
    },
    /// Native code ended the run without a reason, which is a bug of this crate.
    Lost,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Interrupted => f.write_str("interrupted"),
            RunError::Stuck { func, point } => {
                write!(f, "OSR point {point} of {func} fired without a target")
            }
            RunError::Released => f.write_str("an OSR point of a released version fired"),
            RunError::Exchanged => {
                f.write_str("the machine or its memories were exchanged for others")
            }
            RunError::Continue(error) => write!(f, "{error}"),
            RunError::Link(error) => write!(f, "{error}"),
            RunError::Compile(error) => write!(f, "{error}"),
            RunError::NoStack { what } => write!(f, "the bounds of the stack are unknown: {what}"),
            RunError::StackOverflow { func } => {
                write!(f, "the interpreter has no room for a frame of {func}")
            }
            RunError::Store { func, target } => {
                write!(
                    f,
                    "a replayed store of the transition to {target} of {func} is out of bounds"
                )
            }
            RunError::WrongResults { func, what } => {
                write!(f, "the handler of {func} returned {what}")
            }
            RunError::Effect { func, promised, what } => {
                write!(f, "the function for {func} is declared `{promised}`, but {what}")
            }
            RunError::HandlerPanicked { func, what } => {
                write!(f, "the handler of {func} panicked: {what}")
            }
            RunError::NoSuchPlace { func, at } => {
                write!(f, "{func} has no base version with the instruction {at}")
            }
            RunError::NotGiven { func, value } => write!(
                f,
                "the embedder gives no contents of {value} of {func}, which the code reads"
            ),
            RunError::Supply { func, error } => write!(f, "the body supplied for {func}: {error}"),
            RunError::WildAccess { address } => {
                write!(f, "native code accessed {address:#x}, outside all memories")
            }
            RunError::Lost => f.write_str("native code ended the run without saying why"),
        }
    }
}

impl std::error::Error for RunError {}
