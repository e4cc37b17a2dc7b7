//! The checker on trial: it rejects each forgery by its check, and the soundness holes that were
//! found stay closed.

extern crate osier_verify as verify;

mod holes;
mod large;
mod passed;
mod wrong;

use check::relate;
use check::verdict::{Check, Options, Verdict};
use transition::Side;
use transition::certificate::EntryFacts;
use wrong::Wrong;

/// The verdicts on all entries, in both directions.
fn verdicts(wrong: &Wrong, options: Options) -> Vec<Verdict> {
    let [before, after] = &wrong.versions;
    let relation = relate(&wrong.module, [before, after], &wrong.certificate, options);
    let judge = |side: usize| match &relation {
        Ok(relation) => {
            let armed = [&wrong.mappings[1 - side]];
            relation.judge(Side::BOTH[side], &wrong.mappings[side], &wrong.facts[side], &armed)
        }
        Err(verdict) => vec![*verdict; wrong.mappings[side].len()],
    };
    judge(0).into_iter().chain(judge(1)).collect()
}

#[test]
fn each_check_alone_stops_what_is_wrong() {
    let all = wrong::all();
    let mut failures = Vec::new();
    for wrong in &all {
        let full = verdicts(wrong, wrong.options);
        let stopped = full.iter().any(|v| v.finding().is_some_and(|f| f.check == wrong.check));
        // The check must be needed: without it, some entry of this forgery holds.
        let weak = verdicts(wrong, Options { without: Some(wrong.check), ..wrong.options });
        let passes = full.iter().zip(&weak).any(|(full, weak)| !full.holds() && weak.holds());
        if !stopped || !passes {
            failures.push(format!("{}: {}:\n  {full:?}\n  {weak:?}", wrong.check, wrong.what));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Every check has a forgery. A new check without one fails here.
    for check in Check::ALL {
        assert!(all.iter().any(|wrong| wrong.check == *check), "nothing needs {check}");
    }
}

#[test]
fn weakened_checkers_do_not_panic() {
    let mut held = 0;
    // A weakened checker sees forms that the check left out would have excluded.
    for wrong in wrong::all() {
        for check in Check::ALL {
            let verdicts = verdicts(&wrong, Options { without: Some(*check), ..wrong.options });
            held += verdicts.iter().filter(|v| v.holds()).count();
        }
    }
    assert!(held > 0, "the checks left out let something through");
}

#[test]
fn facts_that_nobody_needs_change_nothing() {
    let mut wrong = wrong::all()
        .into_iter()
        .find(|w| w.check == Check::LivePlus)
        .expect("there is one for each check");
    let plain = verdicts(&wrong, wrong.options);
    wrong.facts[0][0] =
        EntryFacts { here: vec![0; 9].into(), far: vec![1; 9].into(), replays: Box::default() };
    assert_eq!(verdicts(&wrong, wrong.options), plain);
}
