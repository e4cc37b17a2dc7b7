//! Profiles: the cost of counting, the worth of keeping no state in assumptions, and the rate of
//! the checker on versions that assume. Also the time to prove versions with inlined code.
//!
//!     cargo run --release --example profile -- cost tests/corpus/vm.wasm CORPUS/lua.m2r.wasm:20
//!     cargo run --release --example profile -- pins CORPUS/lua.m2r.wasm:20
//!     cargo run --release --example profile -- states tests/corpus/vm.wasm
//!     cargo run --release --example profile -- check CORPUS/lua.m2r.wasm:20
//!     cargo run --release --example profile -- inlining CORPUS/lua.m2r.wasm
//!
//! `cost` runs programs in the interpreter, with counting and without, in one process. The two
//! kinds of run alternate, each in a new machine, and the fastest of several rounds counts. A colon
//! and an argument may follow the name of a file. It prints the processor time of each kind of run
//! and their ratio.
//!
//! `pins` assumes every branch side never taken and every indirect call of one target, at places
//! visited 1,000 times in a first run. It runs the program again in the interpreter, in three
//! variants: without assumptions; with assumptions whose exits keep values on demand; and with
//! assumptions that keep all live values as operands, like compilers that carry frame states. It
//! prints the executed instructions and the sizes of the functions that assume.
//!
//! `states` names, at each loop header and call, the registers of an interpreter there: values
//! that are live, and all block parameters, dead or not. It counts the executed instructions of
//! versions without states, of versions whose exits keep values on demand, and of versions that
//! keep every value named. The last are a lower bound for compilers that carry states through
//! passes, since the values may still move and be replaced.
//!
//! `check` assumes the same as `pins`. The checker judges the mappings between each two neighboring
//! versions of the functions with assumptions, and the mappings of the same functions optimized
//! without assumptions. It prints entries, processor time, and entries a second of both.
//!
//! `inlining` takes the functions in which `O3` inlines a call. It optimizes and certifies each by
//! `O2` and by `O3`, both at level `avail`, and by `O2` at all levels. It prints the instructions
//! of their bases and of the bodies inlined, and the processor time for an instruction: of the
//! bases by `O2`, of the bases and the inlined bodies by `O3`. The time by `O3` includes the
//! landings of all inlined functions. Entries a second are the entries that hold, divided by the
//! time in the checker.

mod check;
mod cost;
mod inlining;
mod pins;
mod states;

use clap::{Parser, Subcommand};
use ir::Module;
use osier::{Format, load};
use passes::Pipeline;
use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures profiles
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Times runs with counting against runs without
    Cost(cost::Args),
    /// Times the checker on versions with assumptions, and on versions of the same functions
    /// without
    Check(check::Args),
    /// Times optimization and proof with inlined code and without
    Inlining(inlining::Args),
    /// Counts the instructions of programs whose assumptions keep the values that exits lack, and
    /// of programs whose assumptions keep all live values
    Pins(pins::Args),
    /// Counts the instructions of programs that can leave at calls and loop headers with all
    /// registers of an interpreter, and the values kept for that
    States(states::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Cost(args) => cost::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Inlining(args) => inlining::run(&args),
        Command::Pins(args) => pins::run(&args),
        Command::States(args) => states::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "profile: {error}").ok();
            ExitCode::from(2)
        }
    }
}

/// Programs whose profile is taken before they are measured.
#[derive(Debug, clap::Args)]
struct ProfiledPrograms {
    /// Programs: FILE or FILE:ARGUMENT
    #[arg(required = true)]
    programs: Vec<String>,
    /// The standard input of the programs
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The pipeline
    #[arg(long, value_name = "P", value_parser = passes::parse)]
    pipeline: Option<Pipeline>,
}

impl ProfiledPrograms {
    /// The bytes of standard input; empty without a file.
    fn input(&self) -> io::Result<Vec<u8>> {
        self.input.as_ref().map_or(Ok(Vec::new()), std::fs::read)
    }

    fn pipeline(&self) -> Pipeline {
        self.pipeline.clone().unwrap_or_default()
    }
}

/// A program of the command line, with its argument.
fn program(text: &str) -> Result<(Module, Vec<String>), Box<dyn Error>> {
    let (file, argument) = match text.rsplit_once(':') {
        Some((file, argument)) => (file, Some(argument.to_owned())),
        None => (text, None),
    };
    let bytes = std::fs::read(Path::new(file)).map_err(|error| format!("{file}: {error}"))?;
    let module = load(Format::Wasm, &bytes).map_err(|error| format!("{file}: {error}"))?;
    Ok((module, std::iter::once(file.to_owned()).chain(argument).collect()))
}

/// A WASI host with these arguments and this input, whose output is dropped.
fn host(args: Vec<String>, input: &[u8]) -> wasm::wasi::Wasi<'_> {
    wasm::wasi::Wasi::new(args, input, io::sink(), io::sink())
}
