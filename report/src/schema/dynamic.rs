//! Figures that count a point as often as it ran.

use super::{Causes, PerLevel};
use serde::{Deserialize, Serialize};

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
    /// The visits of the reachable points without an entry. Points without visits are left out.
    #[serde(flatten)]
    pub causes: Causes,
}

impl DynamicFigures {
    /// The share of visits at points with an entry at a level, in percent. `None` if the level has
    /// no figure or no point ran.
    pub fn share(&self, level: usize) -> Option<f64> {
        let feasible = *self.feasible.get(level)?;
        (self.visits > 0).then(|| 100.0 * feasible as f64 / self.visits as f64)
    }

    /// Adds the visits of another function.
    pub fn merge(&mut self, other: &DynamicFigures) {
        self.visits = self.visits.saturating_add(other.visits);
        self.feasible.merge(&other.feasible, |a, b| *a = a.saturating_add(*b));
        self.causes.merge(&other.causes);
    }
}
