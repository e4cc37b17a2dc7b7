//! How runs end that do not end as programs do.

use super::link::LinkError;
use crate::error::{CompileError, ContinueError};
use interp::Outcome;
use ir::{Func, Inst};
use std::fmt;

/// Why a run is being ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// As programs end.
    Outcome(Outcome),
    /// Otherwise.
    Failed(RunError),
}

/// Why a run ended that did not end as programs do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// An [`super::Interrupt`] ended it.
    Interrupted,
    /// An OSR point fired that leads nowhere: an open one, and nobody was there to say where to go
    /// on.
    Stuck {
        /// The function.
        func: Func,
        /// The number of the point.
        point: usize,
    },
    /// An OSR point fired of a version that was let go, or that this machine never took up.
    Released,
    /// The machine or its memories were exchanged for others.
    Exchanged,
    /// A transition was asked for that cannot be made.
    Continue(ContinueError),
    /// A transition was asked for that does not fit.
    Link(LinkError),
    /// Code that the run needs cannot be made.
    Compile(CompileError),
    /// The system does not say how much stack the thread has.
    NoStack {
        /// What it says.
        what: String,
    },
    /// A transition needs the frame of a version that has no room.
    StackOverflow {
        /// The function.
        func: Func,
    },
    /// A store that belongs to a transition does not lie within its memory: the entry is wrong.
    Store {
        /// The function.
        func: Func,
        /// Where the transition leads.
        target: Inst,
    },
    /// A handler gave other results than the function has.
    WrongResults {
        /// The function.
        func: Func,
        /// What is wrong.
        what: String,
    },
    /// An OSR point is to hand over to the handler, which is at work already: in a function that it
    /// has called.
    HandlerBusy {
        /// The function.
        func: Func,
        /// The number of the point.
        point: usize,
    },
    /// A handler panicked, or what it called.
    HandlerPanicked {
        /// The function.
        func: Func,
        /// The message of the panic, if it has one.
        what: String,
    },
    /// Native code accessed an address outside all memories: wrong code, a bug of ours.
    WildAccess {
        /// The address.
        address: usize,
    },
    /// Native code ended a run without saying why: a bug of ours.
    Lost,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Interrupted => f.write_str("interrupted"),
            RunError::Stuck { func, point } => {
                write!(f, "OSR point {point} of {func} fired and leads nowhere")
            }
            RunError::Released => {
                f.write_str("an OSR point fired of a version that the machine does not have")
            }
            RunError::Exchanged => {
                f.write_str("the machine or its memories were exchanged for others")
            }
            RunError::Continue(error) => write!(f, "{error}"),
            RunError::Link(error) => write!(f, "{error}"),
            RunError::Compile(error) => write!(f, "{error}"),
            RunError::NoStack { what } => write!(f, "the size of the stack is not known: {what}"),
            RunError::StackOverflow { func } => write!(f, "there is no room for a frame of {func}"),
            RunError::Store { func, target } => {
                write!(
                    f,
                    "a store of the transition to {target} of {func} does not lie within its memory"
                )
            }
            RunError::WrongResults { func, what } => {
                write!(f, "the handler that ran {func} gave {what}")
            }
            RunError::HandlerBusy { func, point } => {
                write!(
                    f,
                    "OSR point {point} of {func} hands over to the handler, which is at work already"
                )
            }
            RunError::HandlerPanicked { func, what } => {
                write!(f, "the handler that ran {func} panicked: {what}")
            }
            RunError::WildAccess { address } => {
                write!(f, "native code accessed {address:#x}, outside all memories")
            }
            RunError::Lost => f.write_str("native code ended the run without saying why"),
        }
    }
}

impl std::error::Error for RunError {}
