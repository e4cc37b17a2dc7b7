//! The `osier` command. It reads files, writes results and reports errors; all other work is in the
//! library.

mod cmd;

use std::process::ExitCode;

fn main() -> ExitCode {
    cmd::Cli::read().run()
}
