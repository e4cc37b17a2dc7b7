//! A case of the fuzzer: a program, the calls that run it, and the passes between its versions.

use super::options::CampaignOptions;
use interp::{Host, HostError, Limits, Memories};
use ir::module::ImportName;
use ir::{Func, Module};
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
    /// The most rewrites that the passes make, over all functions ([`crate::guilty()`]).
    pub rewrites: u64,
    /// The level of the mappings.
    pub level: Level,
    /// The policy by which the state oracle selects visits to compare.
    pub policy: Policy,
    /// The settings of the campaign, which name the oracles and their work.
    pub options: CampaignOptions,
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
