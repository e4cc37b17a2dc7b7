//! Entries that follow one another and list nearly the same values. The checker looks at the
//! differences of their lists, and rejects an entry that is wrong in the part that it has in common
//! with a right entry.

use crate::wrong::{Draft, Wrong, step};
use check::verdict::{Check, Verdict};
use ir::{Imm, Opcode, Point, Type, Value};
use transition::Side::{After, Before};
use transition::mapping::{Entry, EntryStore, Mapping, Operand};

/// Entries between equal versions. Each has a source point, a landing point and the values copied
/// to themselves. `forge` changes the last entry.
fn verdicts(
    text: &str,
    check: Check,
    entries: &[(&str, [usize; 2], &[&str])],
    forge: impl FnOnce(&mut Entry, &dyn Fn(&str) -> Value),
) -> Vec<Option<Check>> {
    let text = format!("(%x: i32, %y: i32, %z: i32) -> i32 {{\n{text}}}\n");
    let mut draft = Draft::new(&text, &text);
    for (block, [from, to], names) in entries {
        let points: [Point; 2] = [draft.at(Before, block, *from), draft.at(After, block, *to)];
        let copies: Vec<_> = names.iter().map(|name| (*name, draft.from(Before, name))).collect();
        draft.entry(Before, points, Vec::new(), &copies);
    }
    let values: Vec<(String, Value)> = ["x", "y", "z", "s", "t"]
        .into_iter()
        .filter(|name| text.contains(&format!("%{name}")))
        .map(|name| (name.to_owned(), draft.value(Before, name)))
        .collect();
    let of = |name: &str| values.iter().find(|(known, _)| known == name).expect(name).1;
    draft.change_entry(Before, |entry| forge(entry, &of));
    judged(draft.done(check, "wrong in what it has in common with a right one"))
}

/// The failed checks of the entries from the first version. Packed entries have the same.
fn judged(mut wrong: Wrong) -> Vec<Option<Check>> {
    let verdicts = |wrong: &Wrong| {
        let verdicts = crate::verdicts(wrong, wrong.options);
        let of = |verdict: &Verdict| verdict.finding().map(|finding| finding.check);
        verdicts.iter().map(of).collect::<Vec<_>>()
    };
    let whole = verdicts(&wrong);
    let packed = packed(&wrong.mappings.before);
    wrong.mappings.before = packed;
    assert_eq!(whole, verdicts(&wrong), "packed");
    whole
}

/// The mapping with the entries packed that a store takes.
fn packed(mapping: &Mapping) -> Mapping {
    let packed = Mapping::between(mapping.source(), mapping.target());
    let mut packed = packed.packing(EntryStore::default());
    let entries = mapping.entries();
    entries.for_each(|(point, entry)| packed.insert(point, entry.clone()));
    packed
}

const LINE: &str = "entry:\n%s = add.i32 %x, %y\n%t = mul.i32 %s, %x\n%u = add.i32 %t, %z\n\
                    return %u\n";

#[test]
fn neighbors_that_are_right_hold() {
    let entries: &[(&str, [usize; 2], &[&str])] = &[
        ("entry", [0, 0], &["x", "y", "z"]),
        ("entry", [1, 1], &["x", "z", "s"]),
        ("entry", [2, 2], &["z", "t"]),
    ];
    assert_eq!(verdicts(LINE, Check::LivePlus, entries, |_, _| ()), [None; 3]);
}

/// The first entry copies `%i`. So does the second entry. But its path leads over the jump, which
/// passes `%n` for `%i`.
#[test]
fn a_value_that_the_path_binds_is_judged_again() {
    let text = "entry:\njump head(%x)\nhead(%i: i32):\n%a = call @ask(%i)\n%n = add.i32 %i, %a\n\
                jump head(%n)\n";
    let entries: &[(&str, [usize; 2], &[&str])] =
        &[("head", [0, 0], &["i"]), ("head", [1, 0], &["i"])];
    let found = verdicts(text, Check::AssignValue, entries, |_, _| ());
    assert_eq!(found, [None, Some(Check::AssignValue)]);
}

