//! The JSON documents that the command prints, with the meaning of their keys.
//!
//! Later versions may add keys but never rename one. [`SCHEMA`] grows if the meaning of a key
//! changes. A key without a measurement is `null`, never 0, so that consumers can tell "not
//! measured" from "none". `cli/tests/cli/report.rs` holds the keys to this contract.

mod blame;
mod causes;
mod comparison;
mod dynamic;
mod explain;
mod inlining;
mod run;
mod speculation;
mod spread;

pub use blame::BlameCheck;
pub use causes::Causes;
pub use comparison::{
    Change, ComparedCause, ComparedDirection, ComparedFunction, ComparedLevel, Comparison,
    FunctionFate,
};
pub use dynamic::DynamicFigures;
pub use explain::{
    ActivationPlace, Computed, EntryPrice, ExplainedEntry, ExplainedLanding, ExplainedWhy,
    Explanation, InlinedPoint, Kept, PassAction, PointAnswer, PointPlace, PointStatus, Replayed,
    SetValue, TestedBlame, UnprovedPlace,
};
pub use inlining::{FramePrice, InlinedFunction, InliningFigures, InliningReport, PointCounts};
pub use run::{
    CompiledCode, FailingAssumption, MadeTransition, RunContext, RunRow, RunSeconds,
    RunSpeculation, RunStats, RunTable, RunTiering, TakenOver, TierOrder, VisitCount,
    VisitedFunction,
};
pub use speculation::{
    AssumptionFigures, DropReason, ExitPrice, ExplainedAssumption, ReportedAssumption,
    SpeculatedFunction, SpeculationExplanation, SpeculationReport, SpeculationTime,
};
pub use spread::Spread;

use derive::driver::{CheckCounts, GivenUp};
use exchange::{EntryVerdict, RefusedRecord};
use ir::edit::Action;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The version of all documents, in their key `schema`. Since version 2, `osier report` prints an
/// array of documents for several pipelines.
pub const SCHEMA: u32 = 2;

/// The names of the reconstruction levels, in the order of reports. The first five form a chain:
/// the pool of each level contains the pool of the level before. `pure` and `full` do not exist
/// yet.
pub const LEVELS: [&str; 7] = ["empty", "live", "live_e", "alias", "avail", "pure", "full"];

/// One figure per level. A level that does not exist yet is `null` in JSON.
#[derive(Clone, PartialEq, Debug)]
pub struct PerLevel<T>(
    // Up to the highest level that has a figure: a report on a module holds 50,000 functions and
    // more, and moves their figures.
    Vec<Option<T>>,
);

impl<T> Default for PerLevel<T> {
    fn default() -> PerLevel<T> {
        PerLevel(Vec::new())
    }
}

impl<T> PerLevel<T> {
    /// The figure of the level with this index in [`LEVELS`].
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn get(&self, level: usize) -> Option<&T> {
        assert!(level < LEVELS.len(), "there is no level {level}");
        self.0.get(level)?.as_ref()
    }

    /// Sets the figure of the level with this index in [`LEVELS`].
    ///
    /// # Panics
    /// If the index is out of bounds.
    pub fn set(&mut self, level: usize, figure: T) {
        *self.slot(level) = Some(figure);
    }

    fn slot(&mut self, level: usize) -> &mut Option<T> {
        assert!(level < LEVELS.len(), "there is no level {level}");
        if let Some(more) = (level + 1).checked_sub(self.0.len()) {
            self.0.reserve_exact(more);
            self.0.extend((0..more).map(|_| None));
        }
        &mut self.0[level]
    }

    /// The levels with a figure, by index in [`LEVELS`].
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.0.iter().enumerate().filter_map(|(level, figure)| Some((level, figure.as_ref()?)))
    }

    /// Applies a function to each figure.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> PerLevel<U> {
        PerLevel(self.0.iter().map(|figure| figure.as_ref().map(&mut f)).collect())
    }

    /// Adds the figures of `other` level by level. If one side lacks a figure, the result takes the
    /// figure of the other side.
    pub fn merge(&mut self, other: &PerLevel<T>, mut add: impl FnMut(&mut T, &T))
    where
        T: Clone,
    {
        for (level, figure) in other.iter() {
            match self.slot(level) {
                Some(mine) => add(mine, figure),
                empty => *empty = Some(figure.clone()),
            }
        }
    }
}

