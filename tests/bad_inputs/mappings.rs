//! Exported mappings and their certificates, each wrong in one way.

use ir::Module;
use osier::driver::{CheckCounts, Derived, NoObserver, Vigilance, derive, prove};
use osier::exchange;
use osier::exchange::recheck;
use osier::{Format, load};
use osr::Level;
use passes::Pipeline;

struct Sample {
    module: Module,
    derived: Derived,
    text: String,
}

/// The mappings of a program with a loop and with instructions to hoist, to fold and to merge.
fn sample() -> Sample {
    let module = load(Format::Oir, include_bytes!("../../cli/tests/cli/golden/sum.oir"))
        .expect("well-formed");
    let (_, base) = module.defined().next().expect("a function");
    let derived = derive(&module, base, &Pipeline::default(), Vigilance::On, &mut NoObserver);
    let certified = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let made = certified.highest();
    let mut text = exchange::header("O1", "avail", 1);
    let mappings = [&made.before, &made.after].map(|m| (&*m.mapping, &m.facts));
    exchange::write(&mut text, [base, &derived.function], &[], &certified.certificate, mappings);
    Sample { module, derived, text }
}

impl Sample {
    fn judged(&self, text: &str) -> Result<CheckCounts, String> {
        let (_, base) = self.module.defined().next().expect("a function");
        let wrong = |error: exchange::ReadError| format!("{}: {}", error.line, error.what);
        let file = exchange::read(text).map_err(wrong)?;
        let mut checked = CheckCounts::default();
        for function in &file.functions {
            let parts = function.parts([base, &self.derived.function]).map_err(wrong)?;
            let optimized = &self.derived.function;
            let found = recheck(&self.module, base, optimized, &parts, &mut NoObserver);
            checked.merge(&found.counts);
        }
        Ok(checked)
    }

    /// The first line that starts with this text and satisfies `is_it`.
    fn line(&self, start: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut lines = self.text.lines().filter(|line| line.starts_with(start));
        lines
            .find(|line| is_it(line))
            .unwrap_or_else(|| panic!("no line {start}:\n{}", self.text))
            .to_owned()
    }

    /// The last entry of the forward mapping.
    fn last_entry(&self) -> String {
        let forward = self.text.split("mapping backward").next().expect("a part before it");
        forward.lines().rfind(|line| line.starts_with("entry ")).expect("an entry").to_owned()
    }

    fn with(&self, line: &str, instead: &str) -> String {
        assert!(self.text.contains(&format!("{line}\n")), "{line}");
        self.text.replacen(&format!("{line}\n"), &format!("{instead}\n"), 1)
    }
}

/// A line with one word replaced.
fn word(line: &str, index: usize, by: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    words[index] = by;
    words.join(" ")
}

#[test]
fn unreadable_mappings_are_refused_with_their_line() {
    let sample = sample();
    let term = sample.line("term ", |_| true);
    let anchor = sample.line("anchor ", |_| true);
    let entry = sample.line("entry ", |_| true);
    let same = sample.line("same ", |_| true);
    let cases = [
        (
            sample.text.replacen("osier-mapping 3", "osier-mapping 2", 1),
            "1: expected `osier-mapping 3`",
        ),
        (sample.with(&anchor, "anchor 4294967295"), "4294967295"),
        (sample.with(&anchor, "anchor 99999999999999999999"), "99999999999999999999"),
        (sample.with(&anchor, "anchor -1"), "-1"),
        (sample.with(&term, &word(&term, 4, "rule:no-such-rule:0:-:-")), "no-such-rule"),
        (sample.with(&term, &word(&term, 4, "because")), "because"),
        (sample.with(&entry, &format!("{entry}\n{entry}")), "ascend"),
        (sample.with(&entry, "entry"), "the line ends too early"),
        (sample.with(&same, &format!("{same}\n{same}")), "announces"),
        (sample.with(&same, "same 1,1 -"), "%v1 is among the values already"),
        (sample.with(&same, "same - 1"), "%v1 is not among the values"),
        (sample.with(&same, "same 1"), "the line ends too early"),
        (sample.with(&entry, &format!("{entry} x")), "unexpected `x`"),
        (format!("{}end\n", sample.text), "expected `function NAME`"),
        (String::new(), "the file ends where `osier-mapping 3` is expected"),
        ("\0".repeat(100), "1: expected"),
    ];
    for (text, cause) in cases {
        let message = sample.judged(&text).expect_err("it is wrong");
        assert!(message.contains(cause) && message.len() < 300, "{message}");
    }
}

