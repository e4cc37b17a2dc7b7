//! The checker on trial: it rejects each forgery by its check, and the soundness holes that were
//! found stay closed.

extern crate osier_check as check;

mod assume;
mod calls;
mod constants;
mod holes;
mod host_memory;
mod known;
mod large;
mod memory;
mod neighbors;
mod seal;
mod shared;
mod unproved;
mod wrong;

use check::relate;
use check::verdict::{Check, Options, Verdict};
use transition::Side;
use transition::certificate::EntryFacts;
use transition::mapping::Mapping;
use wrong::Wrong;

/// The verdicts on all entries, in both directions.
fn verdicts(wrong: &Wrong, options: Options) -> Vec<Verdict> {
    let versions = wrong.versions.as_ref();
    let relation = relate(&wrong.module, versions, &wrong.certificate, options);
    let judge = |side: Side| match &relation {
        Ok(relation) => {
            let armed = [&wrong.mappings[side.other()]];
            relation.judge(side, &wrong.mappings[side], &wrong.facts[side], &armed)
        }
        Err(verdict) => vec![*verdict; wrong.mappings[side].len()],
    };
    Side::BOTH.into_iter().flat_map(judge).collect()
}

#[test]
fn each_check_alone_stops_its_forgery() {
    let all = wrong::all();
    let mut failures = Vec::new();
    for wrong in &all {
        let full = verdicts(wrong, wrong.options);
        // The finding of an entry near an unproved anchor is the finding of the anchor.
        let of_anchor = wrong.check == Check::AnchorsProved;
        let names = |check: Check| check == wrong.check || of_anchor;
        let stopped = full.iter().any(|v| v.finding().is_some_and(|f| names(f.check)));
        // The check must be needed: without it, some entry of this forgery holds.
        let weak = verdicts(wrong, wrong.options.without(wrong.check));
        let passes = full.iter().zip(&weak).any(|(full, weak)| !full.holds() && weak.holds());
        if !stopped || !passes {
            failures.push(format!("{}: {}:\n  {full:?}\n  {weak:?}", wrong.check, wrong.what));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Every check has a forgery. A new check without one fails here.
    let composed = wrong::compose::all();
    let needed: Vec<Check> =
        all.iter().map(|w| w.check).chain(composed.iter().map(|w| w.check)).collect();
    for check in Check::ALL {
        assert!(needed.contains(check), "nothing needs {check}");
    }
}

/// Each wrong composition is refused, and by its check alone: without the check it is made, and a
/// certificate for its two ends refutes it. Replays refuse no composition: the check of replays
/// makes them a part of the composition.
#[test]
fn each_check_of_composition_alone_stops_its_forgery() {
    for wrong in wrong::compose::all() {
        let what = wrong.what;
        let is_right = |made: Option<Mapping>| match (wrong.check, made) {
            (Check::ComposeReplays, Some(made)) => {
                made.entries().all(|(_, entry)| !entry.replays.is_empty())
                    && !wrong.judged(made).iter().any(Verdict::is_refuted)
            }
            (_, made) => made.is_none(),
        };
        assert!(is_right(wrong.composed(None)), "{what}");
        for check in Check::ALL.iter().filter(|check| **check != wrong.check) {
            assert!(is_right(wrong.composed(Some(*check))), "{what}, without {check}");
        }
        let mapping = wrong.composed(Some(wrong.check)).expect(what);
        let verdicts = wrong.judged(mapping);
        assert!(verdicts.iter().any(Verdict::is_refuted), "{what}: {verdicts:?}");
    }
}

#[test]
fn weakened_checkers_do_not_panic() {
    let mut held = 0;
    // A weakened checker sees forms that the check left out would have excluded.
    for wrong in wrong::all() {
        for check in Check::ALL {
            let verdicts = verdicts(&wrong, wrong.options.without(*check));
            held += verdicts.iter().filter(|v| v.holds()).count();
        }
    }
    assert!(held > 0, "the checks left out let something through");
}

#[test]
fn unused_facts_change_nothing() {
    let mut wrong = wrong::all()
        .into_iter()
        .find(|w| w.check == Check::LivePlus)
        .expect("there is one for each check");
    let plain = verdicts(&wrong, wrong.options);
    wrong.facts.before[0] =
        EntryFacts { here: vec![0; 9].into(), far: vec![1; 9].into(), replays: Box::default() };
    assert_eq!(verdicts(&wrong, wrong.options), plain);
}

/// The forgeries about declared rules are near a right pair.
#[test]
fn a_declared_rule_proves_a_pair() {
    let right = wrong::declared::right();
    let found = verdicts(&right, Options::default());
    assert!(!found.is_empty() && found.iter().all(|v| *v == Verdict::Holds), "{found:?}");
}
