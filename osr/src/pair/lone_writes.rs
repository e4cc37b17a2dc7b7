//! The lone writes of one version, with the points of their windows ([`crate::stores`]).

use ir::Inst;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// The lone writes of one version.
#[derive(Debug, Default)]
pub(crate) struct LoneWrites {
    /// By instruction: the lone writes whose window holds the point before it, in the order of
    /// execution.
    open: BTreeMap<Inst, SmallVec<[Inst; 1]>>,
    /// Points in windows behind another write that may have changed a part of the place. A replay
    /// there would undo that change (`nothing_is_replayed_behind_a_write_that_may_overlap`).
    late: BTreeSet<Inst>,
    /// By point that a write with an endless window reaches: that write.
    lost: BTreeMap<Inst, Inst>,
    /// Whether the version has lone writes.
    pub(crate) exist: bool,
}

impl LoneWrites {
    /// Records that the window of a write holds a point. Windows come in the order of execution of
    /// their writes.
    pub(crate) fn add(&mut self, at: Inst, write: Inst) {
        self.open.entry(at).or_default().push(write);
    }

    /// Records that a replay at a point may undo a part of a later write.
    pub(crate) fn add_late(&mut self, at: Inst) {
        self.late.insert(at);
    }

    /// Records that a write with an endless window reaches a point. Returns false, and changes
    /// nothing, if another one is known to reach it.
    pub(crate) fn lose(&mut self, at: Inst, write: Inst) -> bool {
        let is_new = !self.lost.contains_key(&at);
        if is_new {
            self.lost.insert(at, write);
        }
        is_new
    }

    /// The lone writes whose windows hold a point, in the order of execution.
    pub(crate) fn open(&self, at: Inst) -> &[Inst] {
        self.open.get(&at).map_or(&[], |open| open)
    }

    /// Whether a replay of the writes whose windows hold a point would undo a part of a later
    /// write.
    pub(crate) fn are_late(&self, at: Inst) -> bool {
        self.late.contains(&at)
    }

    /// A lone write that reaches a point and whose window has no end that the analysis finds.
    pub(crate) fn lost(&self, at: Inst) -> Option<Inst> {
        self.lost.get(&at).copied()
    }
}