impl<T: Serialize> Serialize for PerLevel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(LEVELS.len()))?;
        for (level, name) in LEVELS.iter().enumerate() {
            map.serialize_entry(name, &self.get(level))?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerLevel<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PerLevel<T>, D::Error> {
        let mut levels = PerLevel::default();
        for (name, figure) in BTreeMap::<String, Option<T>>::deserialize(from)? {
            let level = LEVELS.iter().position(|level| *level == name);
            let level = level.ok_or_else(|| D::Error::custom(format!("unknown level {name:?}")))?;
            figure.into_iter().for_each(|figure| levels.set(level, figure));
        }
        Ok(levels)
    }
}

/// The document that `osier report` prints. Reading it back skips the figures that no comparison
/// needs ([`crate::read_past`]).
#[derive(Clone, Debug, serde::Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The program, before any selection of functions.
    pub program: ReportedProgram,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The level of `infeasible` and `blame`.
    pub level: String,
    /// The path of the profile in the form in which the user gave it; `null` without one.
    pub profile: Option<String>,
    /// The selected functions in module order, unchanged ones included.
    pub functions: Vec<FunctionReport>,
    /// Sums over the changed functions.
    #[serde(skip_deserializing)]
    pub totals: Totals,
    /// The changes since the report of `--against`; `null` without one, or if that document has
    /// no report on this pipeline.
    #[serde(skip_deserializing)]
    pub against: Option<Comparison>,
    /// The test of blame (`--blame-check`); `null` without one.
    #[serde(skip_deserializing)]
    pub blame_check: Option<BlameCheck>,
    /// Whether the command was interrupted. The report then covers the functions that were complete
    /// by then.
    pub interrupted: bool,
    /// The times of the command.
    pub time: Time,
}

/// The program that was read, before any selection of functions.
#[derive(Clone, Debug, serde::Serialize, Deserialize)]
pub struct ReportedProgram {
    /// The path in the form in which the user gave it.
    pub path: String,
    /// The number of functions with a body.
    #[serde(skip_deserializing)]
    pub functions: u64,
    /// The number of their instructions, constants and terminators included.
    #[serde(skip_deserializing)]
    pub instructions: u64,
    /// The functions that are left out, since they use parts of WebAssembly that are not supported.
    /// The key is absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    pub left_out: Vec<LeftOutFunction>,
}

/// A function that is left out of a report.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct LeftOutFunction {
    /// The name of the function in the module.
    pub name: String,
    /// The part of WebAssembly, as in `SIMD`.
    pub feature: String,
    /// The offset in bytes of the first use, from the start of the module.
    pub offset: u64,
}

/// The size of one version, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, Deserialize)]
pub struct Size {
    /// The number of instructions, constants and terminators included.
    pub instructions: u64,
    /// The number of these instructions that are constants.
    pub constants: u64,
    /// The number of block parameters, without the arguments of the function.
    pub params: u64,
}

impl Size {
    /// The size of a version. Cost: linear in the version.
    pub fn of(function: &ir::Function) -> Size {
        let mut size = Size::default();
        for block in function.blocks() {
            if block != function.entry() {
                size.params += function.block_params(block).len() as u64;
            }
            for inst in function.block_insts(block) {
                size.instructions += 1;
                size.constants += u64::from(function.inst(inst).constant().is_some());
            }
        }
        size
    }

    /// The sums of several sizes of functions.
    pub(crate) fn sums<const N: usize>(sizes: impl Iterator<Item = [Size; N]>) -> [Size; N] {
        let mut sums = [Size::default(); N];
        for sizes in sizes {
            sums.iter_mut().zip(&sizes).for_each(|(sum, size)| sum.merge(size));
        }
        sums
    }

