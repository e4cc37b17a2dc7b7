//! Counts the entries of the mappings of one direction, level by level.

use crate::schema::DirectionFigures;
use ir::{Point, Value};
use std::collections::BTreeMap;
use transition::mapping::{Entry, Mapping};

/// The cost of an entry at run time: steps of compensation code, kept values, and kept arguments.
#[derive(Clone, Copy, Debug)]
struct EntryCost {
    chi: u64,
    kept: u64,
    kept_args: u64,
}

impl EntryCost {
    fn of(entry: &Entry, arguments: &[Value]) -> EntryCost {
        let kept_args = entry.kept.iter().filter(|v| arguments.contains(v)).count();
        EntryCost {
            chi: entry.size() as u64,
            kept: (entry.kept.len() - kept_args) as u64,
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

/// The figures of one direction so far. A tally holds costs, not entries, so that the caller can
/// drop the mappings of each level. The mappings of a large program at all levels do not fit in
/// memory together.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    figures: DirectionFigures,
    arguments: &'a [Value],
    /// The cost of the entry used at the levels so far, by source point.
    used: BTreeMap<Point, EntryCost>,
}

impl<'a> Tally<'a> {
    /// A tally without levels, for mappings from `source`.
    pub(super) fn new(source: &'a ir::Function) -> Tally<'a> {
        Tally {
            figures: DirectionFigures::default(),
            arguments: source.arguments(),
            used: BTreeMap::new(),
        }
    }

    /// Adds the mapping of the next higher level. The counts of points must be the same at every
    /// level.
    pub(super) fn take_level(
        &mut self,
        level: usize,
        points: u64,
        unreachable: u64,
        mapping: &Mapping,
    ) {
        (self.figures.points, self.figures.unreachable) = (points, unreachable);
        // An entry of this level replaces that of a lower one, which remains where this level has
        // none.
        for (point, entry) in mapping.entries() {
            self.used.insert(point, EntryCost::of(entry, self.arguments));
        }
        self.figures.feasible.set(level, self.used.len() as u64);
        self.figures.chi.set(level, self.used.values().map(|c| c.chi).collect());
        self.figures.kept.set(level, self.used.values().map(|c| c.kept).collect());
        self.figures.kept_args.set(level, self.used.values().map(|c| c.kept_args).collect());
    }

    /// Counts the points without an entry at the last level, by reason and by pass to blame. A
    /// point with an entry of a lower level is left out.
    pub(super) fn take_gaps(&mut self, gaps: impl Iterator<Item = Gap>) {
        for Gap { reason, pass, .. } in gaps.filter(|gap| !self.used.contains_key(&gap.point)) {
            *self.figures.infeasible.entry(reason.to_owned()).or_default() += 1;
            *self.figures.blame.entry(pass.to_owned()).or_default() += 1;
            let passes = self.figures.infeasible_by_pass.entry(reason.to_owned()).or_default();
            *passes.entry(pass.to_owned()).or_default() += 1;
        }
    }

    /// The figures of all levels.
    pub(super) fn finish(self) -> DirectionFigures {
        self.figures
    }
}
