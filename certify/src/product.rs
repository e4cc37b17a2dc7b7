//! Both versions side by side: finds shared leaves on which they disagree.
//!
//! Both versions execute the same anchors in the same order. From each anchor, the paths of both to
//! the next anchor bind leaves. A leaf that both have at the end must have been bound to equal
//! classes. If not, it becomes two leaves.

use super::leaves::{LeafName, Leaves};
use super::paths::{LivePath, LivePaths, PathBindings};
use super::terms::ReasonedTerms;
use super::version::NumberedVersion;
use fixedbitset::FixedBitSet;
use ir::{Edge, Inst};
use number::Home;
use smallvec::SmallVec;
use transition::certificate::{NO_TERM, TermId};

/// The search for leaves that disagree.
pub(super) struct VersionProduct<'p, 'a> {
    pub(super) table: &'p ReasonedTerms,
    pub(super) versions: &'p mut [NumberedVersion<'a>; 2],
    pub(super) paths: &'p [LivePaths; 2],
    pub(super) leaves: &'p Leaves,
    /// Whether memory may differ between the versions at some anchor.
    pub(super) has_lone_writes: bool,
}

impl VersionProduct<'_, '_> {
    /// The names of leaves that disagree, in the order the search meets them. Cost: linear in the
    /// anchors, plus the parameters bound on each path from one. `bound` limits the ids of anchors.
    pub(super) fn disagreeing(mut self, bound: usize) -> Vec<LeafName> {
        let mut found = Vec::new();
        let mut seen = FixedBitSet::with_capacity(bound);
        let mut work: Vec<Inst> = self.first().into_iter().collect();
        let mut bindings = [PathBindings::default(), PathBindings::default()];
        let paths = self.paths;
        // Each anchor once, from both versions together: induction over anchors assumes that leaves
        // agree at the start of every path.
        while let Some(anchor) = work.pop() {
            if seen.put(anchor.as_u32() as usize) {
                continue;
            }
            for pair in self.onward(paths, anchor) {
                // A path that enters no block binds nothing.
                if pair.iter().any(|path| path.crossings().next().is_some()) {
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
            self.paths[side]
                .from(version, version.f().first_inst(version.f().entry()))
                .map(|path| path.anchor)
        });
        a.filter(|_| a == b)
    }

    /// The pairs of paths from an anchor, one in each version, that lead to the same next anchor.
    /// Pairs that lead to different anchors are skipped: no run takes both paths, or the versions
    /// do not correspond, which the checker finds out.
    fn onward<'r>(
        &self,
        paths: &'r [LivePaths; 2],
        anchor: Inst,
    ) -> SmallVec<[[LivePath<'r>; 2]; 2]> {
        let [a, b] = &*self.versions;
        let pair = |x: Option<LivePath<'r>>, y: Option<LivePath<'r>>| {
            x.zip(y).filter(|(x, y)| x.anchor == y.anchor)
        };
        let mut found = SmallVec::new();
        if let (Some(x), Some(y)) = (a.f().next_inst(anchor), b.f().next_inst(anchor)) {
            found.extend(pair(paths[0].from(a, x), paths[1].from(b, y)).map(|(x, y)| [x, y]));
            return found;
        }
        let is_alike = a.f().inst(anchor).opcode == b.f().inst(anchor).opcode;
        let edges: [SmallVec<[Edge; 2]>; 2] =
            [a, b].map(|v| v.live().out_of(v.f(), v.f().inst_block(anchor)));
        for x in &edges[0] {
            // A lookup by index, since a switch may have a hundred thousand edges. If one version
            // folded the branch to a jump, its single edge pairs with every live edge of the other
            // version.
            let same = || {
                edges[1].binary_search_by_key(&x.index, |y| y.index).map_or(0..0, |at| at..at + 1)
            };
            let range = if is_alike { same() } else { 0..edges[1].len() };
            for y in &edges[1][range] {
                found.extend(pair(paths[0].over(a, *x), paths[1].over(b, *y)).map(|(x, y)| [x, y]));
            }
        }
        found
    }

    fn compare(
        &mut self,
        pair: &[LivePath<'_>; 2],
        bindings: &mut [PathBindings; 2],
        found: &mut Vec<LeafName>,
    ) {
        for side in [0, 1] {
            bindings[side].enter(&mut self.versions[side], self.table, pair[side].crossings());
        }
        let [a, b] = bindings;
        // Leaves that only one version binds count too: the other version still holds the contents
        // from before.
        let of_one = b.leaves.iter().copied().filter(|leaf| a.get(*leaf).is_none());
        for leaf in a.leaves.iter().copied().chain(of_one) {
            // A leaf that a version lacks at the anchor is not compared.
            if !self.is_met(0, leaf, pair[0].anchor) || !self.is_met(1, leaf, pair[1].anchor) {
                continue;
            }
            let values = [a.get(leaf), b.get(leaf)];
            // Without lone writes, memory is the same in both versions at every anchor, in any
            // class. A leaf for memory then cannot disagree.
            if !self.has_lone_writes
                && self.table.ty(leaf).is_none()
                && values.iter().all(Option::is_some)
            {
                continue;
            }
            // A leaf that the path does not bind stands for itself.
            let [x, y] = values.map(|class| class.unwrap_or(leaf));
            if x != y || x == NO_TERM {
                found.extend(self.leaves.name_of(leaf));
            }
        }
    }

    /// Whether a version has bound a leaf on every path to an anchor.
    fn is_met(&mut self, side: usize, leaf: TermId, anchor: Inst) -> bool {
        let version = &mut self.versions[side];
        match version.home(self.table, leaf) {
            Home::Below(home) => version.dom().dominates(home, version.f().inst_block(anchor)),
            _ => false,
        }
    }
}
