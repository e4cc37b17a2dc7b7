//! Entries that several mappings share, or that follow one another. The checker judges each by
//! itself, for its own facts and armed mappings.

use crate::wrong::{Draft, Wrong, step};
use check::relate;
use check::verdict::Check;
use ir::{Imm, Opcode, Type};
use transition::Side;
use transition::Side::{After, Before};
use transition::certificate::EntryFacts;
use transition::mapping::{Mapping, Operand};

const X: &str = "(%x: i32, %y: i32) -> i32";

fn of(check: &'static str, verdicts: &[check::verdict::Verdict]) -> Vec<Option<Check>> {
    assert!(!verdicts.is_empty(), "{check}");
    verdicts.iter().map(|v| v.finding().map(|f| f.check)).collect()
}

/// The first entry of a mapping, in a mapping of its own that shares it.
fn sharing(wrong: &Wrong, side: Side) -> Mapping {
    let versions = &wrong.versions;
    let mut mapping = Mapping::new(&versions[side], &versions[side.other()]);
    let (point, entry) = wrong.mappings[side].shared_entries().next().expect("an entry");
    mapping.insert_shared(point, entry.clone());
    mapping
}

/// A sum that an entry computes.
fn computed() -> Draft {
    let text = format!("{X} {{\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}}\n");
    let mut draft = Draft::new(&text, &text);
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 1)];
    let (x, y) = (draft.term(Before, "x"), draft.term(Before, "y"));
    let sum = draft.op(Opcode::Add, Type::I32, Imm::None, &[x, y]);
    let add = step(Opcode::Add, Type::I32, &[draft.from(Before, "x"), draft.from(Before, "y")]);
    draft.entry(Before, points, vec![(add, [sum; 2])], &[("s", Operand::Step(0))]);
    draft
}

#[test]
fn a_shared_entry_is_judged_for_its_own_facts() {
    let wrong = computed().done(Check::StepTerm, "a sum with the facts of another");
    let forged = vec![EntryFacts { here: [0].into(), far: [0].into(), replays: Box::default() }];
    let right = &wrong.facts.before;
    for order in [[right, &forged, right], [&forged, right, &forged]] {
        let relation =
            relate(&wrong.module, wrong.versions.as_ref(), &wrong.certificate, wrong.options);
        let relation = relation.expect("equal versions");
        for facts in order {
            let verdicts = relation.judge(Before, &sharing(&wrong, Before), facts, &[]);
            let expected = (facts == &forged).then_some(Check::StepTerm);
            assert_eq!(of("facts", &verdicts), [expected]);
        }
    }
}

/// Entries at one point, without steps: the facts are the same, and the entries differ.
#[test]
fn another_entry_at_the_point_is_judged() {
    let text = format!("{X} {{\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}}\n");
    let with = |from: &str| {
        let mut draft = Draft::new(&text, &text);
        let point = draft.at(Before, "entry", 1);
        draft.entry(Before, [point; 2], Vec::new(), &[("s", draft.from(Before, from))]);
        draft.done(Check::AssignValue, "an argument for a sum")
    };
    let (right, other) = (with("s"), with("x"));
    let relation =
        relate(&right.module, right.versions.as_ref(), &right.certificate, right.options);
    let relation = relation.expect("equal versions");
    let mut changed = Mapping::new(&right.versions.before, &right.versions.after);
    let (point, entry) = other.mappings.before.entries().next().expect("an entry");
    changed.insert(point, entry.clone());
    // The first entry is judged again after the other entry, which is not remembered.
    for _ in 0..2 {
        let judge = |m: &Mapping| of("entry", &relation.judge(Before, m, &right.facts.before, &[]));
        assert_eq!(judge(&right.mappings.before), [None]);
        assert_eq!(judge(&changed), [Some(Check::AssignValue)]);
    }
}

/// An entry that fails a check fails it again, with every check.
#[test]
fn a_failed_entry_fails_again() {
    let text = format!("{X} {{\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}}\n");
    for check in [Check::AssignValue, Check::Kept] {
        let mut draft = Draft::new(&text, &text);
        let point = draft.at(Before, "entry", 1);
        let from = if check == Check::Kept { "s" } else { "x" };
        draft.entry(Before, [point; 2], Vec::new(), &[("s", draft.from(Before, from))]);
        let x = draft.value(Before, "x");
        let kept = check == Check::Kept;
        draft.change_entry(Before, |entry| {
            entry.requires.retain(|v| !kept || *v != x);
            entry.kept.extend((kept).then_some(x));
        });
        let wrong = draft.done(check, "judged twice");
        let relation =
            relate(&wrong.module, wrong.versions.as_ref(), &wrong.certificate, wrong.options);
        let relation = relation.expect("equal versions");
        for _ in 0..3 {
            let facts = &wrong.facts.before;
            let verdicts = relation.judge(Before, &sharing(&wrong, Before), facts, &[]);
            assert_eq!(of("again", &verdicts), [Some(check)]);
        }
    }
}

