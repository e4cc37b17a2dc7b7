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

/// A record whose native code never ends, which is a finding of the native oracle.
fn endless_record() -> String {
    let endless = "entry:\\n  jump again\\nagain:\\n  jump again\\n}";
    let text = record(1, true)
        .replace("entry:\\n  %y = add.i32 %x, %x\\n  return %y\\n}", endless)
        .replace("\"fuel\":1000", &format!("\"fuel\":{}", 1_u64 << 40))
        .replace("\"case_time\":null", "\"case_time\":1");
    of_engine(&of_oracle(&text, "native"), "jit")
        .replace("state-any-00000000", "native-any-00000000")
}

fn of_oracle(record: &str, oracle: &str) -> String {
    record.replace("\"oracle\":\"state\"", &format!("\"oracle\":\"{oracle}\""))
}

fn of_engine(record: &str, engine: &str) -> String {
    record.replace("\"--seed\",", &format!("\"--engine\",\"{engine}\",\"--seed\","))
}

#[test]
fn a_saved_program_is_judged_by_its_record() {
    let folder = scratch();
    for (engine, oracle) in [("interp", "state"), ("jit", "native")] {
        let text = of_engine(&of_oracle(&record(1, true), oracle), engine);
        let path = file(&folder, &format!("{engine}.json"), text);
        let ended = ended(command(&["fuzz", "--replay", &path])).with_status(0);
        assert_eq!(ended.stdout, format!("{:<16}state-any-00000000\n", "passes"));
    }
}

/// Findings of oracles that did not run passed.
#[test]
fn a_finding_passes_by_its_own_oracle_alone() {
    let folder = scratch();
    let no_inlining = |record: String| record.replace("\"60\"]", "\"60\",\"--no-inlining\"]");
    for (name, text) in [
        ("native", of_oracle(&record(1, true), "native")),
        ("state", of_engine(&record(1, true), "jit")),
        ("inlining", no_inlining(of_oracle(&record(1, true), "inlining"))),
    ] {
        let path = file(&folder, &format!("{name}.json"), text);
        let ended = ended(command(&["fuzz", "--replay", &path])).with_status(1);
        assert_eq!(ended.stdout, format!("{:<16}state-any-00000000\n", "not judged"));
        let why = format!("the oracle {name} does not run");
        assert!(ended.stderr.contains(&why), "{ended:#?}");
    }
}

/// Merging keeps the findings that still fail and the findings that are not judged. A file without
/// a record does not end the command.
#[test]
fn all_but_the_findings_that_pass_are_merged() {
    let (folder, merged) = (scratch(), scratch());
    file(&folder, "a.json", record(2, true));
    file(&folder, "b.json", endless_record());
    let late = of_engine(&endless_record(), "interp").replace("native-any-0", "late-any-0");
    file(&folder, "c.json", late.replace("\"--engine\",\"jit\",", ""));
    file(&folder, "d.json", record(1, true));
    let [from, to] = [&folder, &merged].map(|folder| folder.path().to_str().expect("UTF-8"));
    let ended = ended(command(&["fuzz", "--replay", from, "--findings", to])).with_status(2);
    let expected = [
        ("not judged", "a"),
        ("still fails", "native-any-00000000"),
        ("not judged", "late-any-00000000"),
        ("passes", "state-any-00000000"),
    ]
    .map(|(verdict, key)| format!("{verdict:<16}{key}\n"));
    assert_eq!(ended.stdout, expected.concat(), "{ended:#?}");
    let parts = [
        "a.json: a record of schema 2, not 1",
        "took longer than --case-time",
        "4 findings judged again: 1 still fails, 2 not judged",
        "--replay: 1 file has no record of a finding",
    ];
    for part in parts {
        assert!(ended.stderr.contains(part), "{ended:#?}");
    }
    let names = ["late-any-00000000.json", "native-any-00000000.json"];
    assert_eq!(files(merged.path(), "json"), names.map(|name| merged.path().join(name)));
}

