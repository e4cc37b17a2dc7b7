//! Limits on the resources of a machine, and options for its checks and traces.

/// Limits on the resources of a machine. A run that reaches a limit ends with an [`super::Outcome`]
/// of its own. Growth beyond a memory or table limit is different: it fails with -1, which the
/// program can see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// IR instructions that may be executed over the life of the machine. An operation on a range
    /// takes one more unit for each 1024 bytes or entries.
    pub fuel: u64,
    /// Pages of 64 KiB that all memories together may have.
    pub memory_pages: u32,
    /// Entries that all tables together may have.
    pub table_entries: u32,
    /// Activations that may exist at once, over all nested runs.
    pub call_depth: u32,
    /// Values that the frames of all activations together may hold at once.
    pub stack_values: u64,
}

impl Default for Limits {
    /// 2^32 instructions (seconds), 1 GiB of memory, 2^24 table entries (128 MiB), 65536
    /// activations, 2^24 values (128 MiB).
    fn default() -> Limits {
        Limits {
            fuel: 1 << 32,
            memory_pages: 16_384,
            table_entries: 1 << 24,
            call_depth: 65_536,
            stack_values: 1 << 24,
        }
    }
}

/// Which part of the effect trace a machine keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceLevel {
    /// Nothing. Needed for the fast tier.
    #[default]
    Off,
    /// The number of effects and a digest of them.
    Digest,
    /// Every effect as well. Grows without bound during the run, so it is for tests and short runs.
    Full,
}

/// Checks and records that a machine adds to the execution of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Fill the frames of new activations with [`poison`], so that a read of a value that was never
    /// assigned is visible. A transfer fills its frame in any case.
    pub poison: bool,
    /// Keep the digest of memories and tables up to date, so that reading it takes constant time.
    pub track_memory: bool,
    /// Which part of the effect trace to keep.
    pub trace: TraceLevel,
}

impl Options {
    /// A digest of the effects kept, to compare runs by.
    pub fn traced() -> Options {
        Options { trace: TraceLevel::Digest, ..Options::default() }
    }

    /// All checks on and the full trace kept, as tests need.
    pub fn checked() -> Options {
        Options { poison: true, track_memory: true, trace: TraceLevel::Full }
    }
}

/// The contents of an unassigned slot in a checked run: a pattern unlikely to occur by accident,
/// with the slot in its low 32 bits.
pub const fn poison(slot: u32) -> u64 {
    0xdead_beef_0000_0000 | slot as u64
}

/// Whether bits carry the pattern of [`poison`].
pub const fn is_poison(bits: u64) -> bool {
    bits >> 32 == 0xdead_beef
}
