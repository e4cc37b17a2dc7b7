//! The arguments of the command.

#[cfg(feature = "native")]
use crate::engines::{Contender, Measure};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Runs programs in Osier's interpreter and in wasmi, and compares them.
#[derive(Parser, Debug)]
#[command(name = "osier-judges")]
pub struct JudgeArguments {
    /// The comparison to make.
    #[command(subcommand)]
    pub command: JudgeCommand,
}

/// A comparison.
#[derive(Subcommand, Debug)]
pub enum JudgeCommand {
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
    /// Whole processes beside wasmtime, Winch, node and wasmi; first calls; iterations
    #[cfg(feature = "native")]
    Engines(EnginesArguments),
    /// Run one program in one engine, as `engines` does
    #[cfg(feature = "native")]
    Exec(ExecArguments),
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
    /// Threads [default: the number of processors]
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
    /// Runs of each program in each engine, in turn; intervals need six
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
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

    /// The file of a program by a route, built or not.
    pub(crate) fn module(&self, name: &str, route: &str) -> PathBuf {
        let is_kernel = self.kernels.join("kernels").join(format!("{name}.c")).exists();
        match (is_kernel, route) {
            (true, "m2r") => self.kernels.join(format!("{name}.wasm")),
            (true, _) => self.kernels.join(format!("{name}.{route}.wasm")),
            (false, _) => self.programs.join(format!("{name}.{route}.wasm")),
        }
    }

    /// The file with the standard input of a program, if it reads any.
    pub(crate) fn input(&self, name: &str) -> Option<PathBuf> {
        let input = self.kernels.join("expected").join(format!("{name}.in"));
        input.exists().then_some(input)
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
    /// Form of the report
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
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

/// The form of a report
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TableFormat {
    /// Tables
    Text,
    /// The same as data
    Json,
}

/// Options of `engines`.
#[cfg(feature = "native")]
#[derive(clap::Args, Debug, Clone)]
pub struct EnginesArguments {
    /// The measures to take
    #[arg(
        long, value_enum, value_delimiter = ',', value_name = "MEASURE",
        default_values_t = [Measure::Process, Measure::First, Measure::Iterations]
    )]
    pub measures: Vec<Measure>,
    /// Engines that take part
    #[arg(
        long, value_enum, value_delimiter = ',', value_name = "ENGINE",
        default_values_t = Contender::ALL
    )]
    pub engines: Vec<Contender>,
    /// Numbers of cores that each process may use
    #[arg(long, value_delimiter = ',', value_name = "COUNT", default_values_t = [1, 2])]
    pub cores: Vec<u32>,
    /// Rounds in all, those in the file of samples included; intervals need six, and 0 only
    /// prints the samples of the file
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub rounds: u32,
    /// Only programs and functions with this in their name, and the empty program
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub only: String,
    /// Take the samples in this file into account, and append the missing samples. Use another file
    /// after a change of any engine
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,
    /// Begin nothing that would probably end after this many seconds; with --samples, the next run
    /// continues
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Form of the report
    #[arg(long, value_enum, default_value_t = TableFormat::Text)]
    pub format: TableFormat,
    /// The command osier [default: the one beside this command]
    #[arg(long, value_name = "FILE")]
    pub osier: Option<PathBuf>,
    /// The folder `tests/corpus/build programs` and `large` have put their modules in
    #[arg(long, value_name = "DIR", default_value = "target/corpus")]
    pub programs: PathBuf,
    /// The folder of the kernels
    #[arg(long, value_name = "DIR", default_value = "tests/corpus")]
    pub kernels: PathBuf,
}

#[cfg(feature = "native")]
impl EnginesArguments {
    /// The corpus that the options name.
    pub(crate) fn corpus(&self) -> CorpusArguments {
        CorpusArguments {
            programs: self.programs.clone(),
            kernels: self.kernels.clone(),
            runs: 1,
            only: String::new(),
        }
    }
}

/// The engine that runs the program
#[cfg(feature = "native")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
#[value(rename_all = "lowercase")]
pub enum ExecEngine {
    /// Osier's interpreter; only with --invoke, since `osier run` runs programs
    Interp,
    /// Osier's native code, compiled at the first call; only with --invoke
    Jit,
    /// Osier's tiers, with a second thread that compiles; only with --invoke
    Tiered,
    /// Osier's tiers, where the run waits for code; only with --invoke
    Spot,
    /// wasmtime with Cranelift
    Wasmtime,
    /// wasmtime with Winch
    Winch,
    /// wasmi
    Wasmi,
}

/// Options of `exec`.
#[cfg(feature = "native")]
#[derive(clap::Args, Debug, Clone)]
pub struct ExecArguments {
    /// Engine that runs the program
    #[arg(long, value_enum)]
    pub engine: ExecEngine,
    /// Call this exported function instead of running the program, and print the result and the
    /// seconds of each call
    #[arg(long, value_name = "NAME")]
    pub invoke: Option<String>,
    /// How many calls
    #[arg(long, default_value_t = 1, requires = "invoke")]
    pub calls: u32,
    /// The module
    pub file: PathBuf,
    /// The arguments of the program, or of a function as TYPE:VALUE
    #[arg(last = true)]
    pub args: Vec<String>,
}
