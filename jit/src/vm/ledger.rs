//! The transitions that the runs of a machine have made.

use super::action::Action;
use super::table::CodeTable;
use crate::version::{Continuation, Version};
use ir::{Func, Inst, Point};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use transition::VersionKey;
use transition::mapping::Mapping;

/// A kind of transition that runs have made, and how often.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Transition {
    /// The function.
    pub func: Func,
    /// The source point.
    pub at: Inst,
    /// The source version.
    pub from: VersionKey,
    /// The target version. `None` for an open point, whose target may differ each time, and for a
    /// transition into several activations.
    pub to: Option<VersionKey>,
    /// The engines between which the transition leads.
    pub kind: TransitionKind,
    /// The number of transitions.
    pub count: u64,
}

/// The engines before and after a transition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransitionKind {
    /// From the interpreter to native code.
    Up,
    /// From native code to native code.
    Across,
    /// From native code to the interpreter.
    Down,
    /// From native code to an interpreter of the embedder.
    Out,
}

/// The number of transitions of each kind: transitions that the interpreter made, and counts
/// already read from cells. The remaining counts are in the cells.
#[derive(Default)]
pub(super) struct TransitionCounts {
    /// By transition with the count 0.
    counts: BTreeMap<Transition, u64>,
}

impl TransitionCounts {
    /// Moves the count of a point's firings from its cell to this list, under the current action.
    /// Callers do this before each change of the action.
    pub(super) fn note_fired(&mut self, table: &CodeTable, version: &Version, number: usize) {
        let cell = &version.cells[number];
        let count = cell.fired.swap(0, Ordering::Relaxed);
        let Some(link) = table.link(std::ptr::from_ref(cell).addr()).filter(|_| count > 0) else {
            return;
        };
        let at = version.points[number].at;
        // Several activations are of several versions.
        let alone = |mapping: &Mapping| {
            let entry = mapping.entry(at).filter(|entry| entry.inner.is_empty());
            entry.map(|_| mapping.target())
        };
        let (to, kind) = match &link.action {
            Action::Continue(continuation) => {
                (Some(continuation.target.key), TransitionKind::Across)
            }
            Action::Ask => (None, TransitionKind::Across),
            Action::Interpret(mapping) => (alone(mapping), TransitionKind::Down),
            Action::Hand(mapping, _) => (alone(mapping), TransitionKind::Out),
        };
        let at = at.inst();
        self.count(Transition { func: version.func, at, from: version.key, to, kind, count });
    }

    /// Counts a transition from the interpreter to native code.
    pub(super) fn note_ascent(&mut self, func: Func, at: Point, continuation: &Continuation) {
        let (from, _) = continuation.source();
        let (at, to) = (at.inst(), Some(continuation.target.key));
        self.count(Transition { func, at, from, to, kind: TransitionKind::Up, count: 1 });
    }

    /// The transitions so far, in ascending order. Linear in the OSR points.
    pub(super) fn list(&mut self, table: &CodeTable) -> Vec<Transition> {
        for link in table.links() {
            self.note_fired(table, &link.version, link.number);
        }
        let counted = self.counts.iter();
        counted.map(|(made, count)| Transition { count: *count, ..made.clone() }).collect()
    }

    /// The transitions of a point that were moved here. Cost: logarithmic in the list.
    pub(super) fn of_point(&self, version: &Version, number: usize) -> u64 {
        let (func, at, from) = (version.func, version.points[number].at.inst(), version.key);
        let first = Transition { func, at, from, to: None, kind: TransitionKind::Up, count: 0 };
        let of_point = |made: &Transition| (made.func, made.at, made.from) == (func, at, from);
        self.counts.range(first..).take_while(|(made, _)| of_point(made)).map(|(_, n)| n).sum()
    }

    /// Adds the count of a transition to the count of its kind.
    fn count(&mut self, made: Transition) {
        let key = Transition { count: 0, ..made };
        *self.counts.entry(key).or_default() += made.count;
    }
}
