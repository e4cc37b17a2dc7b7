//! The document of `osier report --pipeline O3`.

use super::{ReportedProgram, Size, Spread, Time};
use derive::driver::{CheckCounts, GivenUp};
use std::collections::BTreeMap;

/// The document that `osier report` prints for a pipeline that inlines.
#[derive(Clone, Debug, serde::Serialize)]
pub struct InliningReport {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The program, before any selection of functions.
    pub program: ReportedProgram,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The number of selected functions without inlined code. The figures do not cover these
    /// functions.
    pub plain: u64,
    /// The functions with inlined code, in module order.
    pub functions: Vec<InlinedFunction>,
    /// Sums over these functions.
    pub totals: InliningFigures,
    /// Whether the command was interrupted. The report then covers the functions that were complete
    /// by then.
    pub interrupted: bool,
    /// The times of the command.
    pub time: Time,
}

/// One function and its version with inlined code.
#[derive(Clone, Debug, serde::Serialize)]
pub struct InlinedFunction {
    /// The name of the function in the module.
    pub name: String,
    /// The size of the base.
    pub base: Size,
    /// The size of the version that the passes before the inlining make.
    pub cleaned: Size,
    /// The size of the version with inlined code, optimized.
    pub opt: Size,
    /// The rewrites given up so that entries hold: of the passes before the inlining, then of those
    /// behind it. Actions are numbered in the log of their step.
    pub given_up: Vec<GivenUp>,
    /// The number of rewrites left out.
    pub refused: u64,
    /// The figures.
    pub figures: InliningFigures,
}

/// Points, and those with an entry.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct PointCounts {
    /// The reachable points.
    pub points: u64,
    /// The points with a proved entry.
    pub entries: u64,
    /// The points without an entry, by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

impl PointCounts {
    /// The share of points with an entry, in percent. `None` without points.
    pub fn share(&self) -> Option<f64> {
        (self.points > 0).then(|| 100.0 * self.entries as f64 / self.points as f64)
    }

    /// Adds a point, with the reason why it has no entry.
    pub fn add(&mut self, lost: Option<&'static str>) {
        self.points += 1;
        match lost {
            None => self.entries += 1,
            Some(reason) => *self.lost.entry(reason).or_default() += 1,
        }
    }

    fn merge(&mut self, other: &PointCounts) {
        self.points += other.points;
        self.entries += other.entries;
        for (reason, count) in &other.lost {
            *self.lost.entry(reason).or_default() += count;
        }
    }
}

/// The price of entries out of inlined code that lead to the same number of activations.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FramePrice {
    /// The values assigned, over all activations.
    pub values: Spread,
    /// The steps and copies of the compensation code.
    pub chi: Spread,
    /// The values that the version keeps for the entry alone.
    pub kept: Spread,
}

/// Figures about versions with inlined code.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct InliningFigures {
    /// The calls that inlined code replaces.
    pub calls: u64,
    /// The points of the base, and the entries into the version.
    pub up: PointCounts,
    /// The points of the version outside inlined code, and their entries out of the version.
    pub own: PointCounts,
    /// The points in inlined code, and their entries out of the version.
    pub inlined: PointCounts,
    /// The entries out of the version, by the number of activations they lead to.
    pub frames: BTreeMap<usize, FramePrice>,
    /// The verdicts on the entries of the two pairs of versions around the inlining.
    pub checked: CheckCounts,
}

impl InliningFigures {
    /// Adds the figures of another function.
    pub fn merge(&mut self, other: &InliningFigures) {
        self.calls += other.calls;
        self.up.merge(&other.up);
        self.own.merge(&other.own);
        self.inlined.merge(&other.inlined);
        self.checked.merge(&other.checked);
        for (count, price) in &other.frames {
            let sum = self.frames.entry(*count).or_default();
            sum.values.merge(&price.values);
            sum.chi.merge(&price.chi);
            sum.kept.merge(&price.kept);
        }
    }
}