/// A file lists unchanged values once for many entries. A short file must not stand for more values
/// than memory holds.
#[test]
fn a_short_file_that_stands_for_very_many_values_is_refused() {
    let message = refused_list(7000, "");
    assert!(message.contains("assign more than 268435456 values to themselves"), "{message}");
}

/// Entries of values that no store takes are not packed, so fewer of them are too many.
#[test]
fn a_short_file_of_entries_that_no_store_takes_is_refused() {
    let message = refused_list(1000, "assign 50000 v4000000000\n");
    assert!(message.contains("assign more than 33554432 values to themselves"), "{message}");
}

/// The error about a file of `entries` entries. Each assigns 40,000 values to themselves, and has
/// the given lines.
fn refused_list(entries: usize, lines: &str) -> String {
    let sample = sample();
    let values: Vec<String> = (0..40_000).map(|n| n.to_string()).collect();
    let list: String = (0..entries).map(|n| format!("entry {n} {n} -\n{lines}")).collect();
    let begin = sample.text.find("mapping forward").expect("a mapping");
    let (before, rest) = sample.text.split_at(begin);
    let after = &rest[rest.find("mapping backward").expect("another mapping")..];
    let same = values.join(",");
    let text = format!("{before}mapping forward {entries}\nsame {same} -\n{list}{after}");
    assert!(text.len() < 1_000_000);
    sample.judged(&text).expect_err("too many values")
}

#[test]
fn wrong_mappings_are_rejected_by_the_named_check() {
    let sample = sample();
    let whole = sample.judged(&sample.text).expect("readable");
    assert!(whole.held > 20 && whole.dropped.is_empty());
    let assign = sample.line("assign ", |_| true);
    // The last entry of its mapping: source points must ascend.
    let entry = sample.last_entry();
    let computed = sample.line("term ", |line| line.contains(" add "));
    let id = computed.split(' ').nth(1).expect("its number").to_owned();
    let cases = [
        (
            "ids of instructions that there are not",
            sample.with(&entry, &word(&entry, 1, "4000000")),
            "source-point",
        ),
        (
            "a landing that there is not",
            sample.with(&entry, &word(&entry, 2, "4000000")),
            "target-point",
        ),
        (
            "values out of scope",
            sample.with(&entry, &format!("{entry}\nrequires 4000000")),
            "requires",
        ),
        (
            "a value assigned that there is not",
            sample.with(&assign, &word(&assign, 1, "4000000")),
            "assign-shape",
        ),
        ("a term of itself", sample.with(&computed, &cyclic(&computed, &id)), "term-order"),
    ];
    for (what, text, check) in cases {
        match sample.judged(&text) {
            Ok(checked) => {
                assert!(checked.held < whole.held, "{what}: {checked:?}");
                assert!(checked.dropped.contains_key(check), "{what}: {checked:?}");
            }
            Err(message) => panic!("{what}: {message}"),
        }
    }
}

/// A term line with every operand replaced by the term itself.
fn cyclic(line: &str, id: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let kept = words.len() - 1;
    let operands = words[kept].split(',').map(|_| id).collect::<Vec<_>>().join(",");
    [&words[..kept], &[&operands]].concat().join(" ")
}

#[test]
fn a_mapping_of_another_function_or_version_is_refused() {
    let sample = sample();
    let text =
        "func @sum(%n: i32, %k: i32) -> i32 {\nentry:\n  %p = mul.i32 %n, %k\n  return %p\n}\n";
    let module = load(Format::Oir, text.as_bytes()).expect("well-formed");
    let (_, base) = module.defined().next().expect("a function");
    let derived = derive(&module, base, &Pipeline::default(), Vigilance::On, &mut NoObserver);
    let other = Sample { module, derived, text: String::new() };
    let message = other.judged(&sample.text).expect_err("another function");
    assert!(
        message.contains("the file describes another version before of the function"),
        "{message}"
    );
}
