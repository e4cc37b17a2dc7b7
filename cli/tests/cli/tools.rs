//! Files for profilers.

use crate::harness::{Running, command, corpus, output, scratch};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the matrix kernel natively in a folder, and returns the number of the process.
fn matmul(options: &[&str], folder: &Path) -> u32 {
    let file = corpus("matmul.wasm");
    let file = file.to_str().expect("a path in UTF-8");
    let args = [&["run"], options, &[file, "--", "20"]].concat();
    let mut command: Command = command(&args);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let process = running.process().id();
    let ended = running.output();
    assert!(ended.status.success(), "{ended:?}");
    process
}

#[test]
fn perf_maps_name_the_functions_of_a_program() {
    let folder = scratch();
    for engine in ["jit", "tiered"] {
        let hot: &[&str] = if engine == "tiered" { &["--on-the-spot", "--hot", "10"] } else { &[] };
        let options = [&["--engine", engine, "--perf", "map"], hot].concat();
        let process = matmul(&options, folder.path());
        let path = format!("/tmp/perf-{process}.map");
        let text = fs::read_to_string(&path).expect("perf looks for it there");
        fs::remove_file(&path).expect("it is ours");
        let is_line = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let mut is_hex = || u64::from_str_radix(words.next().unwrap_or(""), 16).is_ok();
            is_hex() && is_hex() && words.next().is_some_and(|symbol| !symbol.is_empty())
        };
        assert!(text.lines().all(is_line), "{text}");
        assert!(text.contains(" [version "), "{engine}: {text}");
        assert!(engine == "jit" || text.contains(" [continuation "), "{engine}: {text}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn jitdumps_lie_in_the_current_directory() {
    let folder = scratch();
    let process = matmul(&["--engine", "jit", "--perf", "jitdump", "--gdb"], folder.path());
    let path = folder.path().join(format!("jit-{process}.dump"));
    let bytes = fs::read(path).expect("it is there");
    assert_eq!(bytes[..4], 0x4a69_5444u32.to_le_bytes());
    assert_eq!(bytes[bytes.len() - 16..][..4], [3, 0, 0, 0], "the record at the end");
    let names = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(names(b" [version ") && names(b"stub.enter."));
}

/// A directory that is gone cannot hold a file: a message, status 2, and nothing runs.
#[test]
fn a_jitdump_that_cannot_be_made_is_an_error() {
    let folder = scratch();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).expect("the folder is writable");
    let file = corpus("matmul.wasm");
    let file = file.to_str().expect("a path in UTF-8");
    let osier = env!("CARGO_BIN_EXE_osier");
    let script =
        format!("rmdir {0}; {osier} run --engine jit --perf jitdump {file}", gone.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(&gone).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = output(&mut shell);
    let message = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{message}");
    assert!(message.starts_with("osier: cannot write jit-"), "{message}");
    assert_eq!(ended.stdout, b"");
}
