//! The trial of the checker and the oracles under a small budget. `docs/testing.md` holds the
//! tables of the whole trial.

#[path = "../examples/trial/cases.rs"]
mod cases;
#[path = "../examples/trial/output.rs"]
mod output;
#[path = "../examples/trial/p2.rs"]
mod p2;

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
