//! The commands.
//!
//! Results go to standard output, diagnostics and progress to standard error. The exit status is 0
//! when all is well, 1 when the program or the check failed, 2 for bad usage or bad input (clap's
//! own errors included), 130 after Ctrl-C. A bug in Osier panics and says so.

mod check;
mod explain;
mod failure;
mod fuzz;
mod input;
mod interrupt;
mod jobs;
mod level;
mod limits;
mod opt;
mod output;
mod progress;
mod report;
mod run;
mod select;
mod stopwatch;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// An OSR-aware optimizing compiler middle-end.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
FILE is .wasm, .wat or .oir; with another name its contents decide, and - is standard input.
Exit status: 0 all is well; 1 the program or the check failed; 2 bad usage or bad input;
130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program; a status other than 0 that it exits with is told, and becomes 1
    Run(run::Args),
    /// Optimize a module and print it, what the passes did, or the mappings between the versions
    Opt(opt::Args),
    /// Tell at how many points execution can move between a function and its optimized version
    Report(report::Args),
    /// Explain one point: where execution moves to from there, or why it cannot and which pass is
    /// to blame
    Explain(explain::Args),
    /// Put random programs, and mappings between their versions, to every oracle
    Fuzz(fuzz::Args),
    /// Judge mappings entry by entry: how many hold, how many are dropped or refuted
    Check(check::Args),
}

impl Cli {
    /// Runs the command; tells people what went wrong.
    pub(crate) fn run(self) -> ExitCode {
        let outcome = match self.command {
            Command::Run(args) => run::run(args),
            Command::Opt(args) => opt::opt(args),
            Command::Report(args) => report::report(args),
            Command::Explain(args) => explain::explain(args),
            Command::Fuzz(args) => fuzz::fuzz(args),
            Command::Check(args) => check::check(args),
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.tell(),
        }
    }
}
