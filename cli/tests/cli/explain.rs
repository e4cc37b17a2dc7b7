//! `osier explain`: every syntax of a point, the keys of the JSON, and the agreement with the
//! listing.

use crate::harness::{file, kernel, osier, scratch};
use serde_json::Value;

const WINDOW: &[&str] = &[
    "explain",
    "cli/tests/cli/golden/window.oir",
    "--func",
    "f",
    "--pipeline",
    "sccp,cse,preheaders,licm",
];

fn window(args: &[&str]) -> Value {
    let ended = osier(&[WINDOW, args, &["--format", "json"]].concat()).with_status(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn a_point_may_be_written_in_several_ways() {
    let answer =
        |point: &str| window(&["--point", point, "--direction", "forward"])["answers"][0].take();
    let wanted = answer("body:1");
    assert_eq!(wanted["point"]["inst"], "inst11");
    for point in ["inst11", "%one", "body:1 inst11", "  body:1  "] {
        assert_eq!(answer(point), wanted, "{point}");
    }
    for (point, at) in [("body", "body:0"), ("%sum", "head:0"), ("%n", "entry:0")] {
        assert_eq!(answer(point)["point"]["at"], at, "{point}");
    }
    // A block and position followed by an instruction from elsewhere is not a point.
    osier(&[WINDOW, &["--point", "body:1 inst12"]].concat()).with_status(2);
}

#[test]
fn names_that_need_quotes_are_found_as_they_are_printed() {
    let folder = scratch();
    let text = "func @f(%\"a b\": i32) -> i32 {\n\"in 1:2\":\n  %\"c:3\" = add.i32 %\"a b\", %\"a b\"\n  return %\"c:3\"\n}\n";
    let path = file(&folder, "quoted.oir", text);
    for (point, at) in [
        ("%\"c:3\"", "\"in 1:2\":0"),
        ("%\"a b\"", "\"in 1:2\":0"),
        ("\"in 1:2\"", "\"in 1:2\":0"),
        ("\"in 1:2\":1", "\"in 1:2\":1"),
        ("\"in 1:2\":1 inst1", "\"in 1:2\":1"),
    ] {
        let args = ["explain", &path, "--func", "f", "--point", point, "--format", "json"];
        let json: Value = serde_json::from_str(&osier(&args).with_status(0).stdout).expect("JSON");
        assert_eq!(json["answers"][0]["point"]["at"], at, "{point}");
    }
}

#[test]
fn json_has_every_key_and_agrees_with_the_text() {
    let told = window(&["--point", "body:2"]);
    assert_eq!(
        (&told["schema"], &told["function"], &told["level"]),
        (&2.into(), &"f".into(), &"avail".into())
    );
    assert_eq!(told["asked"], "body:2");
    let answers = told["answers"].as_array().expect("a list");
    assert_eq!(
        answers.iter().map(|a| a["direction"].as_str()).collect::<Vec<_>>(),
        [Some("forward"), Some("backward")]
    );
    let back = &answers[1];
    assert_eq!((&back["status"], &back["why"]), (&"entry".into(), &Value::Null));
    let entry = &back["entry"];
    assert_eq!(entry["target"]["version"], "base");
    assert_eq!(entry["compute"][0]["code"], "const.i32 10");
    assert_eq!(
        (&entry["set"][0]["value"], &entry["set"][0]["from"]),
        (&"%ten".into(), &"$0".into())
    );
    assert_eq!(
        (&entry["kept"][0]["value"], &entry["kept"][0]["argument"]),
        (&"%d".into(), &true.into())
    );
    assert_eq!((&back["levels"]["live"], &back["levels"]["avail"]), (&false.into(), &true.into()));
    assert_eq!(back["levels"].get("pure"), Some(&Value::Null), "missing levels are null");
    let forward = window(&["--point", "%q", "--direction", "forward"])["answers"][0].take();
    assert_eq!((&forward["status"], &forward["entry"]), (&"none".into(), &Value::Null));
    assert_eq!(forward["why"]["reason"], "trap_not_reached");
    assert_eq!(forward["why"]["trap"]["inst"], "inst7");
    let blame = &forward["why"]["blame"];
    assert_eq!(
        (&blame["pass"], &blame["rule"], &blame["number"]),
        (&"licm".into(), &"invariant".into(), &4.into())
    );
    let tested = &forward["why"]["tested"];
    assert_eq!((&tested["mends"], &tested["also"]), (&true.into(), &Value::Array(Vec::new())));
    let never = window(&["--point", "never"]);
    let statuses: Vec<_> =
        never["answers"].as_array().expect("a list").iter().map(|a| a["status"].as_str()).collect();
    assert_eq!(statuses, [Some("unreachable"), Some("absent")]);
}

#[test]
fn explanations_agree_with_the_listing() {
    let path = kernel("sieve", "");
    let func = ["--func", "sieve"];
    let listing =
        osier(&[&["opt", &path, "--emit", "listing"][..], &func].concat()).with_status(0).stdout;
    let (forward, backward) =
        listing.split_at(listing.find("opt to base").expect("two directions"));
    for (text, direction) in [(forward, "forward"), (backward, "backward")] {
        let entries: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(" -> ")).collect();
        assert!(entries.len() > 10, "{text}");
        for (from, to) in entries.iter().step_by(7) {
            let to = to.split("  ;").next().expect("text before the comment");
            let asked = ["--point", from.trim(), "--direction", direction, "--format", "json"];
            let ended = osier(&[&["explain", &path][..], &func, &asked].concat()).with_status(0);
            let told: Value = serde_json::from_str(&ended.stdout).expect("JSON");
            let target = &told["answers"][0]["entry"]["target"];
            let target = format!(
                "{} {}",
                target["at"].as_str().expect("a place"),
                target["inst"].as_str().expect("an id")
            );
            assert_eq!(target, to, "{from}");
        }
    }
}

#[test]
fn a_listing_has_every_point() {
    let listing = osier(&["opt", WINDOW[1], "--emit", "listing"]).with_status(0).stdout;
    let forward = &listing[..listing.find("opt to base").expect("two directions")];
    let points = forward.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    assert_eq!(points.count(), 18, "{forward}");
    assert!(
        forward.contains("\n  never:0 inst3: unreachable  ; %lost = add.i32 %n, %d\n"),
        "{forward}"
    );
}

#[test]
fn json_of_inlined_code_has_every_key_and_agrees_with_the_listing() {
    let path = "docs/examples/called.oir";
    let command = |args: &[&str]| {
        let command = ["--func", "total", "--pipeline", "O3"];
        osier(&[args, &command[..]].concat()).with_status(0).stdout
    };
    let explained = |point: &str| -> Value {
        let told = command(&["explain", path, "--point", point, "--format", "json"]);
        serde_json::from_str(&told).expect("JSON")
    };
    let told = explained("block4:4");
    assert_eq!(
        (&told["schema"], &told["function"], &told["calls"], &told["level"]),
        (&2.into(), &"total".into(), &1.into(), &"avail".into())
    );
    let [up, down] = [0, 1].map(|at| &told["answers"][at]);
    assert_eq!((&up["status"], &up["why"]["reason"]), (&"absent".into(), &"absent".into()));
    assert_eq!(up["why"]["blame"]["pass"], "inline");
    assert_eq!((&up["entry"], &up["frames"]), (&Value::Null, &Value::Null));
    assert_eq!((&down["status"], &down["why"]), (&"entry".into(), &Value::Null));
    assert_eq!((&down["entry"], &down["step"]), (&Value::Null, &Value::Null));
    let path_of = |list: &Value| -> Vec<(String, bool)> {
        let list = list.as_array().expect("a list").iter();
        let one = |at: &Value| Some((at["function"].as_str()?.to_owned(), at["waits"].as_bool()?));
        list.map(|at| one(at).expect("an activation")).collect()
    };
    let expected = [("scaled".to_owned(), false), ("total".to_owned(), true)];
    assert_eq!(path_of(&down["code_of"]), expected);
    assert_eq!(path_of(&down["frames"]["frames"]), expected);
    let [inner, outer] = [0, 1].map(|at| &down["frames"]["frames"][at]);
    assert_eq!(
        (&inner["set"][0]["value"], &inner["set"][0]["from"]),
        (&"%at".into(), &"%v13".into())
    );
    assert_eq!(inner["set"][0]["defined"], "start:1 %at = shl.i32 %i, %two");
    assert_eq!((&inner["awaits"][0], &outer["awaits"][0]), (&Value::Null, &"%y".into()));
    assert_eq!(down["frames"]["price"]["values"], 6);
    assert_eq!(down["frames"]["price"]["kept_args"], 1);
    // Every entry of the listing, in both directions.
    let listing = command(&["opt", path, "--emit", "listing"]);
    let (forward, backward) = listing.split_at(listing.find("opt to frames").expect("both"));
    for (text, at) in [(forward, 0), (backward, 1)] {
        let entries: Vec<(&str, &str)> =
            text.lines().filter_map(|line| line.split_once(" -> ")).collect();
        assert!(entries.len() >= 10, "{text}");
        for (from, to) in entries {
            let told = explained(from.trim())["answers"][at].take();
            let frames = told["frames"]["frames"].as_array();
            let shown = match frames {
                None => vec![format!(
                    "{} {}",
                    word(&told["entry"]["target"], "at"),
                    word(&told["entry"]["target"], "inst")
                )],
                Some(frames) => frames.iter().map(frame).collect(),
            };
            assert_eq!(shown.join(" in "), to.split("  ;").next().expect("a place"), "{from}");
        }
    }
}

fn word(of: &Value, key: &str) -> String {
    of[key].as_str().expect("a word").to_owned()
}

/// An activation as listings print it.
fn frame(frame: &Value) -> String {
    let waits = if frame["waits"] == true { "within " } else { "" };
    let (at, inst) = (word(&frame["place"], "at"), word(&frame["place"], "inst"));
    format!("@{} {waits}{at} {inst}", word(frame, "function"))
}
