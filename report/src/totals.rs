//! Adds up the figures of the functions of a report.

use crate::schema::{
    DirectionFigures, DirectionTotals, DynamicFigures, FeasibleShare, FunctionReport, LEVELS,
    PerLevel, Totals,
};

/// The totals of functions in module order.
pub(super) fn totals(functions: &[FunctionReport]) -> Totals {
    let mut totals = Totals::default();
    totals.functions.selected = functions.len() as u64;
    let changed: Vec<&FunctionReport> = functions.iter().filter(|f| f.is_changed()).collect();
    totals.functions.changed = changed.len() as u64;
    totals.functions.unchanged = totals.functions.selected - totals.functions.changed;
    for function in &changed {
        totals.base.merge(&function.base);
        totals.opt.merge(&function.opt);
        totals.actions.merge(&function.actions);
        totals.checked.merge(&function.checked);
        totals.refused += function.refused;
        if let Some(without) = &function.without_retry {
            totals.without_retry.get_or_insert_default().merge(without);
        }
    }
    let largest = largest(&changed);
    totals.largest = largest.iter().map(|f| f.name.clone()).collect();
    totals.forward = direction_totals(&changed, &largest, |f| &f.forward);
    totals.backward = direction_totals(&changed, &largest, |f| &f.backward);
    totals
}

/// Functions by size, the largest first. Functions of libraries come last.
pub(super) fn by_size<'a>(functions: &[&'a FunctionReport]) -> Vec<&'a FunctionReport> {
    let mut ordered = functions.to_vec();
    ordered.sort_by_key(|f| (f.of_library, std::cmp::Reverse(f.base.instructions)));
    ordered
}

/// The largest functions, as [`Totals::largest`] defines them.
pub(super) fn largest<'a>(changed: &[&'a FunctionReport]) -> Vec<&'a FunctionReport> {
    let mut largest = changed.to_vec();
    // The sort is stable, so functions of equal size stay in module order.
    largest.sort_by_key(|f| std::cmp::Reverse(f.base.instructions));
    largest.truncate(Totals::LARGEST);
    largest
}

fn direction_totals(
    changed: &[&FunctionReport],
    largest: &[&FunctionReport],
    side: impl Fn(&FunctionReport) -> &DirectionFigures,
) -> DirectionTotals {
    let mut sum = DirectionFigures::default();
    changed.iter().for_each(|f| sum.merge(side(f)));
    let share = shares(changed.iter().map(|f| side(f)));
    let share_largest = shares(largest.iter().map(|f| side(f)));
    DirectionTotals { sum, share, share_largest }
}

/// The shares over several functions. A level lacks a figure if all points of all functions are
/// unreachable.
fn shares<'a>(directions: impl Iterator<Item = &'a DirectionFigures>) -> PerLevel<FeasibleShare> {
    let directions: Vec<&DirectionFigures> = directions.collect();
    let mut shares = PerLevel::default();
    for level in 0..LEVELS.len() {
        let each: Vec<f64> = directions.iter().filter_map(|d| d.share(level)).collect();
        if each.is_empty() {
            continue;
        }
        let feasible: u64 = directions.iter().filter_map(|d| d.feasible.get(level)).sum();
        let reachable: u64 = directions.iter().map(|d| d.reachable()).sum();
        let mut dynamic = DynamicFigures::default();
        directions.iter().filter_map(|d| d.dynamic.as_ref()).for_each(|d| dynamic.merge(d));
        shares.set(
            level,
            FeasibleShare {
                mean: each.iter().sum::<f64>() / each.len() as f64,
                min: each.iter().copied().fold(f64::INFINITY, f64::min),
                max: each.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                weighted: 100.0 * feasible as f64 / reachable as f64,
                dynamic: dynamic.share(level),
            },
        );
    }
    shares
}
