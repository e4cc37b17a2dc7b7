//! What failed assumptions have shown.

use derive::speculate::{Assumption, Expected};
use ir::{Func, Function, Point, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The contents of values of a base that are known.
pub(super) type Known = BTreeMap<Value, u64>;

/// By function, place and value: the contents that the last failed assumption there has found.
///
/// Example: a loop has two branches on the kind of an element, and a list assumes both to be 1. In
/// a phase of another kind, the first fails, and then the second. The row for the second must not
/// assume again that the first is 1, or the run would go from row to row in each round
/// (`a_row_assumes_what_other_places_have_shown_last`). The contents may be rare, and nothing says
/// when they are old, so rows at hot loops assume what the list says.
#[derive(Debug, Default)]
pub(super) struct LatestFacts(BTreeMap<(Func, Point, Value), u64>);

impl LatestFacts {
    /// Notes the contents of the value of an assumption that has failed.
    pub(super) fn note(&mut self, func: Func, failed: &Assumption, bits: u64) {
        self.0.insert((func, failed.at, failed.value), bits);
    }

    /// The assumption, or the assumption that its value keeps the contents that were found last.
    pub(super) fn of(&self, func: Func, of: &Assumption) -> Assumption {
        match self.0.get(&(func, of.at, of.value)) {
            Some(bits) if !of.expected.holds(*bits) => {
                Assumption { expected: Expected::Is(*bits), ..*of }
            }
            _ => *of,
        }
    }
}

/// By function, place and value: how often assumptions there have failed, in all versions and rows
/// together, at exits that no row takes over. Each row has such exits of its own, and would lead to
/// the interpreter as often as the first
/// (`a_version_and_a_row_give_up_one_assumption_together`).
#[derive(Debug, Default)]
pub(super) struct LostExits(BTreeMap<(Func, Point, Value), u64>);

impl LostExits {
    /// Notes a failure. Returns the failures so far.
    pub(super) fn note(&mut self, func: Func, failed: &Assumption) -> u64 {
        let count = self.0.entry((func, failed.at, failed.value)).or_default();
        *count += 1;
        *count
    }
}

/// A value, the results that instructions compute from it, and what it is computed from. Block
/// parameters end both searches. Linear in the uses.
pub(super) fn related(base: &Function, value: Value) -> BTreeSet<Value> {
    let behind = |value: Value| -> Vec<Value> {
        let users = base.users(value).iter();
        users.flat_map(|user| &base.inst(*user).results).copied().collect()
    };
    let before = |value: Value| -> Vec<Value> {
        let inst = base.defining_inst(value);
        inst.into_iter().flat_map(|inst| base.inst(inst).args.iter()).copied().collect()
    };
    let mut all = reached(value, behind);
    all.extend(reached(value, before));
    all
}

/// A value, and all values to which steps lead from it.
fn reached(value: Value, step: impl Fn(Value) -> Vec<Value>) -> BTreeSet<Value> {
    let (mut all, mut open) = (BTreeSet::from([value]), vec![value]);
    while let Some(next) = open.pop() {
        open.extend(step(next).into_iter().filter(|value| all.insert(*value)));
    }
    all
}

/// The assumption that the value of a failed assumption keeps the contents that it has now. `None`
/// if `others` have an assumption about the value in that place, which holds: a counter differs
/// from 0 in all rounds but one, and has each other content once
/// (`a_row_assumes_what_the_list_says_where_it_holds`).
pub(super) fn observed(
    failed: &Assumption,
    known: &Known,
    others: &[Assumption],
) -> Option<Assumption> {
    let bits = *known.get(&failed.value)?;
    let is_same = |of: &Assumption| (of.at, of.value) == (failed.at, failed.value);
    let is_known = others.iter().any(is_same);
    (!is_known).then_some(Assumption { expected: Expected::Is(bits), ..*failed })
}
