//! C programs that use WASI, in `wasi_programs/`: each prints the results of its calls. The
//! expected outputs come from wasmtime (`cargo test -p osier-judges --features native`), where the
//! test there lists no difference.

use interp::{Limits, Machine, NoObserver, Outcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use wasm::ImportLimits;
use wasm::wasi::{Process, Wasi};

/// A file of the folder of programs.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wasi_programs").join(name)
}

/// The output of a program.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while printing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a program in the interpreter. Returns the outcome and the standard output.
pub(crate) fn run(name: &str, process: Process, stdin: &'static [u8]) -> (Outcome, String) {
    let bytes = fs::read(file(&format!("{name}.wasm"))).expect("a program");
    let module = wasm::import(&bytes, &ImportLimits::default()).expect("a supported program");
    let mut machine = Machine::new(&module, Limits::default()).expect("instantiable");
    let start = module.lookup("_start").expect("a program");
    let printed = Output::default();
    let mut wasi = Wasi::with_process(process, stdin, printed.clone(), std::io::sink());
    let outcome = machine.invoke(start, &[], &mut wasi, &mut NoObserver);
    let printed = printed.0.lock().expect("no panic while printing").clone();
    (outcome, String::from_utf8(printed).expect("text"))
}

/// A process with the arguments `program` and `args`.
pub(crate) fn process(args: &[&str]) -> Process {
    Process::new(["program"].iter().chain(args).map(|arg| (*arg).to_owned()).collect())
}

/// A process that names a directory `.`.
fn process_in(folder: &Path) -> Process {
    process(&[]).with_directory(".", system::directory(folder).expect("a directory"))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Runs a program and compares its output with `NAME.txt`.
pub(crate) fn expect(name: &str, process: Process, stdin: &'static [u8], outcome: Outcome) {
    let (ended, printed) = run(name, process, stdin);
    let path = file(&format!("{name}.txt"));
    if std::env::var_os("OIR_BLESS").is_some() {
        fs::write(&path, &printed).expect("writable");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, expected, "{name}");
    assert_eq!(ended, outcome, "{name}");
}

fn returned() -> Outcome {
    Outcome::Returned(Vec::new())
}

#[test]
fn files_are_read_written_named_and_listed() {
    let folder = folder();
    expect("files", process_in(folder.path()), b"", returned());
    // The files that the program left behind are on the disk.
    assert_eq!(fs::metadata(folder.path().join("work/large")).expect("it exists").len(), 200_000);
    assert!(!folder.path().join("work/d").exists());
}

#[test]
fn the_c_library_buffers_files() {
    let folder = folder();
    expect("stdio", process_in(folder.path()), b"", Outcome::Exited(3));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// The folder of `escape.c`, inside of a folder with a file `secret`.
fn trap(outer: &Path) -> PathBuf {
    let inner = outer.join("inner");
    fs::create_dir_all(inner.join("deep")).expect("writable");
    fs::write(outer.join("secret"), "secret").expect("writable");
    fs::write(inner.join("deep/file"), "file").expect("writable");
    for (contents, name) in [("..", "out"), ("/etc/hostname", "root"), ("deep/..", "inside")] {
        std::os::unix::fs::symlink(contents, inner.join(name)).expect("a symbolic link");
    }
    inner
}

#[test]
fn no_path_leads_out_of_a_directory() {
    let outer = folder();
    let inner = trap(outer.path());
    expect("escape", process_in(&inner), b"", returned());
    let left: Vec<_> = fs::read_dir(outer.path()).expect("a folder").collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read_to_string(outer.path().join("secret")).expect("it stays"), "secret");
    assert!(inner.join("deep/file").exists());
}

#[test]
fn clocks_go_on_and_sleeping_waits() {
    expect("clocks", process(&[]), b"", returned());
    let machine = Arc::new(system::MachineClocks::new());
    expect("clocks", process(&[]).with_clocks(machine), b"", returned());
}

#[test]
fn the_world_of_a_program_is_as_the_embedder_says() {
    let process =
        process(&["7", "two words"]).with_variable("HOME", "/h=o").with_variable("EMPTY", "");
    expect("world", process, b"abcdef", Outcome::Exited(7));
}

/// Two hosts with one directory: a clone has positions of its own, and the same files.
#[test]
fn a_clone_with_directories_shares_their_files() {
    let folder = folder();
    let process = process_in(folder.path());
    let (first, printed) = run("files", process.clone(), b"");
    assert_eq!(first, returned());
    assert!(printed.starts_with("mkdir work 0\n"), "{printed}");
    let (second, printed) = run("files", process, b"");
    assert_eq!(second, returned());
    assert!(printed.starts_with("failed mkdir work 20\n"), "the directory exists: {printed}");
}

#[test]
fn without_directories_there_are_no_files() {
    let (outcome, printed) = run("stdio", process(&[]), b"");
    assert!(printed.starts_with("open 0\n"), "{printed}");
    assert!(!matches!(outcome, Outcome::HostFailed { .. }), "{outcome}");
}