/// One entry for both directions. It is right in one direction alone.
#[test]
fn an_entry_is_judged_in_each_direction() {
    let text = |s: &str| {
        format!("{X} {{\nentry:\n%s = {s}.i32 %x, %y\n%t = mul.i32 %x, %y\nreturn %x\n}}\n")
    };
    let mut draft = Draft::new(&text("add"), &text("mul"));
    let point = draft.at(Before, "entry", 2);
    let copies = [("s", draft.from(Before, "t")), ("x", draft.from(Before, "x"))];
    draft.entry(Before, [point; 2], Vec::new(), &copies);
    let wrong = draft.done(Check::AssignValue, "a product for a sum");
    let relation =
        relate(&wrong.module, wrong.versions.as_ref(), &wrong.certificate, wrong.options);
    let relation = relation.expect("the sums are dead");
    let (point, entry) = wrong.mappings.before.shared_entries().next().expect("an entry");
    let mut back = Mapping::new(&wrong.versions.after, &wrong.versions.before);
    back.insert_shared(point, entry.clone());
    let facts = &wrong.facts.before;
    for _ in 0..2 {
        assert_eq!(
            of("forward", &relation.judge(Before, &wrong.mappings.before, facts, &[])),
            [None]
        );
        let verdicts = relation.judge(After, &back, facts, &[]);
        assert_eq!(of("back", &verdicts), [Some(Check::AssignValue)]);
    }
}

/// The version after returns the sum, and the entries back at the same point require `%x` or `%y`.
fn with_armed(requires: &[&str]) -> (Wrong, Vec<Mapping>) {
    let text = format!("{X} {{\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}}\n");
    let mut draft = Draft::new(&text, &text);
    let point = draft.at(Before, "entry", 1);
    draft.entry(Before, [point; 2], Vec::new(), &[("s", draft.from(Before, "s"))]);
    let backs = requires.iter().map(|name| {
        let mut back = Draft::new(&text, &text);
        let copies = [*name, "s"].map(|name| (name, back.from(After, name)));
        back.entry(After, [point; 2], Vec::new(), &copies);
        back.done(Check::LivePlus, "an entry back").mappings.after
    });
    let backs = backs.collect();
    (draft.done(Check::LivePlus, "armed with others"), backs)
}

/// The relation remembers the entry. The values that it has to provide depend on the armed
/// mappings.
#[test]
fn a_shared_entry_provides_what_each_armed_mapping_requires() {
    let (wrong, backs) = with_armed(&["x", "s"]);
    let relation =
        relate(&wrong.module, wrong.versions.as_ref(), &wrong.certificate, wrong.options);
    let relation = relation.expect("equal versions");
    let lacks = [Some(Check::LivePlus)];
    for _ in 0..2 {
        let judge = |armed: &[&Mapping]| {
            let (mapping, facts) = (sharing(&wrong, Before), &wrong.facts.before);
            of("armed", &relation.judge(Before, &mapping, facts, armed))
        };
        assert_eq!(judge(&[]), [None]);
        assert_eq!(judge(&[&backs[0]]), lacks);
        assert_eq!(judge(&[&backs[1]]), [None]);
        assert_eq!(judge(&[&backs[0], &backs[1]]), lacks);
        assert_eq!(judge(&[&backs[1], &backs[0]]), lacks);
    }
}

