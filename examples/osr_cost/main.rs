//! What OSR costs in native code: points that never fire, transitions, building continuations, code
//! size.
//!
//! ```text
//! cargo run --release --example osr_cost -- never            # hot loops with a point that never fires
//! cargo run --release --example osr_cost -- programs         # whole programs with a point at every loop header
//! cargo run --release --example osr_cost -- transition       # from version to version and back
//! cargo run --release --example osr_cost -- build            # continuations, in IR and by Cranelift
//! cargo run --release --example osr_cost -- size             # bytes of code with points
//! ```
//!
//! A ratio compares the fastest of many runs, taken by turns in one process. Since the place of a
//! short loop in its 64 bytes of code can make a factor of two, every variant is compiled at
//! several places. Each table has the ratio of a thing to itself, compiled a second time:
//! differences up to that mean nothing.

mod build;
mod kernels;
mod measure;
mod never;
mod points;
mod programs;
mod size;
mod transition;

use clap::{Parser, Subcommand, ValueEnum};
use jit::{Config, Engine, Unsupported};
use std::error::Error;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// What OSR costs in native code
#[derive(Parser, Debug)]
struct Arguments {
    /// What to measure
    #[command(subcommand)]
    what: What,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    /// Rounds, of which the fastest counts; a default of its own for each table
    #[arg(long, global = true)]
    rounds: Option<usize>,
    /// Only what has this in its name
    #[arg(long, global = true, default_value = "")]
    only: String,
    /// What stands at OSR points
    #[arg(long, global = true, value_enum, default_value = "stored")]
    exits: Exits,
    /// Where `tests/corpus/build programs` has put its modules
    #[arg(long, global = true, default_value = "target/corpus")]
    programs: PathBuf,
}

/// [`jit::Exits`], on the command line.
#[derive(ValueEnum, Debug, Clone, Copy)]
enum Exits {
    /// Code that stores what is handed over
    Stored,
    /// A call, and beside the code where everything is
    Described,
}

impl Arguments {
    /// The engine that is measured.
    fn engine(&self) -> Result<Engine, Unsupported> {
        let exits = match self.exits {
            Exits::Stored => jit::Exits::Stored,
            Exits::Described => jit::Exits::Described,
        };
        Engine::new(Config { exits, ..Config::default() })
    }
}

#[derive(Subcommand, Debug, Clone, Copy)]
enum What {
    /// Points that never fire, in hot loops
    Never,
    /// Points that never fire, in real programs
    Programs,
    /// Transitions between two versions
    Transition,
    /// Building continuations
    Build,
    /// Code size
    Size,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let report = match arguments.what {
        What::Never => never::run(&arguments)?,
        What::Programs => programs::run(&arguments)?,
        What::Transition => transition::run(&arguments)?,
        What::Build => build::run(&arguments)?,
        What::Size => size::run(&arguments)?,
    };
    let text =
        if arguments.json { serde_json::to_string_pretty(&report.json)? } else { report.table };
    writeln!(io::stdout(), "{}", text.trim_end())?;
    Ok(())
}

/// What a subcommand found out.
struct Report {
    table: String,
    json: serde_json::Value,
}
