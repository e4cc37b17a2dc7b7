//! `osier report`: the documented keys, figures that add up, and text of at most 80 columns.

use crate::harness::{KERNELS, file, kernel, osier, scratch};
use serde_json::Value;
use std::fs;

/// The levels in the order of their chain.
const CHAIN: [&str; 5] = ["empty", "live", "live_e", "alias", "avail"];

fn json(args: &[&str]) -> Value {
    let ended = osier(&[&["report", "--format", "json"], args].concat()).with_status(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a count"))
}

/// The sum of a map of counts.
fn sum(value: &Value) -> u64 {
    value.as_object().expect("a map").values().map(number).sum()
}

/// Asserts that an object has these keys.
fn has(value: &Value, keys: &[&str]) {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is an object"));
    for key in keys {
        assert!(
            object.contains_key(*key),
            "{key} is missing in {:?}",
            object.keys().collect::<Vec<_>>()
        );
    }
}

#[test]
fn every_key_of_the_contract_is_there() {
    let report = json(&[&kernel("sort", "")]);
    has(&report, &["schema", "program", "pipeline", "functions", "totals", "time"]);
    assert_eq!(report["schema"], 2);
    has(&report["program"], &["path", "functions", "instructions"]);
    has(&report["time"], &["import", "optimize", "map", "check"]);
    has(&report["totals"], &["forward", "backward", "checked"]);
    has(&report["totals"]["checked"], &["points", "held", "dropped", "refuted"]);
    assert!(report["totals"]["checked"]["held"].as_u64() > Some(0), "the checker is always on");
    assert!(
        list(&report, "pipeline").iter().all(Value::is_string)
            && !list(&report, "pipeline").is_empty()
    );
    for function in list(&report, "functions") {
        has(function, &["name", "base", "opt", "actions", "forward", "backward"]);
        has(&function["base"], &["instructions", "params"]);
        has(&function["opt"], &["instructions", "params"]);
        has(
            &function["actions"],
            &["add", "delete", "hoist", "sink", "replace_operand", "replace_all"],
        );
        for side in [&function["forward"], &function["backward"]] {
            has(side, &["points", "unreachable", "feasible", "chi", "kept", "kept_args"]);
            has(side, &["infeasible", "blame", "infeasible_by_pass"]);
            for levels in ["feasible", "chi", "kept", "kept_args"] {
                has(&side[levels], &CHAIN);
                assert!(side[levels]["pure"].is_null() && side[levels]["full"].is_null());
                has(&side[levels], &["pure", "full"]);
            }
            has(&side["chi"]["avail"], &["mean", "max"]);
        }
    }
}

/// Asserts that the figures of one direction add up at the level of `infeasible` and `blame`.
fn adds_up(side: &Value, level: &str, what: &str) {
    let reachable = number(&side["points"]) - number(&side["unreachable"]);
    let feasible: Vec<u64> = CHAIN.iter().map(|level| number(&side["feasible"][level])).collect();
    assert!(
        feasible.is_sorted() && feasible[4] <= reachable,
        "{what}: {feasible:?} of {reachable}"
    );
    let missing = reachable - number(&side["feasible"][level]);
    assert_eq!(sum(&side["infeasible"]), missing, "{what}: infeasible");
    assert_eq!(sum(&side["blame"]), missing, "{what}: blame");
}

#[test]
fn reasons_and_blame_add_up_to_the_points_without_entry() {
    for name in KERNELS {
        for level in ["avail", "live"] {
            let report = json(&[&kernel(name, ""), "--level", level]);
            assert_eq!(report["level"], level);
            for function in list(&report, "functions") {
                for side in ["forward", "backward"] {
                    adds_up(&function[side], level, &format!("{name} {} {side}", function["name"]));
                }
            }
            for side in ["forward", "backward"] {
                adds_up(&report["totals"][side], level, &format!("{name} {side}"));
            }
        }
    }
}

#[test]
fn totals_are_the_sums_over_changed_functions() {
    let report = json(&[&kernel("vm", "")]);
    let is_changed = |f: &&Value| sum(&f["actions"]) > 0;
    let changed: Vec<&Value> = list(&report, "functions").iter().filter(is_changed).collect();
    let totals = &report["totals"];
    let counts = &totals["functions"];
    assert_eq!(number(&counts["changed"]), changed.len() as u64);
    assert_eq!(
        number(&counts["changed"]) + number(&counts["unchanged"]),
        number(&counts["selected"])
    );
    assert_eq!(number(&counts["selected"]), number(&report["program"]["functions"]));
    for side in ["forward", "backward"] {
        let total =
            |get: &dyn Fn(&Value) -> u64| changed.iter().map(|f| get(&f[side])).sum::<u64>();
        let ours = &totals[side];
        assert_eq!(number(&ours["points"]), total(&|d| number(&d["points"])));
        assert_eq!(number(&ours["unreachable"]), total(&|d| number(&d["unreachable"])));
        for level in CHAIN {
            assert_eq!(number(&ours["feasible"][level]), total(&|d| number(&d["feasible"][level])));
            let share = &ours["share"][level];
            let reachable = number(&ours["points"]) - number(&ours["unreachable"]);
            let weighted = 100.0 * number(&ours["feasible"][level]) as f64 / reachable as f64;
            // The same sum, computed in another order.
            assert!(
                share["weighted"].as_f64().is_some_and(|share| (share - weighted).abs() < 1e-9),
                "{share}"
            );
            let (min, mean, max) =
                (share["min"].as_f64(), share["mean"].as_f64(), share["max"].as_f64());
            assert!(min <= mean && mean <= max, "{share}");
        }
    }
    let size = |f: &Value| number(&f["base"]["instructions"]);
    let mut sizes: Vec<u64> = changed.iter().map(|f| size(f)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.truncate(12);
    let largest = list(totals, "largest").iter().map(|name| {
        size(changed.iter().find(|f| f["name"] == *name).expect("one of the changed functions"))
    });
    assert_eq!(largest.collect::<Vec<_>>(), sizes);
}

/// The verbose text of a report, after asserting that every line of both texts fits 80 columns, and
/// the brief one 40 lines.
fn fitting(path: &str) -> String {
    let brief = osier(&["report", path]).with_status(0).stdout;
    let verbose = osier(&["report", path, "--verbose"]).with_status(0).stdout;
    assert!(brief.lines().count() <= 40, "{brief}");
    for line in brief.lines().chain(verbose.lines()) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert!(!line.ends_with(' '), "{line:?}");
    }
    verbose
}

#[test]
fn the_text_fits_eighty_columns() {
    for name in KERNELS {
        let text = fitting(&kernel(name, ""));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("thesis") && words.contains("ours do not reproduce them"), "{text}");
    }
}

