//! The engines, and how a process of each is started.

use super::programs::{KernelFunction, Program};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::Command;

/// An engine, as a process of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lowercase")]
pub enum Contender {
    /// `osier run --engine interp`
    Interp,
    /// `osier run --engine jit`, which compiles each function at its first call
    Jit,
    /// `osier run --engine tiered`, which compiles in a second thread
    Tiered,
    /// `osier run --engine tiered --on-the-spot`, which compiles while the run waits
    Spot,
    /// wasmtime with Cranelift
    Wasmtime,
    /// wasmtime with Winch, its compiler of one pass
    Winch,
    /// node, with V8
    Node,
    /// wasmi, an interpreter
    Wasmi,
}

impl Contender {
    /// All engines, in the order of tables.
    pub const ALL: [Contender; 8] = [
        Contender::Interp,
        Contender::Jit,
        Contender::Tiered,
        Contender::Spot,
        Contender::Wasmtime,
        Contender::Winch,
        Contender::Node,
        Contender::Wasmi,
    ];

    /// The engines of others.
    pub const PEERS: [Contender; 4] =
        [Contender::Wasmtime, Contender::Winch, Contender::Node, Contender::Wasmi];

    /// The name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Contender::Interp => "interp",
            Contender::Jit => "jit",
            Contender::Tiered => "tiered",
            Contender::Spot => "spot",
            Contender::Wasmtime => "wasmtime",
            Contender::Winch => "winch",
            Contender::Node => "node",
            Contender::Wasmi => "wasmi",
        }
    }
}

/// The files that processes are started from.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    /// The command `osier`.
    pub(super) osier: PathBuf,
    /// This command.
    pub(super) judges: PathBuf,
    /// The command `node`.
    pub(super) node: PathBuf,
    /// The script that runs modules in node.
    pub(super) script: PathBuf,
}

impl Commands {
    /// The process that runs a program from its start.
    pub(super) fn run(&self, contender: Contender, program: &Program, file: &PathBuf) -> Command {
        let mut command = match contender {
            Contender::Interp | Contender::Jit | Contender::Tiered | Contender::Spot => {
                let engine = if contender == Contender::Spot { "tiered" } else { contender.name() };
                let mut osier = Command::new(&self.osier);
                osier.args(["run", "--engine", engine]);
                if contender == Contender::Spot {
                    osier.arg("--on-the-spot");
                }
                osier
            }
            Contender::Node => self.node(),
            Contender::Wasmtime | Contender::Winch | Contender::Wasmi => self.peer(contender),
        };
        command.arg(file).arg("--").arg(program.size);
        command
    }

    /// The process that calls an exported function some times, and prints the result and the
    /// seconds of each call.
    pub(super) fn call(
        &self,
        contender: Contender,
        function: &KernelFunction,
        argument: &str,
        calls: u32,
        file: &PathBuf,
    ) -> Command {
        let calls = calls.to_string();
        let mut command = match contender {
            Contender::Node => {
                let mut node = self.node();
                node.args(["--calls", &calls, function.name, function.result]);
                node
            }
            _ => {
                let mut peer = self.peer(contender);
                peer.args(["--invoke", function.name, "--calls", &calls]);
                peer
            }
        };
        command.arg(file).arg("--").args(argument.split(' '));
        command
    }

    fn node(&self) -> Command {
        let mut node = Command::new(&self.node);
        node.arg("--no-warnings").arg(&self.script);
        node
    }

    fn peer(&self, contender: Contender) -> Command {
        let mut peer = Command::new(&self.judges);
        peer.args(["exec", "--engine", contender.name()]);
        peer
    }
}
