//! `osier report` with a profile, several pipelines, an older report, or shares to reach.

use crate::harness::{Ended, KERNELS, command, file, kernel, osier, output, scratch};
use serde_json::{Value, json};
use std::fs;

const LEVELS: [&str; 5] = ["empty", "live", "live_e", "alias", "avail"];

/// The document of a report.
fn document(args: &[&str]) -> Value {
    let ended = osier(&[&["report", "--format", "json"], args].concat()).with_status(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a count"))
}

fn sum(value: &Value) -> u64 {
    value.as_object().expect("a map").values().map(number).sum()
}

/// A document without its times.
fn untimed(mut document: Value) -> Value {
    document["time"].take();
    if document["against"].is_object() {
        document["against"]["time"].take();
    }
    document
}

/// Writes the profile of a kernel into a folder and returns its path.
fn profile(folder: &tempfile::TempDir, name: &str) -> String {
    let path = folder.path().join(format!("{name}.profile")).display().to_string();
    // Some kernels end with a status of their own.
    osier(&["run", "--profile", &path, &kernel(name, ""), "--", "20"]);
    assert!(fs::exists(&path).expect("the folder is readable"), "{path}");
    path
}

/// Asserts that a text has at most 40 lines of at most 80 columns.
fn is_brief(text: &str, what: &str) {
    assert!(text.lines().count() <= 40, "{what}: {} lines\n{text}", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{what}:\n{text}");
}

#[test]
fn every_text_fits_a_screen() {
    let folder = scratch();
    for name in KERNELS.into_iter().step_by(2) {
        let (path, profile) = (kernel(name, ""), profile(&folder, name));
        let old = folder.path().join("old.json").display().to_string();
        let damaging = ["--pipeline", "O1,sink", "--level", "live", "--profile", &profile];
        let with =
            |args: &[&str]| -> Ended { osier(&[&["report", &path], args].concat()).with_status(0) };
        with(&["--format", "json", "-o", &old, "--level", "live", "--profile", &profile]);
        for args in [
            &["--level", "live"][..],
            &damaging,
            &[&damaging[..], &["--against", &old]].concat(),
            &["--pipeline", "O1", "--pipeline", "O2", "--profile", &profile],
            &["--pipeline", "O1", "--pipeline", "licm", "--against", &old],
            &["--pipeline", "O3"],
        ] {
            is_brief(&with(args).stdout, &format!("{name} {args:?}"));
            let verbose = with(&[args, &["--verbose"]].concat()).stdout;
            assert!(verbose.lines().all(|line| line.chars().count() <= 80), "{verbose}");
            assert!(verbose.lines().count() > 40, "{name} {args:?}:\n{verbose}");
        }
    }
}

#[test]
fn visits_add_up_and_functions_that_did_not_run_have_none() {
    let folder = scratch();
    let path = kernel("words", "");
    let profile = profile(&folder, "words");
    let report = document(&[&path, "--level", "live", "--profile", &profile]);
    assert_eq!(report["profile"], profile);
    let (mut ran, mut idle) = (0, 0);
    for function in report["functions"].as_array().expect("a list") {
        for side in [&function["forward"], &function["backward"]] {
            let dynamic = &side["dynamic"];
            let visits = number(&dynamic["visits"]);
            let missing = visits - number(&dynamic["feasible"]["live"]);
            for key in ["infeasible", "blame"] {
                assert_eq!(sum(&dynamic[key]), missing, "{}: {key}", function["name"]);
            }
            let feasible: Vec<u64> =
                LEVELS.iter().map(|level| number(&dynamic["feasible"][level])).collect();
            assert!(feasible.is_sorted() && feasible[4] <= visits, "{feasible:?} of {visits}");
            *if visits > 0 { &mut ran } else { &mut idle } += 1;
            assert!(visits > 0 || number(&function["visits"]) == 0, "{}", function["name"]);
        }
    }
    assert!(ran > 10 && idle > 0, "{ran} ran, {idle} did not");
    for side in ["forward", "backward"] {
        let side = &report["totals"][side];
        let share = side["share"]["live"]["dynamic"].as_f64().expect("a share");
        let dynamic = &side["dynamic"];
        let expected =
            100.0 * number(&dynamic["feasible"]["live"]) as f64 / number(&dynamic["visits"]) as f64;
        assert!((share - expected).abs() < 1e-9, "{share} and {expected}");
    }
    let text = osier(&["report", &path, "--profile", &profile]).with_status(0).stdout;
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("if each point counts as often as it ran"), "{text}");
    let static_report = document(&[&path]);
    assert!(static_report["profile"].is_null());
    assert!(static_report["functions"][0]["forward"]["dynamic"].is_null());
    assert!(static_report["functions"][0]["visits"].is_null());
    let ended = osier(&["report", &kernel("vm", ""), "--profile", &profile]).with_status(2);
    assert!(ended.stderr.contains("words.profile: ") && ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn the_test_of_blame_takes_a_sample_that_threads_do_not_change() {
    let path = kernel("words", "");
    let live = ["report", &path, "--level", "live"];
    let check = |args: &[&str]| {
        let report = document(&[&live[1..], args].concat());
        let lacking = ["forward", "backward"];
        let lacking = lacking.map(|side| {
            let side = &report["totals"][side];
            assert_eq!(sum(&side["blame"]), sum(&side["infeasible"]), "each point at one pass");
            sum(&side["infeasible"])
        });
        let blame = ["forward", "backward"].map(|side| report["totals"][side]["blame"].clone());
        (report["blame_check"].clone(), lacking.iter().sum::<u64>(), blame)
    };
    assert_eq!(check(&[]).0, Value::Null);
    let (some, lacking, _) = check(&["--blame-check", "20", "--jobs", "1"]);
    assert_eq!((number(&some["points"]), &some["unnamed"]), (20, &json!(0)));
    assert!(lacking > 20 && number(&some["right"]) > 5, "{some} of {lacking}");
    assert_eq!(check(&["--blame-check", "20", "--jobs", "2"]).0, some);
    let (all, lacking, tested) = check(&["--blame-check", "100000"]);
    assert_eq!(number(&all["points"]), lacking, "no more points than there are");
    let answers = ["one", "few", "many", "not_found", "over_work"].map(|key| number(&all[key]));
    assert_eq!(answers.iter().sum::<u64>(), lacking, "{all}");
    assert!(answers[0] > number(&all["right"]) && answers[3] == 0, "{all}");
    // The tables have the passes that the test blames.
    let (none, _, untested) = check(&[]);
    assert!(none.is_null() && tested != untested, "{tested:?}");
    let text = osier(&[&live[..], &["--blame-check", "20"]].concat()).with_status(0).stdout;
    let share = 5 * number(&some["right"]);
    assert!(text.contains(&format!("checked at 20 points: {share} % right")), "{text}");
}

#[test]
fn several_pipelines_are_an_array_of_what_each_is_alone() {
    let path = kernel("vm", "");
    let both = document(&[&path, "--pipeline", "O1", "--pipeline", "licm,cse"]);
    let both = both.as_array().expect("an array");
    let alone = ["O1", "licm,cse"].map(|pipeline| document(&[&path, "--pipeline", pipeline]));
    assert_eq!(both.len(), 2);
    for (one, alone) in both.iter().zip(alone) {
        assert_eq!(one["schema"], 2);
        assert_eq!(untimed(one.clone()), untimed(alone));
        assert!(one["time"]["map"].as_f64() > Some(0.0));
    }
    let ended = osier(&["report", &path, "--pipeline", "O1", "--pipeline", "licm,cse"]);
    let text = ended.with_status(0).stdout;
    let heading = text.lines().find(|line| line.starts_with("points with an entry"));
    let columns: Vec<&str> = heading.expect("a table").split_whitespace().skip(5).collect();
    assert_eq!(columns, ["O1", "licm,cse"], "{text}");
    let mixed = ["report", &path, "--pipeline", "O1", "--pipeline", "O3"];
    assert!(osier(&mixed).with_status(2).stderr.contains("none with inline"));
}

#[test]
fn a_report_against_itself_has_not_changed() {
    let folder = scratch();
    let path = kernel("sort", "");
    let old = folder.path().join("old.json").display().to_string();
    osier(&["report", &path, "--format", "json", "-o", &old]).with_status(0);
    let report = document(&[&path, "--against", &old]);
    let against = &report["against"];
    assert_eq!(against["path"], old);
    assert_eq!(against["functions"], json!([]));
    for side in ["forward", "backward"] {
        let side = &against[side];
        assert_eq!(side["points"]["old"], side["points"]["new"]);
        assert_eq!(side["causes"], json!([]));
        for level in LEVELS {
            let level = &side["levels"][level];
            assert_eq!(level["share"]["old"], level["share"]["new"]);
            assert!(level["dynamic"].is_null(), "no profile");
        }
    }
    let text = osier(&["report", &path, "--against", &old]).with_status(0).stdout;
    assert!(text.contains("none has more or fewer points without an entry"), "{text}");
}

/// `O2,thread` loses points against `O2`, and `O2` gains them against `O2,thread`.
#[test]
fn lost_and_gained_points_are_named_by_function_and_cause() {
    let folder = scratch();
    let path = kernel("vm", "");
    let old = |pipeline: &str| {
        let old = folder.path().join(format!("{pipeline}.json")).display().to_string();
        let args = ["report", &path, "--pipeline", pipeline, "--level", "live"];
        osier(&[&args[..], &["--format", "json", "-o", &old]].concat()).with_status(0);
        old
    };
    let args = |pipeline: &'static str, old: &str| -> Value {
        document(&[&path, "--pipeline", pipeline, "--level", "live", "--against", old])
    };
    let (o1, sunk) = (old("O1"), old("O1,sink"));
    let lost = args("O1,sink", &o1);
    let gained = args("O1", &sunk);
    let functions = |report: &Value| report["against"]["functions"].as_array().cloned();
    let (worse, better) = (functions(&lost).expect("a list"), functions(&gained).expect("a list"));
    assert!(!worse.is_empty() && worse.len() == better.len());
    let mut before = u64::MAX;
    for function in &worse {
        assert_eq!((&function["fate"], &function["gained"]), (&json!("lost"), &json!(0)));
        assert!(number(&function["lost"]) <= before, "the largest loss comes first");
        before = number(&function["lost"]);
    }
    assert!(better.iter().all(|f| f["fate"] == "gained" && f["lost"] == 0), "{better:?}");
    let causes = lost["against"]["forward"]["causes"].as_array().expect("a list");
    let more: u64 = causes.iter().map(|c| number(&c["points"]["new"])).sum();
    let missing: u64 = worse.iter().map(|function| number(&function["lost"])).sum();
    assert_eq!(more, missing, "all of them up: {causes:?}");
    // The only pipelines of both differ, and the text says so.
    let with = ["report", &path, "--pipeline", "O1,sink", "--level", "live", "--against", &o1];
    let text = osier(&with).with_status(0).stdout;
    assert!(text.contains("with the pipeline O1; here the pipeline O1,sink"), "{text}");
    let name = worse[0]["name"].as_str().expect("a name");
    assert!(text.lines().any(|line| line.contains(name) && line.contains(" lost ")), "{text}");
}

#[test]
fn functions_of_one_report_alone_are_new_or_gone() {
    let folder = scratch();
    let path = kernel("sort", "");
    let whole = document(&[&path]);
    let names: Vec<&str> = whole["functions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|f| f["name"].as_str())
        .collect();
    let mut renamed = whole.clone();
    renamed["functions"][1]["name"] = json!("formerly");
    let old = file(&folder, "old.json", renamed.to_string());
    let fates = |args: &[&str]| {
        let report = document(&[&[&path[..], "--against", &old], args].concat());
        let functions = report["against"]["functions"].as_array().cloned().unwrap_or_default();
        let fate = |f: &Value| format!("{} {}", f["name"], f["fate"]).replace('"', "");
        (functions.iter().map(fate).collect::<Vec<_>>(), report["against"]["time"].is_null())
    };
    let new = format!("{} new", names[1]);
    assert_eq!(fates(&[]), (vec![new.clone(), "formerly gone".to_owned()], false));
    // Functions that are not selected are not gone, and the older times are of them, too.
    assert_eq!(fates(&["--func", names[1]]), (vec![new], true));
    assert_eq!(fates(&["--func", names[2]]), (vec![], true));
    let selected = ["report", &path, "--func", names[2], "--against", &old];
    let text = osier(&selected).with_status(0).stdout;
    assert!(text.contains("the selected functions alone") && !text.contains("time of"), "{text}");
    // Of an interrupted report, only common functions count.
    let mut cut = whole.clone();
    cut["interrupted"] = json!(true);
    cut["functions"].as_array_mut().expect("a list").truncate(4);
    let old = file(&folder, "cut.json", cut.to_string());
    let report = document(&[&path, "--against", &old]);
    let against = &report["against"];
    assert_eq!(against["functions"], json!([]), "none is new");
    assert_eq!(against["compared"], json!({"old": 4, "new": 4}));
    assert_eq!(against["forward"]["points"]["old"], against["forward"]["points"]["new"]);
    let text = osier(&["report", &path, "--against", &old]).with_status(0).stdout;
    assert!(text.contains("it was interrupted: the 4 functions that both have"), "{text}");
}

#[test]
fn wrong_old_reports_are_refused_by_name_and_cause() {
    let folder = scratch();
    let path = kernel("matmul", "");
    let whole = osier(&["report", &path, "--format", "json"]).with_status(0).stdout;
    let report: Value = serde_json::from_str(&whole).expect("JSON");
    let changed = |pointer: &str, value: Value| {
        let mut report = report.clone();
        *report.pointer_mut(pointer).expect("a key of the report") = value;
        report.to_string()
    };
    let twice = json!([report["functions"][0], report["functions"][0]]);
    let check = osier(&["check", &path, "--format", "json"]).with_status(0).stdout;
    let inlined = osier(&["report", &path, "--pipeline", "O3", "--format", "json"]);
    let others =
        osier(&["report", &path, "--pipeline", "licm", "--pipeline", "cse", "--format", "json"]);
    for (what, text, cause) in [
        ("cut", whole[..whole.len() / 2].to_owned(), "EOF while parsing"),
        ("no JSON", "points with an entry".to_owned(), "it is no report"),
        ("number", "7".to_owned(), "it is no report"),
        ("empty array", "[]".to_owned(), "an array without reports"),
        ("deep", format!("{{\"a\": {}", "[".repeat(100_000)), "EOF while parsing a list"),
        ("old schema", changed("/schema", json!(1)), "has schema 1; this program reads schema 2"),
        ("new schema", changed("/schema", json!(3)), "has schema 3"),
        ("another document", check, "missing field"),
        ("a report on inlined code", inlined.with_status(0).stdout, "missing field"),
        ("no level", changed("/level", json!("\u{1b}[2J")), "no mapping has a level named ?[2J"),
        (
            "a level of ours",
            changed("/functions/0/forward/feasible", json!({"most": 1})),
            "unknown level",
        ),
        ("twice", changed("/functions", twice), "occurs twice"),
        (
            "points",
            changed("/functions/0/forward/unreachable", json!(u64::MAX)),
            "more unreachable points",
        ),
        (
            "entries",
            changed("/functions/0/forward/feasible/avail", json!(u64::MAX)),
            "more entries than",
        ),
        (
            "a level without a figure",
            changed("/functions/0/forward/feasible", json!({})),
            "no figure",
        ),
        (
            "a level that falls",
            changed("/functions/0/forward/feasible/empty", json!(1_000)),
            "more entries than",
        ),
        (
            "causes of other points",
            changed("/functions/0/forward/infeasible_by_pass", json!({"load": {"dse": 7}})),
            "other causes than points without an entry",
        ),
        (
            "visits without a profile",
            changed("/profile", json!("there")),
            "visits without a profile, or none with one",
        ),
        ("negative", changed("/functions/0/base/instructions", json!(-1)), "invalid value"),
        ("time", changed("/time/elapsed", json!(1e300)), "a time is negative"),
        ("other pipelines", others.with_status(0).stdout, "no report on any of these pipelines"),
        ("nothing", String::new(), "is empty"),
    ] {
        let old = file(&folder, "old.json", text);
        let out = file(&folder, "out.txt", "before");
        let ended = osier(&["report", &path, "--against", &old, "-o", &out]).with_status(2);
        let at = ended.stderr.find("old.json");
        assert!(at.is_some() && ended.stderr.contains(cause), "{what}: {}", ended.stderr);
        assert!(ended.stdout.is_empty() && !ended.stderr.contains('\u{1b}'), "{what}");
        assert_eq!(fs::read_to_string(&out).expect("readable"), "before", "{what}");
    }
    let ended = osier(&["report", &path, "--against", "no/such.json"]).with_status(2);
    assert!(ended.stderr.contains("no/such.json"), "{}", ended.stderr);
    // Sums of large numbers saturate.
    let mut large = report.clone();
    for function in large["functions"].as_array_mut().expect("a list") {
        function["base"]["instructions"] = json!(u64::MAX);
        function["forward"]["points"] = json!(u64::MAX);
        function["forward"]["unreachable"] = json!(0);
        let entries = function["forward"]["feasible"]["avail"].as_u64().expect("a count");
        function["forward"]["infeasible_by_pass"] = json!({"load": {"dse": u64::MAX - entries}});
    }
    let old = file(&folder, "large.json", large.to_string());
    osier(&["report", &path, "--against", &old]).with_status(0);
}

#[test]
fn a_share_below_its_minimum_fails_the_command_after_the_report() {
    let folder = scratch();
    let path = kernel("vm", "");
    let out = folder.path().join("out.txt").display().to_string();
    let run = |args: &[&str]| osier(&[&["report", &path, "-o", &out], args].concat());
    assert_eq!(run(&["--min", "avail=100,empty=0"]).with_status(0).stderr.lines().count(), 1);
    let ended = run(&["--min", "avail=100,live=80.5"]).with_status(1);
    let told: Vec<&str> = ended.stderr.lines().skip(1).collect();
    assert_eq!(told.len(), 2, "{}", ended.stderr);
    assert!(told[0].starts_with("osier: O1, base to opt, live: 73.0 % of the points"), "{told:?}");
    assert!(told[0].ends_with("7.5 below 80.5 %") && told[1].contains("1 share is too low"));
    let text = fs::read_to_string(&out).expect("the report is there");
    assert!(text.starts_with("Osier optimized 14 of 16 functions"), "{text}");
    // Both pipelines are looked at, and shares of visits are others.
    let two = run(&["--min", "live=80.5", "--pipeline", "O1", "--pipeline", "O2"]).with_status(1);
    assert!(two.stderr.contains("osier: O2, base to opt, live"), "{}", two.stderr);
    let profile = profile(&folder, "vm");
    let dynamic = run(&["--min", "live=80.5,dynamic", "--profile", &profile]).with_status(1);
    assert!(dynamic.stderr.contains("% of the visits have an entry"), "{}", dynamic.stderr);
    let both = ["--min", "live=80.5", "--min", "live=80.5,dynamic", "--profile", &profile];
    assert!(run(&both).with_status(1).stderr.contains("2 shares are too low"));
    for (list, cause) in [
        ("best=1", "unknown level `best`"),
        ("avail=101", "`101` is no percentage"),
        ("avail=NaN", "`NaN` is no percentage"),
        ("avail=99,dynamic", "dynamic requires --profile"),
    ] {
        let ended = run(&["--min", list]).with_status(2);
        assert!(ended.stderr.contains(cause), "{list}: {}", ended.stderr);
    }
    // A profile without runs has no share that could pass.
    let none = file(&folder, "none", "{\"profile\":1,\"functions\":[]}");
    let ended = run(&["--min", "avail=0,dynamic", "--profile", &none]).with_status(1);
    assert!(ended.stderr.contains("no point ran"), "{}", ended.stderr);
}

#[test]
fn shares_of_points_in_and_around_inlined_code_have_minima() {
    let path = kernel("hash", "");
    let run = |least: &str| osier(&["report", &path, "--pipeline", "O3", "--min", least]);
    run("avail=88").with_status(0);
    let ended = run("avail=90").with_status(1);
    let told: Vec<&str> = ended.stderr.lines().skip(1).collect();
    let expected = "osier: O3, up, avail: 88.9 % of the points have an entry, 1.1 below 90 %";
    assert_eq!(told, [expected, "osier: --min: 1 share is too low"]);
}

#[test]
fn options_that_reports_on_inlined_code_lack_are_refused() {
    let path = kernel("vm", "");
    for (option, value) in
        [("--min", "live=1"), ("--min", "avail=1,dynamic"), ("--against", "x"), ("--profile", "x")]
    {
        let ended = osier(&["report", &path, "--pipeline", "O3", option, value]).with_status(2);
        assert!(ended.stderr.contains(option), "{}", ended.stderr);
    }
}

#[test]
fn colors_are_for_terminals_that_want_them() {
    let path = kernel("sort", "");
    let listing = ["opt", &path, "--emit", "listing"];
    let explain = ["explain", &path, "--func", "sift", "--point", "inst9"];
    for args in [&["report", &path, "--level", "live"][..], &listing, &explain] {
        let with = |variables: &[(&str, &str)]| {
            let mut command = command(args);
            command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
            command.envs(variables.iter().copied());
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            Ended::of(output(&mut command)).with_status(0).stdout
        };
        let plain = with(&[]);
        assert!(!plain.contains('\u{1b}'), "a pipe has no colors");
        let colored = with(&[("CLICOLOR_FORCE", "1")]);
        assert!(colored.contains("\u{1b}[1m"), "{args:?}: {colored}");
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            stripped += before;
            rest = after.split_once('m').expect("a sequence ends").1;
        }
        assert_eq!(stripped + rest, plain);
        assert_eq!(with(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    }
}
