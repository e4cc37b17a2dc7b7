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

/// A program that ends soon, and adds twice in each round or once.
fn program(adds: usize) -> Vec<u8> {
    let sum = "(i32.add (local.get 0) (i32.const 1))";
    let sums = format!("(local.set 1 {sum})").repeat(adds);
    let text = format!(
        r#"(module (memory 1) (func $main (export "_start") (local i32 i32)
      (loop {sums} (i32.store (local.get 0) (local.get 1))
            (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4)))
                               (i32.const 200))))))"#
    );
    wat::parse_str(text).expect("a module")
}

#[test]
fn the_action_reports_compares_and_fuzzes() {
    let folder = scratch();
    file(&folder, "app.wasm", program(1));
    let modules = ("OSIER_MODULES", "\n  app.wasm 20  \n");
    let variables = [modules, ("OSIER_MIN", "avail=50"), ("OSIER_FUZZ_SECONDS", "2")];
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
    file(&folder, "app.wasm", program(2));
    action(folder.path(), &[modules, ("OSIER_FUZZ_SECONDS", "0")]).with_status(0);
    let text = fs::read_to_string(&comment).expect("a comment");
    assert!(text.contains(" since `osier-results/reports/app.wasm.json`."), "{text}");
    assert!(!text.contains("Osier fuzz"), "{text}");
}

#[test]
fn a_share_that_is_too_low_fails_the_action() {
    let folder = scratch();
    file(&folder, "app.wasm", program(2));
    let variables =
        [("OSIER_MODULES", "app.wasm"), ("OSIER_MIN", "empty=100"), ("OSIER_FUZZ_SECONDS", "0")];
    let ended = action(folder.path(), &variables).with_status(1);
    assert!(
        ended.stdout.contains("### Osier report on `app.wasm`: 1 share is too low\n"),
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
