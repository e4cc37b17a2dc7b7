//! The documents the command prints as JSON, and what their keys mean.
//!
//! Keys are added freely and never renamed; [`SCHEMA`] grows when the meaning of one changes. A key
//! whose feature does not exist yet is `null`, never 0: a consumer can tell "not measured" from
//! "none". `tests/cli/report.rs` holds the keys to the contract.

mod explain;

pub use explain::{
    Answer, Computed, Done, Explanation, Kept, Move, Place, Replayed, SetValue, Status, Why,
};

use crate::driver::CheckCounts;
use ir::edit::Action;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;

/// The version of every document here, their `schema` key.
pub const SCHEMA: u32 = 1;

/// The names of the reconstruction levels, in the order reports show them. The first five form one
/// chain, each level's pool holding the one before; `pure` and `full` are not built yet.
pub const LEVELS: [&str; 7] = ["empty", "live", "live_e", "alias", "avail", "pure", "full"];

/// One figure for each level; `null` in JSON where a level does not exist yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PerLevel<T>([Option<T>; LEVELS.len()]);

impl<T> PerLevel<T> {
    /// The figure of the level with this place in [`LEVELS`].
    ///
    /// # Panics
    /// When there is no such place.
    pub fn get(&self, level: usize) -> Option<&T> {
        self.0[level].as_ref()
    }

    /// Sets the figure of the level with this place in [`LEVELS`].
    ///
    /// # Panics
    /// When there is no such place.
    pub fn set(&mut self, level: usize, figure: T) {
        self.0[level] = Some(figure);
    }

    /// Every level that has a figure, by place.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.0.iter().enumerate().filter_map(|(level, figure)| Some((level, figure.as_ref()?)))
    }

    /// The figures with a function applied to each.
    pub fn map<U>(&self, mut f: impl FnMut(&T) -> U) -> PerLevel<U> {
        PerLevel(std::array::from_fn(|level| self.get(level).map(&mut f)))
    }

    /// Adds the figures of `other` level by level; a level only one of them has keeps what it has.
    pub fn merge(&mut self, other: &PerLevel<T>, mut add: impl FnMut(&mut T, &T))
    where
        T: Clone,
    {
        for (level, figure) in other.iter() {
            match &mut self.0[level] {
                Some(mine) => add(mine, figure),
                empty => *empty = Some(figure.clone()),
            }
        }
    }
}

impl<T: Serialize> Serialize for PerLevel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(LEVELS.len()))?;
        for (name, figure) in LEVELS.iter().zip(&self.0) {
            map.serialize_entry(name, figure)?;
        }
        map.end()
    }
}

/// How a whole number is spread over points: `mean` and `max` in JSON, both `null` over no points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    count: u64,
    sum: u64,
    max: u64,
}

impl Spread {
    /// Takes in the number of one point.
    pub fn add(&mut self, number: u64) {
        self.count += 1;
        self.sum += number;
        self.max = self.max.max(number);
    }

    /// Takes in every point of another spread.
    pub fn merge(&mut self, other: &Spread) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The mean; `None` over no points.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The largest; `None` over no points.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The number of points.
    pub fn count(&self) -> u64 {
        self.count
    }
}

impl FromIterator<u64> for Spread {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Spread {
        let mut spread = Spread::default();
        numbers.into_iter().for_each(|number| spread.add(number));
        spread
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("mean", &self.mean())?;
        map.serialize_entry("max", &self.max())?;
        map.end()
    }
}

/// What `osier report` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was read.
    pub program: Program,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The level `infeasible` and `blame` are taken at.
    pub level: String,
    /// The functions looked at, in module order, those the pipeline leaves as they are included.
    pub functions: Vec<FunctionReport>,
    /// Sums over the changed functions.
    pub totals: Totals,
    /// Whether the command was interrupted: then only the functions done by then are there.
    pub interrupted: bool,
    /// Where the time went.
    pub time: Time,
}

/// What was read, before any selection of functions.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Program {
    /// The path as it was given.
    pub path: String,
    /// The functions with a body.
    pub functions: u64,
    /// Their instructions, constants and terminators included.
    pub instructions: u64,
}

/// The size of one version, or of several together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Size {
    /// Instructions, constants and terminators included.
    pub instructions: u64,
    /// Those of them that are constants.
    pub constants: u64,
    /// Block parameters, the arguments of the function not among them.
    pub params: u64,
}

impl Size {
    /// The size of a version. Cost: linear in it.
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

    /// Adds another size.
    pub fn merge(&mut self, other: &Size) {
        self.instructions += other.instructions;
        self.constants += other.constants;
        self.params += other.params;
    }
}

