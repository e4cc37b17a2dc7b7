//! The command `wicker`: runs a program, and measures Wicker.

mod bench;
mod fuzz;
mod integrators;
mod phases;

use clap::{Parser, Subcommand};
use osier::tiers::TableUse;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wicker::Machine;
use wicker::native::{NativeError, Tuning};

/// Runs a program of Wicker, a small dynamic language.
#[derive(Parser)]
#[command(name = "wicker", args_conflicts_with_subcommands = true, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The program.
    file: Option<PathBuf>,
    /// Compile hot functions.
    #[arg(long)]
    jit: bool,
    /// Compile hot functions, and continue in rows of landing tables where kinds of values change.
    #[arg(long)]
    tables: bool,
    /// Compile hot functions, and make no object that nothing needs.
    #[arg(long)]
    objects: bool,
    /// Compile hot functions, and print what was compiled to standard error.
    #[arg(long)]
    counts: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Compare programs with Lua 5.4, LuaJIT and node, as far as installed; takes minutes.
    Bench {
        /// The directory, with the same programs in Wicker, Lua and JavaScript.
        directory: PathBuf,
    },
    /// Measure a loop whose values change their kinds: landing tables, and two ways without.
    Phases,
    /// Measure calls of function values in four integrators.
    Integrators {
        /// The steps of each call.
        #[arg(default_value_t = integrators::STEPS)]
        steps: u64,
    },
    /// Run random programs in all ways, and compare what they print.
    Fuzz {
        /// The seed of the first program.
        seed: u64,
        /// The number of programs.
        count: u64,
    },
}

/// The exit status of wrong use, and of a text that is no program.
const WRONG: u8 = 2;
/// The exit status of an exception that the program does not catch.
const UNCAUGHT: u8 = 1;

/// The exit status of a panic.
const PANICKED: u8 = 101;
/// The bytes of the stack.
const STACK: usize = 512 << 20;

fn main() -> ExitCode {
    // Runs of native code and of the interpreter nest.
    let run = std::thread::Builder::new().stack_size(STACK).spawn(run);
    let ended = match run.map(std::thread::JoinHandle::join) {
        Ok(Ok(ended)) => ended,
        Ok(Err(_)) => return ExitCode::from(PANICKED),
        Err(error) => Err((WRONG, format!("no thread: {error}"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(status)
        }
    }
}

fn run() -> Result<(), (u8, String)> {
    let args = Args::parse();
    match args.command {
        Some(Command::Bench { directory }) => {
            bench::run(&directory).map_err(|message| (WRONG, message))
        }
        Some(Command::Phases) => phases::run().map_err(|message| (WRONG, message)),
        Some(Command::Integrators { steps }) => {
            integrators::run(steps).map_err(|message| (UNCAUGHT, message))
        }
        Some(Command::Fuzz { seed, count }) => {
            fuzz::run(seed, count).map_err(|message| (UNCAUGHT, message))
        }
        None => {
            let file = args.file.ok_or_else(|| (WRONG, "no program is given".to_owned()))?;
            let tables = args.tables.then_some(TableUse::Everywhere);
            let is_native = args.jit || args.tables || args.objects || args.counts;
            let leaves_objects_out = args.objects;
            let tuning =
                is_native.then(|| Tuning { tables, leaves_objects_out, ..Tuning::default() });
            run_file(&file, tuning, args.counts)
        }
    }
}

fn run_file(file: &Path, tuning: Option<Tuning>, is_counting: bool) -> Result<(), (u8, String)> {
    let name = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| (WRONG, format!("{name}: {error}")))?;
    let mut machine = Machine::new(&text).map_err(|error| (WRONG, format!("{name}:{error}")))?;
    let ended = match tuning {
        None => machine.run().map_err(NativeError::Uncaught),
        Some(tuning) => machine.run_native(tuning).map(|counts| {
            if is_counting {
                // Nobody is left to tell if this fails.
                let _ = writeln!(io::stderr(), "{counts:#?}");
            }
        }),
    };
    let written = io::stdout().write_all(&machine.take_output());
    written.map_err(|error| (WRONG, format!("standard output: {error}")))?;
    ended.map_err(|error| {
        let status = if let NativeError::Failed(_) = error { WRONG } else { UNCAUGHT };
        (status, format!("{name}:{error}"))
    })
}
