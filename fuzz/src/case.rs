//! A case of the fuzzer: a program, the calls that run it, and the passes between its versions.

use super::stress::Stress;
use interp::{Host, HostError, Limits, Memories};
use ir::module::ImportName;
use ir::{Func, Module};
use jit::Nans;
use osr::Level;
use passes::registry::StaticPass;
use std::io::{self, Cursor};
use std::sync::Arc;
use verify::generate::CountingHost;
use verify::state_oracle::Policy;
use wasm::wasi::{Process, Streams};

/// The factor on the fuel of a run with transitions. An entry may land before instructions that
/// were already executed, so such a run executes more.
const HOP_FUEL: u64 = 4;

/// A program, the inputs of its runs, and the passes that make its versions.
#[derive(Clone)]
pub struct Case {
    /// The program. Its functions are version 0 of their families.
    pub module: Module,
    /// The function that each run calls.
    pub entry: Func,
    /// The lists of arguments, one run each.
    pub arguments: Vec<Vec<u64>>,
    /// The most instructions that a version may execute in a run.
    pub fuel: u64,
    /// The host of the program.
    pub world: World,
    /// The passes from each version to the next.
    pub steps: Vec<Vec<StaticPass>>,
    /// The level of the mappings.
    pub level: Level,
    /// Whether the certificate of every entry is made and checked.
    pub certificates: bool,
    /// The policy by which the state oracle selects visits to compare.
    pub policy: Policy,
    /// The number of transitions per run and direction after which the run continues to its end.
    pub going_on: u32,
    /// The number of chains of random transitions per list of arguments.
    pub chains: u32,
    /// Transitions that extra runs make in addition.
    pub stress: Stress,
    /// The most assumptions that a speculative version of a function makes; 0 for no such versions.
    pub assumptions: u32,
    /// Whether the speculation oracle alone judges the case.
    pub only_speculation: bool,
    /// Whether the inlining oracle judges versions with inlined code.
    pub inlining: bool,
    /// Whether the inlining oracle alone judges the case.
    pub only_inlining: bool,
    /// Whether the speculation oracle compares states at assumptions alone. Chains then have no way
    /// into a version that assumes.
    pub only_exits: bool,
    /// Whether programs have references, which a collector moves at each call of the host.
    pub stress_gc: bool,
    /// The NaNs of native code. With [`Nans::Platform`], the native oracle changes the program so
    /// that it observes no NaN from arithmetic.
    pub nans: Nans,
    /// The seed of all samples.
    pub seed: u64,
}

impl Case {
    /// The number of versions.
    pub fn versions(&self) -> usize {
        self.steps.len() + 1
    }

    /// The limits of a machine that makes no transitions.
    pub(super) fn limits(&self) -> Limits {
        Limits { fuel: self.fuel, ..Limits::default() }
    }

    /// The limits of a machine that makes transitions.
    pub(super) fn hop_limits(&self) -> Limits {
        Limits { fuel: self.fuel.saturating_mul(HOP_FUEL), ..Limits::default() }
    }

    /// The passes of all steps in the notation of a pipeline.
    pub fn pipeline(&self) -> String {
        self.steps.iter().flatten().map(|p| p.name()).collect::<Vec<_>>().join(",")
    }

    /// The passes, with a bar between steps.
    pub fn steps_text(&self) -> String {
        let step = |passes: &Vec<StaticPass>| {
            passes.iter().map(|p| p.name()).collect::<Vec<_>>().join(",")
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(" | ")
    }
}

/// The host that imported functions call. Each run starts with a clone, so all runs see the same
/// inputs.
#[derive(Clone, Debug)]
pub enum World {
    /// The host of generated programs.
    Counting(CountingHost),
    /// A WASI process with the given input. Its output is discarded: the trace of calls already
    /// shows any difference.
    Wasi {
        /// The process, without directories: clones of a process share those.
        process: Box<Process>,
        /// The standard input and the position in it.
        input: Cursor<Arc<[u8]>>,
    },
}

impl Host for World {
    fn call(
        &mut self,
        import: &ImportName,
        func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError> {
        match self {
            World::Counting(host) => host.call(import, func, args, memories, results),
            World::Wasi { process, input } => {
                let mut streams =
                    Streams { stdin: input, stdout: &mut io::sink(), stderr: &mut io::sink() };
                process.call(&mut streams, import, args, memories, results)
            }
        }
    }
}
