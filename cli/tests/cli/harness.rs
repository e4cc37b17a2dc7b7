//! Runs the command and collects its outputs.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use wait_timeout::ChildExt;

/// The time after which a command that is still running fails its test: several times the seconds
/// that the slowest of them takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(600);

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

/// A process that a test started. Dropping it kills the process, so a failing test leaves no
/// process behind.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a process with the input, output and diagnostics that the command names.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running(command.spawn().expect("the command starts"))
    }

    /// The process, for tests that talk to it.
    pub(crate) fn process(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Waits until the process ends and returns its piped outputs.
    ///
    /// # Panics
    ///
    /// If the process is still running at the deadline.
    pub(crate) fn output(mut self) -> Output {
        let stdout = self.0.stdout.take().map(collect);
        let stderr = self.0.stderr.take().map(collect);
        let ended = self.0.wait_timeout(DEADLINE).expect("the process can be waited for");
        let status = ended.unwrap_or_else(|| panic!("still running after {DEADLINE:?}"));
        let bytes = |thread: Option<JoinHandle<Vec<u8>>>| {
            thread.map_or(Vec::new(), |thread| thread.join().expect("the outputs are readable"))
        };
        Output { status, stdout: bytes(stdout), stderr: bytes(stderr) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the process has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Reads a stream to its end in a thread of its own, since a full pipe would stop the process.
fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the stream is readable");
        bytes
    })
}

/// The root of the workspace: the command's current directory in all tests.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is a folder of the root")
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osier"));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command without input and returns its outputs, except redirected ones.
pub(crate) fn output(command: &mut Command) -> Output {
    Running::start(command).output()
}

/// Runs the command without input.
pub(crate) fn osier(args: &[&str]) -> Ended {
    osier_with_input(args, b"")
}

/// Runs the command with this on its standard input.
pub(crate) fn osier_with_input(args: &[&str], input: &[u8]) -> Ended {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut stdin = running.process().stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // The command may end without reading all its input.
        scope.spawn(move || drop(stdin.write_all(input)));
        Ended::of(running.output())
    })
}

/// A file of the corpus.
pub(crate) fn corpus(name: &str) -> PathBuf {
    root().join("tests/corpus").join(name)
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
