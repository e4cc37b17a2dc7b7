//! Compares Osier with external engines.
//!
//! The exit status is 0 if nothing differs, 1 if something does, and 2 if the comparison failed.

use clap::Parser;
use osier_judges::{JudgeArguments, JudgeCommand, smith, speed};
#[cfg(feature = "native")]
use osier_judges::{engines, exec, native};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = io::stdout();
    let done = match JudgeArguments::parse().command {
        JudgeCommand::Smith(arguments) => smith::run(&arguments, &mut out),
        JudgeCommand::Speed(arguments) => speed::run(&arguments, &mut out),
        #[cfg(feature = "native")]
        JudgeCommand::Native(arguments) => native::run(&arguments, &mut out),
        #[cfg(feature = "native")]
        JudgeCommand::Calls(arguments) => native::calls::run(&arguments, &mut out),
        #[cfg(feature = "native")]
        JudgeCommand::Engines(arguments) => engines::run(&arguments, &mut out),
        #[cfg(feature = "native")]
        JudgeCommand::Exec(arguments) => exec::run(&arguments, &mut out),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            let _ = writeln!(io::stderr(), "osier-judges: error: {message}");
            ExitCode::from(2)
        }
    }
}