/// The entry back requires `%y`, which the text still reads behind an edge that no run takes. So it
/// is live at the source point of the entry back, and in no run without that entry.
#[test]
fn an_armed_value_that_excluded_code_reads_has_to_be_provided() {
    let text = format!(
        "{X} {{\nentry:\n%k = const.i32 1\nbr_if %k, left, right\nleft:\nreturn %x\n\
         right:\nreturn %y\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let point = draft.at(Before, "entry", 1);
    let copies = ["x", "k"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, [point; 2], Vec::new(), &copies);
    let back = ["x", "y", "k"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, [point; 2], Vec::new(), &back);
    let wrong = draft.done(Check::LivePlus, "a value that only an entry back reads");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    assert_eq!(of("excluded", &verdicts), [Some(Check::LivePlus), None]);
}

/// Two values that each armed entry requires at its own point. That the first entry makes a value
/// live above says nothing about the second entry without it.
#[test]
fn uses_by_armed_entries_do_not_hide_each_other() {
    let text = format!(
        "{X} {{\nentry:\n%s = add.i32 %x, %x\n%t = add.i32 %s, %x\n%u = add.i32 %t, %x\n\
         return %u\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let at = [1, 2].map(|index| draft.at(After, "entry", index));
    for (point, first) in at.into_iter().zip(["s", "t"]) {
        let copies = [first, "x", "y"].map(|name| (name, draft.from(After, name)));
        draft.entry(After, [point; 2], Vec::new(), &copies);
        let copies = [first, "x"].map(|name| (name, draft.from(Before, name)));
        draft.entry(Before, [point; 2], Vec::new(), &copies);
    }
    let wrong = draft.done(Check::LivePlus, "a value that entries back read");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    let lacks = Some(Check::LivePlus);
    assert_eq!(of("both", &verdicts), [lacks, lacks, None, None]);
}

/// The first entry lands behind the definition of `%s`, the second entry in front.
#[test]
fn a_value_available_further_down_is_not_available_above() {
    let text = format!(
        "{X} {{\nentry:\n%s = add.i32 %x, %y\n%t = mul.i32 %x, %y\n%u = add.i32 %s, %t\n\
         return %u\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let points = [1, 2].map(|index| draft.at(Before, "entry", index));
    let landings = [1, 0].map(|index| draft.at(After, "entry", index));
    for (point, landing) in points.into_iter().zip(landings) {
        let copies = ["x", "y", "s"].map(|name| (name, draft.from(Before, name)));
        draft.entry(Before, [point, landing], Vec::new(), &copies);
    }
    let wrong = draft.done(Check::AssignShape, "a value given before its definition");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    assert_eq!(of("landing", &verdicts), [None, Some(Check::AssignShape)]);
}

/// The first entry lists `%s` among the values it reads. The second entry reads `%s`, but does not
/// list it.
#[test]
fn each_entry_lists_its_own_values() {
    let text = format!("{X} {{\nentry:\n%s = add.i32 %x, %y\n%t = mul.i32 %s, %y\nreturn %t\n}}\n");
    let mut draft = Draft::new(&text, &text);
    for index in [1, 2] {
        let points = [draft.at(Before, "entry", index), draft.at(After, "entry", 1)];
        let copies = ["s", "y"].map(|name| (name, draft.from(Before, name)));
        draft.entry(Before, points, Vec::new(), &copies);
    }
    let s = draft.value(Before, "s");
    draft.change_entry(Before, |entry| {
        entry.requires.retain(|v| *v != s);
        entry.kept.retain(|v| *v != s);
    });
    let wrong = draft.done(Check::StepOrder, "a value that the entry does not list");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    assert_eq!(of("listed", &verdicts), [None, Some(Check::StepOrder)]);
}

/// The sides of a pair have availability of their own: `%s` is a value of the first block in one
/// version, and of the second block in the other version.
#[test]
fn availability_in_one_version_says_nothing_about_the_other() {
    let text = |first: &str, second: &str| {
        format!(
            "{X} {{\nentry:\n{first}\njump next\nnext:\n{second}\n%u = add.i32 %y, %x\nreturn %u\n}}\n"
        )
    };
    let (sum, pad) = ("%s = add.i32 %x, %y", "%p = const.i32 0");
    let mut draft = Draft::new(&text(sum, pad), &text(pad, sum));
    let points = [draft.at(Before, "next", 1), draft.at(After, "next", 0)];
    let names = ["x", "y", "s"];
    let copies = names.map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, points, Vec::new(), &copies);
    let wrong = draft.done(Check::AssignShape, "a value given before its definition");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    assert_eq!(of("sides", &verdicts), [Some(Check::AssignShape)]);
}

/// `%s` is available throughout `on`, and nowhere in `right`, however often an entry needs it.
#[test]
fn a_value_available_in_one_block_is_not_available_in_another() {
    let text = format!(
        "{X} {{\nentry:\nbr_if %x, left, right\nleft:\n%s = add.i32 %x, %y\njump on\n\
         on:\n%a = call @ask(%s)\nreturn %a\n\
         right:\n%b = call @ask(%y)\n%c = call @ask(%b)\nreturn %y\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let on = draft.at(Before, "on", 0);
    draft.entry(Before, [on; 2], Vec::new(), &[("s", draft.from(Before, "s"))]);
    let s = draft.value(Before, "s");
    for (index, name) in [(0, "y"), (1, "y")] {
        let point = draft.at(Before, "right", index);
        draft.entry(Before, [point; 2], Vec::new(), &[(name, draft.from(Before, name))]);
        draft.change_entry(Before, |entry| {
            entry.requires.push(s);
            entry.kept.push(s);
        });
    }
    let wrong = draft.done(Check::Requires, "a value of another way");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    let fails = Some(Check::Requires);
    assert_eq!(of("ways", &verdicts), [None, fails, fails]);
}

/// The armed entry starts in a later block, so the value is live through the block in between.
#[test]
fn a_value_that_an_armed_entry_of_a_later_block_reads_has_to_be_provided() {
    let text = format!(
        "{X} {{\nentry:\n%a = call @ask(%x)\njump next\nnext:\n%b = call @ask(%a)\nreturn %b\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let points = [draft.at(Before, "entry", 0), draft.at(After, "next", 0)];
    draft.entry(Before, [points[0]; 2], Vec::new(), &[("x", draft.from(Before, "x"))]);
    let copies = ["a", "y"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, [points[1]; 2], Vec::new(), &copies);
    let wrong = draft.done(Check::LivePlus, "a value that an entry back reads later");
    let verdicts = crate::verdicts(&wrong, wrong.options);
    assert_eq!(of("later", &verdicts), [Some(Check::LivePlus), None]);
}
