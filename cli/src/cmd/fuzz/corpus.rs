//! WebAssembly programs of the corpus, read from files as cases of the fuzzer.

use super::super::failure::CommandFailure;
use super::super::input;
use fuzz::{CampaignOptions, Case, World};
use osier::Limits;
use osr::Level;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use verify::state_oracle::Policy;
use wasm::wasi::Process;

/// The state oracle compares the first 16 visits of each gate (a path into a gap between anchors),
/// and of later visits one in 100. Corpus programs run long: comparing every visit would dominate
/// the time.
const POLICY: Policy = Policy::Sampled { first: 16, one_in: 100 };

/// The most instructions that a version of a program may execute in a run.
const FUEL: u64 = 1 << 32;

/// A program of the corpus: read once, when its first case is due.
pub(super) struct CorpusProgram {
    /// The program and its arguments in the form that `--corpus` accepts.
    pub(super) command: String,
    case: OnceLock<Case>,
}

impl CorpusProgram {
    /// A case that runs the program. [`super::sources::CorpusPrograms`] fills in the passes and the
    /// level.
    ///
    /// # Panics
    /// If the program was not read.
    pub(super) fn case(&self) -> Case {
        self.case.get().expect("a program is read before its cases are drawn").clone()
    }
}

/// The programs that the values of `--corpus` name, not read yet.
///
/// # Errors
/// If a folder cannot be read or contains no module.
pub(super) fn programs(arguments: &[String]) -> Result<Vec<CorpusProgram>, CommandFailure> {
    let mut commands = Vec::new();
    for argument in arguments {
        match Path::new(argument).is_dir() {
            true => {
                let files = modules(Path::new(argument))?;
                commands.extend(files.iter().map(|file| file.display().to_string()));
            }
            false => commands.push(argument.clone()),
        }
    }
    let program = |command| CorpusProgram { command, case: OnceLock::new() };
    Ok(commands.into_iter().map(program).collect())
}

/// Reads programs. All share the bytes of one file as their standard input.
pub(super) struct CorpusReader {
    stdin: Arc<[u8]>,
    limits: Limits,
}

impl CorpusReader {
    /// # Errors
    /// If the file for standard input cannot be read.
    pub(super) fn new(
        stdin: Option<&Path>,
        limits: Limits,
    ) -> Result<CorpusReader, CommandFailure> {
        let bytes = stdin.map(input::read).transpose()?.map(|read| read.bytes).unwrap_or_default();
        Ok(CorpusReader { stdin: bytes.into(), limits })
    }

    /// Reads a program, unless it was read before.
    ///
    /// # Errors
    /// If the file cannot be read or is not a program.
    pub(super) fn read(&self, program: &CorpusProgram) -> Result<(), CommandFailure> {
        if program.case.get().is_none() {
            // Nobody else reads it at the same time: programs are read before threads start.
            let _ = program.case.set(case(&program.command, &self.stdin, &self.limits)?);
        }
        Ok(())
    }
}

/// The paths of the `.wasm` files in a folder, sorted.
fn modules(folder: &Path) -> Result<Vec<PathBuf>, CommandFailure> {
    let cannot =
        |e: std::io::Error| CommandFailure::input(format!("cannot read {}: {e}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|e| e == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(CommandFailure::input(format!("{} contains no .wasm file", folder.display()))),
        false => Ok(files),
    }
}

/// The case of one program. `command` is the path of a file, or a path and arguments separated by
/// blanks.
/// A path that names an existing file wins, so a path may contain blanks.
fn case(command: &str, stdin: &Arc<[u8]>, limits: &Limits) -> Result<Case, CommandFailure> {
    let args: Vec<String> = match Path::new(command).is_file() {
        true => vec![command.to_owned()],
        false => command.split_whitespace().map(str::to_owned).collect(),
    };
    let path = args.first().ok_or_else(|| CommandFailure::input("--corpus expects FILE ARGS"))?;
    let module = input::load(Path::new(path), limits)?.module;
    let entry = module
        .lookup("_start")
        .ok_or_else(|| CommandFailure::input(format!("{path} has no _start")))?;
    if !module.signature(entry).params.is_empty() || module.body(entry).is_none() {
        return Err(CommandFailure::input(format!(
            "{path}: _start must be a function with a body and no parameters"
        )));
    }
    Ok(Case {
        module,
        entry,
        arguments: vec![Vec::new()],
        fuel: FUEL,
        world: World::Wasi {
            process: Box::new(Process::new(args)),
            input: Cursor::new(Arc::clone(stdin)),
        },
        steps: Vec::new(),
        rewrites: u64::MAX,
        level: Level::Avail,
        policy: POLICY,
        options: CampaignOptions::default(),
        seed: 0,
    })
}
