//! Counts the work of the native state oracle.

use super::keys::{self, OracleFigures};
use super::sum::figures;
use serde::{Deserialize, Serialize};
use std::time::Duration;

figures! {
    /// Figures of native code. Each transition is compared with the interpreter's transition at its
    /// source point.
    #[derive(Copy, Serialize, Deserialize)]
    pub struct NativeFigures {
        /// The number of transitions between versions that compiled code made.
        pub transitions: u64,
        /// The number of these transitions from the version before.
        pub forward: u64,
        /// The number of these transitions from the version after.
        pub backward: u64,
        /// The number of these transitions that are also compared at their landing point.
        pub probed: u64,
        /// The number of fired points at which a stress switch demanded no transition, so that the
        /// run continued in the same version.
        pub stays: u64,
        /// The number of compared values.
        pub compared: u64,
        /// The number of OSR points in compiled code.
        pub points: u64,
        /// The number of these points that fired at least once.
        pub points_fired: u64,
        /// The number of runs of native code.
        pub runs: u64,
        /// The number of these runs that ended in a trap.
        pub trapped: u64,
        /// The number of runs that a limit ended. Their ends are not compared.
        pub exhausted: u64,
        /// The number of pairs of versions compiled with bounds checks, because the address space
        /// did not suffice to guard their memories. The document leaves it out.
        #[serde(skip)]
        pub unguarded: u64,
        /// The number of compiled versions that make assumptions.
        pub speculative: u64,
        /// The number of assumptions in compiled code, each with an exit.
        pub assumptions: u64,
        /// The number of these assumptions that failed at least once.
        pub assumptions_failing: u64,
        /// The number of visits of these assumptions that held.
        pub held: u64,
        /// The number of visits of these assumptions that failed, each of which left the version.
        pub exits: u64,
        /// The number of these exits that continued in the interpreter.
        pub exits_interpreted: u64,
        /// The number of these exits that continued in native code without a request to the oracle.
        pub exits_linked: u64,
        /// The number of exits out of versions with inlined code. The end of each run with such
        /// exits is compared with the interpreter's run of the bases.
        pub left_inlined: u64,
        /// The number of these exits that led to several activations.
        pub framed: u64,
        /// The number of these exits at assumptions that failed.
        pub failed_inlined: u64,
        /// The number of times that a policy which counts took a run with inlined code from the
        /// interpreter back to native code.
        pub resumed_inlined: u64,
        /// The number of versions released during a run, which may have had frames in them.
        pub released: u64,
        /// The number of programs that ran while other threads compiled and set flags.
        pub tiered: u64,
        /// The number of pieces of code in these programs that the run installed late, by a delay
        /// of the seed.
        pub late: u64,
        /// The total delay of these pieces, in visits.
        pub delays: u64,
        /// The number of times that such a run entered native code in a loop.
        pub entered: u64,
        /// The number of times that such a run left native code at a flag set by another thread.
        pub flagged: u64,
        /// The number of programs that ran with landing tables.
        pub tabled: u64,
        /// The number of rows of these tables.
        pub rows: u64,
        /// The number of exits that a policy linked to a row.
        pub linked_to_rows: u64,
        /// The number of times that such a run entered native code in a loop.
        pub entered_rows: u64,
        /// The number of times that such a run went from native code into a row by a linked exit,
        /// as the cells of the exits count.
        pub to_rows: u64,
        /// The number of compared values that agree except for the bits of NaNs.
        pub nans: u64,
        /// The number of compiled pieces of code: versions, probes and continuations.
        pub compiled_functions: u64,
        /// The time of compiling them, summed over all processes. The document has it in seconds.
        #[serde(
            rename = "compile_seconds",
            serialize_with = "keys::seconds",
            deserialize_with = "keys::from_seconds"
        )]
        pub compile_time: Duration,
        /// The number of programs in which the native oracle found something. The parent process
        /// counts the findings itself.
        #[serde(skip_deserializing)]
        pub findings: u64,
    }
}

impl OracleFigures for NativeFigures {
    fn has_run(&self) -> bool {
        self.runs > 0
    }
}
