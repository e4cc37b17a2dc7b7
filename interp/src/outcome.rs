//! Outcomes of runs, and the sites at which runs end.

use super::host::{HostError, HostFailure};
use ir::entity::{Func, Inst, OsrPoint};
use ir::text::AtName;
use ir::trap::TrapKind;
use std::fmt;

/// The place where a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The function.
    pub func: Func,
    /// The name of the function.
    pub function: String,
    /// The instruction that trapped or was about to execute; `None` when the function was not
    /// entered.
    pub inst: Option<Inst>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in {}", AtName(&self.function))?;
        match self.inst {
            Some(inst) => write!(f, " at {inst}"),
            None => Ok(()),
        }
    }
}

/// The way in which a run ends without returning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EarlyEnd {
    /// An instruction traps.
    Trap {
        /// The kind of trap.
        kind: TrapKind,
        /// The bits of the operand of the instruction `trap`, if it has one; bits outside the type
        /// of the operand are 0.
        operand: Option<u64>,
    },
    /// A call of an imported function ends the run.
    Host(HostError),
    /// No fuel is left for the next instruction.
    OutOfFuel,
    /// A limit has no room for another activation.
    StackOverflow,
    /// The run reaches an `osr_exit` of this OSR point, with these operands.
    Left(OsrPoint, Vec<u64>),
    /// An assumption with this reason fails.
    Failed(u32),
}

/// The way in which a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The function returned these values.
    Returned(Vec<u64>),
    /// The program trapped. For a trap of the host, the site is the call.
    Trapped {
        /// The kind of trap.
        kind: TrapKind,
        /// The bits of the operand of the instruction `trap`, if it has one: the address or the
        /// value that a front end reports. Bits outside the type of the operand are 0.
        operand: Option<u64>,
        /// The place of the trap.
        site: Site,
    },
    /// An activation, not necessarily the first, reached an `osr_exit`. It was to continue in
    /// another version, which is unknown to the interpreter, so the whole run ends.
    Left {
        /// The OSR point that the instruction names.
        point: OsrPoint,
        /// The contents of the operands of the instruction, in order.
        values: Vec<u64>,
        /// The place of the instruction.
        site: Site,
    },
    /// An assumption failed in an activation, not necessarily the first, and nothing took the run
    /// to another version ([`super::Run::Failed`]).
    Failed {
        /// The reason that the instruction names.
        reason: u32,
        /// The place of the instruction.
        site: Site,
    },
    /// The fuel was used up.
    OutOfFuel(Site),
    /// An activation, or a value in its frame, would exceed the limits. The site is the call, or
    /// the function for the first activation.
    StackOverflow(Site),
    /// The program requested the host to exit with this status.
    Exited(i32),
    /// The host could not perform a call.
    HostFailed {
        /// The error of the host.
        error: HostFailure,
        /// The place of the call.
        site: Site,
    },
}

impl Outcome {
    /// The values returned, if the run returned.
    pub fn returned(&self) -> Option<&[u64]> {
        match self {
            Outcome::Returned(values) => Some(values),
            _ => None,
        }
    }

    /// The site, if the run neither returned nor exited.
    pub fn site(&self) -> Option<&Site> {
        match self {
            Outcome::Trapped { site, .. }
            | Outcome::Left { site, .. }
            | Outcome::Failed { site, .. }
            | Outcome::OutOfFuel(site)
            | Outcome::StackOverflow(site)
            | Outcome::HostFailed { site, .. } => Some(site),
            Outcome::Returned(_) | Outcome::Exited(_) => None,
        }
    }

    /// The operand of the trap, if the run trapped at an instruction `trap` with an operand.
    pub fn trap_operand(&self) -> Option<u64> {
        match self {
            Outcome::Trapped { operand, .. } => *operand,
            _ => None,
        }
    }

    /// The kind of trap, if the run trapped.
    pub fn trap(&self) -> Option<TrapKind> {
        match self {
            Outcome::Trapped { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    /// Formats on one line, with values as unsigned numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Returned(values) => {
                f.write_str("returned")?;
                values.iter().try_for_each(|v| write!(f, " {v}"))
            }
            Outcome::Trapped { kind, operand: None, site } => write!(f, "trap {kind} {site}"),
            Outcome::Trapped { kind, operand: Some(bits), site } => {
                write!(f, "trap {kind} with {bits} {site}")
            }
            Outcome::Left { point, values, site } => {
                write!(f, "left at {point} {site} with")?;
                values.iter().try_for_each(|v| write!(f, " {v}"))
            }
            Outcome::Failed { reason, site } => write!(f, "assumption {reason} failed {site}"),
            Outcome::OutOfFuel(site) => write!(f, "out of fuel {site}"),
            Outcome::StackOverflow(site) => write!(f, "stack overflow {site}"),
            Outcome::Exited(status) => write!(f, "exited with status {status}"),
            Outcome::HostFailed { error, site } => {
                write!(f, "host call failed {site}: {error}")
            }
        }
    }
}
