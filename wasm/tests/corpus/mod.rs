//! Tests on the corpus: every module imports to well-formed functions without needless parameters,
//! and prints what other engines print.
//!
//! The kernels are in the repository. The programs are not: `tests/corpus/build programs` builds
//! them, and OSIER_CORPUS names their folder. Without it the tests print a notice and cover only
//! the kernels.

use ir::Module;
use std::io::Write;
use std::path::{Path, PathBuf};
use wasm::ImportLimits;

mod imports;
#[path = "../../../ir/tests/variables/laws.rs"]
mod laws;
mod runs;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus")
}

/// The kernels, by name.
pub(crate) fn kernels() -> Vec<(String, PathBuf)> {
    modules_in(&corpus())
}

/// The modules to test with their names (`bzip2.o2`), the kernels first.
fn modules() -> Vec<(String, PathBuf)> {
    let mut folders = vec![corpus()];
    match std::env::var_os("OSIER_CORPUS") {
        Some(folder) => folders.push(folder.into()),
        None => say(
            "SKIPPED: the programs of the corpus, because OSIER_CORPUS names no folder with them",
        ),
    }
    folders.iter().flat_map(|folder| modules_in(folder)).collect()
}

/// The modules of a folder, by name.
fn modules_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let files = files.map(|f| f.expect("a readable folder").path());
    let is_module = |file: &PathBuf| file.extension().is_some_and(|e| e == "wasm");
    let named = |file: PathBuf| {
        let name = file.file_stem().expect("a file name").to_string_lossy().into_owned();
        (name, file)
    };
    let mut modules: Vec<_> = files.filter(is_module).map(named).collect();
    modules.sort();
    assert!(!modules.is_empty(), "no modules in {}", folder.display());
    modules
}

/// Prints a message to standard error, past the capture of output from passing tests.
fn say(message: &str) {
    writeln!(std::io::stderr(), "{message}").expect("standard error is open");
}

fn import(file: &Path) -> Module {
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    wasm::import(&bytes, &ImportLimits::default())
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}
