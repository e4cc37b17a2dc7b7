//! Points without an entry, or their visits, by reason and by pass to blame.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts by name.
type NamedCounts = BTreeMap<String, u64>;

/// The reachable points without an entry: each counts once, or as often as it ran. Sums saturate,
/// since visits come from files.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Causes {
    /// The count of each reason: the reasons of `osr::Reason`, and `unproved` for an entry that the
    /// checker dropped.
    pub infeasible: NamedCounts,
    /// The same points, by the pass of the action to blame, or `none` if no action can be named.
    pub blame: NamedCounts,
    /// The same points, by reason and then by pass. Sums over passes give `infeasible`; sums over
    /// reasons give `blame`.
    pub infeasible_by_pass: BTreeMap<String, NamedCounts>,
}

impl Causes {
    /// Adds to the counts of a reason and a pass.
    pub(crate) fn add(&mut self, reason: &str, pass: &str, count: u64) {
        let passes = self.infeasible_by_pass.entry(reason.to_owned()).or_default();
        add_count(&mut self.infeasible, reason, count);
        add_count(&mut self.blame, pass, count);
        add_count(passes, pass, count);
    }

    /// Moves the blame for this count of a reason from `passes[0]` to `passes[1]`.
    pub(super) fn blame_another(&mut self, reason: &str, passes: [&str; 2], count: u64) {
        move_count(&mut self.blame, passes, count);
        if let Some(by_pass) = self.infeasible_by_pass.get_mut(reason) {
            move_count(by_pass, passes, count);
        }
    }

    /// Adds other counts.
    pub(super) fn merge(&mut self, other: &Causes) {
        for (reason, count) in &other.infeasible {
            add_count(&mut self.infeasible, reason, *count);
        }
        for (pass, count) in &other.blame {
            add_count(&mut self.blame, pass, *count);
        }
        for (reason, passes) in &other.infeasible_by_pass {
            let mine = self.infeasible_by_pass.entry(reason.clone()).or_default();
            passes.iter().for_each(|(pass, count)| add_count(mine, pass, *count));
        }
    }

    /// The count of all reasons.
    pub(crate) fn total(&self) -> u64 {
        self.infeasible.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The count of a reason and a pass.
    pub(crate) fn of(&self, reason: &str, pass: &str) -> u64 {
        let passes = self.infeasible_by_pass.get(reason);
        passes.and_then(|passes| passes.get(pass)).copied().unwrap_or(0)
    }
}

fn add_count(counts: &mut NamedCounts, key: &str, count: u64) {
    match counts.get_mut(key) {
        Some(sum) => *sum = sum.saturating_add(count),
        None => _ = counts.insert(key.to_owned(), count),
    }
}

/// Moves a count from one key to another, and removes a key whose count becomes 0.
fn move_count(counts: &mut NamedCounts, [from, to]: [&str; 2], count: u64) {
    let Some(left) = counts.get_mut(from) else { return };
    let count = count.min(*left);
    *left -= count;
    if *left == 0 {
        counts.remove(from);
    }
    if count > 0 {
        add_count(counts, to, count);
    }
}
