//! The script of the action (`.github/action/run.sh`), as a service runs it.

use crate::harness::{Ended, file, output, root, scratch};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the script in a folder with these variables, as the service does.
fn action(folder: &Path, variables: &[(&str, &str)]) -> Ended {
    let mut script = Command::new(root().join(".github/action/run.sh"));
    script
        .current_dir(folder)
        .env_remove("GITHUB_RUN_NUMBER")
        .env("OSIER_COMMAND", env!("CARGO_BIN_EXE_osier"))
        .env("GITHUB_STEP_SUMMARY", folder.join("summary.md"))
        .env("GITHUB_OUTPUT", folder.join("output"))
        .envs(variables.iter().copied());
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ended::of(output(&mut script))
}

/// Puts a program of the corpus into a folder, as `app.wasm`.
fn program(folder: &Path) {
    let words = root().join("tests/corpus/words.wasm");
    fs::copy(words, folder.join("app.wasm")).expect("a program of the corpus");
}

#[test]
fn the_action_reports_compares_and_fuzzes() {
    let folder = scratch();
    program(folder.path());
    let modules = ("OSIER_MODULES", "\n  app.wasm 2  \n");
    let variables = [modules, ("OSIER_MIN", "avail=50"), ("OSIER_FUZZ_SECONDS", "10")];
    let first = action(folder.path(), &variables).with_status(0);
    let comment = folder.path().join("osier-results/comment.md");
    let text = fs::read_to_string(&comment).expect("a comment");
    for part in ["### Osier report on `app.wasm`\n", "| `O1`: points with an entry | empty |"] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    assert!(text.contains("### Osier fuzz: no findings\n"), "{text}");
    assert!(first.stdout.contains(&text), "{first:#?}");
    let summary = fs::read_to_string(folder.path().join("summary.md")).expect("a summary");
    assert_eq!(summary, text);
    let outputs = fs::read_to_string(folder.path().join("output")).expect("outputs");
    let expected = "comment=osier-results/comment.md\nfindings=osier-results/findings\n";
    assert_eq!(outputs, expected);
    // The next run compares with the report of this one.
    let variables = [modules, ("OSIER_FUZZ_SECONDS", "0"), ("OSIER_PIPELINE", "O2")];
    action(folder.path(), &variables).with_status(0);
    let text = fs::read_to_string(&comment).expect("a comment");
    assert!(text.contains(" since `osier-results/reports/app.wasm.json`."), "{text}");
    assert!(!text.contains("Osier fuzz"), "{text}");
    // A file that the command does not know as a report is no reason to fail.
    fs::write(folder.path().join("osier-results/reports/app.wasm.json"), "{}").expect("writable");
    let ended = action(folder.path(), &variables).with_status(0);
    assert!(ended.stderr.contains("no comparison with osier-results/reports"), "{ended:#?}");
}

/// A module in which the passes find nothing to do.
#[test]
fn a_program_that_stays_as_it_is_has_no_shares() {
    let folder = scratch();
    file(&folder, "app.wasm", wat::parse_str("(module (func (export \"f\")))").expect("a module"));
    let variables = [("OSIER_MODULES", "app.wasm"), ("OSIER_FUZZ_SECONDS", "0")];
    let ended = action(folder.path(), &variables).with_status(0);
    assert!(ended.stdout.contains("The pipeline `O1` changed no function.\n"), "{ended:#?}");
}

#[test]
fn a_share_that_is_too_low_fails_the_action() {
    let folder = scratch();
    program(folder.path());
    let variables =
        [("OSIER_MODULES", "app.wasm"), ("OSIER_MIN", "empty=100"), ("OSIER_FUZZ_SECONDS", "0")];
    let ended = action(folder.path(), &variables).with_status(1);
    assert!(
        ended.stdout.contains("### Osier report on `app.wasm`: 2 shares are too low\n"),
        "{ended:#?}"
    );
    assert!(ended.stdout.contains("% of the points have an entry, "), "{ended:#?}");
}

#[test]
fn wrong_input_of_the_action_is_rejected() {
    let folder = scratch();
    file(&folder, "text.wasm", "no module");
    for (variables, why) in [
        (vec![("OSIER_MODULES", " \n")], "OSIER_MODULES names no program"),
        (vec![("OSIER_MODULES", "text.wasm")], "text.wasm"),
        (vec![("OSIER_MODULES", ".."), ("OSIER_SHARD", "a[$(id)]")], "OSIER_SHARD is no number"),
    ] {
        let ended = action(folder.path(), &variables).with_status(2);
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
}