/// How many actions of each kind a log holds, by [`ir::edit::ActionKind::name`]. The six
/// instruction actions of the thesis are always there, the primitives of control flow when there
/// are any.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(transparent)]
pub struct Actions(BTreeMap<&'static str, u64>);

impl Actions {
    /// The kinds that are always there.
    pub const INSTRUCTION: [&'static str; 6] =
        ["add", "delete", "hoist", "sink", "replace_operand", "replace_all"];

    /// Counts a log.
    pub fn of(log: &[Action]) -> Actions {
        let mut actions = Actions::default();
        for action in log {
            *actions.0.entry(action.kind().name()).or_default() += 1;
        }
        actions
    }

    /// Every kind with its count: the instruction actions as [`Actions::INSTRUCTION`] has them,
    /// then the others by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let others = self.0.keys().copied().filter(|name| !Actions::INSTRUCTION.contains(name));
        Actions::INSTRUCTION.into_iter().chain(others).map(|name| (name, self.0[name]))
    }

    /// Adds the counts of another log.
    pub fn merge(&mut self, other: &Actions) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    /// The number of actions.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl Default for Actions {
    fn default() -> Actions {
        Actions(Actions::INSTRUCTION.into_iter().map(|name| (name, 0)).collect())
    }
}

/// One function: its two versions, what happened between them, and the mappings both ways.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FunctionReport {
    /// Its name in the module.
    pub name: String,
    /// The version read.
    pub base: Size,
    /// The version the pipeline made.
    pub opt: Size,
    /// What the pipeline did.
    pub actions: Actions,
    /// From the base to the optimized version.
    pub forward: Direction,
    /// From the optimized version to the base.
    pub backward: Direction,
    /// What the checker said of the entries of both directions, at all levels.
    pub checked: CheckCounts,
}

impl FunctionReport {
    /// Whether the pipeline changed the function: its log is not empty.
    pub fn is_changed(&self) -> bool {
        self.actions.total() > 0
    }
}

/// The mapping from one version to another, in figures.
///
/// At a level, a point's entry is the one this level's synthesis made, or else the one of the
/// nearest earlier level in the chain. Shares are of `points` - `unreachable`.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Direction {
    /// Every point of the version left, the unreachable ones included.
    pub points: u64,
    /// Points in blocks that control never reaches.
    pub unreachable: u64,
    /// Points that have an entry.
    pub feasible: PerLevel<u64>,
    /// The size of compensation code, in steps and copies, over the points with an entry.
    pub chi: PerLevel<Spread>,
    /// Values to be kept alive past their last use, function arguments not among them.
    pub kept: PerLevel<Spread>,
    /// Function arguments to be kept alive past their last use.
    pub kept_args: PerLevel<Spread>,
    /// Reachable points without an entry, by reason: those of `osr::Reason`, and `unproved` where
    /// there was an entry that the checker did not accept. They add up to `points` - `unreachable`
    /// - `feasible`.
    pub infeasible: BTreeMap<String, u64>,
    /// The same points, by the pass whose action is the first that made it so; `none` where no
    /// action is to blame.
    pub blame: BTreeMap<String, u64>,
    /// The same points, by reason and then by pass: the sums over passes are `infeasible`, those
    /// over reasons `blame`.
    pub infeasible_by_pass: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Direction {
    /// The points shares are of.
    pub fn reachable(&self) -> u64 {
        self.points - self.unreachable
    }

    /// The points with an entry at a level, in percent; `None` at a level that does not exist yet
    /// or where there are no reachable points.
    pub fn share(&self, level: usize) -> Option<f64> {
        let feasible = *self.feasible.get(level)?;
        (self.reachable() > 0).then(|| 100.0 * feasible as f64 / self.reachable() as f64)
    }

    /// Adds the points of another function.
    pub fn merge(&mut self, other: &Direction) {
        self.points += other.points;
        self.unreachable += other.unreachable;
        self.feasible.merge(&other.feasible, |a, b| *a += b);
        self.chi.merge(&other.chi, Spread::merge);
        self.kept.merge(&other.kept, Spread::merge);
        self.kept_args.merge(&other.kept_args, Spread::merge);
        add_counts(&mut self.infeasible, &other.infeasible);
        add_counts(&mut self.blame, &other.blame);
        for (reason, passes) in &other.infeasible_by_pass {
            add_counts(self.infeasible_by_pass.entry(reason.clone()).or_default(), passes);
        }
    }
}

/// Adds counts key by key.
fn add_counts(mine: &mut BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) {
    for (key, count) in theirs {
        *mine.entry(key.clone()).or_default() += count;
    }
}

