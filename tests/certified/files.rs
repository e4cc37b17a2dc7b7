//! Mappings written to files and read back, intact and damaged.

use super::*;
use osier::exchange;
use proptest::prelude::{Strategy, any};
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

fn exported(module: &Module, derived: &Derived) -> String {
    let (_, base) = module.defined().next().expect("one function");
    let certified = prove(module, base, derived, &[Level::Avail], &mut NoObserver);
    let made = certified.highest();
    let mut text = exchange::header("O1", "avail", 1);
    let mappings = [&made.before, &made.after].map(|m| (&*m.mapping, &m.facts));
    exchange::write(&mut text, [base, &derived.function], &[], &certified.certificate, mappings);
    text
}

/// The counts of the verdicts on a text, or the error of reading it.
fn judged(
    module: &Module,
    derived: &Derived,
    text: &str,
) -> Result<CheckCounts, exchange::ReadError> {
    let (_, base) = module.defined().next().expect("one function");
    let file = exchange::read(text)?;
    let mut checked = CheckCounts::default();
    for function in &file.functions {
        let parts = function.parts([base, &derived.function])?;
        checked.merge(&recheck(module, base, &derived.function, &parts, &mut NoObserver).counts);
    }
    Ok(checked)
}

#[test]
fn an_exported_mapping_reads_back_and_holds() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let checked = judged(&module, &derived, &text).expect("a written mapping can be read");
    assert!(checked.held > 20, "{checked:?}");
    assert_eq!((checked.dropped.len(), checked.refuted), (0, 0), "{checked:?}");
}

#[test]
fn a_truncated_file_is_refused_with_its_line() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let lines = text.lines().count();
    for cut in 0..text.len() - 1 {
        if !text.is_char_boundary(cut) {
            continue;
        }
        // The header has the number of functions, so that even a cut between two is an error.
        match judged(&module, &derived, &text[..cut]) {
            Ok(checked) => panic!("cut at {cut}: {checked:?}"),
            Err(error) => {
                assert!(error.line <= lines + 1 && !error.what.is_empty(), "cut at {cut}: {error}")
            }
        }
    }
}

/// No test would find a wrong number here.
#[test]
fn functions_without_inlined_code_tell_no_number() {
    let (module, derived) = sample();
    let text = exported(&module, &derived).replacen("\nversion", "\nnumber 0\nversion", 1);
    let error = judged(&module, &derived, &text).expect_err("no number is expected");
    assert!(error.what.contains("tell a number") && error.line == 5, "{error}");
}

#[test]
fn a_mapping_for_another_version_is_refused() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let (_, base) = module.defined().next().expect("one function");
    let other = derive(
        &module,
        base,
        &passes::parse("simplify").expect("a pass"),
        Vigilance::On,
        &mut NoObserver,
    );
    let error = judged(&module, &other, &text).expect_err("the version after is another");
    assert!(error.what.contains("another version after"), "{error}");
}

/// A word of the file, and how it changes: by its line, its index in the line, and a choice.
fn damages() -> impl Strategy<Value = (Index, Index, u32)> {
    (any::<Index>(), any::<Index>(), 0..4u32)
}

/// Replaces one word of a line by one that is nearly right.
fn damaged(text: &str, line: Index, word: Index, choice: u32) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = lines.iter().position(|l| l.starts_with("term ")).expect("a certificate has terms");
    let line = line.get_mut(&mut lines[first..]);
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let word = word.get_mut(&mut words);
    *word = match (word.parse::<i64>(), choice) {
        (Ok(number), 0) => (number - 1).to_string(),
        (Ok(number), _) => (number + 1).to_string(),
        (Err(_), 0) => format!("{word},0"),
        (Err(_), 1) => "-".to_owned(),
        (Err(_), 2) => "v0".to_owned(),
        (Err(_), _) => String::new(),
    };
    *line = words.join(" ");
    lines.join("\n") + "\n"
}

#[test]
fn damage_to_a_file_is_refused_or_drops_entries_and_never_panics() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let whole = judged(&module, &derived, &text).expect("readable").held;
    let (refused, dropped) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: 3000, failure_persistence: None, ..Config::default() };
    let made = TestRunner::new(config).run(&damages(), |(line, word, choice)| {
        match judged(&module, &derived, &damaged(&text, line, word, choice)) {
            Err(_) => refused.set(refused.get() + 1),
            Ok(checked) => dropped.set(dropped.get() + u64::from(checked.held < whole)),
        }
        Ok(())
    });
    made.unwrap_or_else(|failure| panic!("{failure}"));
    let (refused, dropped) = (refused.get(), dropped.get());
    assert!(refused > 500 && dropped > 500, "{refused} rejected, {dropped} with dropped entries");
}

#[test]
fn duplicate_points_and_false_counts_are_refused() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let entry = text.lines().find(|l| l.starts_with("entry ")).expect("an entry");
    let twice = text.replacen(entry, &format!("{entry}\n{entry}"), 1);
    let error = judged(&module, &derived, &twice).expect_err("the same point twice");
    assert!(error.what.contains("ascend"), "{error}");
    let announced = text.lines().find(|l| l.starts_with("mapping forward ")).expect("a mapping");
    let error =
        judged(&module, &derived, &text.replacen(announced, "mapping forward 4000000000", 1));
    assert!(error.expect_err("a false count").what.contains("announces 4000000000 entries"));
}

#[test]
fn a_million_steps_are_judged_quickly() {
    let (module, derived) = sample();
    let text = exported(&module, &derived);
    let entry = text.lines().find(|l| l.starts_with("entry ")).expect("an entry");
    let steps = "step const i32 i32 1 - - -\n".repeat(1_000_000);
    let long = text.replacen(&format!("{entry}\n"), &format!("{entry}\n{steps}"), 1);
    let checked = judged(&module, &derived, &long).expect("it can be read");
    assert!(checked.dropped.values().sum::<u64>() > 0, "steps without terms prove nothing");
}
