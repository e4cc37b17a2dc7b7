//! The key `against` of a report: the changes since an older report.

use super::{PerLevel, Size, Time};
use serde::Serialize;

/// A figure of the older report and the same figure of the newer one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Change<T> {
    /// The figure of the older report.
    pub old: T,
    /// The figure of the newer report.
    pub new: T,
}

impl<T: PartialEq> Change<T> {
    /// Whether the two figures differ.
    pub fn differs(&self) -> bool {
        self.old != self.new
    }
}

/// The changes from an older report to a newer one, for one pipeline.
///
/// Sums cover the functions that the pipeline changed (see [`super::Totals`]). If a report was
/// interrupted, sums cover only the functions common to both reports.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The path of the older document in the form in which the user gave it.
    pub path: String,
    /// The paths of the programs.
    pub program: Change<String>,
    /// The passes. They differ only if each document has a single pipeline.
    pub pipeline: Change<Vec<String>>,
    /// The levels of the reports. Functions are compared at the newer level.
    pub level: Change<String>,
    /// Whether each report was interrupted.
    pub interrupted: Change<bool>,
    /// Whether an option selected the functions that are compared.
    pub selected: bool,
    /// The number of compared functions: all functions, the selected functions, or the common
    /// functions after an interrupt.
    pub compared: Change<u64>,
    /// From the base to the optimized version.
    pub forward: ComparedDirection,
    /// From the optimized version to the base.
    pub backward: ComparedDirection,
    /// The functions whose number of points without an entry changed, and the functions that only
    /// one report has. The function that lost most points comes first. Ties follow the order of the
    /// newer report; functions missing there come last.
    pub functions: Vec<ComparedFunction>,
    /// The size of the bases.
    pub base: Change<Size>,
    /// The size of the optimized versions.
    pub opt: Change<Size>,
    /// The times of the commands. `null` if only selected functions are compared.
    pub time: Option<Change<Time>>,
}

/// One direction of a comparison, over all compared functions.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparedDirection {
    /// The reachable points.
    pub points: Change<u64>,
    /// The levels for which both reports have figures.
    pub levels: PerLevel<ComparedLevel>,
    /// The points without an entry by reason and pass to blame, where the counts differ. `null` if
    /// the reports name causes at different levels.
    pub causes: Option<Vec<ComparedCause>>,
}

/// One level of a direction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct ComparedLevel {
    /// The points with an entry.
    pub entries: Change<u64>,
    /// Their share, in percent; `null` without points.
    pub share: Change<Option<f64>>,
    /// The share of visits, in percent. `null` unless both reports have a profile.
    pub dynamic: Option<Change<Option<f64>>>,
}

/// The points without an entry for one reason and with one pass to blame.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ComparedCause {
    /// The reason.
    pub reason: String,
    /// The pass to blame, or `none`.
    pub pass: String,
    /// The points.
    pub points: Change<u64>,
}

/// One function of a comparison. A report that lacks it has no figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedFunction {
    /// The name of the function.
    pub name: String,
    /// The fate of the function.
    pub fate: FunctionFate,
    /// The points that lost their entry since the older report, over both directions.
    pub lost: u64,
    /// The points that gained an entry since the older report, over both directions.
    pub gained: u64,
    /// The share from the base to the optimized version, at the newer report's level, in percent.
    pub forward: Change<Option<f64>>,
    /// The share from the optimized version to the base, likewise.
    pub backward: Change<Option<f64>>,
}

/// The fate of a function from one report to the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionFate {
    /// More points lack an entry, in one direction at least.
    Lost,
    /// Fewer points lack an entry, and in no direction more do.
    Gained,
    /// Only the newer report has the function.
    New,
    /// Only the older report has the function.
    Gone,
}

impl FunctionFate {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FunctionFate::Lost => "lost",
            FunctionFate::Gained => "gained",
            FunctionFate::New => "new",
            FunctionFate::Gone => "gone",
        }
    }
}
