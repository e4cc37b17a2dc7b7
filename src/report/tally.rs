//! Counting the entries of the mappings of one direction, level by level.

use crate::schema::Direction;
use ir::{Point, Value};
use std::collections::BTreeMap;
use transition::mapping::{Entry, Mapping};

/// What an entry costs at run time.
#[derive(Clone, Copy, Debug)]
struct Cost {
    chi: u64,
    kept: u64,
    kept_args: u64,
}

impl Cost {
    fn of(entry: &Entry, arguments: &[Value]) -> Cost {
        let kept_args = entry.kept.iter().filter(|v| arguments.contains(v)).count();
        Cost {
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
    /// The pass whose action is the first that made it so; `none` when no action can be named.
    pub(super) pass: &'static str,
}

/// The figures of one direction as they grow. Holds costs, never entries: mappings are dropped
/// level by level, or those of a large program would not fit in memory together.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    figures: Direction,
    arguments: &'a [Value],
    /// By source point, the cost of the entry used at the levels taken so far.
    used: BTreeMap<Point, Cost>,
}

impl<'a> Tally<'a> {
    /// No level yet, of mappings that leave `source`.
    pub(super) fn new(source: &'a ir::Function) -> Tally<'a> {
        Tally {
            figures: Direction::default(),
            arguments: source.arguments(),
            used: BTreeMap::new(),
        }
    }

    /// Takes in the mapping of the next level of the chain. Every level says the same of the
    /// points.
    pub(super) fn take_level(
        &mut self,
        level: usize,
        points: u64,
        unreachable: u64,
        mapping: &Mapping,
    ) {
        (self.figures.points, self.figures.unreachable) = (points, unreachable);
        for (point, entry) in mapping.entries() {
            self.used.insert(point, Cost::of(entry, self.arguments));
        }
        self.figures.feasible.set(level, self.used.len() as u64);
        self.figures.chi.set(level, self.used.values().map(|c| c.chi).collect());
        self.figures.kept.set(level, self.used.values().map(|c| c.kept).collect());
        self.figures.kept_args.set(level, self.used.values().map(|c| c.kept_args).collect());
    }

    /// Counts the points without an entry at the level taken last, by reason and by the pass to
    /// blame. A point that has an entry of an earlier level is not one of them.
    pub(super) fn take_gaps(&mut self, gaps: impl Iterator<Item = Gap>) {
        for Gap { reason, pass, .. } in gaps.filter(|gap| !self.used.contains_key(&gap.point)) {
            *self.figures.infeasible.entry(reason.to_owned()).or_default() += 1;
            *self.figures.blame.entry(pass.to_owned()).or_default() += 1;
            let passes = self.figures.infeasible_by_pass.entry(reason.to_owned()).or_default();
            *passes.entry(pass.to_owned()).or_default() += 1;
        }
    }

    /// The figures.
    pub(super) fn finish(self) -> Direction {
        self.figures
    }
}
