//! Runs a program of Wicker: `wicker FILE`. `wicker bench DIRECTORY` compares with Lua.

mod bench;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use wicker::Machine;

/// The exit status of wrong use, and of a text that is no program.
const WRONG: u8 = 2;
/// The exit status of an exception that the program does not catch.
const UNCAUGHT: u8 = 1;

fn main() -> ExitCode {
    match run() {
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
    let [file] = &args[..] else {
        return Err((WRONG, "usage: wicker FILE | wicker bench DIRECTORY".to_owned()));
    };
    let text =
        std::fs::read_to_string(file).map_err(|error| (WRONG, format!("{file}: {error}")))?;
    let mut machine = Machine::new(&text).map_err(|error| (WRONG, format!("{file}:{error}")))?;
    let ended = machine.run();
    let written = io::stdout().write_all(&machine.take_output());
    written.map_err(|error| (WRONG, format!("standard output: {error}")))?;
    ended.map_err(|error| (UNCAUGHT, format!("{file}:{error}")))
}
