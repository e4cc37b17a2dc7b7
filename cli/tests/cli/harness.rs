//! Runs the command and collects its outputs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The kernels of the corpus, as `tests/corpus/sizes` lists them.
pub(crate) const KERNELS: [&str; 15] = [
    "calls", "divide", "edit", "hash", "mandel", "matmul", "mixed", "nbody", "queens", "scan",
    "sieve", "sort", "stencil", "vm", "words",
];

/// The suffixes of the two builds of each kernel.
pub(crate) const ROUTES: [&str; 2] = ["", ".o2"];

/// The outputs and the status of a command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Ended {
        Ended {
            status: output.status.code().expect("the command ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("diagnostics are UTF-8"),
        }
    }

    /// Fails the test unless the command ended with this status.
    pub(crate) fn with_status(self, status: i32) -> Ended {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osier"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Runs the command without input.
pub(crate) fn osier(args: &[&str]) -> Ended {
    osier_with_input(args, b"")
}

/// Runs the command with this on its standard input.
pub(crate) fn osier_with_input(args: &[&str], input: &[u8]) -> Ended {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // The command may end without reading all its input.
        scope.spawn(move || drop(stdin.write_all(input)));
        Ended::of(child.wait_with_output().expect("the command ends"))
    })
}

/// A file of the corpus.
pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name)
}

/// The path of the module of a kernel.
pub(crate) fn kernel(name: &str, route: &str) -> String {
    format!("tests/corpus/{name}{route}.wasm")
}

/// A temporary folder for one test, removed when dropped.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Writes a file into a folder and returns its path.
pub(crate) fn file(folder: &tempfile::TempDir, name: &str, contents: impl AsRef<[u8]>) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, contents).expect("the folder is writable");
    path.to_str().expect("a path in UTF-8").to_owned()
}
