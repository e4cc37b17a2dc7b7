//! What the README's first command builds, `cargo test` does not build again: it needs the same
//! crates with the same features. A feature more in the tests costs each new user the crate and all
//! crates above it twice.

use crate::report;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The packages that the tests build again: the command with all its parts, and small ones below
/// `tempfile`, whose features only crates of others ask for.
const APART: [&str; 4] = ["getrandom", "once_cell", "osier", "osier-cli"];

/// The packages that a build needs, each with its version and features.
fn built(options: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p} {f}"]);
    cargo.args(options).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo tree prints UTF-8");
    let line = |line: &str| line.trim_end_matches(" (*)").trim_end().to_owned();
    text.lines().map(line).collect()
}

#[test]
fn the_first_command_builds_for_the_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(path).expect("README.md");
    let command = readme.lines().find_map(|line| line.strip_prefix("cargo run "));
    let (options, _) = command.and_then(|rest| rest.split_once("-- ")).expect("a first command");
    let options: Vec<&str> = options.split_whitespace().chain(["--edges", "normal"]).collect();
    nothing_is_built_again(&options);
}

/// `cargo install --path cli --locked --debug` selects the command alone.
#[test]
fn the_tests_build_for_the_installed_command() {
    nothing_is_built_again(&["-p", "osier-cli", "--edges", "normal"]);
}

/// Of what a command builds, the tests build all but small parts again.
fn nothing_is_built_again(options: &[&str]) {
    let (built_before, tests) = (built(options), built(&["--edges", "normal,dev"]));
    let again = built_before.difference(&tests).filter(|package| {
        let name = package.split(' ').next().unwrap_or_default();
        !APART.contains(&name)
    });
    let findings = again.map(|package| format!("the tests have other features than {package}"));
    report(built_before.len(), findings.collect());
}
