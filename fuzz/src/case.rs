//! What is judged at a time: a program, the calls that run it, and the passes between its versions.

use super::stress::Stress;
use interp::{Host, HostError, Memories};
use ir::module::ImportName;
use ir::{Func, Module};
use osr::Level;
use passes::registry::StaticPass;
use std::io::{self, Cursor};
use std::sync::Arc;
use verify::state_oracle::Policy;
use wasm::wasi::Wasi;

/// A program, how it is run, and the passes that make its versions.
#[derive(Clone)]
pub struct Case {
    /// The program; its functions are their own version 0.
    pub module: Module,
    /// The function that is run.
    pub entry: Func,
    /// What it is run with, one run for each list.
    pub arguments: Vec<Vec<u64>>,
    /// Instructions each version may execute in a run.
    pub fuel: u64,
    /// What imported functions do.
    pub world: World,
    /// The passes that lead from each version to the next.
    pub steps: Vec<Vec<StaticPass>>,
    /// What compensation code may read.
    pub level: Level,
    /// Whether every entry's certificate is made and checked.
    pub certificates: bool,
    /// Which visits are compared.
    pub policy: Policy,
    /// Visits of one run and direction from which it goes on in the other version.
    pub going_on: u32,
    /// Chains of random transitions among all versions, for each input.
    pub chains: u32,
    /// Transitions that are made in a run whatever is sampled.
    pub stress: Stress,
    /// Decides what is sampled.
    pub seed: u64,
}

impl Case {
    /// The number of versions.
    pub fn versions(&self) -> usize {
        self.steps.len() + 1
    }

    /// The passes of all steps, as a pipeline is written.
    pub fn pipeline(&self) -> String {
        self.steps.iter().flatten().map(|p| p.name()).collect::<Vec<_>>().join(",")
    }

    /// The passes, a bar where a version is kept.
    pub fn steps_text(&self) -> String {
        let step = |passes: &Vec<StaticPass>| {
            passes.iter().map(|p| p.name()).collect::<Vec<_>>().join(",")
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(" | ")
    }
}

/// What imported functions do. Cloned with every machine, so that each run sees the same.
#[derive(Clone, Debug, Default)]
pub enum World {
    /// There are none.
    #[default]
    Nothing,
    /// A WASI process that reads this and whose output is dropped: that it is the same shows in the
    /// trace of its calls.
    Wasi {
        /// Its arguments, the name of the program first.
        args: Vec<String>,
        /// Its standard input, and how far it has read.
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
            World::Nothing => Err(HostError::Failed(format!(
                "nobody provides {}.{}",
                import.module, import.field
            ))),
            World::Wasi { args: words, input } => {
                let mut wasi = Wasi::new(words.clone(), input, io::sink(), io::sink());
                wasi.call(import, func, args, memories, results)
            }
        }
    }
}
