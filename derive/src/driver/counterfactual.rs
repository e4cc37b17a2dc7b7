//! Blame tested as a counterfactual: *without this rewrite the point has an entry*.
//!
//! `osr` guesses the action to blame for a point from the log alone. This module tests the guess:
//! the pipeline runs again without the rewrite of the action ([`Fuel::without`]), and synthesis
//! searches the entry of the point anew. Omitting a rewrite changes the input of later passes,
//! which may then make the same rewrite or others. The counterfactual includes these consequences.

mod names;
mod search;

use super::{Derived, NoObserver, Vigilance, derive_within};
use ir::edit::Fuel;
use ir::{Function, Module, Point};
use names::{NameTable, RewriteName, RunNames};
use osr::{Level, Reason, Synthesis, SynthesizedMapping, VersionPair, synthesize, synthesize_at};
use passes::Pipeline;
pub use search::{Culprit, CulpritEffort, Culprits, SharedCulprits};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use transition::{Pair, Side};

/// The most rewrites that a run omits. Passes may make an omitted rewrite again and again; this
/// limit ends the search.
const MAX_LEFT_OUT: usize = 64;

/// A point, and the side of the version that contains it.
pub type SourcePoint = (Side, Point);

/// The fate of a point in the versions of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The point has an entry.
    Entry,
    /// The version lacks the point, or the point is unreachable.
    Gone,
    /// The point has no entry.
    Lacks {
        /// The reason.
        reason: Reason,
        /// The actions to suspect, one for each rewrite, the likeliest first. They are indices
        /// in the log of the run.
        suspects: Vec<usize>,
    },
}

impl Fate {
    /// Whether the point has an entry or needs no entry.
    pub fn is_mended(&self) -> bool {
        !matches!(self, Fate::Lacks { .. })
    }
}

/// The bound that ended a search, or one of its runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SearchBound {
    /// The next version would exceed the search's bound on work ([`CulpritEffort::work`]).
    Work,
    /// The set has reached its largest size ([`CulpritEffort::set`]).
    Set,
    /// A pass makes an omitted rewrite again, more often than a run may omit it.
    Repeats,
    /// The log names no further suspect, and bisection finds no new rewrite.
    Suspects,
}

impl SearchBound {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SearchBound::Work => "work",
            SearchBound::Set => "set",
            SearchBound::Repeats => "repeats",
            SearchBound::Suspects => "suspects",
        }
    }
}

/// One run of the pipeline, in a family of its own.
struct PipelineRun {
    /// The base and the version.
    made: Arc<(Function, Derived)>,
    names: RunNames,
}

impl PipelineRun {
    /// The name of the rewrite that an action of the log belongs to.
    fn name_of(&self, action: usize) -> Option<RewriteName> {
        self.names.name(self.made.1.log.actions()[action].origin().rewrite())
    }
}

/// The counterfactual of one function and its version.
pub struct Counterfactual<'a> {
    module: &'a Module,
    base: &'a Function,
    derived: &'a Derived,
    pipeline: &'a Pipeline,
    /// The rewrites that the version itself lacks ([`super::Retried`]).
    given_up: Vec<Range<u64>>,
    table: NameTable,
    /// The names in the log of the version itself.
    names: RunNames,
    /// The work of all runs, in instructions of both versions.
    work: u64,
    /// The work at which no further run begins.
    end: u64,
    runs: u64,
}

