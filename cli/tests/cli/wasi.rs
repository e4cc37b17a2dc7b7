//! `osier run`: directories, environment, clocks and exit statuses of programs, in all engines.

use crate::harness::{Ended, file, osier, osier_with_input, root, scratch};
use std::fs;

/// The options of each engine.
const ENGINES: [&[&str]; 5] = [
    &[],
    &["--pipeline", "O1"],
    &["--engine", "jit"],
    &["--engine", "jit", "--pipeline", "O1"],
    &["--engine", "tiered", "--hot", "2"],
];

/// A file of the C programs that use WASI.
fn program(name: &str) -> String {
    format!("wasm/tests/wasi_programs/{name}")
}

fn expected(name: &str) -> String {
    fs::read_to_string(root().join(program(&format!("{name}.txt")))).expect("readable")
}

/// Runs a program in a fresh directory that it names `.`.
fn run_in_directory(name: &str, engine: &[&str], options: &[&str], args: &[&str]) -> Ended {
    let folder = scratch();
    let directory = format!("{}::.", folder.path().display());
    let module = program(&format!("{name}.wasm"));
    let command = [&["run", "--dir", &directory], engine, options, &[&module, "--"], args];
    osier_with_input(&command.concat(), b"abcdef")
}

#[test]
fn programs_use_files_in_all_engines() {
    for engine in ENGINES {
        for (name, status) in [("files", 0), ("stdio", 3), ("features", 0), ("features.all", 0)] {
            let ended = run_in_directory(name, engine, &[], &[]).with_status(status);
            let expected = expected(name.split('.').next().unwrap_or(name));
            assert_eq!(ended.stdout, expected, "{name} {engine:?}");
            assert_eq!(ended.stderr, "", "{name} {engine:?}");
        }
    }
}

#[test]
fn programs_read_clocks_arguments_and_environment_in_all_engines() {
    for engine in ENGINES {
        for clock in [&[][..], &["--clock", "counted"], &["--clock", "real"]] {
            let ended = run_in_directory("clocks", engine, clock, &[]).with_status(0);
            assert_eq!(ended.stdout, expected("clocks"), "{engine:?} {clock:?}");
        }
        let environment = ["--env", "HOME=/h=o", "--env", "EMPTY="];
        let ended = run_in_directory("world", engine, &environment, &["7", "two words"]);
        let ended = ended.with_status(7);
        assert_eq!(ended.stdout, expected("world"), "{engine:?}");
    }
}

/// A program that asks for a time and for random bytes and exits with a checksum of both.
const CHECKSUM: &str = r#"(module
  (import "wasi_snapshot_preview1" "clock_time_get"
    (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory 1)
  (func (export "checksum") (result i64)
    (drop (call $time (i32.const 0) (i64.const 0) (i32.const 0)))
    (drop (call $random (i32.const 8) (i32.const 8)))
    (i64.xor (i64.load (i32.const 0)) (i64.load (i32.const 8)))))"#;

#[test]
fn counted_clocks_and_a_seed_repeat_a_run() {
    let folder = scratch();
    let path = file(&folder, "checksum.wat", CHECKSUM);
    let checksum = |options: &[&str]| {
        osier(&[&["run"], options, &[&path, "--invoke", "checksum"]].concat()).with_status(0).stdout
    };
    let counted = checksum(&["--clock", "counted"]);
    assert_eq!(counted, checksum(&["--clock", "counted", "--seed", "0"]));
    assert_ne!(counted, checksum(&["--clock", "counted", "--seed", "1"]));
    assert_ne!(checksum(&[]), checksum(&[]), "the clock of the machine goes on");
}

#[test]
fn the_status_of_a_program_is_that_of_the_command() {
    let folder = scratch();
    // A status whose low bits are 0 must not look like success.
    for (status, passed_on) in [(0, 0), (1, 1), (3, 3), (125, 125), (255, 255), (-1, 255), (256, 1)]
    {
        let text = format!(
            r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
              (memory (export "memory") 1)
              (func (export "_start") (call $exit (i32.const {status}))))"#
        );
        let path = file(&folder, "exit.wat", text);
        for engine in ENGINES {
            let ended = osier(&[&["run"], engine, &[&path]].concat()).with_status(passed_on);
            assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{status}");
        }
    }
}

#[test]
fn wrong_surroundings_are_bad_usage() {
    let module = program("stdio.wasm");
    let cases: [(&[&str], &str); 6] = [
        (&["--dir", "no/such/folder"], "cannot open directory no/such/folder: No such file"),
        (&["--dir", "Cargo.toml::."], "cannot open directory Cargo.toml: Not a directory"),
        (&["--dir", "::guest"], "expected HOST or HOST::GUEST"),
        (&["--env", "NAME"], "expected NAME=VALUE"),
        (&["--env", "=value"], "expected NAME=VALUE"),
        (&["--clock", "fast"], "possible values: real, counted"),
    ];
    for (options, message) in cases {
        let ended = osier(&[&["run"], options, &[&module]].concat()).with_status(2);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}

#[test]
fn a_directory_has_the_name_of_the_host_without_another() {
    let folder = scratch();
    fs::write(folder.path().join("notes.txt"), "kept").expect("writable");
    let path = folder.path().to_str().expect("a path in UTF-8");
    // `notes.txt` lies in no directory that the program has.
    osier(&["run", "--dir", path, &program("stdio.wasm")]).with_status(1);
    let kept = fs::read_to_string(folder.path().join("notes.txt")).expect("it exists");
    assert_eq!(kept, "kept");
}
