//! Lines of the source, in the commands that name them.

use crate::harness::{file, kernel, osier, root, scratch};
use serde_json::Value;

const SPANS: &str = "wasm/tests/source_programs/spans.dwarf5.wasm";

#[test]
fn explain_names_lines_in_text_and_json() {
    let point = ["--func", "fill", "--point", "block3:2"];
    let text = osier(&[&["explain", SPANS], &point[..]].concat()).with_status(0);
    assert_eq!(text.stderr, "");
    for place in
        ["from       block3:2 inst10 at spans.h:3:25", "to         block3:2 inst10 at spans.h"]
    {
        assert_eq!(text.stdout.matches(place).count(), 2, "{}", text.stdout);
    }
    let json = osier(&[&["explain", SPANS, "--format", "json"], &point[..]].concat());
    let json: Value = serde_json::from_str(&json.with_status(0).stdout).expect("JSON");
    let line = serde_json::json!({ "file": "spans.h", "line": 3, "column": 25 });
    assert_eq!(json["answers"][0]["point"]["line"], line);
    assert_eq!(json["answers"][0]["entry"]["target"]["line"], line);
    assert_eq!(json["source_name"], "fill");
}

#[test]
fn a_point_can_be_named_by_its_line() {
    let of = |point: &str| osier(&["explain", SPANS, "--func", "fill", "--point", point]);
    let named = of("spans.h:3").with_status(0).stdout;
    assert!(named.contains(" at spans.h:3:"), "{named}");
    let absent = of("spans.h:3000").with_status(2).stderr;
    assert!(absent.contains("no point \"spans.h:3000\" in either version"), "{absent}");
}

#[test]
fn modules_without_debug_info_have_no_lines() {
    let path = kernel("sieve", "");
    let args = ["explain", &path, "--func", "sieve", "--point", "inst0", "--format", "json"];
    let json: Value = serde_json::from_str(&osier(&args).with_status(0).stdout).expect("JSON");
    let answer = &json["answers"][0];
    assert!(answer["point"]["line"].is_null() && answer["point"]["inst"].is_string());
    assert!(json["source_name"].is_null() && json["function"].is_string());
}

#[test]
fn inlined_code_has_lines_of_its_own() {
    let shapes = "wasm/tests/source_programs/shapes.wasm";
    let args = ["opt", shapes, "--func", "run", "--pipeline", "O3", "--emit", "listing"];
    let listed = osier(&args).with_status(0).stdout;
    // The product of `area`, in the version of `run`.
    let inlined = |line: &&str| line.contains("@\"shapes::Box<int>::area() const\"");
    let product = listed.lines().filter(inlined).find(|line| line.contains("mul.i32"));
    assert!(product.is_some_and(|line| line.ends_with("at shapes.cc:6:59")), "{listed}");
}

#[test]
fn a_trap_names_its_line() {
    let engines: [&[&str]; 4] =
        [&[], &["--engine", "jit"], &["--engine", "tiered"], &["--pipeline", "O3"]];
    for engine in engines {
        let call = ["--invoke", "fill", "5", "-1"];
        let ended = osier(&[&["run"], engine, &[SPANS], &call[..]].concat()).with_status(1);
        assert!(ended.stderr.contains(" at spans.c:10:26)"), "{engine:?}: {}", ended.stderr);
    }
}

#[test]
fn damaged_debug_info_is_noted_and_changes_no_result() {
    let folder = scratch();
    let bytes = std::fs::read(root().join(SPANS)).expect("a module");
    // The length of the only line table, behind the name of its section.
    let at = bytes.windows(11).position(|part| part == b".debug_line").expect("a section") + 11;
    let mut damaged = bytes.clone();
    damaged[at] = 0xff;
    let path = file(&folder, "damaged.wasm", damaged);
    let note = format!("{path}: debug info left out: .debug_line at 0x0: a table of 255 bytes");
    let point = ["--func", "fill", "--point", "block3:2"];
    let explained = |path: &str| osier(&[&["explain", path], &point[..]].concat()).with_status(0);
    let told = explained(&path);
    assert_eq!(told.stderr.matches(&note).count(), 1, "{}", told.stderr);
    assert_eq!(told.stdout, explained(SPANS).stdout.replace(" at spans.h:3:25", ""));
    let listed = osier(&["opt", &path, "--emit", "listing"]).with_status(0);
    assert!(listed.stderr.contains(&note) && listed.stdout.contains("block3:2 inst10"));
    let trapped = osier(&["run", &path, "--invoke", "fill", "5", "-1"]).with_status(1);
    assert!(trapped.stderr.contains(&note), "{}", trapped.stderr);
    // Without a question about lines, nothing is read.
    let ended = osier(&["run", &path, "--invoke", "fill", "5", "3"]).with_status(0);
    assert_eq!(ended.stderr, "");
}
