//! Verdicts: the answers of the checker in words, and the contents that refute an entry.
//!
//! Nothing here decides whether an entry holds; the modules of `accept` do. [`Verdict`] is the
//! answer for one entry, [`Finding`] names the failed check and the place where it failed.

pub(crate) mod refute;

pub use crate::accept::checks::{Check, Finding, Options, Place};
use std::fmt;

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => f.write_str("the pair of versions"),
            Place::Term(id) => write!(f, "term {id}"),
            Place::Value(value) => write!(f, "%{value}"),
            Place::Block(block) => write!(f, "{block}"),
            Place::Inst(inst) => write!(f, "{inst}"),
            Place::Operand(inst, index) => write!(f, "operand {index} of {inst}"),
            Place::Step(index) => write!(f, "step {index}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Place::Whole => write!(f, "{}", self.check),
            at => write!(f, "{} at {at}", self.check),
        }
    }
}

/// Contents of the leaves for which a computation gives other bits than the target version has.
///
/// The leaves (arguments, parameters, results of effects, memory) are chosen freely. No claim is
/// made that a run reaches the point with these contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The number of the valuation: the checker tries eight of them (`refute.rs`).
    pub valuation: u32,
    /// The bits that the target version has.
    pub expected: u64,
    /// The bits that the entry computes; `None` if its computation traps.
    pub found: Option<u64>,
}

/// The answer of the checker. Only entries with [`Verdict::Holds`] are proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The entry is proved.
    Holds,
    /// The entry is wrong: it breaks a rule that needs no proof, or the witness shows a difference.
    Refuted(Finding, Option<Witness>),
    /// The entry is neither proved nor shown to be wrong. The driver drops it.
    Undecided(Finding),
}

impl Verdict {
    /// Whether the entry is proved.
    pub fn holds(&self) -> bool {
        *self == Verdict::Holds
    }

    /// Whether the entry is shown to be wrong.
    pub fn is_refuted(&self) -> bool {
        matches!(self, Verdict::Refuted(..))
    }

    /// The verdict for a failed check without a witness.
    ///
    /// Some rules need no proof to be broken: an entry that requires an unavailable value is wrong
    /// under any certificate. The checks listed here are of this kind, and their failure refutes.
    /// The failure of another check may be a gap in the certificate alone, and leaves the entry
    /// undecided.
    pub(crate) fn of(finding: Finding) -> Verdict {
        match finding.check {
            Check::Versions
            | Check::Ssa
            | Check::SourcePoint
            | Check::TargetPoint
            | Check::TrapPassed
            | Check::Requires
            | Check::Kept
            | Check::StepOrder
            | Check::StepShape
            | Check::AssignShape
            | Check::LivePlus => Verdict::Refuted(finding, None),
            _ => Verdict::Undecided(finding),
        }
    }

    /// The failed check; `None` if the entry holds.
    pub fn finding(&self) -> Option<Finding> {
        match self {
            Verdict::Holds => None,
            Verdict::Refuted(finding, _) | Verdict::Undecided(finding) => Some(*finding),
        }
    }
}

impl From<Finding> for Verdict {
    fn from(finding: Finding) -> Verdict {
        Verdict::of(finding)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Holds => f.write_str("holds"),
            Verdict::Undecided(finding) => write!(f, "undecided: {finding}"),
            Verdict::Refuted(finding, None) => write!(f, "refuted: {finding}"),
            Verdict::Refuted(finding, Some(w)) => match w.found {
                Some(found) => {
                    write!(f, "refuted: {finding}: expected {:#x}, computed {found:#x}", w.expected)
                }
                None => {
                    write!(
                        f,
                        "refuted: {finding}: expected {:#x}, but the computation traps",
                        w.expected
                    )
                }
            },
        }
    }
}
