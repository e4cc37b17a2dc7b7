//! `osier run`: programs print their expected output, and failures report a place.

use crate::harness::{
    KERNELS, ROUTES, corpus, file, kernel, osier, osier_with_input, root, scratch,
};
use std::fs;

/// The small size of a kernel, and its expected output for that size.
fn expected(name: &str) -> (String, String) {
    let folder = fs::read_dir(corpus("expected")).expect("the corpus has it");
    let names =
        folder.map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"));
    let is_small =
        |file: &String| file.strip_prefix(name).is_some_and(|rest| rest.split('.').count() == 3);
    let file = names.filter(|file| file.ends_with(".txt")).find(is_small).expect("a small size");
    let size = file.split('.').nth(1).expect("NAME.SIZE.txt").to_owned();
    (size, fs::read_to_string(corpus("expected").join(file)).expect("readable"))
}

/// Runs every kernel of both builds and compares the output.
fn assert_kernel_outputs(options: &[&str]) {
    for name in KERNELS {
        let (size, output) = expected(name);
        let input = fs::read(corpus("expected").join(format!("{name}.in"))).unwrap_or_default();
        for route in ROUTES {
            let path = kernel(name, route);
            let args = [&["run"], options, &[&path, "--", &size]].concat();
            let ended = osier_with_input(&args, &input).with_status(0);
            assert_eq!(ended.stdout, output, "{path}");
            assert_eq!(ended.stderr, "", "{path}");
        }
    }
}

#[test]
fn kernels_print_their_expected_output() {
    assert_kernel_outputs(&[]);
}

#[test]
fn optimized_kernels_print_their_expected_output() {
    assert_kernel_outputs(&["--pipeline", "O1"]);
}

/// The bits of a literal in the notation of `expected/invoke.txt`.
fn bits(ty: &str, text: &str) -> u64 {
    match ty {
        "f64" => text.strip_prefix("0x").map_or_else(
            || text.parse::<f64>().expect("a float").to_bits(),
            |hex| u64::from_str_radix(hex, 16).expect("bits"),
        ),
        "i32" => text.parse::<i32>().expect("an i32") as u32 as u64,
        _ => text.parse::<i64>().expect("an i64") as u64,
    }
}

#[test]
fn exported_functions_return_the_expected_results() {
    let lines = fs::read_to_string(corpus("expected/invoke.txt")).expect("readable");
    assert!(lines.lines().count() >= 15, "the list is not empty");
    for line in lines.lines() {
        let (call, result) = line.split_once(" -> ").expect("a result");
        let words: Vec<&str> = call.split(' ').collect();
        let value = |arg: &&str| arg.split_once(':').expect("TYPE:VALUE").1.to_owned();
        let args: Vec<String> = words[2..].iter().map(value).collect();
        let (ty, wanted) = result.split_once(':').expect("TYPE:VALUE");
        for route in ROUTES {
            for pipeline in ["", "O1"] {
                let path = kernel(words[0], route);
                let mut command = vec!["run", "--pipeline", pipeline, &path, "--invoke", words[1]];
                command.extend(args.iter().map(String::as_str));
                let ended = osier(&command).with_status(0);
                assert_eq!(
                    bits(ty, ended.stdout.trim_end()),
                    bits(ty, wanted),
                    "{line} {pipeline}"
                );
            }
        }
    }
}

const FAILING: &str = "\
func @divide(%a: i32, %b: i32) -> i32 {
entry:
  %q = sdiv.i32 %a, %b
  return %q
}
func @deep(%a: i32) -> i32 {
entry:
  %q = call @deep(%a)
  return %q
}
func @forever() {
entry:
  jump again
again:
  jump again
}
";

