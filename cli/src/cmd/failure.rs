//! How a command fails.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// The exit status after Ctrl-C: what shells report of a program that the signal ended.
pub(super) const INTERRUPTED: u8 = 130;

/// Why a command could not do its work.
#[derive(Debug)]
pub(super) enum Failure {
    /// The program that was run failed.
    Program(String),
    /// The command was used wrongly, or what it was given is wrong.
    Input(String),
    /// The user has pressed Ctrl-C; what was found by then is told already.
    Interrupted,
    /// Whoever read the output has stopped reading: not a failure anyone wants to hear of.
    ClosedOutput,
}

impl Failure {
    /// Wrong usage or wrong input.
    pub(super) fn input(message: impl Display) -> Failure {
        Failure::Input(message.to_string())
    }

    /// A result could not be written to `place`.
    pub(super) fn writing(place: impl Display, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::ClosedOutput,
            _ => Failure::Input(format!("cannot write {place}: {error}")),
        }
    }

    /// Tells people, and gives the exit status of the command.
    pub(super) fn tell(self) -> ExitCode {
        let (message, status) = match self {
            Failure::Program(message) => (message, 1),
            Failure::Input(message) => (message, 2),
            Failure::Interrupted => ("interrupted".to_owned(), INTERRUPTED),
            Failure::ClosedOutput => return ExitCode::SUCCESS,
        };
        tell(&message);
        ExitCode::from(status)
    }
}

/// Writes a diagnostic to standard error.
pub(super) fn tell(message: &str) {
    print(&format!("osier: {message}"));
}

/// Writes a line to standard error as it is.
pub(super) fn print(line: &str) {
    // There is nobody left to tell when standard error cannot be written.
    let _ = writeln!(io::stderr(), "{line}");
}