#[test]
fn long_names_and_names_of_control_characters_fit_too() {
    let folder = scratch();
    let name = format!("\"{}\\n\\1b[2J{}\"", "long".repeat(40), "name".repeat(40));
    let text = format!(
        "func @{name}(%a: i32) -> i32 {{\nentry:\n  %b = add.i32 %a, %a\n  return %a\n}}\n"
    );
    let path = file(&folder, &format!("{}.oir", "path".repeat(40)), text);
    let text = fitting(&path);
    assert!(text.contains('…') && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn the_text_and_all_figures_but_times_are_the_same_each_time() {
    let path = kernel("scan", "");
    let text = || osier(&["report", &path]).with_status(0).stdout;
    assert_eq!(text(), text());
    let figures = || {
        let mut report = json(&[&path]);
        report["time"].take();
        report
    };
    assert_eq!(figures(), figures());
}

#[test]
fn one_function_or_a_list_of_them_can_be_looked_at() {
    let path = kernel("sort", "");
    let names = |args: &[&str]| -> Vec<String> {
        let report = json(&[&[&*path], args].concat());
        list(&report, "functions")
            .iter()
            .map(|f| f["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let all = names(&[]);
    assert!(all.len() > 3, "{all:?}");
    assert_eq!(names(&["--func", &all[1]]), all[1..2]);
    let folder = scratch();
    let listed = file(&folder, "own", format!("{}\n{}\nno_such_function\n", all[2], all[0]));
    assert_eq!(names(&["--only-functions", &listed]), [all[0].clone(), all[2].clone()]);
    let ended = osier(&["report", &path, "--only-functions", &listed]).with_status(0);
    assert!(ended.stderr.contains("lacks 1 of the functions"), "{}", ended.stderr);
    assert!(ended.stderr.contains("\"no_such_function\""), "{}", ended.stderr);
    let names = ["a", "b", "c", "d", &"e".repeat(1000)].join("\n");
    fs::write(&listed, names).expect("writable");
    let ended = osier(&["report", &path, "--only-functions", &listed]).with_status(2);
    let end = "names no function of the module: \"a\", \"b\", \"c\", and 2 more";
    assert!(ended.stderr.contains(end), "{}", ended.stderr);
}

#[test]
fn functions_no_pass_changes_stay_out_of_the_totals() {
    let report = json(&[&kernel("sort", ""), "--pipeline", ""]);
    assert_eq!(number(&report["totals"]["functions"]["changed"]), 0);
    assert_eq!(number(&report["totals"]["forward"]["points"]), 0);
    assert!(report["totals"]["forward"]["share"]["avail"].is_null(), "no share without points");
    for function in list(&report, "functions") {
        let side = &function["forward"];
        assert_eq!(
            number(&side["feasible"]["empty"]),
            number(&side["points"]) - number(&side["unreachable"])
        );
    }
}

/// The text of a page: the parts between tags, with character references replaced.
fn text_of(page: &str) -> String {
    let body = &page[page.find("<body>").expect("a body")..];
    let pieces = body.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    let text = pieces.collect::<Vec<_>>().join(" ").replace("&lt;", "<").replace("&gt;", ">");
    let text = text.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The report on assumptions has the same width, and a page with every line of its tables.
#[test]
fn reports_on_assumptions_fit_too() {
    let folder = scratch();
    let profile = folder.path().join("p").display().to_string();
    let path = kernel("vm", "");
    osier(&["run", "--profile", &profile, &path, "--", "150"]).with_status(0);
    let command = ["report", &path, "--speculate", &profile, "--every", "--visits", "10"];
    let brief = osier(&command).with_status(0).stdout;
    assert!(brief.lines().count() <= 40, "{brief}");
    let text = osier(&[&command[..], &["--verbose"]].concat()).with_status(0).stdout;
    let lines = || brief.lines().chain(text.lines());
    assert!(lines().all(|line| line.chars().count() <= 80), "{brief}\n{text}");
    let page = osier(&[&command[..], &["--format", "html"]].concat()).with_status(0).stdout;
    let shown = text_of(&page);
    let tables = text.split("\n\n").skip(2).filter(|part| !part.starts_with("exits, %"));
    let lines: Vec<&str> = tables.flat_map(str::lines).collect();
    assert!(lines.len() > 12, "{text}");
    for line in lines {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        // The text shortens names of functions.
        assert!(words.contains('…') || shown.contains(&words), "{line}");
    }
}
