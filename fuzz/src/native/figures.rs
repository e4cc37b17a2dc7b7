//! What the native state oracle did.

use std::time::Duration;

/// What was done in native code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NativeFigures {
    /// Transitions from version to version that compiled code made, each compared where it left.
    pub transitions: u64,
    /// Of these, from the version after to the version before.
    pub backward: u64,
    /// Of these, compared where they landed too.
    pub probed: u64,
    /// Points that fired where a stress switch made no transition: the run went on in the same
    /// version.
    pub stays: u64,
    /// Values compared.
    pub compared: u64,
    /// OSR points that were compiled in.
    pub points: u64,
    /// Of these, fired at least once.
    pub fired: u64,
    /// Runs of native code.
    pub runs: u64,
    /// Of these, ended by a trap.
    pub trapped: u64,
    /// Runs that a limit ended, so that nothing was compared at the end.
    pub exhausted: u64,
    /// Pairs of versions compiled with checked bounds, since there was no address space to guard
    /// their memories.
    pub unguarded: u64,
    /// Pieces of code compiled: versions, probes and continuations.
    pub compiled_functions: u64,
    /// The time that took.
    pub compile_time: Duration,
}

impl NativeFigures {
    /// Adds the figures of other programs.
    pub fn add(&mut self, other: &NativeFigures) {
        self.transitions += other.transitions;
        self.backward += other.backward;
        self.probed += other.probed;
        self.stays += other.stays;
        self.compared += other.compared;
        self.points += other.points;
        self.fired += other.fired;
        self.runs += other.runs;
        self.trapped += other.trapped;
        self.exhausted += other.exhausted;
        self.unguarded += other.unguarded;
        self.compiled_functions += other.compiled_functions;
        self.compile_time += other.compile_time;
    }
}