    /// Adds another size. Sums saturate, since documents may have any numbers.
    pub fn merge(&mut self, other: &Size) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.constants = self.constants.saturating_add(other.constants);
        self.params = self.params.saturating_add(other.params);
    }
}

/// The number of actions of each kind in a log, by [`ir::edit::ActionKind::name`]. The six
/// instruction actions of the thesis are always present. Actions on control flow are present if the
/// log has any.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, Deserialize)]
#[serde(transparent)]
pub struct Actions(BTreeMap<Cow<'static, str>, u64>);

impl Actions {
    /// The kinds that are always present.
    pub const INSTRUCTION: [&'static str; 6] =
        ["add", "delete", "hoist", "sink", "replace_operand", "replace_all"];

    /// Counts the actions of a log.
    pub fn of(log: &[Action]) -> Actions {
        let mut actions = Actions::default();
        for action in log {
            *actions.0.entry(action.kind().name().into()).or_default() += 1;
        }
        actions
    }

    /// All kinds with their counts: first the kinds in [`Actions::INSTRUCTION`], then the others by
    /// name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        let others = self.0.keys().map(|name| &**name);
        let others = others.filter(|name| !Actions::INSTRUCTION.contains(name));
        Actions::INSTRUCTION
            .into_iter()
            .chain(others)
            .map(|name| (name, self.0.get(name).copied().unwrap_or(0)))
    }

    /// Adds the counts of another log.
    pub fn merge(&mut self, other: &Actions) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    /// The number of actions.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Default for Actions {
    fn default() -> Actions {
        Actions(Actions::INSTRUCTION.into_iter().map(|name| (name.into(), 0)).collect())
    }
}

/// One function: the sizes of its two versions, the actions between them, and the mappings in both
/// directions.
#[derive(Clone, Debug, serde::Serialize, Deserialize)]
pub struct FunctionReport {
    /// The name of the function in the module.
    pub name: String,
    /// Whether the name is one of a library that compilers link with programs
    /// ([`crate::is_of_library`]). Tables list functions of libraries last.
    #[serde(default)]
    pub of_library: bool,
    /// The calls in the profile; `null` without one.
    #[serde(skip_deserializing)]
    pub visits: Option<u64>,
    /// The size of the base.
    pub base: Size,
    /// The size of the optimized version.
    pub opt: Size,
    /// The actions of the pipeline.
    pub actions: Actions,
    /// From the base to the optimized version.
    pub forward: DirectionFigures,
    /// From the optimized version to the base.
    pub backward: DirectionFigures,
    /// The verdicts of the checker on entries of both directions at all levels.
    #[serde(skip_deserializing)]
    pub checked: CheckCounts,
    /// The rewrites that the version lacks, so that entries hold.
    #[serde(skip_deserializing)]
    pub given_up: Vec<GivenUp>,
    /// Their number: of each stretch, the rewrites that the passes announced.
    #[serde(skip_deserializing)]
    pub refused: u64,
    /// The verdicts if no rewrite were given up. `null` with `--no-retry`.
    #[serde(skip_deserializing)]
    pub without_retry: Option<CheckCounts>,
}

impl FunctionReport {
    /// Whether the pipeline changed the function, that is, whether its log has actions.
    pub fn is_changed(&self) -> bool {
        self.actions.0.values().any(|count| *count > 0)
    }
}

/// Figures about the mapping from one version to another.
///
/// At a level, the entry of a point comes from the mapping of that level, or else from the nearest
/// lower level in the chain. Shares relate to `points` - `unreachable`.
#[derive(Clone, Debug, Default, serde::Serialize, Deserialize)]
pub struct DirectionFigures {
    /// The number of points of the source version, unreachable points included.
    pub points: u64,
    /// The number of unreachable points: points in blocks that are proved never to run.
    pub unreachable: u64,
    /// The number of points with an entry.
    pub feasible: PerLevel<u64>,
    /// The size of compensation code, in steps and copies, over the points with an entry.
    #[serde(skip_deserializing)]
    pub chi: PerLevel<Spread>,
    /// The number of kept values, function arguments excluded, over the points with an entry.
    #[serde(skip_deserializing)]
    pub kept: PerLevel<Spread>,
    /// The number of kept function arguments, over the points with an entry.
    #[serde(skip_deserializing)]
    pub kept_args: PerLevel<Spread>,
    /// The reachable points without an entry. They add up to `points` - `unreachable` - `feasible`
    /// of the report's level.
    #[serde(flatten)]
    pub causes: Causes,
    /// The same at the level `live`, in a report of another level that has figures of `live`.
    #[serde(skip_deserializing)]
    pub live_causes: Causes,
    /// The figures with each point counted as often as it ran; `null` without a profile.
    pub dynamic: Option<DynamicFigures>,
}

impl DirectionFigures {
    /// The number of reachable points, to which shares relate.
    pub fn reachable(&self) -> u64 {
        self.points.saturating_sub(self.unreachable)
    }

    /// The number of reachable points without an entry at a level. `None` if the level has no
    /// figure.
    pub(crate) fn missing(&self, level: usize) -> Option<u64> {
        Some(self.reachable().saturating_sub(*self.feasible.get(level)?))
    }

    /// Moves the blame for one point without an entry from `passes[0]` to `passes[1]`. `visits` are
    /// the visits of the point.
    pub(crate) fn blame_another(&mut self, reason: &str, passes: [&str; 2], visits: u64) {
        self.causes.blame_another(reason, passes, 1);
        if let Some(dynamic) = &mut self.dynamic {
            dynamic.causes.blame_another(reason, passes, visits);
        }
    }

    /// The share of points with an entry at a level, in percent. `None` if the level does not exist
    /// yet or there are no reachable points.
    pub fn share(&self, level: usize) -> Option<f64> {
        let feasible = *self.feasible.get(level)?;
        (self.reachable() > 0).then(|| 100.0 * feasible as f64 / self.reachable() as f64)
    }

    /// The share of visits at points with an entry at a level, in percent. `None` without a
    /// profile, if the level does not exist yet, or if no point ran.
    pub fn dynamic_share(&self, level: usize) -> Option<f64> {
        self.dynamic.as_ref()?.share(level)
    }

    /// Adds the points of another function. Counts saturate, since documents may have any numbers.
    pub fn merge(&mut self, other: &DirectionFigures) {
        self.points = self.points.saturating_add(other.points);
        self.unreachable = self.unreachable.saturating_add(other.unreachable);
        self.feasible.merge(&other.feasible, |a, b| *a = a.saturating_add(*b));
        self.chi.merge(&other.chi, Spread::merge);
        self.kept.merge(&other.kept, Spread::merge);
        self.kept_args.merge(&other.kept_args, Spread::merge);
        self.causes.merge(&other.causes);
        self.live_causes.merge(&other.live_causes);
        if let Some(dynamic) = &other.dynamic {
            self.dynamic.get_or_insert_default().merge(dynamic);
        }
    }
}

/// Sums over the functions that the pipeline changed. An unchanged function maps to itself at every
/// point and would only improve the figures.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Totals {
    /// The counts of functions.
    pub functions: FunctionCounts,
    /// The size of the bases.
    pub base: Size,
    /// The size of the optimized versions.
    pub opt: Size,
    /// The actions of the pipeline.
    pub actions: Actions,
    /// The names of the largest changed functions, at most [`Totals::LARGEST`], by instructions of
    /// the base. The largest comes first; functions of equal size are in module order.
    pub largest: Vec<String>,
    /// From the base to the optimized version.
    pub forward: DirectionTotals,
    /// From the optimized version to the base.
    pub backward: DirectionTotals,
    /// The verdicts of the checker on entries of both directions at all levels, in the changed
    /// functions.
    pub checked: CheckCounts,
    /// The number of rewrites given up, so that entries hold.
    pub refused: u64,
    /// The verdicts if no rewrite were given up. `null` with `--no-retry`.
    pub without_retry: Option<CheckCounts>,
}

