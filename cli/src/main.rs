//! The `osier` command. Everything it can do is in the library; what is here reads files, writes
//! results and speaks to people.

mod cmd;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cmd::Cli::parse().run()
}
