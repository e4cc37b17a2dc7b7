//! Lines: how a version runs from one anchor to the next, and what it binds on the way.

use super::version::{Support, Version};
use crate::verdict::{Check, Finding, Place};
use fixedbitset::FixedBitSet;
use ir::certificate::{NO_TERM, TermId};
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;

/// Blocks entered on one line; beyond, the line is not followed. Keeps the cost linear.
const MAX_CROSSINGS: usize = 64;

/// Leaves bound, over all lines that are followed, beyond which a pair is not decided.
const MAX_WORK: usize = 1 << 26;

/// The entry of a block on a line.
#[derive(Clone, Debug)]
pub(super) struct Crossing {
    pub(super) block: Block,
    /// Whether control may come to the block otherwise.
    pub(super) joins: bool,
    /// The class of the memory where the edge leaves.
    memory: TermId,
    /// The leaves that parameters of the block bind, and the class that each is given by all edges that may be taken;
    /// [`NO_TERM`] where they give several.
    binds: Vec<(TermId, TermId)>,
}

impl Crossing {
    /// The entry over one of these edges; `None` unless all lead to one block.
    fn over(version: &Version<'_, '_>, mut edges: impl Iterator<Item = Edge>) -> Option<Crossing> {
        let f = version.f;
        let given = |edge: Edge, index: usize| version.class(f.target(edge).args[index]);
        let first = edges.next()?;
        let block = f.target(first).block;
        let params = f.block_params(block).iter().map(|p| version.class(*p)).enumerate();
        let leaves: Vec<(usize, TermId)> = params.filter(|(_, leaf)| version.is_leaf_of(*leaf, block)).collect();
        let mut binds: Vec<_> = leaves.iter().map(|(index, leaf)| (*leaf, given(first, *index))).collect();
        for edge in edges {
            if f.target(edge).block != block {
                return None;
            }
            for ((index, _), (_, class)) in leaves.iter().zip(&mut binds) {
                *class = if given(edge, *index) == *class { *class } else { NO_TERM };
            }
        }
        // Whether control may come otherwise is asked of landing points alone.
        Some(Crossing { block, joins: true, memory: version.memory_at_end(f.inst_block(first.inst)), binds })
    }
}

/// The lines of a version.
pub(super) struct Lines {
    /// By instruction index: the anchor at or after it in its block.
    next: Vec<Option<Inst>>,
    /// By block index: what its end leads to, where no anchor is on the way.
    onward: Vec<Option<Crossing>>,
}

/// A line from some place to an anchor.
#[derive(Clone, Debug)]
pub(super) struct Line<'l> {
    /// The edge of the anchor it starts from, if that is a terminator.
    first: Option<Crossing>,
    rest: SmallVec<[&'l Crossing; 2]>,
    pub(super) anchor: Inst,
}

impl Line<'_> {
    pub(super) fn crossings(&self) -> impl Iterator<Item = &Crossing> {
        self.first.iter().chain(self.rest.iter().copied())
    }
}

impl Lines {
    /// Cost: linear in instructions and operands.
    pub(super) fn new(version: &Version<'_, '_>, anchors: &FixedBitSet) -> Lines {
        let f = version.f;
        let mut lines = Lines { next: vec![None; f.inst_bound()], onward: vec![None; f.block_bound()] };
        for &block in version.live().blocks() {
            let end = f.terminator(block);
            let (mut at, mut next) = (Some(end), None);
            while let Some(inst) = at {
                next = Some(inst).filter(|i| anchors.contains(i.as_u32() as usize)).or(next);
                lines.next[inst.as_u32() as usize] = next;
                at = f.prev_inst(inst);
            }
            if lines.next_in_block(end).is_none() {
                let crossing = Crossing::over(version, version.live_targets(end));
                let otherwise = |block: Block| version.live_into(block).any(|e| e.inst != end);
                lines.onward[block.as_u32() as usize] = crossing.map(|c| Crossing { joins: otherwise(c.block), ..c });
            }
        }
        lines
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        self.next.get(inst.as_u32() as usize).copied().flatten()
    }

