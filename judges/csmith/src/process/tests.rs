//! Tests of `csmith::process`.

use super::{run, run_well};
use std::process::Command;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_process_has_output_and_times() {
    let ended = run(shell("echo one; echo two >&2"), None, 60.0).expect("it ends");
    assert!(ended.is_well());
    assert_eq!((ended.output.as_slice(), ended.errors.as_slice()), (&b"one\n"[..], &b"two\n"[..]));
    assert!(ended.wall > 0.0 && ended.processor < 60.0);
}

#[test]
fn a_process_that_fails_or_does_not_end_is_told_apart() {
    let fails = || shell("echo why >&2; exit 3");
    let error = run_well(fails(), None, 60.0).expect_err("it fails");
    assert!(error.contains("exit status: 3") && error.ends_with("why"), "{error}");
    assert!(!run(fails(), None, 60.0).expect("it ends").is_well());
    let over = run_well(shell("exec sleep 100"), None, 0.05).expect("it is killed");
    assert!(over.status.is_none() && !over.is_well());
    assert!(over.how().starts_with("over the time limit"));
    assert!(run(Command::new("/no such command"), None, 1.0).is_err());
}
