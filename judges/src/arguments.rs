//! What the command takes.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs programs in Osier's interpreter and in wasmi, and compares them.
#[derive(Parser, Debug)]
#[command(name = "osier-judges")]
pub struct Arguments {
    /// What to compare.
    #[command(subcommand)]
    pub command: Command,
}

/// What to compare.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// What random modules do, as they are and after O1
    Smith(SmithArguments),
    /// How fast the kernels and the programs of the corpus run
    Speed(SpeedArguments),
}

/// Options of `smith`.
#[derive(clap::Args, Debug, Clone)]
pub struct SmithArguments {
    /// How many modules
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    pub modules: u64,
    /// The seed of the first module; each next one has the next seed
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads; as many as there are processors when not given
    #[arg(long)]
    pub jobs: Option<usize>,
    /// Write the first module of the run to this file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Judge this WebAssembly module instead of random ones; the seed makes its arguments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["modules", "write"])]
    pub file: Option<PathBuf>,
}

/// Options of `speed`.
#[derive(clap::Args, Debug, Clone)]
pub struct SpeedArguments {
    /// The folder `tests/corpus/build programs` has put its modules in
    #[arg(long, value_name = "DIR", default_value = "target/corpus")]
    pub programs: PathBuf,
    /// The folder of the kernels
    #[arg(long, value_name = "DIR", default_value = "tests/corpus")]
    pub kernels: PathBuf,
    /// Runs of each program in each engine, of which the fastest counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Only programs with this in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Run ours after this pipeline, O1 for one
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
}
