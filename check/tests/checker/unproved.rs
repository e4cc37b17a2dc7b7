//! Unproved anchors: which entries they cost, in either version.

use super::verdicts;
use super::wrong::unproved::{in_a_loop, two_ways};
use super::wrong::{Draft, Wrong};
use check::relate;
use check::verdict::{Check, Place};
use ir::Point;
use std::collections::BTreeSet;

/// The blocks of the version before whose entries hold. Each block has entries from all its
/// anchors.
fn held(wrong: &Wrong) -> BTreeSet<String> {
    let f = &wrong.versions.before;
    let name = |point: Point| f.block_name(f.inst_block(point.inst())).map(str::to_owned);
    let (mut held, mut lost) = (BTreeSet::new(), BTreeSet::new());
    for ((point, _), verdict) in wrong.mappings.before.entries().zip(verdicts(wrong, wrong.options))
    {
        if verdict.holds() { &mut held } else { &mut lost }.extend(name(point));
    }
    assert!(held.is_disjoint(&lost), "{held:?}, {lost:?}");
    held
}

fn named(draft: Draft) -> Wrong {
    draft.done(Check::AnchorOperands, "a call with another argument")
}

fn set(blocks: &[&str]) -> BTreeSet<String> {
    blocks.iter().map(|b| (*b).to_owned()).collect()
}

#[test]
fn entries_on_another_way_hold() {
    assert_eq!(held(&named(two_ways())), set(&["fast"]));
}

/// The header and the way beside the call lie on a cycle with it. `done` lies behind it.
#[test]
fn a_loop_loses_all_entries_and_what_leads_elsewhere_keeps_them() {
    assert_eq!(held(&named(in_a_loop())), set(&["early"]));
}

/// The finding names the operand, and the relation has the classes.
#[test]
fn the_finding_names_the_operand() {
    let wrong = named(two_ways());
    let versions = wrong.versions.as_ref();
    let relation = relate(&wrong.module, versions, &wrong.certificate, wrong.options);
    let relation = relation.unwrap_or_else(|verdict| panic!("{verdict}"));
    let [unproved] = relation.unproved() else { panic!("{:?}", relation.unproved()) };
    assert_eq!(unproved.finding.check, Check::AnchorOperands);
    assert_eq!(unproved.finding.at, Place::Operand(unproved.anchor, 0));
    assert!(unproved.classes.is_some_and(|classes| classes.before != classes.after));
    let refuted = verdicts(&wrong, wrong.options).iter().filter(|v| v.is_refuted()).count();
    assert!(refuted > 0, "contents of the arguments tell the calls apart");
}

/// All anchors at which the versions differ are found, not the first alone.
#[test]
fn every_unproved_anchor_is_found() {
    let text = |a: &str, b: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, one, rest\n\
             one:\n%a = call @ask({a})\nreturn %a\nrest:\nbr_if %y, two, three\n\
             two:\n%b = call @ask({b})\nreturn %b\nthree:\nreturn %y\n}}\n"
        )
    };
    let wrong = named(Draft::new(&text("%x", "%x"), &text("%y", "%y")));
    let versions = wrong.versions.as_ref();
    let relation = relate(&wrong.module, versions, &wrong.certificate, wrong.options);
    let count = relation.map_or(0, |relation| relation.unproved().len());
    assert_eq!(count, 2);
    assert_eq!(held(&wrong), set(&["three"]));
}

/// Each path has an edge to the other path; a constant excludes this edge.
#[test]
fn an_excluded_edge_costs_no_entries() {
    let text = |arg: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\nbr_if %x, slow, fast\n\
             slow:\n%a = call @ask({arg})\nbr_if %k, last, fast\nlast:\nreturn %a\n\
             fast:\nbr_if %k, done, slow\ndone:\nreturn %y\n}}\n"
        )
    };
    assert_eq!(held(&named(Draft::new(&text("%x"), &text("%y")))), set(&["fast", "done"]));
}

