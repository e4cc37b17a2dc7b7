//! Counts the entries of the mappings of one direction, level by level.

use super::BlockWeights;
use crate::schema::{DirectionFigures, DynamicFigures};
use derive::driver::ProvedMapping;
use ir::{Function, Point, Value};
use std::collections::BTreeMap;
use transition::mapping::SharedEntry;

/// The cost of an entry at run time: steps of compensation code, kept values, and kept arguments.
#[derive(Clone, Copy, Debug)]
struct EntryCost {
    chi: u64,
    kept: u64,
    kept_args: u64,
}

impl EntryCost {
    fn of(entry: &SharedEntry, arguments: &[Value]) -> EntryCost {
        let kept = entry.kept();
        let kept_args = kept.iter().filter(|v| arguments.contains(v)).count();
        EntryCost {
            chi: entry.outline().size() as u64,
            kept: (kept.len() - kept_args) as u64,
            kept_args: kept_args as u64,
        }
    }
}

/// A reachable point without an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The point.
    pub(super) point: Point,
    /// The name of the reason.
    pub(super) reason: &'static str,
    /// The pass of the action to blame, or `none` if no action can be named.
    pub(super) pass: &'static str,
}

/// The level whose causes are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CausesOf {
    /// The level of the report.
    Report,
    /// `live`, in a report of another level.
    Live,
}

/// The figures of one direction so far. A tally holds costs, not entries, so that the caller can
/// drop the mappings of each level. The mappings of a large program at all levels do not fit in
/// memory together.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    figures: DirectionFigures,
    source: &'a Function,
    /// The visits of each block of the source version, if there is a profile.
    weights: Option<BlockWeights>,
    /// By source point: the cost of its entry at the highest level so far that has one.
    used: BTreeMap<Point, EntryCost>,
}

impl<'a> Tally<'a> {
    /// A tally without levels, for mappings from `source`. With weights it also counts each point
    /// as often as its block was visited.
    pub(super) fn new(source: &'a Function, weights: Option<BlockWeights>) -> Tally<'a> {
        let dynamic = weights.is_some().then(DynamicFigures::default);
        let figures = DirectionFigures { dynamic, ..DirectionFigures::default() };
        Tally { figures, source, weights, used: BTreeMap::new() }
    }

    /// The visits of a point; 0 without weights.
    fn visits(&self, point: Point) -> u64 {
        let weights = self.weights.as_ref();
        weights.map_or(0, |weights| weights[self.source.inst_block(point.inst())])
    }

    /// Adds the mapping of the next higher level. The counts of points must be the same at every
    /// level.
    pub(super) fn take_level(&mut self, level: usize, made: &ProvedMapping) {
        self.figures.points = made.points as u64;
        self.figures.unreachable = made.unreachable as u64;
        // An entry of this level replaces the entry of a lower level; a point without an entry at
        // this level keeps the lower one.
        for (point, entry) in made.mapping.shared_entries() {
            self.used.insert(point, EntryCost::of(entry, self.source.arguments()));
        }
        let sum = |points: &mut dyn Iterator<Item = Point>| {
            points.fold(0u64, |sum, point| sum.saturating_add(self.visits(point)))
        };
        let feasible = sum(&mut self.used.keys().copied());
        let entries = made.mapping.points();
        let visits = sum(&mut entries.chain(made.missing.iter().map(|one| one.point)));
        if let Some(dynamic) = &mut self.figures.dynamic {
            dynamic.visits = visits;
            dynamic.feasible.set(level, feasible);
        }
        self.figures.feasible.set(level, self.used.len() as u64);
        self.figures.chi.set(level, self.used.values().map(|c| c.chi).collect());
        self.figures.kept.set(level, self.used.values().map(|c| c.kept).collect());
        self.figures.kept_args.set(level, self.used.values().map(|c| c.kept_args).collect());
    }

    /// Counts the points without an entry at the last level, by reason and by pass to blame. A
    /// point with an entry of a lower level is left out.
    pub(super) fn take_gaps(&mut self, of: CausesOf, gaps: impl Iterator<Item = Gap>) {
        for Gap { point, reason, pass } in gaps {
            if self.used.contains_key(&point) {
                continue;
            }
            if of == CausesOf::Live {
                self.figures.live_causes.add(reason, pass, 1);
                continue;
            }
            self.figures.causes.add(reason, pass, 1);
            let visits = self.visits(point);
            if let Some(dynamic) = self.figures.dynamic.as_mut().filter(|_| visits > 0) {
                dynamic.causes.add(reason, pass, visits);
            }
        }
    }

    /// The figures of all levels.
    pub(super) fn finish(self) -> DirectionFigures {
        self.figures
    }
}