#[test]
fn files_that_are_no_findings_are_named() {
    let (folder, empty) = (scratch(), scratch());
    let key = record(1, true).replace("state-any-00000000", "../state");
    let options = record(1, true).replace("--size\",\"60", "--findings\",\"elsewhere");
    let oracle = of_oracle(&record(1, true), "stat");
    let steps = record(1, true).replace("[[\"simplify\",\"gvn\"]]", "[]");
    for (path, why) in [
        (file(&folder, "schema.json", record(2, true)), "a record of schema 2, not 1"),
        (file(&folder, "text.json", "{}"), "no record of a finding: missing field"),
        (file(&folder, "none.json", record(1, false)), "whose options select no program"),
        (folder.path().join("absent.json").to_str().expect("UTF-8").to_owned(), "cannot read"),
        (file(&folder, "key.json", key), "a record whose key is no name"),
        (file(&folder, "options.json", options), "a record whose options select no program"),
        (file(&folder, "oracle.json", oracle), "a record of an unknown oracle, `stat`"),
        (file(&folder, "steps.json", steps), "a record whose program has no steps"),
        (empty.path().to_str().expect("UTF-8").to_owned(), "--replay: no findings"),
    ] {
        let ended = ended(command(&["fuzz", "--replay", &path])).with_status(2);
        assert!(ended.stderr.contains(why), "{ended:#?}");
    }
}

/// The process of a finding would wait for a second reading of the pipe.
#[test]
fn a_pipe_is_no_record() {
    let folder = scratch();
    let path = folder.path().join("pipe.json").to_str().expect("UTF-8").to_owned();
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    let ended = ended(command(&["fuzz", "--replay", &path])).with_status(2);
    assert!(ended.stderr.contains("pipe.json: neither a file nor a folder"), "{ended:#?}");
}

/// The failure itself was never told, and later findings were not written.
#[test]
fn a_finding_that_cannot_be_written_hides_no_failure() {
    let folder = scratch();
    let path = file(&folder, "endless.wasm", module(true));
    let findings = folder.path().join("found");
    let args = ["fuzz", "--engine", "jit", "--corpus", &path, "--case-time", "1"];
    let args = [&args[..], &["--pipeline", "O1", "--findings"]].concat();
    let fuzz = || ended(command(&[&args[..], &[findings.to_str().expect("UTF-8")]].concat()));
    fuzz().with_status(1);
    let known = files(&findings, "json");
    fs::write(&known[0], "{}").expect("the folder is writable");
    let ended = fuzz().with_status(2);
    for part in ["reproduce: osier fuzz ", "1 program with findings\n", "no record of a finding"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:#?}");
    }
}

/// The limits of a campaign hold for its findings: without them the program is not read.
#[test]
fn limits_on_reading_are_part_of_a_finding() {
    let folder = scratch();
    let path = file(&folder, "endless.wasm", module(true));
    let findings = folder.path().join("found").to_str().expect("UTF-8").to_owned();
    let args = ["fuzz", "--engine", "jit", "--corpus", &path, "--case-time", "1"];
    let limits = ["--max-input-bytes", "100000", "--pipeline", "O1", "--findings", &findings];
    let found = ended(command(&[&args[..], &limits].concat())).with_status(1);
    assert!(found.stderr.contains(" --max-input-bytes 100000 "), "{found:#?}");
    let record = fs::read_to_string(&files(Path::new(&findings), "json")[0]).expect("a record");
    assert!(record.contains("\"--max-input-bytes\""), "{record}");
    let args = ["fuzz", "--replay", &findings, "--max-input-bytes", "1"];
    let rejected = ended(command(&args)).with_status(2);
    assert!(rejected.stderr.contains("cannot be used with"), "{rejected:#?}");
}

#[test]
fn a_program_that_cannot_be_read_is_not_judged() {
    let folder = scratch();
    let case = r#"{"module":"no module","entry":"f","arguments":[],"fuel":1,"steps":[[]],"rewrites":0,"level":"avail","seed":0}"#;
    let broken = record(1, false).replace("\"case\":null", &format!("\"case\":{case}"));
    let path = file(&folder, "broken.json", broken);
    let ended = ended(command(&["fuzz", "--replay", &path])).with_status(1);
    assert_eq!(ended.stdout, format!("{:<16}state-any-00000000\n", "not judged"));
}
