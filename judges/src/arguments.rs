//! The arguments of the command.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs programs in Osier's interpreter and in wasmi, and compares them.
#[derive(Parser, Debug)]
#[command(name = "osier-judges")]
pub struct JudgeArguments {
    /// The comparison to make.
    #[command(subcommand)]
    pub command: Comparison,
}

/// A comparison.
#[derive(Subcommand, Debug)]
pub enum Comparison {
    /// Outcomes of random modules, before and after O1
    Smith(SmithArguments),
    /// Speed of the kernels and the programs of the corpus
    Speed(SpeedArguments),
    /// Speed of the corpus in native code, beside wasmtime
    #[cfg(feature = "native")]
    Native(NativeArguments),
    /// The cost of each kind of call in native code, beside wasmtime
    #[cfg(feature = "native")]
    Calls(CallArguments),
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
    /// Leave native code out, which takes most of the time
    #[arg(long)]
    pub without_native: bool,
    /// Write the first module of the run to this file
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Judge this WebAssembly module instead of random ones; the seed makes its arguments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["modules", "write"])]
    pub file: Option<PathBuf>,
}

/// The programs of the corpus to run, and the number of runs.
#[derive(clap::Args, Debug, Clone)]
pub struct CorpusArguments {
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
}

impl CorpusArguments {
    /// Whether the options select the build of a program by a route.
    pub(crate) fn chosen(&self, name: &str, route: &str) -> bool {
        format!("{name}.{route}").contains(&self.only)
    }
}

/// Options of `speed`.
#[derive(clap::Args, Debug, Clone)]
pub struct SpeedArguments {
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArguments,
    /// Run ours after this pipeline, O1 for one
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
}

/// Options of `native`.
#[cfg(feature = "native")]
#[derive(clap::Args, Debug, Clone)]
pub struct NativeArguments {
    /// The corpus.
    #[command(flatten)]
    pub corpus: CorpusArguments,
    /// Run ours after this pipeline too
    #[arg(long, value_name = "NAME", default_value = "O2")]
    pub pipeline: String,
    /// Have both compare every access with the size of its memory, instead of relying on guard
    /// pages
    #[arg(long)]
    pub checked: bool,
    /// Have both make NaNs canonical, ours where their bits are observable
    #[arg(long)]
    pub canonical: bool,
}

/// Options of `calls`.
#[cfg(feature = "native")]
#[derive(clap::Args, Debug, Clone)]
pub struct CallArguments {
    /// Rounds, each with fresh code in both engines, at eight places in turn
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Calls of each kind in a round; the recursion always makes four million
    #[arg(
        long, default_value_t = 5_000_000,
        value_parser = clap::value_parser!(u32).range(1000..=1_000_000_000)
    )]
    pub calls: u32,
    /// Only kinds with this in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
}
