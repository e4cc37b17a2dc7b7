//! How runs end.

use super::host::HostError;
use ir::entity::{Func, Inst, OsrPoint};
use ir::trap::TrapKind;
use std::fmt;

/// Where a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The function.
    pub func: Func,
    /// Its name.
    pub function: String,
    /// The instruction about to be executed (or trapping); `None` when the function was not
    /// entered.
    pub inst: Option<Inst>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in @{}", self.function)?;
        match self.inst {
            Some(inst) => write!(f, " at {inst}"),
            None => Ok(()),
        }
    }
}

/// How a run ends that does not return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EarlyEnd {
    /// An instruction traps.
    Trap(TrapKind),
    /// A call of an imported function ends it.
    Host(HostError),
    /// There is no fuel for the next instruction.
    OutOfFuel,
    /// There is no room for an activation.
    StackOverflow,
    /// Control leaves through an OSR point, with these values.
    Left(OsrPoint, Vec<u64>),
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The function returned these values.
    Returned(Vec<u64>),
    /// The program trapped. Of a trap of the host, the site is the call.
    Trapped {
        /// How.
        kind: TrapKind,
        /// Where.
        site: Site,
    },
    /// The program came to an `osr_exit`: some activation, not necessarily the first, was to go on
    /// in another version, and the interpreter knows of none. The whole run is over.
    Left {
        /// The point named by the instruction.
        point: OsrPoint,
        /// The contents of its operands, in order.
        values: Vec<u64>,
        /// The instruction.
        site: Site,
    },
    /// The fuel was used up.
    OutOfFuel(Site),
    /// One activation, or one value in a frame, more than the limits allow. The site is the call,
    /// or for the first activation the function.
    StackOverflow(Site),
    /// The program asked the host to exit with this status.
    Exited(i32),
    /// The host could not do what was asked.
    HostFailed {
        /// Why.
        message: String,
        /// The call.
        site: Site,
    },
}

impl Outcome {
    /// The values returned, if it returned.
    pub fn returned(&self) -> Option<&[u64]> {
        match self {
            Outcome::Returned(values) => Some(values),
            _ => None,
        }
    }

    /// Where it ended, unless by itself.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Outcome::Trapped { site, .. }
            | Outcome::Left { site, .. }
            | Outcome::OutOfFuel(site)
            | Outcome::StackOverflow(site)
            | Outcome::HostFailed { site, .. } => Some(site),
            Outcome::Returned(_) | Outcome::Exited(_) => None,
        }
    }

    /// The kind of trap, if it trapped.
    pub fn trap(&self) -> Option<TrapKind> {
        match self {
            Outcome::Trapped { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    /// One line, values as unsigned numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Returned(values) => {
                f.write_str("returned")?;
                values.iter().try_for_each(|v| write!(f, " {v}"))
            }
            Outcome::Trapped { kind, site } => write!(f, "trap {kind} {site}"),
            Outcome::Left { point, values, site } => {
                write!(f, "left at {point} {site} with")?;
                values.iter().try_for_each(|v| write!(f, " {v}"))
            }
            Outcome::OutOfFuel(site) => write!(f, "out of fuel {site}"),
            Outcome::StackOverflow(site) => write!(f, "stack overflow {site}"),
            Outcome::Exited(status) => write!(f, "exited with status {status}"),
            Outcome::HostFailed { message, site } => {
                write!(f, "host call failed {site}: {message}")
            }
        }
    }
}
