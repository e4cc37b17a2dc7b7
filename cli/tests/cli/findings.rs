//! `osier fuzz --findings` and `--replay`.

use crate::harness::{Ended, command, file, output, scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn ended(mut command: Command) -> Ended {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ended::of(output(&mut command))
}

/// A program that never ends, or ends at once.
fn module(is_endless: bool) -> Vec<u8> {
    let rounds = if is_endless { "(br 0)" } else { "" };
    let text = format!(
        r#"(module (memory 1) (func (export "_start") (local i32)
      (loop (i32.store (i32.const 8) (local.tee 0 (i32.add (local.get 0) (i32.const 3))))
            {rounds})))"#
    );
    wat::parse_str(text).expect("a module")
}

/// The files of a folder with this extension, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    files
}

/// A program that never ends is a finding of native code in every run.
#[test]
fn a_finding_has_one_file_and_is_judged_again() {
    let folder = scratch();
    let path = file(&folder, "endless.wasm", module(true));
    let findings = folder.path().join("found");
    let found = findings.to_str().expect("UTF-8");
    let fuzz = |seed| {
        let args = ["fuzz", "--engine", "jit", "--corpus", &path, "--case-time", "1", "--seed"];
        let args = [&args[..], &[seed, "--pipeline", "O1", "--findings", found]].concat();
        ended(command(&args)).with_status(1)
    };
    let first = fuzz("1");
    assert!(first.stderr.contains("finding written: "), "{first:#?}");
    let records = files(&findings, "json");
    assert_eq!(records.len(), 1, "{first:#?}");
    let name = records[0].file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
    assert!(name.starts_with("native-any-"), "{name}");
    assert_eq!(files(&findings, "oir"), Vec::<PathBuf>::new(), "nobody reduced the program");
    let again = fuzz("2");
    assert!(again.stderr.contains("finding known: "), "{again:#?}");
    assert_eq!(files(&findings, "json"), records);
    let still = ended(command(&["fuzz", "--replay", found])).with_status(1);
    assert_eq!(still.stdout, format!("{:<16}{name}\n", "still fails"));
    assert!(still.stderr.contains("1 finding judged again: 1 still fails"), "{still:#?}");
    // The program of the corpus is mended.
    file(&folder, "endless.wasm", module(false));
    let record = records[0].to_str().expect("UTF-8");
    let mended = ended(command(&["fuzz", "--replay", record, "--format", "junit"])).with_status(0);
    let case = format!("<testcase classname=\"osier.fuzz.replay\" name=\"{name}\"/>");
    assert!(mended.stdout.contains(&case), "{mended:#?}");
    assert!(mended.stderr.contains("1 finding judged again: all pass"), "{mended:#?}");
}

/// The record of a generated program whose oracle finds nothing any more.
fn record(schema: u32, with_case: bool) -> String {
    let case = serde_json::json!({
        "module": "func @f(%x: i32) -> i32 {\nentry:\n  %y = add.i32 %x, %x\n  return %y\n}\n",
        "entry": "f", "arguments": [[1], [7]], "fuel": 1000, "steps": [["simplify", "gvn"]],
        "rewrites": u64::MAX, "level": "avail", "seed": 3,
    });
    serde_json::json!({
        "schema": schema, "key": "state-any-00000000", "oracle": "state", "guilty": null,
        "place": "", "message": "", "reproduce": "", "options": ["--seed", "3", "--size", "60"],
        "case_time": null, "instructions": 2, "case": with_case.then_some(case), "test": null,
    })
    .to_string()
}

#[test]
fn a_saved_program_is_judged_by_its_record() {
    let folder = scratch();
    for engine in ["interp", "jit"] {
        let text = record(1, true)
            .replace("\"--seed\",", &format!("\"--engine\",\"{engine}\",\"--seed\","));
        let path = file(&folder, &format!("{engine}.json"), text);
        let ended = ended(command(&["fuzz", "--replay", &path])).with_status(0);
        assert_eq!(ended.stdout, format!("{:<16}state-any-00000000\n", "passes"));
    }
}

#[test]
fn files_that_are_no_findings_are_rejected() {
    let (folder, empty) = (scratch(), scratch());
    let key = record(1, true).replace("state-any-00000000", "../state");
    let options = record(1, true).replace("--size\",\"60", "--findings\",\"elsewhere");
    for (path, why) in [
        (file(&folder, "schema.json", record(2, true)), "a record of schema 2, not 1"),
        (file(&folder, "text.json", "{}"), "no record of a finding: missing field"),
        (file(&folder, "none.json", record(1, false)), "a record whose options select no program"),
        (folder.path().join("absent.json").to_str().expect("UTF-8").to_owned(), "cannot read"),
        (file(&folder, "key.json", key), "a record whose key is no name"),
        (file(&folder, "options.json", options), "a record whose options select no program"),
        (empty.path().to_str().expect("UTF-8").to_owned(), "--replay: no findings"),
    ] {
        let ended = ended(command(&["fuzz", "--replay", &path])).with_status(2);
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
}

#[test]
fn a_program_that_cannot_be_read_is_not_judged() {
    let folder = scratch();
    let case = r#"{"module":"no module","entry":"f","arguments":[],"fuel":1,"steps":[],"rewrites":0,"level":"avail","seed":0}"#;
    let broken = record(1, false).replace("\"case\":null", &format!("\"case\":{case}"));
    let path = file(&folder, "broken.json", broken);
    let ended = ended(command(&["fuzz", "--replay", &path])).with_status(1);
    assert_eq!(ended.stdout, format!("{:<16}state-any-00000000\n", "not judged"));
}
