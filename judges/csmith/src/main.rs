//! The command. The exit status is 0 if nothing is wrong, 1 if something is, and 2 if the programs
//! could not be judged.

use clap::Parser;
use osier_csmith::{CsmithArguments, run};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&CsmithArguments::parse(), &mut io::stdout()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            let _ = writeln!(io::stderr(), "osier-csmith: error: {message}");
            ExitCode::from(2)
        }
    }
}
