//! The retry around inlining: where the checker drops entries, rewrites of the passes before the
//! inlining, and of the passes behind it, are left out.
//!
//! Each of the two steps is an ordinary pair of versions. The search for the rewrites to blame goes
//! over one step at a time ([`rewrites_to_omit`]), the earlier step first: without some of its
//! rewrites, the copy is another function. It works on versions of families of their own, so the
//! ids of the result depend on the rewrites left out alone.

use super::row::InliningRow;
use super::{CalleeLandings, InlinePlan, Inlined, has_places, inline_without};
use crate::driver::{GivenUp, Observer, Retried, Step, rewrites_to_omit};
use ir::{Func, Module};
use std::ops::Range;

/// The rewrites that the versions around an inlining lack, by number, in the passes of each step.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftOut {
    /// Of the passes before the inlining.
    pub before: Vec<Range<u64>>,
    /// Of the passes behind it.
    pub behind: Vec<Range<u64>>,
}

impl LeftOut {
    /// Whether no rewrite is left out.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.behind.is_empty()
    }
}

/// The work of the search for rewrites to give up around an inlining. Actions are numbered in the
/// log of their step.
pub type InlinedRetry = Retried<[Vec<GivenUp>; 2]>;

impl InlinedRetry {
    /// The rewrites, by number.
    pub fn left_out(&self) -> LeftOut {
        let [before, behind] =
            self.given_up.each_ref().map(|step| step.iter().map(GivenUp::numbers).collect());
        LeftOut { before, behind }
    }
}

/// The version without the rewrites to blame for dropped entries, if fewer points have no entry
/// then. Otherwise the version as it is.
pub(super) fn improved(
    module: &Module,
    func: Func,
    plan: &InlinePlan,
    landings: &CalleeLandings<'_>,
    mut made: Inlined,
    observer: &mut dyn Observer,
) -> Inlined {
    // The first instance is the function itself.
    let assumes = made.copies.instances().iter().any(|one| plan.assume.contains_key(&one.func));
    let drops = made
        .pairs
        .each_ref()
        .map(|pair| pair.iter().any(|step| step.missing.lost().next().is_some()));
    // With exits of the plan, the passes have given up rewrites for these already.
    let is_done = has_places(&made.copies, plan);
    if plan.retry.rewrites == 0 || assumes || is_done || drops == [false; 2] {
        return made;
    }
    observer.begin(Some(Step::Retry));
    let (given_up, probes) = found(module, func, plan, landings, drops);
    observer.begin(None);
    let without = Some(made.all_checked());
    let retried = InlinedRetry { given_up, without, probes, ..InlinedRetry::default() };
    let left_out = retried.left_out();
    if !left_out.is_empty()
        && let Ok(better) = inline_without(module, func, plan, &left_out, landings, observer)
        && missing(&better) < missing(&made)
    {
        let retried = InlinedRetry { refused: better.retried.refused, ..retried };
        return Inlined { retried, ..better };
    }
    made.retried = InlinedRetry { given_up: Default::default(), ..retried };
    made
}

/// The rewrites to give up, and the number of probes. `drops` tells which pairs have dropped
/// entries.
fn found(
    module: &Module,
    func: Func,
    plan: &InlinePlan,
    landings: &CalleeLandings<'_>,
    drops: [bool; 2],
) -> ([Vec<GivenUp>; 2], u64) {
    let base = module.body(func).expect("the function has a body").fork();
    let retry = plan.retry;
    let (mut before, mut probes) = (Vec::new(), 0);
    if drops[0] {
        (before, probes) = rewrites_to_omit(module, &base, &plan.first, retry);
    }
    if before.is_empty() && !drops[1] {
        return ([before, Vec::new()], probes);
    }
    let left_out =
        LeftOut { before: before.iter().map(GivenUp::numbers).collect(), behind: Vec::new() };
    let nobody = &mut crate::driver::NoObserver;
    let callers = plan.callers(landings.callers());
    let row = InliningRow::new(&callers, func, base.fork(), plan, &left_out, nobody);
    let Ok(row) = row else { return ([before, Vec::new()], probes) };
    let (behind, more) = rewrites_to_omit(module, row.copy(), &plan.last, retry);
    ([before, behind], probes + more)
}

/// The number of points without an entry.
fn missing(made: &Inlined) -> usize {
    made.missing.iter().map(|points| points.len()).sum()
}
