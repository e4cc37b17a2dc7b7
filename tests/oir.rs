//! The `.oir` tests: every file below `tests/oir` is one test, named by its path.
//!
//! `cargo test --test oir licm` runs the files with `licm` in their path. With `OIR_BLESS=1` the
//! run rewrites the blocks of expected output, and nothing else. The tests `strict::...` cover the
//! strictness of the format. Every call runs in the interpreter and natively.
//! `tests/oir/readme.oir` documents the format.

#[allow(dead_code, reason = "shared with `tests/native`, which uses the rest")]
#[path = "native/both.rs"]
mod both;
#[path = "oir_runner/file.rs"]
mod file;
#[path = "oir_runner/mod.rs"]
mod oir_runner;

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// The fewest native runs over all files. Fewer mean that some `run` line did not run natively.
const NATIVE_RUNS_AT_LEAST: usize = 5_000;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let bless = std::env::var_os("OIR_BLESS").is_some_and(|value| value == "1");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oir");
    let mut trials = match trials(&folder, bless) {
        Ok(trials) => trials,
        Err(message) => return refuse(&message),
    };
    trials.extend(oir_runner::strict::trials());
    let conclusion = libtest_mimic::run(&arguments, trials);
    let native = oir_runner::calls::NATIVE_RUNS.load(Ordering::Relaxed);
    let whole = conclusion.num_filtered_out == 0 && !arguments.list;
    if whole && native < NATIVE_RUNS_AT_LEAST {
        return refuse(&format!(
            "{native} native runs were compared, {NATIVE_RUNS_AT_LEAST} at least are expected"
        ));
    }
    conclusion.exit_code()
}

#[expect(clippy::print_stderr, reason = "there is no test to report it")]
fn refuse(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}

/// One trial for each file. Finding no file, or one with another extension, is an error, since no
/// test would run it.
fn trials(folder: &Path, bless: bool) -> Result<Vec<Trial>, String> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    if paths.is_empty() {
        return Err(format!("no `.oir` file below {}", folder.display()));
    }
    let mut trials = Vec::new();
    for path in paths {
        if path.extension().is_none_or(|e| e != "oir") {
            return Err(format!("{} is not a `.oir` file", path.display()));
        }
        let relative = path.strip_prefix(folder).expect("below the folder").with_extension("");
        let name = relative.to_str().ok_or("a path that is not UTF-8")?.replace('\\', "/");
        trials.push(Trial::test(name, move || run(&path, bless)));
    }
    Ok(trials)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

fn run(path: &Path, bless: bool) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let report = oir_runner::run(&text, bless);
    if !report.failures.is_empty() {
        return Err(report.failures.join("\n").into());
    }
    if let Some(blessed) = report.blessed.filter(|blessed| *blessed != text) {
        std::fs::write(path, blessed)?;
    }
    Ok(())
}
