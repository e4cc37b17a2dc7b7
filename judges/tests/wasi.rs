//! C programs that use WASI, beside wasmtime: its own engine with its own WASI host. Both must
//! print the same and exit with the same status, but for the lines that [`DIFFERENT`] lists.
#![cfg(feature = "native")]

use interp::{Limits, Machine, NoObserver, Outcome};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use wasm::wasi::{Process, Wasi};
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::p1::{WasiP1Ctx, add_to_linker_sync};
use wasmtime_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

/// Lines that may differ: the program, the beginning of our line and of wasmtime's, and the reason.
const DIFFERENT: &[(&str, &str, &str, &str)] = &[
    ("files", "readv 7", "readv 3", "wasmtime fills one buffer of a call, ours all"),
    ("files", "writev 7", "writev 3", "wasmtime writes one buffer of a call, ours all"),
    ("clocks", "no descriptor 1", "failed no descriptor 8", "a wait for a closed descriptor"),
    ("clocks", "invalid 1", "invalid 0", "is an event here, as in POSIX, and an error there"),
];

/// A program with its arguments, environment and input.
struct Subject {
    name: &'static str,
    args: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    stdin: &'static [u8],
}

/// The status and the output of a run.
type Ended = (i32, String);

fn program(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm/tests/wasi_programs");
    fs::read(folder.join(format!("{name}.wasm"))).expect("a program")
}

/// A folder with the files that `escape.c` expects, inside of `outer`.
fn prepared(outer: &Path) -> PathBuf {
    let inner = outer.join("inner");
    fs::create_dir_all(inner.join("deep")).expect("writable");
    fs::write(outer.join("secret"), "secret").expect("writable");
    fs::write(inner.join("deep/file"), "file").expect("writable");
    for (contents, name) in [("..", "out"), ("/etc/hostname", "root"), ("deep/..", "inside")] {
        symlink(contents, inner.join(name)).expect("a symbolic link");
    }
    inner
}

fn theirs(subject: &Subject, folder: &Path) -> Ended {
    let engine = Engine::default();
    let module = Module::new(&engine, program(subject.name)).expect("a module");
    let mut linker: Linker<WasiP1Ctx> = Linker::new(&engine);
    add_to_linker_sync(&mut linker, |context| context).expect("a fresh linker");
    let printed = MemoryOutputPipe::new(1 << 20);
    let mut builder = WasiCtxBuilder::new();
    builder.stdin(MemoryInputPipe::new(subject.stdin)).stdout(printed.clone());
    builder.arg("program").args(subject.args).envs(subject.environment);
    builder.preopened_dir(folder, ".", FsPerms::ReadWrite).expect("a directory");
    let mut store = Store::new(&engine, builder.build_p1());
    let instance = linker.instantiate(&mut store, &module).expect("instantiable");
    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").expect("a program");
    let status = match start.call(&mut store, ()) {
        Ok(()) => 0,
        Err(error) => match error.downcast_ref::<I32Exit>() {
            Some(exit) => exit.0,
            None => panic!("{}: {error:?}", subject.name),
        },
    };
    drop(store);
    (status, String::from_utf8(printed.contents().to_vec()).expect("text"))
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while printing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn ours(subject: &Subject, folder: &Path) -> Ended {
    let module = wasm::import(&program(subject.name), &wasm::ImportLimits::default());
    let module = module.expect("a supported module");
    let mut machine = Machine::new(&module, Limits::default()).expect("instantiable");
    let args = ["program"].iter().chain(subject.args).map(|arg| (*arg).to_owned()).collect();
    let mut process = Process::new(args)
        .with_directory(".", system::directory(folder).expect("a directory"))
        .with_clocks(Arc::new(system::MachineClocks::new()));
    for (name, value) in subject.environment {
        process = process.with_variable(name, value);
    }
    let printed = Output::default();
    let mut wasi = Wasi::with_process(process, subject.stdin, printed.clone(), std::io::sink());
    let start = module.lookup("_start").expect("a program");
    let status = match machine.invoke(start, &[], &mut wasi, &mut NoObserver) {
        Outcome::Returned(_) => 0,
        Outcome::Exited(status) => status,
        other => panic!("{}: {other}", subject.name),
    };
    let printed = printed.0.lock().expect("no panic while printing").clone();
    (status, String::from_utf8(printed).expect("text"))
}

/// Runs a program twice, in two equal folders.
fn compare(subject: &Subject) {
    let run = |engine: fn(&Subject, &Path) -> Ended| {
        let outer = tempfile::tempdir().expect("a folder");
        let inner = prepared(outer.path());
        engine(subject, &inner)
    };
    let (ours, theirs) = (run(ours), run(theirs));
    assert_eq!(ours.0, theirs.0, "{}: exit status", subject.name);
    let (mut lines, mut excused) = (0, 0);
    let mut findings = Vec::new();
    for (our, their) in ours.1.lines().zip(theirs.1.lines()) {
        lines += 1;
        let is_excused = DIFFERENT.iter().any(|(name, of_us, of_them, _)| {
            *name == subject.name && our.starts_with(of_us) && their.starts_with(of_them)
        });
        match our == their {
            true => {}
            false if is_excused => excused += 1,
            false => findings.push(format!("line {lines}: ours {our:?}, wasmtime {their:?}")),
        }
    }
    assert!(findings.is_empty(), "{}:\n{}", subject.name, findings.join("\n"));
    assert_eq!(ours.1.lines().count(), theirs.1.lines().count(), "{}", subject.name);
    let listed = DIFFERENT.iter().filter(|(name, ..)| *name == subject.name).count();
    assert!(excused >= listed, "{}: a listed difference is gone", subject.name);
    assert!(lines > 10, "{}: only {lines} lines", subject.name);
}

fn plain(name: &'static str) -> Subject {
    Subject { name, args: &[], environment: &[], stdin: b"" }
}

#[test]
fn files_are_as_in_wasmtime() {
    compare(&plain("files"));
}

#[test]
fn buffered_files_are_as_in_wasmtime() {
    compare(&plain("stdio"));
}

#[test]
fn paths_that_lead_out_fail_as_in_wasmtime() {
    compare(&plain("escape"));
}

#[test]
fn clocks_are_as_in_wasmtime() {
    compare(&plain("clocks"));
}

#[test]
fn the_world_is_as_in_wasmtime() {
    compare(&Subject {
        name: "world",
        args: &["7", "two words"],
        environment: &[("HOME", "/h=o"), ("EMPTY", "")],
        stdin: b"abcdef",
    });
}

#[test]
fn features_are_as_in_wasmtime() {
    compare(&plain("features"));
    compare(&plain("features.all"));
}
