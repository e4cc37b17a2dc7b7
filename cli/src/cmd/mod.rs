//! The commands of `osier`, one module each, and their common parts.
//!
//! Results go to standard output; diagnostics and progress go to standard error. The exit status
//! is:
//!
//! - 0 for success,
//! - 1 if the program or the check failed,
//! - 2 for bad usage or bad input, errors of clap included,
//! - 130 after Ctrl-C,
//! - of `run`, the status with which the program exits, in its low 8 bits.
//!
//! A bug in Osier panics with a message that says so.

#[cfg(not(all(feature = "run", feature = "fuzz", feature = "manual")))]
mod absent;
mod check;
mod explain;
mod failure;
mod format;
#[cfg(feature = "fuzz")]
mod fuzz;
mod input;
mod interrupt;
mod jobs;
mod level;
mod limits;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "native")]
mod nans;
mod opt;
mod output;
mod progress;
mod report;
mod retry;
#[cfg(feature = "run")]
mod run;
mod select;
mod start;
mod stopwatch;
mod suggestions;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Moves running calls between versions of a function, and proves each move.
#[derive(Debug, Parser)]
#[command(name = "osier", version = start::VERSION, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    /// Write no progress and no times to standard error; failures and notes stay
    #[arg(short, long, global = true, display_order = 990)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<Subcommands>,
}

const AFTER_HELP: &str = "\
FILE is .wasm, .wat or .oir; for other names the contents decide the format; - is standard input.
Exit status: 0 success; 1 the program or the check failed; 2 bad usage or bad input;
130 interrupted. A program that run executes and that exits by itself decides the status.";

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Run a program, and exit with its status
    #[cfg(feature = "run")]
    Run(run::Args),
    /// (not in this build: feature `run`)
    #[cfg(not(feature = "run"))]
    Run(absent::Args),
    /// Optimize a module and print it, its log of actions, or the mappings between the versions
    Opt(opt::Args),
    /// Count the points with a transition between each function and its optimized version
    Report(report::Args),
    /// Explain one point: where its transition lands, or why it has no entry and which pass
    /// is to blame
    Explain(explain::Args),
    /// Judge random programs, and mappings between their versions, by every oracle
    #[cfg(feature = "fuzz")]
    Fuzz(fuzz::Args),
    /// (not in this build: feature `fuzz`)
    #[cfg(not(feature = "fuzz"))]
    Fuzz(absent::Args),
    /// Judge mappings entry by entry: count the entries that hold, are dropped, or are refuted
    Check(check::Args),
    /// Print the completions of a shell
    #[cfg(feature = "manual")]
    Completions(manual::CompletionArgs),
    /// (not in this build: feature `manual`)
    #[cfg(not(feature = "manual"))]
    Completions(absent::Args),
    /// Print a page for man
    #[cfg(feature = "manual")]
    Man(manual::ManArgs),
    /// (not in this build: feature `manual`)
    #[cfg(not(feature = "manual"))]
    Man(absent::Args),
}

impl Cli {
    /// Reads the arguments of this process. Wrong ones end it, with a message.
    pub(crate) fn read() -> Cli {
        Cli::try_parse().unwrap_or_else(|error| start::suggesting(error).exit())
    }

    /// Runs the command, writes the message of a failure to standard error, and returns the exit
    /// status.
    pub(crate) fn run(self) -> ExitCode {
        failure::set_quiet(self.quiet);
        let Some(command) = self.command else {
            return start::screen();
        };
        let outcome = match command {
            #[cfg(feature = "run")]
            Subcommands::Run(args) => run::run(args),
            #[cfg(not(feature = "run"))]
            Subcommands::Run(_) => absent::absent_from("run", "run"),
            Subcommands::Opt(args) => opt::opt(args),
            Subcommands::Report(args) => report::report(args),
            Subcommands::Explain(args) => explain::explain(args),
            #[cfg(feature = "fuzz")]
            Subcommands::Fuzz(args) => fuzz::fuzz(args),
            #[cfg(not(feature = "fuzz"))]
            Subcommands::Fuzz(_) => absent::absent_from("fuzz", "fuzz"),
            Subcommands::Check(args) => check::check(args),
            #[cfg(feature = "manual")]
            Subcommands::Completions(args) => manual::completions(&args),
            #[cfg(not(feature = "manual"))]
            Subcommands::Completions(_) => absent::absent_from("completions", "manual"),
            #[cfg(feature = "manual")]
            Subcommands::Man(args) => manual::man(&args),
            #[cfg(not(feature = "manual"))]
            Subcommands::Man(_) => absent::absent_from("man", "manual"),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.tell(),
        }
    }
}