/// Both entries require `%x` and `%y`. At the second point, nothing reads `%y` any more.
#[test]
fn a_value_that_dies_between_two_entries_is_kept() {
    let entries: &[(&str, [usize; 2], &[&str])] =
        &[("entry", [0, 0], &["x", "y", "z"]), ("entry", [1, 1], &["x", "y", "z", "s"])];
    let wrong_lists: [&[&str]; 4] = [&[], &["x"], &["x", "y"], &["t"]];
    for kept in wrong_lists {
        let found = verdicts(LINE, Check::Kept, entries, |entry, of| {
            assert_eq!(entry.kept, [of("y")]);
            entry.kept = kept.iter().map(|name| of(name)).collect();
        });
        assert_eq!(found, [None, Some(Check::Kept)], "{kept:?}");
    }
}

/// Liveness in one block says nothing about the next block, where `%x` and `%z` are dead.
#[test]
fn a_value_of_an_entry_in_another_block_is_kept() {
    let text = "entry:\n%s = call @ask(%x)\njump next\nnext:\n%t = call @ask(%y)\nreturn %t\n";
    let entries: &[(&str, [usize; 2], &[&str])] =
        &[("entry", [0, 0], &["x", "y"]), ("next", [0, 0], &["x", "y", "z"])];
    let found = verdicts(text, Check::Kept, entries, |entry, _| entry.kept.clear());
    assert_eq!(found, [None, Some(Check::Kept)]);
}

/// As many values as are live at the second landing point, but the values live at the first.
#[test]
fn a_value_that_is_born_between_two_entries_is_provided() {
    let entries: &[(&str, [usize; 2], &[&str])] =
        &[("entry", [0, 0], &["x", "y", "z"]), ("entry", [1, 1], &["x", "y", "z"])];
    let found = verdicts(LINE, Check::LivePlus, entries, |_, _| ());
    assert_eq!(found, [None, Some(Check::LivePlus)]);
}

/// The lists of the second entry equal the lists of the first entry with a value in the wrong
/// place, or twice.
#[test]
fn lists_in_another_order_are_refused() {
    let entries: &[(&str, [usize; 2], &[&str])] =
        &[("entry", [0, 0], &["x", "y", "z"]), ("entry", [1, 1], &["x", "y", "z", "s"])];
    for (check, twice) in
        [Check::Requires, Check::AssignShape].map(|check| [(check, true), (check, false)]).concat()
    {
        let found = verdicts(LINE, check, entries, |entry, _| match (check, twice) {
            (Check::Requires, true) => entry.requires.insert(1, entry.requires[1]),
            (Check::Requires, false) => entry.requires.swap(0, 1),
            (_, true) => entry.assigns.insert(1, entry.assigns[1]),
            (_, false) => entry.assigns.swap(0, 1),
        });
        assert_eq!(found, [None, Some(check)], "{check}, {twice}");
    }
}

/// The first entry computes `%s`, and the second entry copies it from a value of this name that is
/// another sum. Both entries provide `%s`, so it is in no difference of the lists.
#[test]
fn a_value_that_is_no_longer_computed_is_judged_again() {
    let text = |sum: &str| {
        format!(
            "(%x: i32, %y: i32, %z: i32) -> i32 {{\nentry:\n%s = add.i32 {sum}\n\
             %t = mul.i32 %x, %y\n%u = call @ask(%z)\nreturn %t\n}}\n"
        )
    };
    let mut draft = Draft::new(&text("%x, %y"), &text("%x, %z"));
    let (x, z) = (draft.term(Before, "x"), draft.term(Before, "z"));
    let sum = draft.op(Opcode::Add, Type::I32, Imm::None, &[x, z]);
    let add = step(Opcode::Add, Type::I32, &[draft.from(Before, "x"), draft.from(Before, "z")]);
    for (at, of_sum) in [(1, Operand::Step(0)), (2, draft.from(Before, "s"))] {
        let points = [draft.at(Before, "entry", at), draft.at(After, "entry", at)];
        let names = &["x", "y", "z", "t"][..2 + at];
        let copies = names.iter().map(|name| (*name, draft.from(Before, name)));
        let copies: Vec<_> = copies.chain([("s", of_sum)]).collect();
        let steps = if at == 1 { vec![(add.clone(), [sum; 2])] } else { Vec::new() };
        draft.entry(Before, points, steps, &copies);
    }
    let found = judged(draft.done(Check::AssignValue, "a copy of another sum"));
    assert_eq!(found, [None, Some(Check::AssignValue)]);
}