impl Totals {
    /// The number of functions in [`Totals::largest`]: as many as the thesis examines.
    pub const LARGEST: usize = 12;
}

/// The counts of functions of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FunctionCounts {
    /// The number of selected functions.
    pub selected: u64,
    /// The number of functions that the pipeline changed.
    pub changed: u64,
    /// The number of functions that the pipeline left unchanged.
    pub unchanged: u64,
}

/// The sums of one direction, and the shares of feasible points.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DirectionTotals {
    /// The sums over all changed functions.
    #[serde(flatten)]
    pub sum: DirectionFigures,
    /// The shares over the changed functions.
    pub share: PerLevel<FeasibleShare>,
    /// The shares over the functions in [`Totals::largest`].
    pub share_largest: PerLevel<FeasibleShare>,
}

/// The share of feasible points over several functions, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct FeasibleShare {
    /// The mean of the shares of functions. Each function counts once.
    pub mean: f64,
    /// The lowest share of a function.
    pub min: f64,
    /// The highest share of a function.
    pub max: f64,
    /// The share of all points together. Each point counts once.
    pub weighted: f64,
    /// The share of all visits together: each point counts as often as it ran. `null` without a
    /// profile, or if no point ran.
    pub dynamic: Option<f64>,
}

/// The times of the command, in seconds. Times of steps are sums over all threads.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize, Deserialize)]
pub struct Time {
    /// The number of threads.
    pub jobs: u64,
    /// The wall-clock time from the start of the command until the figures were complete.
    pub elapsed: f64,
    /// The time to read the file and build the module.
    pub import: f64,
    /// The time to run the passes.
    pub optimize: f64,
    /// The time to verify each version and replay each log.
    pub replay: f64,
    /// The time to make the mappings and their certificates.
    pub map: f64,
    /// The time to check the mappings.
    pub check: f64,
    /// The time to search for the rewrites to give up.
    pub retry: f64,
}

