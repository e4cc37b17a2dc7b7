//! The command on a machine without solvers.

use std::process::{Command, Output, Stdio};
use std::time::Duration;
use wait_timeout::ChildExt;

/// The command does nothing before it reports the error. A minute is ample on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs the command with an empty `PATH`, so that it finds no program.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_osier-provers"));
    command.args(arguments).env("PATH", "").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // The few lines of its outputs fit into the pipes, so no thread needs to read them.
    if child.wait_timeout(DEADLINE).expect("the command can be waited for").is_none() {
        child.kill().expect("the command can be killed");
        panic!("still running after {DEADLINE:?}");
    }
    child.wait_with_output().expect("the command has ended")
}

#[test]
fn without_a_solver_it_says_so_and_fails() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("NOTHING WAS PROVED: 1 of the solvers z3, cvc5 are needed, none was found."),
        "{said}"
    );
    assert!(said.contains("provers/install"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_solver_it_does_not_know_is_an_error() {
    let output = run(&["--solver", "oracle"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unknown solver `oracle`; solvers: z3, cvc5"), "{said}");
}