/// Sums over the functions the pipeline changed. The others map onto themselves and would only
/// flatter.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Totals {
    /// How many functions there were.
    pub functions: FunctionCounts,
    /// The versions read.
    pub base: Size,
    /// The versions made.
    pub opt: Size,
    /// What the pipeline did.
    pub actions: Actions,
    /// The largest changed functions by instructions of the base, at most [`Totals::LARGEST`],
    /// largest first; of equals the one that comes first in the module.
    pub largest: Vec<String>,
    /// From the base to the optimized version.
    pub forward: DirectionTotals,
    /// From the optimized version to the base.
    pub backward: DirectionTotals,
    /// What the checker said of the entries of both directions, at all levels, in the changed
    /// functions.
    pub checked: CheckCounts,
}

impl Totals {
    /// How many functions [`Totals::largest`] holds: as many as the thesis looks at.
    pub const LARGEST: usize = 12;
}

/// How many functions a report is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FunctionCounts {
    /// The functions looked at.
    pub selected: u64,
    /// Those the pipeline changed.
    pub changed: u64,
    /// Those it left as they are.
    pub unchanged: u64,
}

/// The sums of one direction, and the shares of feasible points.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct DirectionTotals {
    /// Every changed function together.
    #[serde(flatten)]
    pub sum: Direction,
    /// Shares over the changed functions.
    pub share: PerLevel<Share>,
    /// Shares over [`Totals::largest`].
    pub share_largest: PerLevel<Share>,
}

/// The share of feasible points over several functions, in percent.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct Share {
    /// The mean of the functions' shares, each function counting once.
    pub mean: f64,
    /// The lowest share of a function.
    pub min: f64,
    /// The highest share of a function.
    pub max: f64,
    /// The share of all points together, each point counting once.
    pub weighted: f64,
}

/// Where the time went, in seconds. Several threads at work count each for itself: the times of
/// steps are their sums.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct Time {
    /// The threads that worked.
    pub jobs: u64,
    /// What a clock showed from the start of the command until the figures were complete.
    pub elapsed: f64,
    /// Reading the file and building the module.
    pub import: f64,
    /// Running the passes.
    pub optimize: f64,
    /// Verifying each version and replaying each log.
    pub replay: f64,
    /// Making the mappings and their certificates.
    pub map: f64,
    /// Checking the mappings.
    pub check: f64,
}

/// What `osier check` writes.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Check {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The sums over all functions.
    #[serde(flatten)]
    pub checked: CheckCounts,
    /// The functions looked at, in module order.
    pub functions: Vec<CheckedFunction>,
    /// Whether the command was interrupted: then only the functions done by then are there.
    pub interrupted: bool,
    /// The time of checking, in seconds, that of several threads added up.
    pub seconds: f64,
}

/// What the checker said of the mappings of one function, both ways.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CheckedFunction {
    /// Its name in the module.
    pub name: String,
    /// What was said.
    #[serde(flatten)]
    pub checked: CheckCounts,
}

/// What `osier run --stats` writes.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct RunStats {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was compiled to native code, in order; `null` where the interpreter ran the program.
    pub compiled: Option<Vec<CompiledCode>>,
    /// The transitions made; `null` where the interpreter ran the program.
    pub transitions: Option<Vec<MadeTransition>>,
    /// Instructions executed, terminators included; `null` where native code ran, which counts them
    /// with `--fuel` alone.
    pub instructions: Option<u64>,
    /// Where the time went.
    pub seconds: RunSeconds,
}

/// A piece of native code.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct CompiledCode {
    /// The function.
    pub function: String,
    /// `version`, or `continuation`: what control goes on in after a transition.
    pub kind: &'static str,
    /// Instructions of its function.
    pub instructions: usize,
    /// Bytes of machine code.
    pub bytes: usize,
    /// When it was begun, in seconds after the program was.
    pub at: f64,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// A transition that was made, so many times.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MadeTransition {
    /// The function.
    pub function: String,
    /// The source point, as listings show it.
    pub point: String,
    /// The version left: `interpreter` or `native`.
    pub from: &'static str,
    /// The version gone on in: `interpreter`, `native` or `embedder`.
    pub to: &'static str,
    /// How often.
    pub count: u64,
}

/// Where the time of a run went, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct RunSeconds {
    /// Reading the file and building the module.
    pub import: f64,
    /// Running the passes; and in the tiered engine, as part of `execute`, running them over what
    /// is hot and making and checking the mappings that lead there. `null` in other engines without
    /// a pipeline.
    pub optimize: Option<f64>,
    /// Verifying each version and replaying each log before the run; `null` without a pipeline.
    pub replay: Option<f64>,
    /// Compiling to native code, part of `execute`; `null` where the interpreter ran the program.
    pub compile: Option<f64>,
    /// Running the program.
    pub execute: f64,
}
