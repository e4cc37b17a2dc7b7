//! The trial of the checker and the oracles under a small budget, and a test that every seeded bug
//! has its place in the sources. `docs/testing.md` holds the tables of the whole trial.

use ir::seeded::{Area, Bug, seeded};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[path = "../examples/trial/cases.rs"]
mod cases;
#[path = "../examples/trial/output.rs"]
mod output;
#[path = "../examples/trial/p2.rs"]
mod p2;

/// The sources that hold seeded bugs, as one text, without the list of the bugs.
fn sources() -> String {
    let mut text = String::new();
    let mut work: Vec<PathBuf> = ["ir/src", "passes/src", "osr/src", "jit/src"]
        .map(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f))
        .into();
    while let Some(path) = work.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder of sources");
            work.extend(entries.map(|e| e.expect("a folder of sources").path()));
        } else if !path.ends_with("ir/src/seeded.rs") {
            text.push_str(&std::fs::read_to_string(&path).expect("a source"));
        }
    }
    text
}

#[test]
fn every_bug_has_its_place() {
    assert!(Bug::ALL.len() >= 60, "{} bugs", Bug::ALL.len());
    let sources = sources();
    let mut areas: BTreeMap<Area, u32> = BTreeMap::new();
    for bug in Bug::ALL {
        *areas.entry(bug.area()).or_default() += 1;
        let condition = format!("Bug::{}", bug.name());
        let ends = |rest: &&str| !rest.starts_with(|c: char| c.is_alphanumeric());
        assert!(
            sources.split(&condition).skip(1).any(|rest| ends(&rest)),
            "{condition} is nowhere"
        );
    }
    assert!(areas.len() >= 13, "areas: {areas:?}");
    assert!(areas.values().all(|count| *count >= 6), "at least six in each area: {areas:?}");
}

#[test]
fn no_bug_is_switched_on() {
    assert!(!Bug::ALL.iter().any(|bug| seeded(*bug)));
}

#[test]
fn no_damaged_entry_escapes_the_checker() {
    let settings = p2::Settings { damages: 12_000, seed: 0, size: 40, rounds: 2 };
    let (table, _) = p2::measure(settings);
    let all = p2::total(&table);
    assert_eq!(all.escaped, 0, "accepted by the checker, and wrong in a run");
    assert_eq!(all.damages, all.refuted + all.undecided + all.accepted);
    assert!(all.killed >= 2000, "only {} of {} were wrong in a run", all.killed, all.damages);
    assert!(
        all.killed_refuted * 10 >= all.killed * 9,
        "{} of {} refuted",
        all.killed_refuted,
        all.killed
    );
    let missing: Vec<_> =
        verify::damage::Damage::ALL.iter().filter(|kind| !table.contains_key(kind)).collect();
    assert!(missing.is_empty(), "kinds of damage that were never done: {missing:?}");
    assert!(
        all.sampled_state * 2 > all.sampled_output * 3,
        "state {}, output {} of {}",
        all.sampled_state,
        all.sampled_output,
        all.sampled
    );
}
