//! Runs a program of Wicker: `wicker FILE`. `wicker bench DIRECTORY` compares with Lua, and `wicker
//! phases` code with landing tables and without. `wicker integrators` compares calls of function
//! values.

mod bench;
mod fuzz;
mod integrators;
mod phases;

use osier::tiers::TableUse;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use wicker::Machine;
use wicker::native::{NativeError, Tuning};

const USAGE: &str = "usage: wicker [--jit | --tables | --counts [--tables]] FILE | wicker bench \
     DIRECTORY | wicker phases | wicker integrators [STEPS] | wicker fuzz SEED COUNT";

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
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [command, directory] = &args[..]
        && command == "bench"
    {
        return bench::run(Path::new(directory)).map_err(|message| (WRONG, message));
    }
    if let [command] = &args[..]
        && command == "phases"
    {
        return phases::run().map_err(|message| (WRONG, message));
    }
    let number = |text: &str| text.parse().map_err(|e| (WRONG, format!("{text}: {e}")));
    if let [command, steps @ ..] = &args[..]
        && command == "integrators"
        && steps.len() < 2
    {
        let steps = steps.first().map_or(Ok(integrators::STEPS), |steps| number(steps))?;
        return integrators::run(steps).map_err(|message| (UNCAUGHT, message));
    }
    if let [command, seed, count] = &args[..]
        && command == "fuzz"
    {
        return fuzz::run(number(seed)?, number(count)?).map_err(|message| (UNCAUGHT, message));
    }
    let with_tables = Tuning { tables: Some(TableUse::Everywhere), ..Tuning::default() };
    let (file, tuning) = match &args[..] {
        [file] => (file, None),
        [option, file] if option == "--jit" => (file, Some((Tuning::default(), false))),
        [option, file] if option == "--counts" => (file, Some((Tuning::default(), true))),
        [option, file] if option == "--tables" => (file, Some((with_tables, false))),
        [option, other, file] if option == "--counts" && other == "--tables" => {
            (file, Some((with_tables, true)))
        }
        _ => return Err((WRONG, USAGE.to_owned())),
    };
    let text =
        std::fs::read_to_string(file).map_err(|error| (WRONG, format!("{file}: {error}")))?;
    let mut machine = Machine::new(&text).map_err(|error| (WRONG, format!("{file}:{error}")))?;
    let ended = match tuning {
        None => machine.run().map_err(NativeError::Uncaught),
        Some((tuning, is_counting)) => machine.run_native(tuning).map(|counts| {
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
        (status, format!("{file}:{error}"))
    })
}
