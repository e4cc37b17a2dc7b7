//! The judge on trial: commands that do something wrong.

use super::judge::{CsmithCounts, judge};
use super::program::printed;
use super::{ModuleFinding, gives_up_too_many, print};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Mutex, PoisonError};

/// A command that runs every program and checks every mapping well.
const WELL: &str = r#"
case "$1" in
  run) echo "checksum = 1" ;;
  check) echo '{"held": 10, "dropped": {}, "refuted": 0, "functions": [
    {"name": "main", "dropped": {}, "rewrites": 4, "refused": 0, "given_up": []}]}' ;;
esac
"#;

/// Held while a script is written and run: a process that another test starts meanwhile inherits
/// the open file, and a file that is open for writing cannot be run.
static SCRIPTS: Mutex<()> = Mutex::new(());

/// Judges a module in a command that is this script.
fn judged(script: &str) -> (CsmithCounts, Vec<String>) {
    let _alone = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().expect("a folder");
    let (osier, module) = (folder.path().join("osier"), folder.path().join("m.wasm"));
    fs::write(&osier, format!("#!/bin/sh\n{script}")).expect("writable");
    fs::set_permissions(&osier, Permissions::from_mode(0o755)).expect("ours");
    fs::write(&module, "12345").expect("writable");
    judge(&osier, &module, b"checksum = 1\n").expect("it starts")
}

/// Native code that crashes says nothing about a program; native code that fails does.
#[test]
fn a_program_whose_native_code_crashes_is_skipped() {
    let _alone = SCRIPTS.lock().unwrap_or_else(PoisonError::into_inner);
    let shell = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]);
        printed(shell)
    };
    assert_eq!(shell("echo 1"), Ok(Some(b"1\n".to_vec())));
    assert_eq!(shell("echo 1; kill -SEGV $$"), Ok(None));
    assert!(shell("echo 1; exit 3").is_err() && shell("exit 0").is_err());
}

#[test]
fn a_command_that_does_well_is_counted() {
    let (counts, found) = judged(WELL);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!((counts.modules, counts.bytes, counts.runs), (1, 5, 19));
    assert_eq!((counts.held, counts.rewrites, counts.given_up), (50, 20, 0));
}

#[test]
fn another_checksum_is_found_in_the_run_that_prints_it() {
    let script = format!(
        r#"case "$*" in
             "run --engine jit --pipeline O2"*) echo "checksum = 2"; exit ;;
           esac
           {WELL}"#
    );
    let (_, found) = judged(&script);
    let native = r#"printed "checksum = 2\n", native code "checksum = 1\n""#;
    assert_eq!(found, [format!("run --engine jit --pipeline O2: {native}")]);
}

#[test]
fn a_command_that_fails_is_found() {
    let script = format!(
        r#"case "$*" in
             *canonical*) echo why >&2; exit 101 ;;
           esac
           {WELL}"#
    );
    let (counts, found) = judged(&script);
    assert_eq!((found.len(), counts.held), (4, 40));
    for finding in found {
        assert!(finding.contains("--pipeline canonical"), "{finding}");
        assert!(finding.ends_with(": exit status: 101\nwhy"), "{finding}");
    }
}

#[test]
fn verdicts_that_cannot_be_read_are_found() {
    let (_, found) = judged(r#"[ "$1" = check ] || echo "checksum = 1""#);
    assert_eq!(found.len(), 5, "{found:?}");
}

#[test]
fn dropped_and_refuted_entries_are_found() {
    let script = format!(
        r#"case "$*" in
             "check "*"--pipeline O1 "*)
               echo '{{"held": 3, "dropped": {{"a": 2}}, "refuted": 1, "functions": [
               {{"name": "f", "dropped": {{"a": 2}}, "rewrites": 9, "refused": 3, "given_up": [
                 {{"pass": "dse", "rule": "dead", "check": "anchor-operands"}}]}}]}}'
               exit 1 ;;
           esac
           {WELL}"#
    );
    let (counts, found) = judged(&script);
    assert_eq!(found, ["check --pipeline O1: 2 of 5 entries dropped, 1 refuted; @f: a 2"]);
    assert_eq!((counts.dropped, counts.refuted, counts.given_up), (2, 1, 3));
    assert_eq!(counts.places, ["check --pipeline O1: @f: dse/dead, anchor-operands"]);
    assert!(gives_up_too_many(&counts));
}

#[test]
fn findings_are_printed_with_their_seed() {
    let finding = ModuleFinding { seed: 7, level: "-O1", message: "run: wrong".to_owned() };
    let counts = CsmithCounts { rewrites: 1000, given_up: 1, ..CsmithCounts::default() };
    let mut out = Vec::new();
    print(&counts, &[finding], &mut out).expect("memory is writable");
    let text = String::from_utf8(out).expect("text");
    assert!(text.starts_with("finding: --seed 7, -O1: run: wrong\n"), "{text}");
    assert!(!text.contains("more than"), "{text}");
    let counts = CsmithCounts { given_up: 2, ..counts };
    let mut out = Vec::new();
    print(&counts, &[], &mut out).expect("memory is writable");
    assert!(String::from_utf8_lossy(&out).contains("more than 1 of 1000 rewrites are given up"));
}
