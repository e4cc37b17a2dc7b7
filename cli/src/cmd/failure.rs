//! Failures of a command, their messages on standard error, and their exit statuses.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status after Ctrl-C: 128 plus the number of the signal, as shells report it. The same
/// after SIGTERM: the partial results were written in both cases.
pub(super) const INTERRUPTED: u8 = 130;

/// The exit status of wrong usage or input, which clap has, too.
pub(super) const BAD_USAGE: u8 = 2;

/// The reason why a command failed.
#[derive(Debug)]
pub(super) enum CommandFailure {
    /// The program that the command ran failed, or a check failed.
    Program(String),
    /// The program ended with this status. The command ends with the same status, without a
    /// message.
    #[cfg(feature = "run")]
    Exited(u8),
    /// The usage is wrong, an input is wrong, or the environment does not permit the work.
    Input(String),
    /// Ctrl-C or SIGTERM. The command has written its partial results already.
    #[cfg(feature = "native")]
    Interrupted,
    /// The reader of the output has closed its end, as `head` does. The command ends silently with
    /// status 0.
    ClosedOutput,
}

impl CommandFailure {
    /// A failure of usage or input.
    pub(super) fn input(message: impl Display) -> CommandFailure {
        CommandFailure::Input(message.to_string())
    }

    /// The program ended with a status other than 0. The command ends with the low 8 bits, like a
    /// program in a shell. If they are 0, the command ends with 1, so that no failure looks like
    /// success.
    #[cfg(feature = "run")]
    pub(super) fn exited(status: i32) -> CommandFailure {
        CommandFailure::Exited((status as u8).max(1))
    }

    /// The failure of a run that an engine did not end as a program ends.
    #[cfg(feature = "run")]
    pub(super) fn of_run(error: jit::RunError) -> CommandFailure {
        match error {
            jit::RunError::Interrupted => CommandFailure::Interrupted,
            error => CommandFailure::Program(error.to_string()),
        }
    }

    /// A failure to write a result to `place`. A broken pipe counts as
    /// [`CommandFailure::ClosedOutput`].
    pub(super) fn writing(place: impl Display, error: &io::Error) -> CommandFailure {
        match error.kind() {
            ErrorKind::BrokenPipe => CommandFailure::ClosedOutput,
            _ => CommandFailure::Input(format!("cannot write {place}: {error}")),
        }
    }

    /// Writes the message to standard error and returns the exit status of the command.
    pub(super) fn tell(self) -> ExitCode {
        let (message, status) = match self {
            CommandFailure::Program(message) => (message, 1),
            #[cfg(feature = "run")]
            CommandFailure::Exited(status) => return ExitCode::from(status),
            CommandFailure::Input(message) => (message, BAD_USAGE),
            #[cfg(feature = "native")]
            CommandFailure::Interrupted => ("interrupted".to_owned(), INTERRUPTED),
            CommandFailure::ClosedOutput => return ExitCode::SUCCESS,
        };
        tell(&message);
        ExitCode::from(status)
    }
}

/// Whether progress and times are left out. A flag of the process: the option belongs to all
/// commands, and threads tell progress.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves out progress and times from now on, or shows them.
pub(super) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether progress and times are left out.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes progress or times to standard error, unless `--quiet` is set.
pub(super) fn tell_progress(message: &str) {
    if !is_quiet() {
        tell(message);
    }
}

/// Writes a diagnostic to standard error, after the name of the command.
pub(super) fn tell(message: &str) {
    print(&format!("osier: {message}"));
}

/// Writes a line to standard error without a prefix.
pub(super) fn print(line: &str) {
    // An error on standard error cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "{line}");
}
