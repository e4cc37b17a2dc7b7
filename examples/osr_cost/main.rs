//! The costs of OSR in native code: points that never fire, transitions, building continuations,
//! code size.
//!
//! ```text
//! cargo run --release --example osr_cost -- never       # hot loops with a point that never fires
//! cargo run --release --example osr_cost -- programs    # real programs, a point at each header
//! cargo run --release --example osr_cost -- transition  # from version to version and back
//! cargo run --release --example osr_cost -- exit        # assumptions that fail
//! cargo run --release --example osr_cost -- frames      # out of inlined code, into three frames
//! cargo run --release --example osr_cost -- inlining    # programs after O3, beside O2
//! cargo run --release --example osr_cost -- build       # continuations, in IR and by Cranelift
//! cargo run --release --example osr_cost -- size        # bytes of code with points
//! cargo run --release --example osr_cost -- region      # loops compiled by themselves
//! cargo run --release --example osr_cost -- code        # many functions: made, installed, freed
//! cargo run --release --example osr_cost -- embed       # calls of the embedder, many functions
//! cargo run --release --example osr_cost -- ablation    # O2 without each of its passes
//! cargo run --release --example osr_cost -- tiers       # what the tiering policy counts on
//! cargo run --release --example osr_cost -- schedule F  # the policy beside the best schedule
//! ```
//!
//! A ratio compares the fastest of many runs, which alternate in one process. The place of a short
//! loop in its 64 bytes of code can change its time by a factor of two, so every variant is
//! compiled at several places. Each table has the ratio of a variant to itself, compiled a second
//! time. Differences up to that ratio mean nothing.

mod ablation;
mod build;
mod code;
mod embed;
mod exit;
mod frames;
mod inlining;
mod kernels;
mod measure;
mod never;
mod points;
mod programs;
mod region;
mod schedule;
mod size;
mod tiers;
mod transition;

use clap::{Parser, Subcommand, ValueEnum};
use jit::{Config, Engine, Unsupported};
use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Measures the costs of OSR in native code
#[derive(Parser, Debug)]
struct Arguments {
    /// The cost to measure
    #[command(subcommand)]
    what: What,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    /// Rounds; the fastest counts; each table has a default
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// Only items with this in their name; `ablation` takes several, with commas between them
    #[arg(long, global = true, default_value = "")]
    only: String,
    /// The pipelines that `ablation` compares with the base, with semicolons between them
    #[arg(long, global = true, value_delimiter = ';')]
    pipelines: Vec<String>,
    /// The NaNs of arithmetic
    #[arg(long, global = true, value_enum, default_value = "canonical")]
    nans: Nans,
    /// The kind of side exits at OSR points
    #[arg(long, global = true, value_enum, default_value = "stored")]
    exits: Exits,
    /// Loop headers test for interrupts
    #[arg(long, global = true)]
    polls: bool,
    /// The folder where `tests/corpus/build programs` has put its modules
    #[arg(long, global = true, default_value = "target/corpus")]
    programs: PathBuf,
}

/// [`jit::Exits`], on the command line.
#[derive(ValueEnum, Debug, Clone, Copy)]
enum Exits {
    /// Code that stores the values
    Stored,
    /// A call, with a stack map of the values beside the code
    Described,
}

/// [`jit::Nans`], on the command line.
#[derive(ValueEnum, Debug, Clone, Copy)]
enum Nans {
    /// The canonical one, where its bits can be seen
    Canonical,
    /// The NaN of the processor
    Platform,
}

impl Arguments {
    /// Whether `--only` selects an item.
    fn selects(&self, name: &str) -> bool {
        self.only.split(',').any(|part| name.contains(part))
    }

    /// The engine to measure.
    fn engine(&self) -> Result<Engine, Unsupported> {
        let exits = match self.exits {
            Exits::Stored => jit::Exits::Stored,
            Exits::Described => jit::Exits::Described,
        };
        let nans = match self.nans {
            Nans::Canonical => jit::Nans::Canonical,
            Nans::Platform => jit::Nans::Platform,
        };
        let interruption =
            if self.polls { jit::Interruption::Signal } else { jit::Interruption::Never };
        Engine::new(Config { exits, nans, interruption, ..Config::default() })
    }
}

#[derive(Subcommand, Debug, Clone)]
enum What {
    /// Points that never fire, in hot loops
    Never,
    /// Points that never fire, in real programs
    Programs,
    /// Transitions between two versions
    Transition,
    /// Building continuations
    Build,
    /// Assumptions that fail
    Exit,
    /// Exits out of inlined code, into three activations
    Frames,
    /// Inlined code in real programs
    Inlining,
    /// Code size
    Size,
    /// Compiling loops by themselves
    Region,
    /// Code of many functions: making, installing, replacing and freeing it
    Code,
    /// Calls of the embedder, runs of a leaf, programs of many functions
    Embed,
    /// `O2` without each of its passes
    Ablation,
    /// The costs of the tiers, by instruction
    Tiers,
    /// How far the tiering policy is from the best schedule
    Schedule {
        /// A document of `osier run --stats`
        visits: PathBuf,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let report = match &arguments.what {
        What::Never => never::run(&arguments)?,
        What::Programs => programs::run(&arguments)?,
        What::Transition => transition::run(&arguments)?,
        What::Build => build::run(&arguments)?,
        What::Exit => exit::run(&arguments)?,
        What::Frames => frames::run(&arguments)?,
        What::Inlining => inlining::run(&arguments)?,
        What::Size => size::run(&arguments)?,
        What::Region => region::run(&arguments)?,
        What::Code => code::run(&arguments)?,
        What::Embed => embed::run(&arguments)?,
        What::Ablation => ablation::run(&arguments)?,
        What::Tiers => tiers::run(&arguments)?,
        What::Schedule { visits } => schedule::run(visits)?,
    };
    let text =
        if arguments.json { serde_json::to_string_pretty(&report.json)? } else { report.table };
    writeln!(io::stdout(), "{}", text.trim_end())?;
    Ok(())
}

/// The results of a subcommand.
struct Report {
    table: String,
    json: serde_json::Value,
}
