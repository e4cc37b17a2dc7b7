//! The edges that runs of a version may take.
//!
//! The log says more about the version before than its code does. No run takes an edge that a
//! folded branch has lost, nor one into a block that was removed as unreachable. Such edges close
//! no window of a trap or of a write, and spoil no dominance. Example: a branch on the result of an
//! assumption has one side. Behind the join of both, the stores of that side vouch for loads
//! (`a_side_that_an_assumption_excludes_opens_no_window`).

use crate::facts::Facts;
use crate::pair::analyzed::Analyzed;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Edge};
use transition::Side;

/// The graph of these edges, with its dominators. Values are available by the dominators of the
/// whole graph, which engines know.
pub(crate) struct RunGraph {
    pub(crate) cfg: Cfg,
    pub(crate) dom: DomTree,
}

impl RunGraph {
    /// Cost: one dominator tree.
    pub(crate) fn new(version: &Analyzed<'_>, facts: &Facts) -> RunGraph {
        let cfg = Cfg::of_edges(version.f, |edge| version.may_take(facts, edge));
        RunGraph { dom: DomTree::new(version.f, &cfg), cfg }
    }
}

impl Analyzed<'_> {
    /// Whether a run may take an edge.
    pub(crate) fn may_take(&self, facts: &Facts, edge: Edge) -> bool {
        let control = &facts.control;
        // In the version after, a folded branch is a jump, with one target.
        let taken = control.taken_targets(edge.inst).filter(|_| self.side == Side::Before);
        taken.is_none_or(|taken| taken.binary_search(&edge.index).is_ok())
            && !control.is_removed(self.f.target(edge).block)
            && self.decided.may_take(edge)
    }

    /// The blocks that a run may enter from a block, one for each edge.
    pub(crate) fn entered_from<'q>(
        &'q self,
        facts: &'q Facts,
        block: Block,
    ) -> impl Iterator<Item = Block> + 'q {
        let inst = self.f.terminator(block);
        let targets = self.f.inst(inst).targets.iter().zip(0..);
        targets.filter_map(move |(target, index)| {
            self.may_take(facts, Edge { inst, index }).then_some(target.block)
        })
    }

    /// The edges into a block that a run may take.
    pub(crate) fn entries_into(&self, facts: &Facts, block: Block) -> usize {
        let edges = self.f.predecessors(block).iter();
        let leaves = |edge: &&Edge| !facts.control.is_removed(self.f.inst_block(edge.inst));
        edges.filter(leaves).filter(|edge| self.may_take(facts, **edge)).count()
    }
}