    /// The line from before an instruction.
    pub(super) fn from(&self, version: &Version<'_, '_>, inst: Inst) -> Option<Line<'_>> {
        self.follow(version, None, inst)
    }

    /// The line over an edge.
    pub(super) fn over(&self, version: &Version<'_, '_>, edge: Edge) -> Option<Line<'_>> {
        let first = Crossing::over(version, std::iter::once(edge))?;
        let at = version.f.first_inst(first.block);
        self.follow(version, Some(first), at)
    }

    fn follow(&self, version: &Version<'_, '_>, first: Option<Crossing>, mut at: Inst) -> Option<Line<'_>> {
        let mut rest = SmallVec::new();
        loop {
            if let Some(anchor) = self.next_in_block(at) {
                return Some(Line { first, rest, anchor });
            }
            let block = version.f.inst_block(at).as_u32() as usize;
            let crossing = self.onward[block].as_ref().filter(|_| rest.len() < MAX_CROSSINGS)?;
            at = version.f.first_inst(crossing.block);
            rest.push(crossing);
        }
    }
}

/// What the leaves bound on a line stand for, in terms of what the leaves stood for where it starts.
pub(super) struct Bindings {
    /// By leaf: the line it was bound on, and the class; [`NO_TERM`] where there is none to name.
    bound: Vec<(u32, TermId)>,
    line: u32,
    /// The leaves bound, in order.
    pub(super) leaves: Vec<TermId>,
    blocks: SmallVec<[Block; 2]>,
    /// How many leaves were bound so far.
    work: usize,
}

impl Bindings {
    pub(super) fn new(terms: usize) -> Bindings {
        Bindings { bound: vec![(0, NO_TERM); terms], line: 0, leaves: Vec::new(), blocks: SmallVec::new(), work: 0 }
    }

    /// The class a leaf was bound to on this line.
    pub(super) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound.get(leaf as usize).filter(|(line, _)| *line == self.line).map(|(_, class)| *class)
    }

    /// Whether a line binds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether leaves bound on this line are among those a class depends on, as far as can be told: those of its
    /// first term, though it may depend on fewer, and a block that binds one of them dominates the deepest of
    /// these blocks.
    pub(super) fn affects(&self, version: &Version<'_, '_>, class: TermId) -> bool {
        match version.support(class) {
            Support::Anywhere => false,
            Support::Below(home) => self.blocks.iter().any(|b| version.live().dominates(*b, home)),
            Support::Unbound => !self.blocks.is_empty(),
        }
    }

    /// What a class before the line's last binding is in terms of the start of the line.
    fn resolve(&self, version: &Version<'_, '_>, class: TermId) -> TermId {
        match self.get(class) {
            Some(bound) => bound,
            None if self.affects(version, class) => NO_TERM,
            None => class,
        }
    }

    /// Binds what a line binds. Cost: linear in the parameters of the blocks it enters.
    pub(super) fn enter(&mut self, version: &Version<'_, '_>, line: &Line<'_>) {
        self.line += 1;
        self.leaves.clear();
        self.blocks.clear();
        for crossing in line.crossings() {
            let received = crossing.binds.iter().map(|(leaf, class)| (*leaf, self.resolve(version, *class)));
            let memory = version.memory_leaf(crossing.block);
            let memory = memory.map(|leaf| (leaf, self.resolve(version, crossing.memory)));
            // All at once: each argument is looked up before any of these is bound.
            let received: SmallVec<[(TermId, TermId); 8]> = received.chain(memory).collect();
            for (leaf, class) in received {
                self.bound[leaf as usize] = (self.line, class);
                self.leaves.push(leaf);
            }
            self.blocks.push(crossing.block);
        }
        self.work += self.leaves.len();
    }

    /// Fails when more has been bound, over all lines, than is decided.
    pub(super) fn check_work(&self, version: &Version<'_, '_>) -> Result<(), Finding> {
        version.table.require(Check::Size, self.work <= MAX_WORK, Place::Whole)
    }
}
