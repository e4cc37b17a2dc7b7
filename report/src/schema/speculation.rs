//! The document of `osier report --speculate`.

use super::{ExplainedEntry, PointPlace, ReportedProgram, Size, Spread};
use std::collections::BTreeMap;

/// The document that `osier report --speculate` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SpeculationReport {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The program, before any selection of functions.
    pub program: ReportedProgram,
    /// The path of the profile in the form in which the user gave it.
    pub profile: String,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The values that assumptions keep as operands: `on-demand`, `never` or `live`.
    pub pins: &'static str,
    /// The least number of visits of a place for which assumptions were suggested.
    pub visits: u64,
    /// The functions for which the profile suggests assumptions, in module order.
    pub functions: Vec<SpeculatedFunction>,
    /// Sums over these functions, by observation; observations without a suggestion are absent.
    pub observed: BTreeMap<String, AssumptionFigures>,
    /// Sums over these functions.
    pub totals: AssumptionFigures,
    /// Whether the command was interrupted. The report then covers the functions that were complete
    /// by then.
    pub interrupted: bool,
    /// The times of the command.
    pub time: SpeculationTime,
}

/// The times of `osier report --speculate`, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize)]
pub struct SpeculationTime {
    /// The number of threads.
    pub jobs: u64,
    /// The wall-clock time from the start of the command until the figures were complete.
    pub elapsed: f64,
    /// The time to read the file and build the module.
    pub import: f64,
}

/// One function and the version that makes the assumptions suggested for it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SpeculatedFunction {
    /// The name of the function in the module.
    pub name: String,
    /// The calls in the profile.
    pub calls: u64,
    /// The size of the base.
    pub base: Size,
    /// The size of the version that the pipeline makes without assumptions.
    pub opt: Size,
    /// The size of the optimized version that makes the assumptions.
    pub speculative: Size,
    /// The assumptions, the most worthwhile first.
    pub assumptions: Vec<ReportedAssumption>,
}

/// An assumption that a profile suggests, and its fate.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ReportedAssumption {
    /// The place in the base, in the notation of listings.
    pub at: String,
    /// The value.
    pub value: String,
    /// The claim, such as `is 7` or `is not 0`.
    pub fact: String,
    /// The observation behind it.
    pub observed: &'static str,
    /// The visits of the place in the profile.
    pub visits: u64,
    /// The expected worth, in instructions of the profiled runs.
    pub worth: i64,
    /// `exit`, `settled` (the optimized version need not make it) or `dropped`.
    pub fate: &'static str,
    /// Why it was dropped; `null` otherwise.
    pub why: Option<DropReason>,
    /// The exit; `null` without one.
    pub exit: Option<ExitPrice>,
}

/// Why an assumption was dropped.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct DropReason {
    /// The name of the reason: one of `osr::Reason`, `never_reached`, `unproved`, `too_many_pins`,
    /// `no_pin_turn_left`, `no_turn_left`, `too_many`, `no_work_left`, or a condition of
    /// composition.
    pub reason: &'static str,
    /// The pass of the action to blame, or `none`.
    pub pass: &'static str,
    /// The reason in words, with the value and the rewrite.
    pub text: String,
}

/// The price of an exit: to take it, and to keep values for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct ExitPrice {
    /// The values kept for this exit alone, pins included and function arguments excluded.
    pub kept: u64,
    /// The function arguments kept for this exit alone.
    pub kept_args: u64,
    /// The values that the assumption pins. Passes must preserve them, too.
    pub pins: u64,
    /// The steps and copies of the compensation code.
    pub chi: u64,
    /// The stores that the exit replays.
    pub replays: u64,
}

/// Figures about assumptions.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct AssumptionFigures {
    /// The assumptions suggested.
    pub suggested: u64,
    /// The assumptions that the optimized version makes, each with a proved exit.
    pub exits: u64,
    /// The assumptions that the optimized version need not make.
    pub settled: u64,
    /// The dropped assumptions, by reason and then by the pass to blame.
    pub dropped: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    /// The assumptions with an exit that pins a value.
    pub pinned: u64,
    /// Assumptions with an exit, in percent of the assumptions that need an exit. `null` if no
    /// assumption needs an exit.
    pub share: Option<f64>,
    /// The kept values of exits, without function arguments.
    pub kept: Spread,
    /// The kept function arguments of exits.
    pub kept_args: Spread,
    /// The steps and copies of exits.
    pub chi: Spread,
    /// The replayed stores of exits.
    pub replays: Spread,
}

impl AssumptionFigures {
    /// Adds an assumption.
    pub fn add(&mut self, assumption: &ReportedAssumption) {
        self.suggested += 1;
        if let Some(exit) = assumption.exit {
            self.exits += 1;
            self.pinned += u64::from(exit.pins > 0);
            self.kept.add(exit.kept);
            self.kept_args.add(exit.kept_args);
            self.chi.add(exit.chi);
            self.replays.add(exit.replays);
        } else if let Some(why) = &assumption.why {
            *self.dropped.entry(why.reason).or_default().entry(why.pass).or_default() += 1;
        } else {
            self.settled += 1;
        }
        let needed = self.suggested - self.settled;
        self.share = (needed > 0).then(|| 100.0 * self.exits as f64 / needed as f64);
    }

    /// The assumptions dropped, for any reason.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.values().flat_map(BTreeMap::values).sum()
    }
}

/// The document that `osier explain --speculate` prints.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SpeculationExplanation {
    /// [`super::SCHEMA`].
    pub schema: u32,
    /// The path of the program in the form in which the user gave it.
    pub path: String,
    /// The path of the profile.
    pub profile: String,
    /// The name of the function.
    pub function: String,
    /// The passes, in order.
    pub pipeline: Vec<String>,
    /// The place, as the user wrote it.
    pub asked: String,
    /// The assumptions there, the most worthwhile first.
    pub assumptions: Vec<ExplainedAssumption>,
}

/// An assumption and its exit.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ExplainedAssumption {
    /// The assumption and its fate.
    #[serde(flatten)]
    pub assumption: ReportedAssumption,
    /// Its place in the base.
    pub place: PointPlace,
    /// The instruction in the optimized version; `null` if the version makes no such assumption.
    pub inst: Option<String>,
    /// The place of the instruction; `null` likewise.
    pub point: Option<PointPlace>,
    /// The values of the base that the assumption pins.
    pub pins: Vec<String>,
    /// The entry of a run that leaves there; `null` likewise.
    pub entry: Option<ExplainedEntry>,
}
