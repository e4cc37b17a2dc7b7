//! The processes of `engines`, and its report.
#![cfg(feature = "native")]

use clap::{Parser, ValueEnum};
use osier_judges::{ExecEngine, JudgeArguments, JudgeCommand, engines, exec};
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus")
}

fn parsed(line: &[&str]) -> JudgeCommand {
    JudgeArguments::try_parse_from([&["osier-judges"], line].concat()).expect("a command").command
}

fn executed(engine: ExecEngine, file: &Path, rest: &[&str]) -> Result<String, String> {
    let engine = engine.to_possible_value().expect("a name");
    let file = file.display().to_string();
    let line = [&["exec", "--engine", engine.get_name(), &file], rest].concat();
    let JudgeCommand::Exec(arguments) = parsed(&line) else { panic!("another command") };
    let mut out = Vec::new();
    let ended = exec::run(&arguments, &mut out)?;
    assert!(ended, "the program exits with 0");
    Ok(String::from_utf8(out).expect("text"))
}

#[test]
fn every_engine_makes_the_calls_and_prints_their_seconds() {
    let file = corpus().join("matmul.wasm");
    for engine in ExecEngine::value_variants() {
        let printed =
            executed(*engine, &file, &["--invoke", "matmul", "--calls", "3", "--", "i32:17"]);
        let printed = printed.expect("it runs");
        assert_eq!(printed.lines().count(), 3, "{engine:?}");
        for line in printed.lines() {
            let (result, seconds) = line.split_once(' ').expect("a result and seconds");
            assert_eq!(result, "f64:0x4014a00000000000", "{engine:?}");
            assert!(seconds.parse::<f64>().is_ok_and(|seconds| seconds > 0.0), "{line}");
        }
        let wrong = executed(*engine, &file, &["--invoke", "nothing"]);
        assert!(wrong.is_err_and(|error| error.contains("nothing")), "{engine:?}");
    }
}

#[test]
fn programs_run_in_the_engines_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("empty.wasm");
    let bytes = wat::parse_str(engines::programs::EMPTY_TEXT).expect("a module");
    std::fs::write(&file, bytes).expect("writable");
    for engine in [ExecEngine::Wasmtime, ExecEngine::Winch, ExecEngine::Wasmi] {
        assert_eq!(executed(engine, &file, &[]).as_deref(), Ok(""));
    }
    let error = executed(ExecEngine::Tiered, &file, &[]).expect_err("the command does that");
    assert!(error.ends_with("osier run runs whole programs in engines of Osier"), "{error}");
}

fn reported(rest: &[&str]) -> Result<(bool, String), String> {
    let kernels = corpus().display().to_string();
    // Nothing starts the command osier here; any file does.
    let line = [&["engines", "--osier", &kernels, "--kernels", &kernels], rest].concat();
    let JudgeCommand::Engines(arguments) = parsed(&line) else { panic!("another command") };
    let mut out = Vec::new();
    let alike = engines::run(&arguments, &mut out)?;
    Ok((alike, String::from_utf8(out).expect("text")))
}

#[test]
fn samples_of_a_file_are_reported_without_measuring() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("samples");
    let mut lines = String::new();
    for (program, scale) in [("empty.wat 0", 0.5), ("matmul.m2r 40", 1.0), ("hash.m2r 10000", 2.0)]
    {
        let engines =
            [("interp", 3.0), ("jit", 2.0), ("tiered", 1.0), ("wasmtime", 4.0), ("node", 0.5)];
        for (engine, wall) in engines {
            for round in 0..6 {
                lines += &format!(
                    "{{\"measure\":\"process\",\"program\":\"{program}\",\"cores\":1,\
                     \"contender\":\"{engine}\",\"round\":{round},\"wall\":{},\
                     \"processor\":1.0}}\n",
                    wall * scale
                );
            }
        }
    }
    std::fs::write(&file, lines).expect("writable");
    let file = file.display().to_string();
    let (alike, text) = reported(&["--rounds", "0", "--samples", &file]).expect("a report");
    assert!(alike);
    let row = |begin: &str| {
        let found = text.lines().find(|line| line.starts_with(begin));
        found
            .unwrap_or_else(|| panic!("no {begin}:\n{text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    let hash = ["hash.m2r", "10000", "2000.0", "0.25", "0.25-0.25", "-", "2.00", "2.00-2.00", "-"];
    assert_eq!(row("hash.m2r"), hash);
    // (1 - 0.5) / (4 - 2) and (2 - 0.5) / (8 - 2), and the same of node.
    assert_eq!(row("less an empty one")[4..6], ["0.25", "0.25-0.25"]);
    assert_eq!(row("processor time")[3..5], ["1.00", "1.00-1.00"]);
    assert!(text.contains("behind in node: hash.m2r 10000 (2.00), matmul.m2r 40 (2.00)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // Total time by the better of interp and jit.
    assert!(text.contains("0.50 0.50-0.50"), "{text}");
    let (_, json) =
        reported(&["--rounds", "0", "--samples", &file, "--format", "json"]).expect("a report");
    assert!(json.contains("\"behind\"") && json.contains("\"interval\""), "{json}");
}

#[test]
fn what_cannot_be_measured_is_reported() {
    let line = ["--only", "quickjs", "--programs", "/no such folder", "--rounds", "0"];
    let (_, text) = reported(&line).expect("a report");
    assert!(text.contains("quickjs.m2r: not built"), "{text}");
}
