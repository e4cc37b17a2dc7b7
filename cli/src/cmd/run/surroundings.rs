//! The surroundings of a program that `osier run` runs: directories, environment, clocks, random
//! bytes, and the standard streams of this process.

use super::words::ProgramWords;
use crate::cmd::failure::CommandFailure;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use system::MachineClocks;
use wasm::wasi::{Process, Wasi};

/// Clocks that a program reads
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Clock {
    /// The clocks of this machine
    Real,
    /// A counter of readings: equal runs read equal times, and sleeping takes no time
    Counted,
}

/// The options for the surroundings of a program.
#[derive(Debug, clap::Args)]
pub(super) struct HostOptions {
    /// Let the program use the files below a directory, which it names GUEST [default: HOST]; no
    /// path of the program leads out of it
    #[arg(long = "dir", value_name = "HOST[::GUEST]", value_parser = directory)]
    directories: Vec<(PathBuf, String)>,
    /// Set a variable of the program's environment, which is empty otherwise
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Clocks that the program reads
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// Seed of the random bytes that the program gets; they do not suit secrets
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

fn directory(text: &str) -> Result<(PathBuf, String), String> {
    let (host, guest) = text.split_once("::").unwrap_or((text, text));
    if host.is_empty() || guest.is_empty() {
        return Err("expected HOST or HOST::GUEST".to_owned());
    }
    Ok((PathBuf::from(host), guest.to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

impl HostOptions {
    /// The WASI host of a program. It writes to the standard output of this process, which is
    /// flushed after every write.
    ///
    /// # Errors
    /// If a directory cannot be opened.
    pub(super) fn host(&self, words: &ProgramWords) -> Result<Wasi<'static>, CommandFailure> {
        let name = words.file.display().to_string();
        let args = std::iter::once(name).chain(words.args.iter().cloned()).collect();
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let terminals = [stdin.is_terminal(), stdout.is_terminal(), stderr.is_terminal()];
        let mut process = Process::new(args).with_seed(self.seed).with_terminals(terminals);
        for (name, value) in &self.variables {
            process = process.with_variable(name, value);
        }
        for (host, guest) in &self.directories {
            let opened = system::directory(host).map_err(|error| {
                CommandFailure::input(format!("cannot open directory {}: {error}", host.display()))
            })?;
            process = process.with_directory(guest, opened);
        }
        if self.clock == Clock::Real {
            process = process.with_clocks(Arc::new(MachineClocks::new()));
        }
        Ok(Wasi::with_process(process, stdin.lock(), stdout.lock(), stderr))
    }
}
