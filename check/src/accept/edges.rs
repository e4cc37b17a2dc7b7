//! The edges that no run takes: constant conditions exclude them, or branches above.
//!
//! The conditions have *claimed* classes; nothing is checked yet. The claims are checked later for
//! live code alone, which is enough. Suppose that a run takes an excluded edge, and take the first
//! time. Until then the run was in live code, where all claims are checked. So a condition that is
//! claimed to be a constant did have it, and the run took another edge.
//!
//! A branch is *repeated* if a branch above asks for the same class. Example: `br_if %c` leads to a
//! block `t` with no other edge into it, and a block that `t` dominates ends with `br_if %c`. The
//! second branch takes the edge of the same index as the first did:
//!
//! - The last time that the run passed `t`, it came from the first branch. It has not executed that
//!   branch since: otherwise a run could reach the first branch for the first time, which is above
//!   `t`, and then go on to the second without `t`.
//! - The class has the same contents at both branches. The blocks that bind its leaves dominate the
//!   first branch. If the run had passed one of them since, it would have executed the first branch
//!   again, for the same reason.

use super::graph::BlockGraph;
use super::version::ProvedVersion;
use ir::{Block, Inst, Opcode};
use std::collections::BTreeMap;
use transition::certificate::{NO_TERM, TermId};

impl ProvedVersion<'_, '_> {
    /// Finds the edges that runs may take. Cost: dominators, at most three times.
    pub(super) fn find_live_edges(&mut self) {
        self.narrow();
        // Constants first: without the edges that they exclude, more branches are above others.
        self.repeated = self.repeated_branches();
        if !self.repeated.is_empty() {
            self.narrow();
        }
    }

    fn narrow(&mut self) {
        let mut ends = self.full.blocks().iter().map(|b| self.f.terminator(*b));
        if ends.any(|end| self.live_targets(end).count() < self.f.inst(end).targets.len()) {
            self.live = Some(BlockGraph::new(self.f, |e| self.may_take(e)));
        }
    }

    /// The branches on the class of a branch above, each with the index of the edge that it takes.
    ///
    /// The walk is in preorder of the dominator tree, with a stack of blocks for each class. A
    /// block that does not dominate the current one dominates no later one either, and is popped
    /// for good.
    fn repeated_branches(&self) -> BTreeMap<Inst, u32> {
        let graph = self.live();
        let mut blocks = graph.blocks().to_vec();
        blocks.sort_by_key(|block| graph.preorder(*block));
        let mut above: BTreeMap<TermId, Vec<(Block, u32)>> = BTreeMap::new();
        let mut repeated = BTreeMap::new();
        for block in blocks {
            // The block must have no other edge: over that, the run may come with any condition.
            let mut into = self.live_into(block);
            if let (Some(edge), None) = (into.next(), into.next())
                && let Some(class) = self.asked(edge.inst)
            {
                let tested = above.entry(class).or_default();
                while tested.pop_if(|(top, _)| !graph.dominates(*top, block)).is_some() {}
                tested.push((block, edge.index));
            }
            let end = self.f.terminator(block);
            let Some(tested) = self.asked(end).and_then(|class| above.get_mut(&class)) else {
                continue;
            };
            // A block on another arm precedes in the walk, and decides nothing here.
            while tested.pop_if(|(top, _)| !graph.dominates(*top, block)).is_some() {}
            repeated.extend(tested.last().map(|(_, index)| (end, *index)));
        }
        repeated
    }

    /// The class that a branch compares with zero; `None` for other instructions, and without a
    /// term.
    fn asked(&self, inst: Inst) -> Option<TermId> {
        let data = self.f.inst(inst);
        let class = self.table.zero_with(self.class(*data.args.first()?));
        (data.opcode == Opcode::BrIf && class != NO_TERM).then_some(class)
    }
}