impl Time {
    /// The time of all steps behind the import, in seconds, summed over all threads. With several
    /// pipelines, the steps of each are timed apart, and `elapsed` covers all pipelines.
    pub fn work(&self) -> f64 {
        self.optimize + self.replay + self.map + self.check + self.retry
    }
}

/// The document that `osier check` prints.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The sums over all functions.
    #[serde(flatten)]
    pub checked: CheckCounts,
    /// The verdicts if no rewrite were given up, over all functions. `null` with `--no-retry`, and
    /// for the mappings of a file.
    pub without_retry: Option<CheckCounts>,
    /// The level of the mappings.
    pub level: String,
    /// The checked functions, in module order.
    pub functions: Vec<CheckedFunction>,
    /// The functions that are left out, since they use parts of WebAssembly that are not supported.
    /// The key is absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutFunction>,
    /// Whether the command was interrupted. The document then covers the functions that were
    /// complete by then.
    pub interrupted: bool,
    /// The time to check, in seconds, summed over all threads.
    pub seconds: f64,
}

/// The verdicts on the mappings of one function in both directions.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CheckedFunction {
    /// The name of the function in the module.
    pub name: String,
    /// The counts of the verdicts.
    #[serde(flatten)]
    pub checked: CheckCounts,
    /// The first places at which the versions are not proved alike. Empty for mappings of a file.
    pub unproved: Vec<UnprovedPlace>,
    /// The first records of a file that the checker refuses: the claim about a copy with inlined
    /// code, and entries across it. Empty for mappings that the command makes.
    pub refused_records: Vec<RefusedRecord>,
    /// The number of rewrites that the passes announced. 0 for the mapping of a file, and for a
    /// function with inlined code.
    pub rewrites: u64,
    /// The rewrites that the version lacks, so that entries hold. Empty for the mapping of a file,
    /// which lists only the numbers of rewrites.
    pub given_up: Vec<GivenUp>,
    /// Their number: of each stretch, the rewrites that the passes announced.
    pub refused: u64,
    /// The verdicts if no rewrite were given up. `null` with `--no-retry`, and for the mappings of
    /// a file.
    pub without_retry: Option<CheckCounts>,
    /// The verdict on each entry, in the order of a file of mappings: by pair and direction, then
    /// ascending by source point. `null` without `--verdicts`.
    pub verdicts: Option<Vec<EntryVerdict>>,
}
