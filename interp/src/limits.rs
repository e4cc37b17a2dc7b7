//! What a machine may use, and what it keeps besides the result.

/// What a machine may use. Reaching a limit ends a run with its own [`super::Outcome`], except that
/// growing a memory beyond its limit fails as the program can see (-1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instructions of the IR that may be executed over the life of the machine. One on a range
    /// counts once more for each 1024 bytes or entries.
    pub fuel: u64,
    /// Pages of 64 KiB that all memories together may have.
    pub memory_pages: u32,
    /// Entries that all tables together may have.
    pub table_entries: u32,
    /// Activations that may exist at once.
    pub call_depth: u32,
    /// Values that the frames of all activations may hold at once.
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

/// How much of the effect trace is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TraceLevel {
    /// Nothing: the baseline tier.
    Off,
    /// The number of effects and a digest of them.
    #[default]
    Digest,
    /// Also every effect. Grows without bound along the run: for tests and short runs.
    Full,
}

/// What a machine keeps and checks besides running the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Fill the frames of new activations with [`poison`], so that reading a value that was never
    /// assigned shows. Frames a transfer makes are always filled.
    pub poison: bool,
    /// Keep the digest of memories and globals up to date, so that asking for it is constant time.
    pub track_memory: bool,
    /// How much of the effect trace is kept.
    pub trace: TraceLevel,
}

impl Options {
    /// All checks on and the full trace kept: what tests want.
    pub fn checked() -> Options {
        Options { poison: true, track_memory: true, trace: TraceLevel::Full }
    }
}

/// What a slot that was given no value holds in checked runs: a pattern no program computes by
/// accident, tagged with the slot.
pub const fn poison(slot: u32) -> u64 {
    0xdead_beef_0000_0000 | slot as u64
}

/// Whether bits are [`poison`].
pub const fn is_poison(bits: u64) -> bool {
    bits >> 32 == 0xdead_beef
}
