//! Why a point has no entry, and which action of the log is to blame.

use ir::{Inst, Point, Value};
use std::fmt;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $sentence:literal;)+) => {
        /// Why a point has no entry.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Reason { $($(#[doc = $doc])+ $variant,)+ }

        impl Reason {
            /// Every reason, in the order of the enumeration.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)+];

            /// The name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)+ }
            }
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Reason::$variant => $sentence,)+ })
            }
        }
    };
}

// A row has the documentation, the variant, the name and the sentence in reports.
reasons! {
    /// The path from the point meets no bounding anchor that both versions have, or no landing
    /// point leads straight to that anchor.
    NoLanding "no_landing" "no point of the other version corresponds";
    /// The log adds, deletes or moves an effect that is not a write of one place. The effects of
    /// the two versions do not line up; the pair has no entries.
    Effect "effect" "effects do not line up";
    /// The source version has executed a write that the target version lacks or executes later. No
    /// later write has covered it yet, and an executed write cannot be undone.
    MemoryAhead "memory_ahead"
        "a write has been executed that the other version lacks or executes later";
    /// Every landing point lies behind a write that the source version has not executed and the
    /// entry cannot replay.
    MemoryBehind "memory_behind"
        "a write of the other version has not been executed and cannot be replayed";
    /// Every landing point lies behind an instruction that may trap and that the source version has
    /// not passed.
    TrapNotReached "trap_not_reached" "an instruction that may trap has not been passed";
    /// Every landing point lies behind an assumption that the source version does not make. Where
    /// it has failed, the target version has left.
    NotAssumed "not_assumed" "an assumption of the other version has not been made";
    /// The entry needs a value that is available at the source point, but that this level may not
    /// read and cannot compute.
    NotLive "not_live" "a needed value is available but not live";
    /// The entry needs a block parameter that the source version lacks.
    Parameter "parameter" "a needed block parameter does not exist in this version";
    /// The entry needs the result of a load, or of another read of memory, that the source version
    /// lacks.
    Load "load" "the result of a load is needed, and the load cannot be repeated";
    /// The entry needs the result of a call that the source version lacks.
    Call "call" "the result of a call is needed";
    /// The entry needs a value whose operation the source version has not executed, or one of whose
    /// operands is lost.
    Unavailable "unavailable" "a needed value cannot be computed here";
    /// Compensation code or the search for it would be too long.
    TooLong "too_long" "the compensation code would be too long";
    /// The version has too many live values for entries at all its points. [`crate::synthesize_at`]
    /// answers for the points without entries.
    ManyValues "many_values" "the version has too many live values for an entry at each point";
}

/// Why synthesis found no entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Obstacle {
    /// The reason.
    pub reason: Reason,
    /// The value of the target version that cannot be provided, if that is the reason.
    pub value: Option<Value>,
    /// The instruction behind the reason, if one is. Of the target version: a possible trap that
    /// the source version has not passed, a write that cannot be replayed, or the end of a block
    /// that the source version may have skipped. Of the source version: a write that cannot be
    /// undone, or the anchor behind a block that the target version may have skipped.
    pub inst: Option<Inst>,
    /// The action to blame, as far as the log alone tells: the likeliest one without which the
    /// point has an entry ([`crate::VersionPair::suspects`]). `None` without a suspect.
    pub blame: Option<Blame>,
}

impl Obstacle {
    pub(crate) fn new(reason: Reason) -> Obstacle {
        Obstacle { reason, value: None, inst: None, blame: None }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if let Some(value) = self.value {
            write!(f, " (%{value})")?;
        }
        if let Some(inst) = self.inst {
            write!(f, " ({inst})")?;
        }
        match self.blame {
            Some(Blame { pass, rule: "", .. }) => write!(f, ", since {pass}"),
            Some(Blame { pass, rule, .. }) => write!(f, ", since {pass} ({rule})"),
            None => Ok(()),
        }
    }
}

/// An action to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blame {
    /// Its index in the log between the versions.
    pub action: usize,
    /// Its pass.
    pub pass: &'static str,
    /// The rule that the pass announced last before it.
    pub rule: &'static str,
}

/// A reachable point without an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing<W> {
    /// The point, in the source version.
    pub point: Point,
    /// The reason.
    pub why: W,
}

impl<W: fmt::Display> fmt::Display for Missing<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no entry in front of {}: {}", self.point.inst(), self.why)
    }
}
