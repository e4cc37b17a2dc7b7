//! Makes random C programs: csmith writes one, and clang builds it for this machine and for
//! WebAssembly.

use crate::arguments::ProgramSize;
use crate::process::{run, run_well};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler that `judges/csmith/install` installs, and that `tests/corpus/build` uses.
const COMPILER: &str = "clang-19";

/// The headers of the programs, of Debian's `libcsmith-dev`.
const HEADERS: &str = "/usr/include/csmith";

/// Seconds for csmith and for the compiler.
const TOOL_LIMIT: f64 = 120.0;

/// Seconds of processor time after which native code is taken to run for ever, and a program is
/// skipped. Six of a hundred programs have such a loop. An interpreter takes far longer.
const NATIVE_PROCESSOR: f64 = 0.05;

/// Seconds of wall time that it gets for that, on a busy machine.
const NATIVE_LIMIT: f64 = 5.0;

/// The printf of the modules.
const RUNTIME: &str = include_str!("runtime.c");

/// The levels of the compiler.
pub(super) const LEVELS: [&str; 3] = ["-O0", "-O1", "-O2"];

/// The options of csmith. It prints nothing but a checksum of all globals. `main` has no arguments,
/// and so needs nothing from the host.
fn options(size: ProgramSize) -> Vec<String> {
    let bounds = match size {
        ProgramSize::Small => Some([4, 3, 3, 6]),
        ProgramSize::Medium => Some([6, 4, 4, 6]),
        ProgramSize::Full => None,
    };
    let names = ["funcs", "block-depth", "block-size", "expr-complexity"];
    let mut options = vec!["--no-argc".to_owned()];
    // csmith takes no option and value in one word.
    for (name, bound) in names.iter().zip(bounds.iter().flatten()) {
        options.extend([format!("--max-{name}"), bound.to_string()]);
    }
    options
}

/// A program, and the output of its native code.
pub(super) struct CProgram<'a> {
    folder: &'a Path,
    seed: u64,
    /// The output of native code.
    pub(super) expected: Vec<u8>,
}

impl CProgram<'_> {
    /// Writes the program of a seed into a folder, and runs its native code. `None` if that takes
    /// too long, or if a signal ends it: the output that such a program should print is unknown.
    ///
    /// # Errors
    /// If a tool is missing or fails, or native code does not exit with 0.
    pub(super) fn make(
        seed: u64,
        size: ProgramSize,
        folder: &Path,
    ) -> Result<Option<CProgram<'_>>, String> {
        let source = folder.join(format!("{seed}.c"));
        let mut csmith = Command::new("csmith");
        csmith.args(options(size)).args(["--seed", &seed.to_string(), "--output"]).arg(&source);
        // csmith leaves a file with the sizes of this machine where it runs.
        csmith.current_dir(folder);
        // csmith itself does not end on a seed now and then.
        if !run_tool(csmith)? {
            return Ok(None);
        }
        let native = folder.join(format!("{seed}.native"));
        let mut clang = compiler();
        clang.arg("-O1").arg(&source).arg("-o").arg(&native);
        if !run_tool(clang)? {
            return Ok(None);
        }
        let expected = printed(Command::new(&native))
            .map_err(|how| format!("native code of seed {seed}: {how}"))?;
        Ok(expected.map(|expected| CProgram { folder, seed, expected }))
    }

    /// Builds the module of a level. `None` if that takes too long.
    ///
    /// # Errors
    /// If the compiler is missing or fails.
    pub(super) fn module(&self, level: &str) -> Result<Option<PathBuf>, String> {
        let runtime = self.folder.join("runtime.c");
        std::fs::write(&runtime, RUNTIME).map_err(|e| format!("{}: {e}", runtime.display()))?;
        let module = self.folder.join(format!("{}{level}.wasm", self.seed));
        let mut clang = compiler();
        // The features of the modules of `tests/corpus/build`.
        clang.args(["--target=wasm32-wasi", "-mcpu=mvp", "-msign-ext", "-mmutable-globals"]);
        clang.args(["-fuse-ld=lld", "-Wl,--stack-first,--strip-debug", "-fno-builtin-printf"]);
        clang.arg(level).arg(self.folder.join(format!("{}.c", self.seed))).arg(runtime);
        Ok(run_tool({
            clang.arg("-o").arg(&module);
            clang
        })?
        .then_some(module))
    }
}

/// The output of a program; `None` if it takes too long or a signal ends it, as a stack that
/// overflows does.
///
/// # Errors
/// If it cannot be run, ends with another status than 0, or prints nothing.
pub(super) fn printed(native: Command) -> Result<Option<Vec<u8>>, String> {
    let ended = run(native, None, NATIVE_LIMIT)?;
    if ended.status.is_none_or(|status| status.code().is_none())
        || ended.processor > NATIVE_PROCESSOR
    {
        return Ok(None);
    }
    match ended.is_well() && !ended.output.is_empty() {
        true => Ok(Some(ended.output)),
        false => Err(ended.how()),
    }
}

fn compiler() -> Command {
    let mut clang = Command::new(COMPILER);
    clang.args(["-w", "-I", HEADERS]);
    clang
}

/// Runs a tool. Returns `false` if it takes too long.
///
/// # Errors
/// If the tool is missing or fails.
fn run_tool(tool: Command) -> Result<bool, String> {
    let ended = run_well(tool, None, TOOL_LIMIT);
    let ended =
        ended.map_err(|error| format!("{error} (judges/csmith/install installs the tools)"))?;
    Ok(ended.status.is_some())
}