/// The version before divides on the way `slow`, before a branch on something else. The division
/// stays pending there, and not on the other way.
#[test]
fn a_trap_pending_before_an_unproved_branch_costs_one_way() {
    let text = |first: &str, condition: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, slow, fast\nslow:\n{first}\n\
             br_if {condition}, one, two\none:\nreturn %x\ntwo:\nreturn %y\n\
             fast:\n%a = call @ask(%y)\nreturn %a\n}}\n"
        )
    };
    let [divides, pad] = ["%d = udiv.i32 %x, %y", "%d = const.i32 0"];
    assert_eq!(held(&named(Draft::new(&text(divides, "%x"), &text(pad, "%y")))), set(&["fast"]));
    let proved = named(Draft::new(&text(divides, "%x"), &text(pad, "%x")));
    let checks =
        verdicts(&proved, proved.options).into_iter().map(|v| v.finding().map(|f| f.check));
    assert!(checks.into_iter().all(|check| check == Some(Check::TrapOrder)), "the way back counts");
}

/// The versions take the ways of a branch the other way round. The division is on another way, and
/// the search for pending traps does not follow the branch.
#[test]
fn paths_that_end_elsewhere_cost_one_way() {
    let text = |ways: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, slow, fast\nslow:\n\
             br_if %y, {ways}\none:\nreturn %x\ntwo:\nreturn %y\n\
             fast:\n%d = udiv.i32 %x, %y\n%a = call @ask(%d)\nreturn %a\n}}\n"
        )
    };
    let wrong = Draft::new(&text("one, two"), &text("two, one"));
    assert_eq!(held(&wrong.done(Check::AnchorNext, "ways turned round")), set(&["fast"]));
}

/// A path enters 256 blocks behind the first. A longer path has no end.
#[test]
fn a_path_too_long_costs_one_way() {
    for (blocks, ways) in [(257, &["entry", "slow", "last", "fast"][..]), (258, &["fast"])] {
        let chain: String = (1..blocks - 1).map(|n| format!("jump c{n}\nc{n}:\n")).collect();
        let text = format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, slow, fast\nslow:\n\
             %a = call @ask(%x)\nbr_if %a, first, first\nfirst:\n{chain}jump last\nlast:\nreturn %y\n\
             fast:\nreturn %y\n}}\n"
        );
        let wrong = Draft::new(&text, &text).done(Check::AnchorNext, "a long way");
        assert_eq!(held(&wrong), set(ways), "{blocks}");
    }
}

/// Both versions store to `%x`, and one version stores another value.
#[test]
fn every_operand_is_compared() {
    let text = |value: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, slow, fast\n\
             slow:\nstore.i32 @m[%x], {value}\nreturn %x\nfast:\nreturn %y\n}}\n"
        )
    };
    let wrong = named(Draft::new(&text("%x"), &text("%y")));
    assert_eq!(held(&wrong), set(&["fast"]));
    let places: Vec<_> =
        verdicts(&wrong, wrong.options).iter().filter_map(|v| v.finding()).collect();
    assert!(places.iter().all(|f| matches!(f.at, Place::Operand(_, 1))), "{places:?}");
}

/// The leaf of `%p` is bound to the class of `%y` on both edges, so the sums are equal. The checker
/// has no term for the sum at the start of the paths, and must not take the two for different.
#[test]
fn a_class_of_bound_leaves_refutes_nothing() {
    let text = |operand: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\nbr_if %x, join(%y), other\n\
             other:\njump join(%y)\njoin(%p: i32):\n%s = add.i32 {operand}, %k\n\
             %r = call @ask(%s)\nreturn %r\n}}\n"
        )
    };
    let wrong = named(Draft::new(&text("%p"), &text("%y")));
    let judged = verdicts(&wrong, wrong.options);
    assert!(judged.iter().any(|v| v.finding().is_some_and(|f| f.check == wrong.check)));
    assert!(!judged.iter().any(|v| v.is_refuted()), "{judged:?}");
}
