//! Figures that count a point as often as it ran.

use super::{PerLevel, add_counts};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The figures of one direction with each point counted as often as it ran.
///
/// The weight of a point is the visits of its block in the profile. For a version that passes
/// made, [`profile::FunctionProfile::visits_after`] derives the visits. All sums saturate.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DynamicFigures {
    /// The visits of all reachable points.
    pub visits: u64,
    /// The visits of the points with an entry.
    pub feasible: PerLevel<u64>,
    /// The visits of the reachable points without an entry, by reason.
    pub infeasible: BTreeMap<String, u64>,
    /// The same visits, by the pass to blame.
    pub blame: BTreeMap<String, u64>,
    /// The same visits, by reason and then by pass.
    pub infeasible_by_pass: BTreeMap<String, BTreeMap<String, u64>>,
}

impl DynamicFigures {
    /// The share of visits at points with an entry at a level, in percent. `None` if the level has
    /// no figure or no point ran.
    pub fn share(&self, level: usize) -> Option<f64> {
        let feasible = *self.feasible.get(level)?;
        (self.visits > 0).then(|| 100.0 * feasible as f64 / self.visits as f64)
    }

    /// Adds the visits of a point without an entry. Gaps without visits are left out.
    pub(crate) fn add_gap(&mut self, reason: &str, pass: &str, visits: u64) {
        if visits == 0 {
            return;
        }
        let passes = self.infeasible_by_pass.entry(reason.to_owned()).or_default();
        let sums = [
            self.infeasible.entry(reason.to_owned()).or_default(),
            self.blame.entry(pass.to_owned()).or_default(),
            passes.entry(pass.to_owned()).or_default(),
        ];
        sums.into_iter().for_each(|sum| *sum = sum.saturating_add(visits));
    }

    /// Adds the visits of another function.
    pub fn merge(&mut self, other: &DynamicFigures) {
        self.visits = self.visits.saturating_add(other.visits);
        self.feasible.merge(&other.feasible, |a, b| *a = a.saturating_add(*b));
        add_counts(&mut self.infeasible, &other.infeasible);
        add_counts(&mut self.blame, &other.blame);
        for (reason, passes) in &other.infeasible_by_pass {
            add_counts(self.infeasible_by_pass.entry(reason.clone()).or_default(), passes);
        }
    }
}
