//! The script of the action (`.github/action/run.sh`), as a service runs it.

use crate::harness::{Ended, corpus, file, output, root, scratch};
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

/// The bytes of a kernel, which optimizing changes at many points.
fn program(name: &str) -> Vec<u8> {
    fs::read(corpus(&format!("{name}.wasm"))).expect("a kernel")
}

/// A program that the fuzzer judges in an instant.
fn short() -> Vec<u8> {
    let text = r#"(module (memory 1) (func $main (export "_start") (local i32)
      (loop (i32.store (local.get 0) (i32.add (local.get 0) (i32.const 1)))
            (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 4)))
                               (i32.const 200))))))"#;
    wat::parse_str(text).expect("a module")
}

#[test]
fn the_action_reports_compares_and_fuzzes() {
    let folder = scratch();
    file(&folder, "app.wasm", program("sort"));
    file(&folder, "short.wasm", short());
    let modules = ("OSIER_MODULES", "\n short.wasm\n  app.wasm 20  \n");
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
    file(&folder, "app.wasm", program("scan"));
    action(folder.path(), &[modules, ("OSIER_FUZZ_SECONDS", "0")]).with_status(0);
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
    let modules = ("OSIER_MODULES", "app.wasm");
    let variables = [modules, ("OSIER_MIN", "avail=99"), ("OSIER_FUZZ_SECONDS", "0")];
    let ended = action(folder.path(), &variables).with_status(0);
    let told = "The pipeline `O1` changed no function: no share was measured.\n";
    assert!(ended.stdout.contains(told), "{ended:#?}");
    let note = "osier: note: --min measured nothing: O1 changed no function\n";
    assert!(ended.stderr.contains(note), "{ended:#?}");
}

#[test]
fn a_share_that_is_too_low_fails_the_action() {
    let folder = scratch();
    file(&folder, "app.wasm", program("scan"));
    let variables =
        [("OSIER_MODULES", "app.wasm"), ("OSIER_MIN", "empty=100"), ("OSIER_FUZZ_SECONDS", "0")];
    let ended = action(folder.path(), &variables).with_status(1);
    assert!(
        ended.stdout.contains("### Osier report on `app.wasm`: 2 shares are too low\n"),
        "{ended:#?}"
    );
    assert!(ended.stdout.contains("% of the points have an entry, "), "{ended:#?}");
}

/// Bash reads 08 as a wrong octal number, and 010 as 8: the fuzzer was skipped, or repeated the
/// work of another shard.
#[test]
fn numbers_of_the_action_are_decimal() {
    let folder = scratch();
    file(&folder, "app.wasm", program("sort"));
    for (shard, seed, expected) in [("08", "1", "8000000000001"), ("010", "09", "10000000000009")] {
        let variables = [("OSIER_MODULES", "app.wasm"), ("OSIER_COMMAND", "echo")];
        let numbers = [("OSIER_SHARD", shard), ("OSIER_SEED", seed), ("OSIER_FUZZ_SECONDS", "09")];
        let ended = action(folder.path(), &[&variables[..], &numbers].concat()).with_status(0);
        assert!(ended.stdout.contains("fuzz --corpus app.wasm --time 9 "), "{ended:#?}");
        assert!(ended.stdout.contains(&format!(" --seed {expected} ")), "{ended:#?}");
    }
}

/// A path with blanks, two paths that differ in one sign, and one module with two lists of
/// arguments: each module has a report of its own, and none is compared with another.
#[test]
fn each_module_has_its_own_report() {
    let folder = scratch();
    fs::create_dir(folder.path().join("a")).expect("a new folder");
    for (name, kernel) in [("a/b.wasm", "sort"), ("a_b.wasm", "scan"), ("my app.wasm", "queens")] {
        file(&folder, name, program(kernel));
    }
    let modules = "a/b.wasm\na_b.wasm\t1\na_b.wasm 2\nmy app.wasm\na";
    let variables = [("OSIER_MODULES", modules), ("OSIER_FUZZ_SECONDS", "0")];
    let first = action(folder.path(), &variables).with_status(0);
    assert!(!first.stdout.contains(" since "), "{first:#?}");
    let reports = || -> Vec<String> {
        let entries = fs::read_dir(folder.path().join("osier-results/reports")).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().expect("UTF-8")).collect();
        names.sort();
        names
    };
    let starts = ["a_b.wasm-", "a_b.wasm.json", "my_app.wasm-"];
    let names = reports();
    assert_eq!(names.len(), starts.len(), "{names:?}");
    assert!(names.iter().zip(starts).all(|(name, start)| name.starts_with(start)), "{names:?}");
    // Without a change, each agrees with its own.
    let second = action(folder.path(), &variables).with_status(0);
    assert_eq!(second.stdout.matches("No point lost or gained an entry").count(), 3, "{second:#?}");
    assert_eq!(reports(), names);
}

/// The comment says why it has no comparison. A file without a record does not end the script.
#[test]
fn files_of_other_versions_are_named() {
    let folder = scratch();
    file(&folder, "app.wasm", short());
    let results = folder.path().join("osier-results");
    for name in ["reports", "findings/shard1"] {
        fs::create_dir_all(results.join(name)).expect("a new folder");
    }
    fs::write(results.join("reports/app.wasm.json"), "{}").expect("a file");
    fs::write(results.join("findings/shard1/x.json"), "{}").expect("a file");
    let variables = [("OSIER_MODULES", "app.wasm"), ("OSIER_FUZZ_SECONDS", "4")];
    let ended = action(folder.path(), &variables).with_status(0);
    let why = "\nNo comparison with the older report:\n\n    osier: ";
    assert!(ended.stdout.contains(why), "{ended:#?}");
    assert!(!ended.stdout.contains("judged again"), "those of other folders: {ended:#?}");
    fs::write(results.join("findings/x.json"), "{}").expect("a file");
    let ended = action(folder.path(), &variables).with_status(1);
    assert!(ended.stdout.contains("### Osier fuzz: 1 finding judged again: 1 not judged"));
    assert!(ended.stdout.contains("### Osier fuzz: no findings\n"), "it goes on: {ended:#?}");
}

#[test]
fn wrong_input_of_the_action_is_rejected() {
    let folder = scratch();
    file(&folder, "text.wasm", "no module");
    for (variables, why) in [
        (vec![("OSIER_MODULES", " \n")], "OSIER_MODULES names no program"),
        (vec![("OSIER_MODULES", "text.wasm")], "text.wasm"),
        (vec![("OSIER_MODULES", ".."), ("OSIER_SHARD", "a[$(id)]")], "OSIER_SHARD is no number"),
        (vec![("OSIER_SHARD", "1000000")], "OSIER_SHARD has more than 6 digits"),
        (vec![("OSIER_SEED", "1000000000000000000")], "OSIER_SEED has more than 18 digits"),
    ] {
        let ended = action(folder.path(), &variables).with_status(2);
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
}
