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
