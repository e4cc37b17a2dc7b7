//! Counts the work of the native state oracle.

use std::time::Duration;

/// Counts over runs of native code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NativeFigures {
    /// The number of transitions between versions that compiled code made. Each is compared at its
    /// source point.
    pub transitions: u64,
    /// The number of these transitions from the version after to the version before.
    pub backward: u64,
    /// The number of these transitions that are also compared at their landing point.
    pub probed: u64,
    /// The number of fired points at which a stress switch demanded no transition, so that the run
    /// continued in the same version.
    pub stays: u64,
    /// The number of compared values.
    pub compared: u64,
    /// The number of OSR points in compiled code.
    pub points: u64,
    /// The number of these points that fired at least once.
    pub fired: u64,
    /// The number of runs of native code.
    pub runs: u64,
    /// The number of these runs that ended in a trap.
    pub trapped: u64,
    /// The number of runs that a limit ended. Their ends are not compared.
    pub exhausted: u64,
    /// The number of pairs of versions compiled with bounds checks, because the address space did
    /// not suffice to guard their memories.
    pub unguarded: u64,
    /// The number of compiled versions that make assumptions.
    pub speculative: u64,
    /// The number of assumptions in compiled code, each with an exit.
    pub assumptions: u64,
    /// The number of these that failed at least once.
    pub failing: u64,
    /// The number of visits of these assumptions that held.
    pub held: u64,
    /// The number of visits of these assumptions that failed, each of which left the version.
    pub exits: u64,
    /// The number of these exits that continued in the interpreter.
    pub interpreted: u64,
    /// The number of these exits that continued in native code without a question.
    pub linked: u64,
    /// The number of exits out of versions with inlined code. The end of each run with such exits
    /// is compared with the interpreter's run of the bases.
    pub left_inlined: u64,
    /// The number of these exits that led to several activations.
    pub framed: u64,
    /// The number of these exits at assumptions that failed.
    pub failed_inlined: u64,
    /// The number of times that a policy which counts took a run with inlined code from the
    /// interpreter back to native code.
    pub resumed: u64,
    /// The number of versions that were released while a run went on, which may have had frames in
    /// them.
    pub released: u64,
    /// The number of programs that ran while other threads compiled and set flags.
    pub tiered: u64,
    /// The number of pieces of code there that the run took up late, by a delay of the seed.
    pub late: u64,
    /// The visits by which they came late, in total.
    pub delays: u64,
    /// The number of times that such a run entered native code in a loop.
    pub entered: u64,
    /// The number of times that it left native code at a flag that another thread had set.
    pub flagged: u64,
    /// The number of compared values that agree but for the bits of NaNs.
    pub nans: u64,
    /// The number of compiled pieces of code: versions, probes and continuations.
    pub compiled_functions: u64,
    /// The time of compiling them.
    pub compile_time: Duration,
}

impl NativeFigures {
    /// References to the counts, in an order that two processes share. The pattern names every
    /// field, so a new field fails to compile here.
    pub fn counts(&mut self) -> [&mut u64; 30] {
        let NativeFigures {
            transitions,
            backward,
            probed,
            stays,
            compared,
            points,
            fired,
            runs,
            trapped,
            exhausted,
            unguarded,
            speculative,
            assumptions,
            failing,
            held,
            exits,
            interpreted,
            linked,
            left_inlined,
            framed,
            failed_inlined,
            resumed,
            released,
            tiered,
            late,
            delays,
            entered,
            flagged,
            nans,
            compiled_functions,
            compile_time: _,
        } = self;
        [
            transitions,
            backward,
            probed,
            stays,
            compared,
            points,
            fired,
            runs,
            trapped,
            exhausted,
            unguarded,
            speculative,
            assumptions,
            failing,
            held,
            exits,
            interpreted,
            linked,
            left_inlined,
            framed,
            failed_inlined,
            resumed,
            released,
            tiered,
            late,
            delays,
            entered,
            flagged,
            nans,
            compiled_functions,
        ]
    }

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
        self.speculative += other.speculative;
        self.assumptions += other.assumptions;
        self.failing += other.failing;
        self.held += other.held;
        self.exits += other.exits;
        self.interpreted += other.interpreted;
        self.linked += other.linked;
        self.left_inlined += other.left_inlined;
        self.framed += other.framed;
        self.failed_inlined += other.failed_inlined;
        self.resumed += other.resumed;
        self.released += other.released;
        self.tiered += other.tiered;
        self.late += other.late;
        self.delays += other.delays;
        self.entered += other.entered;
        self.flagged += other.flagged;
        self.nans += other.nans;
        self.compiled_functions += other.compiled_functions;
        self.compile_time += other.compile_time;
    }
}
