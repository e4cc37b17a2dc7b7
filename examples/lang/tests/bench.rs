//! `wicker bench` with a command `node` of the test's own.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// An empty program takes longer than any other.
const NODE: &str = "#!/bin/sh
case $1 in /dev/null) sleep 0.3;; -v) ;; *) echo 1;; esac
";

fn bench(directory: &Path) -> Output {
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_wicker"));
    command.arg("bench").arg(directory).env("PATH", path).output().expect("the command runs")
}

#[test]
fn one_round_has_no_quartiles_and_no_time_is_below_the_start() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench");
    fs::create_dir_all(&directory).expect("the directory is made");
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).expect("the file is written");
    };
    write("p.wk", "print(1);");
    write("p.expected", "1\n");
    write("node", NODE);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory.join("node"), executable).expect("it may run");
    let program = directory.join("p.js");
    if program.exists() {
        fs::remove_file(&program).expect("it is removed");
    }
    let output = bench(&directory);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let has_quartiles = |label: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(label));
        line.expect("the way has a line").contains(" to ")
    };
    assert!(has_quartiles("native") && !has_quartiles("interpreter"), "{text}");
    write("p.js", "");
    let output = bench(&directory);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(why.contains("node") && why.contains("for an empty program"), "{why}");
}
