//! The edges that a function may take, as far as constants decide its branches.

use crate::FlowGraph;
use ir::cfg::Cfg;
use ir::{Block, Edge, Function, Opcode};
use smallvec::SmallVec;

/// The targets that a block's terminator may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LiveTargets {
    /// No edge: the block is unreachable.
    #[default]
    None,
    /// The target with this index.
    One(u32),
    /// All targets.
    All,
}

impl LiveTargets {
    /// The targets of a block's terminator if its condition has these bits; all of them if the
    /// bits are unknown.
    pub fn decided(f: &Function, block: Block, bits: Option<u64>) -> LiveTargets {
        let data = f.inst(f.terminator(block));
        match (data.opcode, bits) {
            (Opcode::BrIf, Some(bits)) => LiveTargets::One(u32::from(bits == 0)),
            (Opcode::Switch, Some(bits)) => {
                LiveTargets::One(bits.min((data.targets.len() as u64).saturating_sub(1)) as u32)
            }
            _ => LiveTargets::All,
        }
    }

    fn has(self, index: u32) -> bool {
        match self {
            LiveTargets::None => false,
            LiveTargets::One(only) => only == index,
            LiveTargets::All => true,
        }
    }
}

/// The live edges of a function, by block index.
#[derive(Debug, Default)]
pub struct LiveEdges {
    targets: Vec<LiveTargets>,
}

impl LiveEdges {
    /// Forgets everything: no block is reachable.
    pub fn clear(&mut self, f: &Function) {
        self.targets.clear();
        self.targets.resize(f.block_bound(), LiveTargets::None);
    }

    /// Records the targets that a block's terminator may take. Returns whether they changed.
    pub fn take(&mut self, block: Block, targets: LiveTargets) -> bool {
        std::mem::replace(&mut self.targets[block.as_u32() as usize], targets) != targets
    }

    /// The targets that a block's terminator may take.
    pub fn targets(&self, block: Block) -> LiveTargets {
        self.targets.get(block.as_u32() as usize).copied().unwrap_or_default()
    }

    /// Whether a block is reachable.
    pub fn has_block(&self, block: Block) -> bool {
        self.targets(block) != LiveTargets::None
    }

    /// Whether an edge is live.
    pub fn has(&self, f: &Function, edge: Edge) -> bool {
        self.targets[f.inst_block(edge.inst).as_u32() as usize].has(edge.index)
    }

    /// The live edges into a block.
    pub fn leading_to<'s>(
        &'s self,
        f: &'s Function,
        block: Block,
    ) -> impl Iterator<Item = Edge> + 's {
        f.predecessors(block).iter().copied().filter(|e| self.has(f, *e))
    }

    /// The live edges out of a block, targets in order.
    pub fn out_of(&self, f: &Function, block: Block) -> SmallVec<[Edge; 2]> {
        let inst = f.terminator(block);
        let edges = (0..f.inst(inst).targets.len() as u32).map(|index| Edge { inst, index });
        edges.filter(|e| self.has(f, *e)).collect()
    }

    /// The edges from which a walk numbers the block at a place: the live edges from above, or
    /// without such edges all live edges.
    pub fn incoming(&self, graph: &FlowGraph<'_>, place: usize) -> SmallVec<[Edge; 4]> {
        let (f, block) = (graph.f, graph.order()[place]);
        let above = |e: &Edge| graph.place(f.inst_block(e.inst)).is_some_and(|from| from < place);
        let edges: SmallVec<[Edge; 4]> = self.leading_to(f, block).filter(above).collect();
        if edges.is_empty() { self.leading_to(f, block).collect() } else { edges }
    }

    /// The number of live edges.
    pub fn count(&self, f: &Function, cfg: &Cfg) -> usize {
        cfg.rpo().iter().map(|block| self.out_of(f, *block).len()).sum()
    }
}