impl<'a> Counterfactual<'a> {
    /// For a version that the pipeline made without the rewrites `given_up`.
    pub fn new(
        module: &'a Module,
        base: &'a Function,
        derived: &'a Derived,
        pipeline: &'a Pipeline,
        given_up: Vec<Range<u64>>,
    ) -> Counterfactual<'a> {
        let mut table = NameTable::default();
        let names = RunNames::new(&derived.log, &mut table);
        let (work, end, runs) = (0, u64::MAX, 0);
        Counterfactual { module, base, derived, pipeline, given_up, table, names, work, end, runs }
    }

    /// The instructions of both versions, summed over all runs so far.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The number of versions made so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The fates of points if the pipeline omits one rewrite, given by its number in the version's
    /// own log. Cost: one version, and one more for each time that a pass makes the rewrite again.
    ///
    /// # Errors
    /// [`SearchBound::Repeats`] if passes make the rewrite again after each omission.
    ///
    /// # Panics
    /// Like [`super::derive()`].
    pub fn fates_without(
        &mut self,
        rewrite: u64,
        level: Level,
        points: &[SourcePoint],
    ) -> Result<Vec<Fate>, SearchBound> {
        let names: Vec<RewriteName> = self.names.name(rewrite).into_iter().collect();
        let (run, _) = self.without(&names)?;
        Ok(self.fates(&run, level, points))
    }

    /// A run in which no pass makes a rewrite of these names, and the numbers of the omitted
    /// rewrites, ascending. A pass that runs twice often repeats an omitted rewrite in its second
    /// run. The repeated rewrite has the same name, and is omitted, too.
    fn without(&mut self, names: &[RewriteName]) -> Result<(PipelineRun, Vec<u64>), SearchBound> {
        let first = |known: &RunNames, from: u64| {
            names.iter().filter_map(|name| known.rewrite(name, from)).min()
        };
        // Up to the first of these rewrites, the run repeats the run that made the version itself,
        // so its numbers are known.
        let mut left_out: Vec<u64> = first(&self.names, 0).into_iter().collect();
        loop {
            let run = self.run(u64::MAX, &left_out)?;
            let from = left_out.last().map_or(0, |last| last + 1);
            match first(&run.names, from) {
                Some(_) if left_out.len() >= MAX_LEFT_OUT => return Err(SearchBound::Repeats),
                Some(again) => left_out.push(again),
                None => return Ok((run, left_out)),
            }
        }
    }

    /// Runs the first `limit` rewrites of the pipeline without the rewrites `left_out`. The error
    /// is the bound on work.
    fn run(&mut self, limit: u64, left_out: &[u64]) -> Result<PipelineRun, SearchBound> {
        // The best estimate before the run: its version is as large as the version itself.
        let size = (self.base.inst_count() + self.derived.function.inst_count()) as u64;
        if self.work.saturating_add(size) > self.end {
            return Err(SearchBound::Work);
        }
        let base = self.base.fork();
        let left_out = left_out.iter().map(|number| *number..number + 1);
        let mut fuel = Fuel::rewrites(limit).without(self.given_up.iter().cloned().chain(left_out));
        let (off, observer) = (Vigilance::Off, &mut NoObserver);
        let derived = derive_within(self.module, &base, self.pipeline, off, &mut fuel, observer);
        let names = RunNames::new(&derived.log, &mut self.table);
        self.runs += 1;
        self.work += (base.inst_count() + derived.function.inst_count()) as u64;
        Ok(PipelineRun { made: Arc::new((base, derived)), names })
    }

    /// The fates of points in the versions of a run. `points` are points of the version itself and
    /// its base.
    fn fates(&self, run: &PipelineRun, level: Level, points: &[SourcePoint]) -> Vec<Fate> {
        let here: Vec<Option<SourcePoint>> =
            points.iter().map(|(side, at)| Some((*side, self.same(run, *side, *at)?))).collect();
        let (base, derived) = &*run.made;
        let pair = VersionPair::new(base, &derived.function, &derived.log)
            .expect("the log leads to the version derived")
            .in_module(self.module);
        // At `avail`, the kept values of some entries are provided by other entries, so synthesis
        // needs all points.
        let made = match level {
            Level::Avail => synthesize(&pair, level),
            _ => synthesize_at(&pair, level, &by_side(&here)),
        };
        here.iter().map(|at| fate(derived, &pair, &made, *at)).collect()
    }

    /// The point in a run's version that corresponds to a point of the version itself.
    fn same(&self, run: &PipelineRun, side: Side, point: Point) -> Option<Point> {
        if side == Side::Before {
            return Some(point);
        }
        let inst = run.names.same_inst(&self.names, point.inst())?;
        run.made.1.function.has_inst(inst).then(|| Point::before(inst))
    }
}

fn by_side(points: &[Option<SourcePoint>]) -> Pair<BTreeSet<Point>> {
    Pair::from_fn(|side| {
        points.iter().flatten().filter(|(of, _)| *of == side).map(|(_, point)| *point).collect()
    })
}

fn fate(
    derived: &Derived,
    pair: &VersionPair<'_>,
    made: &Synthesis,
    at: Option<SourcePoint>,
) -> Fate {
    let Some((side, point)) = at else { return Fate::Gone };
    let SynthesizedMapping { mapping, missing, .. } = match side {
        Side::Before => &made.forward,
        Side::After => &made.backward,
    };
    if mapping.entry(point).is_some() {
        return Fate::Entry;
    }
    let Ok(found) = missing.binary_search_by_key(&point, |missing| missing.point) else {
        return Fate::Gone;
    };
    let missing = missing[found];
    let actions = derived.log.actions();
    let mut rewrites = BTreeSet::new();
    let mut suspects = pair.suspects(side, missing);
    suspects.retain(|action| rewrites.insert(actions[*action].origin().rewrite()));
    Fate::Lacks { reason: missing.why.reason, suspects }
}

/// The items without repetitions: each item stays at its first place.
fn distinct<T: Ord + Copy>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    let mut seen = BTreeSet::new();
    items.filter(move |item| seen.insert(*item))
}
