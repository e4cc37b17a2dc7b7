//! Why a point has no entry, and which action of the log is to blame.

use ir::{Inst, Point, Value};
use std::fmt;

/// Why a point has no entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The path from the point meets no bounding anchor that both versions have, or no landing
    /// point leads straight to that anchor.
    NoLanding,
    /// The log adds, deletes or moves an effect that is not a write of one place. The effects of
    /// the two versions do not line up; the pair has no entries.
    Effect,
    /// The source version has executed a write that the target version lacks or executes later. No
    /// later write has covered it yet, and an executed write cannot be undone.
    MemoryAhead,
    /// Every landing point lies behind a write that the source version has not executed and the
    /// entry cannot replay.
    MemoryBehind,
    /// Every landing point lies behind an instruction that may trap and that the source version has
    /// not passed.
    TrapNotReached,
    /// Every landing point lies behind an assumption that the source version does not make. Where
    /// it has failed, the target version has left.
    NotAssumed,
    /// The entry needs a value that is available at the source point, but that this level may not
    /// read and cannot compute.
    NotLive,
    /// The entry needs a block parameter that the source version lacks.
    Parameter,
    /// The entry needs the result of a load, or of another read of memory, that the source version
    /// lacks.
    Load,
    /// The entry needs the result of a call that the source version lacks.
    Call,
    /// The entry needs a value whose operation the source version has not executed, or one of whose
    /// operands is lost.
    Unavailable,
    /// Compensation code or the search for it would be too long.
    TooLong,
    /// The version has too many live values for entries at all its points. [`crate::synthesize_at`]
    /// answers for the points without entries.
    ManyValues,
}

impl Reason {
    /// Every reason, in the order of the enumeration.
    pub const ALL: [Reason; 13] = [
        Reason::NoLanding,
        Reason::Effect,
        Reason::MemoryAhead,
        Reason::MemoryBehind,
        Reason::TrapNotReached,
        Reason::NotAssumed,
        Reason::NotLive,
        Reason::Parameter,
        Reason::Load,
        Reason::Call,
        Reason::Unavailable,
        Reason::TooLong,
        Reason::ManyValues,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NoLanding => "no_landing",
            Reason::Effect => "effect",
            Reason::MemoryAhead => "memory_ahead",
            Reason::MemoryBehind => "memory_behind",
            Reason::TrapNotReached => "trap_not_reached",
            Reason::NotAssumed => "not_assumed",
            Reason::NotLive => "not_live",
            Reason::Parameter => "parameter",
            Reason::Load => "load",
            Reason::Call => "call",
            Reason::Unavailable => "unavailable",
            Reason::TooLong => "too_long",
            Reason::ManyValues => "many_values",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NoLanding => "no point of the other version corresponds",
            Reason::Effect => "effects do not line up",
            Reason::MemoryAhead => {
                "a write has been executed that the other version lacks or executes later"
            }
            Reason::MemoryBehind => {
                "a write of the other version has not been executed and cannot be replayed"
            }
            Reason::TrapNotReached => "an instruction that may trap has not been passed",
            Reason::NotAssumed => "an assumption of the other version has not been made",
            Reason::NotLive => "a needed value is available but not live",
            Reason::Parameter => "a needed block parameter does not exist in this version",
            Reason::Load => "the result of a load is needed, and the load cannot be repeated",
            Reason::Call => "the result of a call is needed",
            Reason::Unavailable => "a needed value cannot be computed here",
            Reason::TooLong => "the compensation code would be too long",
            Reason::ManyValues => "the version has too many live values for an entry at each point",
        })
    }
}

/// The obstacle to an entry, before [`Unmapped`] adds the action to blame.
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
    /// The reason.
    pub reason: Reason,
    /// The value of the target version that cannot be provided, if that is the reason.
    pub value: Option<Value>,
    /// The instruction behind the reason, if one is. Of the target version: a possible trap that
    /// the source version has not passed, a write that cannot be replayed, or the end of a block
    /// that the source version may have skipped. Of the source version: a write that cannot be
    /// undone, or the anchor behind a block that the target version may have skipped.
    pub inst: Option<Inst>,
    /// The index in the log of the action to blame, as far as the log alone tells: the likeliest
    /// one without which the point has an entry ([`crate::VersionPair::suspects`]). `None` without
    /// a suspect.
    pub blame: Option<usize>,
}
