//! WebAssembly programs as cases.

use super::super::failure::Failure;
use super::super::input;
use fuzz::{Case, Stress, World};
use osier::Limits;
use osr::Level;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use verify::state_oracle::Policy;

/// Of each way into a gap between anchors, the first visits are compared in any case, and of the
/// others one in so many.
const POLICY: Policy = Policy::Sampled { first: 16, one_in: 100 };

/// Instructions each version of a program may execute.
const FUEL: u64 = 1 << 32;

/// A program and how it is run; passes and level are yet to be chosen.
pub(super) struct Program {
    /// As the command takes it.
    pub(super) command: String,
    pub(super) case: Case,
}

/// The programs that the arguments name.
pub(super) fn programs(
    arguments: &[String],
    stdin: Option<&Path>,
) -> Result<Vec<Program>, Failure> {
    let bytes = stdin.map(input::read).transpose()?.map(|read| read.bytes).unwrap_or_default();
    let stdin: Arc<[u8]> = bytes.into();
    let mut programs = Vec::new();
    for argument in arguments {
        match Path::new(argument).is_dir() {
            true => {
                for file in modules(Path::new(argument))? {
                    programs.push(program(&file.display().to_string(), &stdin)?);
                }
            }
            false => programs.push(program(argument, &stdin)?),
        }
    }
    Ok(programs)
}

/// The modules in a folder, in order of their names.
fn modules(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let cannot =
        |e: std::io::Error| Failure::input(format!("cannot read {}: {e}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|e| e == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::input(format!("{} holds no .wasm file", folder.display()))),
        false => Ok(files),
    }
}

/// A file and its arguments, with blanks between them; or a file with blanks in its name.
fn program(command: &str, stdin: &Arc<[u8]>) -> Result<Program, Failure> {
    let args: Vec<String> = match Path::new(command).is_file() {
        true => vec![command.to_owned()],
        false => command.split_whitespace().map(str::to_owned).collect(),
    };
    let path =
        args.first().ok_or_else(|| Failure::input("a program of the corpus is FILE ARGS"))?;
    let module = input::load(Path::new(path), &Limits::default())?.module;
    let entry =
        module.lookup("_start").ok_or_else(|| Failure::input(format!("{path} has no _start")))?;
    if !module.signature(entry).params.is_empty() || module.body(entry).is_none() {
        return Err(Failure::input(format!("{path}: _start is no function without arguments")));
    }
    let case = Case {
        module,
        entry,
        arguments: vec![Vec::new()],
        fuel: FUEL,
        world: World::Wasi { args, input: Cursor::new(Arc::clone(stdin)) },
        steps: Vec::new(),
        level: Level::Avail,
        policy: POLICY,
        going_on: 0,
        certificates: true,
        chains: 0,
        stress: Stress::default(),
        seed: 0,
    };
    Ok(Program { command: command.to_owned(), case })
}
