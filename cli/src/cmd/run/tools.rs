//! The output of `osier run` about native code for profilers and debuggers.

use crate::cmd::failure::CommandFailure;
use clap::ValueEnum;
use jit::CodeObserver;
use jit::gdb::GdbInterface;
use jit::perf::{JitDump, PerfMap};
use jit::process::ExecutableView;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use system::MachineClocks;
use wasm::wasi::{ClockId, Clocks};

/// Files from which perf learns the names of native code
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PerfFile {
    /// /tmp/perf-PID.map: names alone, for perf report and perf top
    Map,
    /// jit-PID.dump in the current directory: names, code and times, for perf inject --jit after
    /// perf record -k mono
    Jitdump,
}

/// The options for profilers and debuggers.
#[derive(Debug, clap::Args)]
pub(super) struct ToolOptions {
    /// Write a file from which perf learns the names of native code; not with --engine interp
    #[arg(long, value_enum, value_name = "FILE")]
    perf: Option<PerfFile>,
    /// Tell gdb the names of native code; not with --engine interp
    #[arg(long)]
    gdb: bool,
}

impl ToolOptions {
    /// The option that needs native code, if one is set.
    pub(super) fn needs_native_code(&self) -> Option<&'static str> {
        match (self.perf, self.gdb) {
            (Some(_), _) => Some("--perf"),
            (None, true) => Some("--gdb"),
            (None, false) => None,
        }
    }

    /// Opens the files.
    ///
    /// # Errors
    /// If a file cannot be made or mapped.
    pub(super) fn open(&self) -> Result<Tools, CommandFailure> {
        let mut tools = Tools::default();
        if self.gdb {
            tools.observers.push(Arc::new(GdbInterface::new()));
        }
        let process = std::process::id();
        match self.perf {
            None => {}
            Some(PerfFile::Map) => {
                let path = PathBuf::from(format!("/tmp/perf-{process}.map"));
                let map = Arc::new(PerfMap::new(opened(&path, new_file(&path))?));
                tools.observers.push(Arc::clone(&map) as Arc<dyn CodeObserver>);
                tools.map = Some((path, map));
            }
            Some(PerfFile::Jitdump) => {
                let path = PathBuf::from(format!("jit-{process}.dump"));
                let file = opened(&path, new_file(&path))?;
                let view = opened(&path, ExecutableView::new(&file))?;
                let now = || MachineClocks::new().now(ClockId::Monotonic);
                let dump = Arc::new(JitDump::new(file, process, now));
                tools.observers.push(Arc::clone(&dump) as Arc<dyn CodeObserver>);
                tools.dump = Some((path, dump, view));
            }
        }
        Ok(tools)
    }
}

/// Makes a file. An earlier process with the same number may have left one.
fn new_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Do not follow a link that another user has put there: `/tmp` is writable for everybody.
    File::options().read(true).write(true).create_new(true).open(path)
}

fn opened<T>(path: &Path, made: io::Result<T>) -> Result<T, CommandFailure> {
    made.map_err(|error| CommandFailure::writing(path.display(), &error))
}

/// The observers of native code, and their files.
#[derive(Default)]
pub(super) struct Tools {
    observers: Vec<Arc<dyn CodeObserver>>,
    map: Option<(PathBuf, Arc<PerfMap<File>>)>,
    /// The mapping stays until the end, so that perf finds it whenever it begins to record.
    dump: Option<(PathBuf, Arc<JitDump<File>>, ExecutableView)>,
}

impl Tools {
    /// The observers, for an engine.
    pub(super) fn observers(&self) -> Vec<Arc<dyn CodeObserver>> {
        self.observers.clone()
    }

    /// Ends the files.
    ///
    /// # Errors
    /// If a file could not be written.
    pub(super) fn finish(&self) -> Result<(), CommandFailure> {
        if let Some((path, map)) = &self.map {
            opened(path, map.check())?;
        }
        if let Some((path, dump, _)) = &self.dump {
            opened(path, dump.close())?;
        }
        Ok(())
    }
}
