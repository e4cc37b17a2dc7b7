//! Why a point has no entry, and which action is to blame.

use ir::{Inst, Point, Value};
use std::fmt;

/// Why a point has no entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// No point of the other version corresponds: control meets no common anchor from here.
    NoLanding,
    /// Effects do not line up: the log adds, deletes or moves one.
    Effect,
    /// Control may have come a way on which the other version passes by this place.
    PassedBy,
    /// A write has been executed that the other version does not execute, and is not yet covered by
    /// another.
    MemoryAhead,
    /// Every landing point lies behind a write that has not been executed here and cannot be.
    MemoryBehind,
    /// Every landing point lies behind an instruction that may trap and has not been passed here.
    TrapNotReached,
    /// A value is needed that is live at neither this level's pool nor derivable, though it is
    /// available.
    NotLive,
    /// A block parameter is needed that this version does not have.
    Parameter,
    /// A load, or another read of memory, is needed whose result this version does not have.
    Load,
    /// The result of a call is needed that this version does not have.
    Call,
    /// A value is needed whose operation has not been executed here, or an operand of which is
    /// lost.
    Unavailable,
    /// The compensation code would be too long.
    TooLong,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 12] = [
        Reason::NoLanding,
        Reason::Effect,
        Reason::PassedBy,
        Reason::MemoryAhead,
        Reason::MemoryBehind,
        Reason::TrapNotReached,
        Reason::NotLive,
        Reason::Parameter,
        Reason::Load,
        Reason::Call,
        Reason::Unavailable,
        Reason::TooLong,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NoLanding => "no_landing",
            Reason::Effect => "effect",
            Reason::PassedBy => "passed_by",
            Reason::MemoryAhead => "memory_ahead",
            Reason::MemoryBehind => "memory_behind",
            Reason::TrapNotReached => "trap_not_reached",
            Reason::NotLive => "not_live",
            Reason::Parameter => "parameter",
            Reason::Load => "load",
            Reason::Call => "call",
            Reason::Unavailable => "unavailable",
            Reason::TooLong => "too_long",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NoLanding => "no point of the other version corresponds",
            Reason::Effect => "effects do not line up",
            Reason::PassedBy => "the other version may have passed by this place",
            Reason::MemoryAhead => {
                "a write has been executed that the other version never executes"
            }
            Reason::MemoryBehind => {
                "a write of the other version has not been executed and cannot be"
            }
            Reason::TrapNotReached => "an instruction that may trap has not been reached",
            Reason::NotLive => "a value is needed that is not live",
            Reason::Parameter => "a block parameter is needed that this version does not have",
            Reason::Load => "a load is needed that cannot be repeated",
            Reason::Call => "the result of a call is needed",
            Reason::Unavailable => "a value is needed that cannot be computed here",
            Reason::TooLong => "the compensation code would be too long",
        })
    }
}

/// What stands in the way, before blame is laid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Obstacle {
    pub(crate) reason: Reason,
    pub(crate) value: Option<Value>,
    pub(crate) inst: Option<Inst>,
}

impl Obstacle {
    pub(crate) fn new(reason: Reason) -> Obstacle {
        Obstacle { reason, value: None, inst: None }
    }
}

/// A reachable point without an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmapped {
    /// The point, in the source version.
    pub point: Point,
    /// Why.
    pub reason: Reason,
    /// The value of the target version that cannot be provided, if that is why.
    pub value: Option<Value>,
    /// The instruction of the target version that may trap and has not been passed, if that is why.
    pub inst: Option<Inst>,
    /// The index in the log of the first action that has to do with it, if one can be named.
    pub blame: Option<usize>,
}