#[test]
fn a_program_that_fails_ends_with_status_1_and_names_the_function() {
    let folder = scratch();
    let path = file(&folder, "failing.oir", FAILING);
    let cases: [(&[&str], &[&str], &str); 4] = [
        (
            &[],
            &["divide", "1", "0"],
            "trap division_by_zero in @divide at inst0 (entry:0: %q = sdiv.i32 %a, %b)",
        ),
        (&[], &["divide", "-2147483648", "-1"], "trap integer_overflow in @divide"),
        (&["--max-call-depth", "9"], &["deep", "1"], "stack overflow in @deep"),
        (&["--fuel", "1000"], &["forever"], "out of fuel in @forever"),
    ];
    for (options, call, message) in cases {
        let args = [&["run"], options, &[&path, "--invoke"], call].concat();
        let ended = osier(&args).with_status(1);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn literals_of_every_type_go_in_and_come_out() {
    let folder = scratch();
    for (ty, literals) in [
        ("i8", &["-128", "127"][..]),
        ("i16", &["-1", "255"]),
        ("i32", &["-2147483648", "7"]),
        ("i64", &["-9223372036854775808", "12"]),
        ("f32", &["1.5", "-0.0", "1e-45", "inf", "nan:0x7fc00001"]),
        ("f64", &["1e300", "0.1", "-3.25", "nan:0x7ff8000000000001"]),
    ] {
        let text = format!("func @same(%a: {ty}) -> {ty} {{\nentry:\n  return %a\n}}\n");
        let path = file(&folder, "same.oir", text);
        for literal in literals {
            for engine in ["interp", "jit", "tiered"] {
                let ended = osier(&["run", "--engine", engine, &path, "--invoke", "same", literal])
                    .with_status(0);
                assert_eq!(ended.stdout, format!("{literal}\n"), "{ty} in {engine}");
            }
        }
    }
}

/// Numbers as other engines read them.
#[test]
fn arguments_are_read_as_people_write_them() {
    let folder = scratch();
    for (ty, argument, result) in [
        ("f64", "-inf", "-inf"),
        ("f64", "-.5", "-0.5"),
        ("f32", ".25", "0.25"),
        ("f64", "5.", "5.0"),
        ("f64", "nan", "nan:0x7ff8000000000000"),
        ("f32", "nan", "nan:0x7fc00000"),
        ("i32", "-0x10", "-16"),
    ] {
        let text = format!("func @same(%a: {ty}) -> {ty} {{\nentry:\n  return %a\n}}\n");
        let path = file(&folder, "same.oir", text);
        let ended = osier(&["run", &path, "--invoke", "same", argument]).with_status(0);
        assert_eq!(ended.stdout, format!("{result}\n"), "{argument} as {ty}");
    }
}

/// Prints the number of bytes of its arguments, its name included, each with a zero behind it.
const BYTES_OF_ARGUMENTS: &str = r#"(module
  (import "wasi_snapshot_preview1" "args_sizes_get"
    (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory 1)
  (func (export "_start")
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (call $exit (i32.load (i32.const 4)))))"#;

/// The program gets all words behind FILE. The command notes an option of its own among them,
/// unless `--` precedes the option.
#[test]
fn arguments_of_the_program_follow_the_file() {
    let with = |arguments: &[&str]| {
        osier(&[&["run", &kernel("sort", "")], arguments].concat()).with_status(0).stdout
    };
    assert_eq!(with(&["20"]), with(&["--", "20"]));
    let folder = scratch();
    let path = file(&folder, "bytes.wat", BYTES_OF_ARGUMENTS);
    let bytes = |arguments: &[&str]| {
        let ended = osier(&[&["run", &path], arguments].concat());
        (ended.status as usize - path.len() - 1, ended.stderr)
    };
    assert_eq!(bytes(&[]), (0, String::new()));
    assert_eq!(bytes(&["-x", "--engine", "jit"]), (16, String::new()));
    assert_eq!(bytes(&["--", "--engine", "jit"]), (13, String::new()));
    let note = "osier: note: --engine behind FILE goes to the program; options of osier stand \
                before FILE\n";
    assert_eq!(bytes(&["--engine", "jit"]), (13, note.to_owned()));
    assert_eq!(bytes(&["--engine=jit"]), (13, note.to_owned()));
    // An option of all commands.
    assert_eq!(bytes(&["--quiet"]), (8, note.replace("--engine", "--quiet")));
}

#[test]
fn a_function_is_named_before_or_behind_the_file() {
    let sum = "cli/tests/cli/golden/sum.oir";
    let run = |arguments: &[&str]| osier(&[&["run"], arguments].concat());
    assert_eq!(run(&["--invoke", "sum", sum, "3", "2"]).with_status(0).stdout, "112\n");
    assert_eq!(run(&[sum, "--invoke", "sum", "3", "2"]).with_status(0).stdout, "112\n");
    let twice = run(&["--invoke", "sum", sum, "--invoke", "sum"]).with_status(2);
    assert_eq!(twice.stderr, "osier: --invoke is given twice\n");
}

/// A name comes from the module, and a terminal would obey its control characters.
#[test]
fn names_with_control_characters_are_quoted() {
    let folder = scratch();
    let text = "func @\"a\\u{1b}[31m\\u{a}b\"(%x: i32) -> i32 {\nentry:\n  %z = const.i32 0\n  \
                %y = udiv.i32 %x, %z\n  return %y\n}\nexport \"f\" @\"a\\u{1b}[31m\\u{a}b\"\n";
    let path = file(&folder, "names.oir", text);
    let named = "@\"a\\u{1b}[31m\\u{a}b\"";
    let trapped = osier(&["run", &path, "--invoke", "f", "1"]).with_status(1);
    assert!(trapped.stderr.contains(named), "{}", trapped.stderr);
    for emit in ["listing", "actions", "oir"] {
        let listed = osier(&["opt", &path, "--emit", emit]).with_status(0).stdout;
        assert!(listed.contains(named), "{emit}: {listed}");
        assert!(!listed.contains('\x1b'), "{emit}: {listed:?}");
    }
}

#[test]
fn wrong_calls_are_bad_usage() {
    let folder = scratch();
    let path = file(&folder, "failing.oir", FAILING);
    let cases: [(&[&str], &str); 4] = [
        (&["--invoke", "divide", "1"], "takes 2 arguments; given: 1"),
        (&["--invoke", "divide", "1", "1.5"], "\"1.5\" is not a valid i32"),
        (&["--invoke", "nothing"], "no function \"nothing\""),
        (&[], "no _start"),
    ];
    for (args, message) in cases {
        let ended = osier(&[&["run", &path], args].concat()).with_status(2);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
    for (engine, message) in [("jit", "no _start"), ("native", "invalid value 'native'")] {
        let ended = osier(&["run", "--engine", engine, &path]).with_status(2);
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
}

#[test]
fn a_call_of_nothing_lists_functions_and_no_other_exports() {
    let ended = osier(&["run", &kernel("words", ""), "--invoke", "nothing"]).with_status(2);
    let list = "no function \"nothing\" (functions: words, _start)";
    assert!(ended.stderr.contains(list), "{}", ended.stderr);
}

#[test]
fn stats_are_written_to_a_file_or_standard_error_for_failed_programs_too() {
    let folder = scratch();
    let path = file(&folder, "failing.oir", FAILING);
    let out = folder.path().join("stats.json");
    let to_file = format!("--stats={}", out.display());
    osier(&["run", &to_file, &path, "--invoke", "divide", "6", "3"]).with_status(0);
    let ended = osier(&["run", "--stats", &path, "--invoke", "divide", "6", "0"]).with_status(1);
    let on_stderr = ended.stderr.split("osier:").next().expect("the figures come first");
    for json in [fs::read_to_string(out).expect("it was written"), on_stderr.to_owned()] {
        let stats: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let stats = stats.as_object().expect("an object");
        // The documented keys; figures that do not apply are null.
        assert!(stats["compiled"].is_null() && stats["transitions"].is_null());
        assert!(stats["seconds"].is_object() && stats["schema"] == 2);
        assert!(stats["instructions"].as_u64().is_some_and(|n| n > 0));
    }
}

#[test]
fn stats_are_written_for_a_program_that_native_code_fails_to_run() {
    let folder = scratch();
    // More values than the buffer of native exits holds.
    let values = vec!["%a"; 70_000].join(", ");
    let path = file(
        &folder,
        "wide.oir",
        format!("func @wide(%a: i32) {{\nentry:\n  osr_exit 0({values})\n}}\n"),
    );
    let ended = osier(&["run", "--engine", "jit", "--stats", &path, "--invoke", "wide", "1"])
        .with_status(1);
    let (json, message) = ended.stderr.split_once("osier:").expect("the figures come first");
    assert!(message.contains("@wide passes 70000 values at once"), "{message}");
    let stats: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(stats["compiled"], serde_json::json!([]));
    assert!(stats["seconds"]["execute"].is_number(), "{stats}");
}

/// `@count` is called twice: the profile says that `%far` is always 0, and then it is 1.
const CHANGES: &str = "
func @count(%n: i32, %far: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  br_if %far, twice, once
twice:
  %two = add.i32 %n, %n
  return %two
once:
  %next = add.i32 %n, %one
  return %next
}
func @main(%change: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  %end = const.i32 5000
  jump head(%zero, %zero)
head(%i: i32, %sum: i32):
  %far = uge.i32 %i, %change
  %r = call @count(%i, %far)
  %s = add.i32 %sum, %r
  %j = add.i32 %i, %one
  %more = ult.i32 %j, %end
  br_if %more, head(%j, %s), done
done:
  return %s
}
";

/// Assumptions that hold at first and then fail end with the result of the interpreter, and one
/// that fails too often is given up.
#[test]
fn tiered_runs_speculate_and_count_failures() {
    let folder = scratch();
    let path = file(&folder, "changes.oir", CHANGES);
    let profile = folder.path().join("changes.profile").display().to_string();
    osier(&["run", "--profile", &profile, &path, "--invoke", "main", "5000"]).with_status(0);
    let stats = folder.path().join("stats.json").display().to_string();
    let speculate = |source: &str, tables: &str, change: &str| {
        let plain = osier(&["run", &path, "--invoke", "main", change]).with_status(0);
        let stats_option = format!("--stats={stats}");
        let options =
            ["run", "--engine", "tiered", "--hot", "100", source, "--every", tables, &stats_option];
        let call = [&path, "--invoke", "main", change];
        let ended = osier(&[&options[..], &call[..]].concat()).with_status(0);
        assert_eq!(ended.stdout, plain.stdout, "{source} {change}");
        let json = fs::read_to_string(&stats).expect("it was written");
        let stats: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        stats["speculation"].clone()
    };
    for source in [format!("--speculate={profile}"), "--speculate".to_owned()] {
        let held = speculate(&source, "--tables=nowhere", "5000");
        assert!(held["assumptions"].as_u64() > Some(0), "{held}");
        assert_eq!((&held["failures"], &held["failed"]), (&0.into(), &serde_json::json!([])));
        let broken = speculate(&source, "--tables=nowhere", "4000");
        let failed = &broken["failed"][0];
        assert_eq!(failed["function"], "count", "{broken}");
        assert_eq!((&failed["failures"], &failed["given_up"]), (&16.into(), &true.into()));
        assert_eq!(failed["assumption"], "entry:2: %far is 0", "{broken}");
        assert_eq!(broken["tables"], serde_json::json!([]), "{broken}");
        let taken_over = speculate(&source, "--tables=everywhere", "4000");
        assert_eq!(taken_over["failed"][0]["failures"], 2, "{taken_over}");
        assert_eq!(taken_over["failed"][0]["given_up"], false, "{taken_over}");
        let mut tables = taken_over["tables"].as_array().into_iter().flatten();
        let table = tables.find(|table| table["function"] == "count").expect("a table of @count");
        assert_eq!(table["rows"][0]["exits"], 1, "{taken_over}");
        assert_eq!(table["rows"][0]["context"][0], "entry:2: %far is 1", "{taken_over}");
    }
    let bad = ["run", "--speculate", &path, "--invoke", "main", "1"];
    let refused = osier(&bad).with_status(2);
    assert!(refused.stderr.contains("--speculate requires --engine tiered"), "{}", refused.stderr);
}

/// The program of `docs/speculation.md`, "Storms", and the lines that the manual shows.
#[test]
fn the_storm_of_the_manual_is_cured() {
    let manual = fs::read_to_string(root().join("docs/speculation.md")).expect("readable");
    let (_, behind) = manual.split_once("docs/examples/storm.oir").expect("it names the program");
    let blocks: Vec<&str> = behind.split("```").skip(1).step_by(2).take(3).collect();
    let [_, without, with] = blocks[..] else { panic!("it has a program and two listings") };
    let folder = scratch();
    let call = ["docs/examples/storm.oir", "--invoke", "main", "20000"];
    let plain = osier(&[&["run"], &call[..]].concat()).with_status(0);
    let stats = folder.path().join("stats.json").display().to_string();
    let stats_option = format!("--stats={stats}");
    let run = |tables: &str| {
        let first = ["run", "--engine", "tiered", "--hot", "1000", "--speculate", "--trace-tiers"];
        let options = [&first[..], &["--tables", tables, &stats_option], &call[..]].concat();
        let ended = osier(&options).with_status(0);
        assert_eq!(ended.stdout, plain.stdout, "{tables}");
        let json = fs::read_to_string(&stats).expect("it was written");
        let stats: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        (ended.stderr, stats["speculation"].clone())
    };
    let shows = |trace: &str, listing: &str| {
        for line in listing.trim_start_matches("text\n").lines() {
            assert!(trace.lines().any(|shown| shown.ends_with(line)), "no {line:?} in\n{trace}");
        }
    };
    let (trace, storm) = run("nowhere");
    shows(&trace, without);
    assert_eq!((&storm["exits"], &storm["exits_to_rows"]), (&16.into(), &0.into()), "{storm}");
    assert_eq!(storm["failed"][0]["given_up"], true, "{storm}");
    let (trace, cured) = run("everywhere");
    shows(&trace, with);
    // Each of four values fails twice, then leads to a row.
    assert_eq!(cured["exits"], 8, "{cured}");
    assert!(cured["exits_to_rows"].as_u64() > Some(20_000), "{cured}");
    let over = &cured["failed"][0]["taken_over"][0];
    assert_eq!((&over["row"], cured["failed"][0]["given_up"].as_bool()), (&0.into(), Some(false)));
    assert!(over["microseconds"].as_u64() > Some(0) && cured["bytes"].as_u64() > Some(0));
}

#[test]
fn stats_include_the_time_of_optimizing_hot_code() {
    let seconds = |engine: &[&str]| {
        let run = [
            &["run", "--stats", "--engine"],
            engine,
            &["cli/tests/cli/golden/sum.oir", "--invoke", "sum", "30", "2"],
        ];
        let ended = osier(&run.concat()).with_status(0);
        let stats: serde_json::Value = serde_json::from_str(&ended.stderr).expect("JSON");
        stats["seconds"].clone()
    };
    let optimizing = seconds(&["tiered", "--hot", "2", "--on-the-spot"])["optimize"].as_f64();
    assert!(
        optimizing.is_some_and(|seconds| seconds > 0.0),
        "a part of the run, however small: {optimizing:?}"
    );
    assert_eq!(
        seconds(&["tiered", "--hot", "1000"])["optimize"].as_f64(),
        Some(0.0),
        "nothing turns hot"
    );
    assert!(seconds(&["jit"])["optimize"].is_null(), "nothing is optimized");
}

/// The loop requests code at its second visit, and the run enters this code.
#[test]
fn tiered_runs_tell_what_they_compile_and_why() {
    let run = |options: &[&str]| {
        let first = ["run", "--engine", "tiered", "--hot", "2", "--on-the-spot"];
        let call = ["cli/tests/cli/golden/sum.oir", "--invoke", "sum", "30", "2"];
        osier(&[&first[..], options, &call].concat()).with_status(0).stderr
    };
    let stats: serde_json::Value = serde_json::from_str(&run(&["--stats"])).expect("JSON");
    let tiering = &stats["tiering"];
    let order = &tiering["orders"][0];
    assert_eq!(
        (&order["function"], &order["point"], &order["tier"]),
        (&"sum".into(), &"loop:0: %more = slt.i32 %i, %n".into(), &"optimized".into()),
        "{tiering}"
    );
    assert_eq!((&order["why"], &order["visits"]), (&"loop".into(), &2.into()), "{tiering}");
    let times = ["asked", "begun", "made", "installed", "entered"];
    let times = times.map(|time| order[time].as_f64().expect("each step was made"));
    assert!(times.is_sorted(), "{tiering}");
    assert!(tiering["longest_pause"].as_f64() > Some(0.0), "the run waited: {tiering}");
    let visits = &tiering["visits"][0];
    assert_eq!(visits["places"][0]["visits"], 1, "one call: {visits}");
    assert_eq!(visits["places"][1]["visits"], 2, "until the loop was entered: {visits}");
    let line = run(&["--trace-tiers"]);
    let steps: Vec<_> = line.lines().skip(1).map(|line| line.split_whitespace().nth(1)).collect();
    let wanted = ["asks", "begins", "made", "calls", "enters", "run"].map(Some);
    assert_eq!(steps, wanted, "{line}");
    assert!(line.lines().all(|line| line.chars().count() <= 80), "{line}");
    let refused = osier(&["run", "--trace-tiers", "x.oir"]).with_status(2);
    assert!(refused.stderr.contains("--trace-tiers requires --engine tiered"));
}

/// The profile beside the sessions equals the profile that a run writes, so that sessions show real
/// figures.
#[test]
fn a_profile_is_written() {
    let folder = scratch();
    let profile = file(&folder, "old.profile", "an older file");
    let module = "cli/tests/cli/golden/hot.oir";
    let expected = fs::read_to_string(root().join("cli/tests/cli/golden/hot.profile"));
    let expected = expected.expect("readable");
    for engine in ["interp", "jit"] {
        let options = ["run", "--engine", engine, "--profile", &profile, module];
        let run = [&options[..], &["--invoke", "count", "2000", "0"]].concat();
        assert_eq!(osier(&run).with_status(0).stdout, "2001000\n");
        let written = fs::read_to_string(&profile).expect("readable");
        assert_eq!(written, expected, "{engine}");
    }
}

/// `-` is standard output, as elsewhere standard input.
#[test]
fn a_profile_can_go_to_standard_output() {
    let module = "cli/tests/cli/golden/hot.oir";
    let run = ["run", "--profile", "-", module, "--invoke", "count", "2000", "0"];
    let expected = fs::read_to_string(root().join("cli/tests/cli/golden/hot.profile"));
    let expected = format!("2001000\n{}", expected.expect("readable"));
    assert_eq!(osier(&run).with_status(0).stdout, expected);
    assert!(!root().join("-").exists());
}

/// A program that fails has a profile up to there, and the status of its failure.
#[test]
fn a_program_that_fails_leaves_a_profile() {
    let folder = scratch();
    let profile = folder.path().join("trap.profile").display().to_string();
    let module = "cli/tests/cli/golden/sum.oir";
    osier(&["run", "--profile", &profile, module, "--invoke", "sum", "3", "0"]).with_status(1);
    let text = fs::read_to_string(&profile).expect("readable");
    assert!(text.contains("\"name\":\"sum\"") && text.contains("\"sides\":[3,1]"), "{text}");
}

#[test]
fn a_profile_that_cannot_be_written_is_named() {
    let folder = scratch();
    let profile = folder.path().join("missing/p").display().to_string();
    let module = "cli/tests/cli/golden/sum.oir";
    let ended = osier(&["run", "--profile", &profile, module, "--invoke", "sum", "3", "2"]);
    assert!(ended.with_status(2).stderr.contains("missing/p"));
}
