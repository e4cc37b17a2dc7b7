//! Both versions side by side: leaves that one name would give both of them and that do not agree.
//!
//! Both execute the same anchors in the same order. From each anchor on, the runs of both versions
//! to the next bind parameters; a leaf that both have where the runs end must have been given the
//! same. One that was not is made two.

use super::leaves::{Leaves, Name};
use super::number::Numbering;
use super::place::Site;
use super::runs::{Bindings, Run, Runs};
use super::table::Table;
use fixedbitset::FixedBitSet;
use ir::{Edge, Inst};
use smallvec::SmallVec;
use transition::certificate::{NO_TERM, TermId};

/// The search for leaves that do not agree.
pub(super) struct Product<'p, 'a> {
    pub(super) table: &'p mut Table,
    pub(super) versions: &'p mut [Numbering<'a>; 2],
    pub(super) runs: &'p [Runs; 2],
    pub(super) leaves: &'p Leaves,
    /// Memory need not be the same in both versions at every anchor.
    pub(super) has_lone_writes: bool,
}

impl Product<'_, '_> {
    /// The names of leaves that do not agree, as they are met. Cost: linear in the anchors; for
    /// each way on from one, the parameters bound on it.
    pub(super) fn disagreeing(&mut self, bound: usize) -> Vec<Name> {
        let mut found = Vec::new();
        let mut seen = FixedBitSet::with_capacity(bound);
        let mut work: Vec<Inst> = self.first().into_iter().collect();
        let mut bindings = [Bindings::default(), Bindings::default()];
        let runs = self.runs;
        while let Some(anchor) = work.pop() {
            if seen.put(anchor.as_u32() as usize) {
                continue;
            }
            for pair in self.onward(runs, anchor) {
                if pair.iter().any(|run| run.crossings().next().is_some()) {
                    self.compare(&pair, &mut bindings, &mut found);
                }
                work.push(pair[0].anchor);
            }
        }
        found
    }

    fn first(&self) -> Option<Inst> {
        let [a, b] = [0, 1].map(|side| {
            let version = &self.versions[side];
            self.runs[side]
                .from(version, self.table, version.f.first_inst(version.f.entry()))
                .map(|run| run.anchor)
        });
        a.filter(|_| a == b)
    }

    /// The ways on from an anchor, in both versions, that lead to one next anchor.
    fn onward<'r>(&self, runs: &'r [Runs; 2], anchor: Inst) -> SmallVec<[[Run<'r>; 2]; 2]> {
        let [a, b] = &*self.versions;
        let pair =
            |x: Option<Run<'r>>, y: Option<Run<'r>>| x.zip(y).filter(|(x, y)| x.anchor == y.anchor);
        let mut found = SmallVec::new();
        if let (Some(x), Some(y)) = (a.f.next_inst(anchor), b.f.next_inst(anchor)) {
            found.extend(
                pair(runs[0].from(a, self.table, x), runs[1].from(b, self.table, y))
                    .map(|(x, y)| [x, y]),
            );
            return found;
        }
        let is_alike = a.f.inst(anchor).opcode == b.f.inst(anchor).opcode;
        let edges: [SmallVec<[Edge; 2]>; 2] =
            [a, b].map(|v| v.live.out_of(v.f, v.f.inst_block(anchor)));
        for x in &edges[0] {
            // Looked up: a switch may have a hundred thousand edges. Of a branch that one version
            // folded, the jump has one.
            let same = || {
                edges[1].binary_search_by_key(&x.index, |y| y.index).map_or(0..0, |at| at..at + 1)
            };
            let range = if is_alike { same() } else { 0..edges[1].len() };
            for y in &edges[1][range] {
                found.extend(
                    pair(runs[0].over(a, self.table, *x), runs[1].over(b, self.table, *y))
                        .map(|(x, y)| [x, y]),
                );
            }
        }
        found
    }

    fn compare(
        &mut self,
        pair: &[Run<'_>; 2],
        bindings: &mut [Bindings; 2],
        found: &mut Vec<Name>,
    ) {
        for side in [0, 1] {
            bindings[side].enter(&mut self.versions[side], self.table, pair[side].crossings());
        }
        let [a, b] = bindings;
        let of_one = b.leaves.iter().copied().filter(|leaf| a.get(*leaf).is_none());
        for leaf in a.leaves.iter().copied().chain(of_one) {
            if !self.is_met(0, leaf, pair[0].anchor) || !self.is_met(1, leaf, pair[1].anchor) {
                continue;
            }
            let values = [a.get(leaf), b.get(leaf)];
            // Memory is the same in both versions at every anchor, whatever its classes, if they
            // have the same writes.
            if !self.has_lone_writes
                && self.table.ty(leaf).is_none()
                && values.iter().all(Option::is_some)
            {
                continue;
            }
            let [x, y] = values.map(|class| class.unwrap_or(leaf));
            if x != y || x == NO_TERM {
                found.extend(self.leaves.name_of(leaf));
            }
        }
    }

    /// Whether a version has bound a leaf whenever it comes to an anchor.
    fn is_met(&mut self, side: usize, leaf: TermId, anchor: Inst) -> bool {
        let version = &mut self.versions[side];
        match version.site(self.table, leaf) {
            Site::Below(home) => version.dom.dominates(home, version.f.inst_block(anchor)),
            _ => false,
        }
    }
}
