//! Lines: how a version runs from one anchor to the next, and what it binds on the way.

use super::version::{Support, Version};
use fixedbitset::FixedBitSet;
use ir::certificate::{NO_TERM, TermId};
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;

/// Blocks entered on one line; beyond, the line is not followed. Keeps the cost linear.
const MAX_CROSSINGS: usize = 64;

/// The entry of a block on a line.
#[derive(Clone, Debug)]
pub(super) struct Crossing {
    /// The edges that may be taken, all to the block.
    pub(super) edges: SmallVec<[Edge; 1]>,
    pub(super) block: Block,
    /// Whether control may come to the block otherwise.
    pub(super) joins: bool,
}

/// Where a line leads that leaves a block.
#[derive(Clone, Debug)]
struct Tail {
    crossings: SmallVec<[Crossing; 2]>,
    anchor: Inst,
}

/// The lines of a version.
pub(super) struct Lines {
    /// By instruction index: the anchor at or after it in its block.
    next: Vec<Option<Inst>>,
    /// By block index.
    tails: Vec<Option<Tail>>,
}

/// A line from some place to an anchor.
#[derive(Clone, Debug)]
pub(super) struct Line<'l> {
    /// The edge of the anchor it starts from, if that is a terminator.
    pub(super) first: Option<Crossing>,
    pub(super) rest: &'l [Crossing],
    pub(super) anchor: Inst,
}

impl Line<'_> {
    pub(super) fn crossings(&self) -> impl Iterator<Item = &Crossing> {
        self.first.iter().chain(self.rest)
    }
}

impl Lines {
    /// Cost: linear in instructions and blocks.
    pub(super) fn new(version: &Version<'_, '_>, anchors: &FixedBitSet) -> Lines {
        let f = version.f;
        let mut lines = Lines { next: vec![None; f.inst_bound()], tails: vec![None; f.block_bound()] };
        for &block in version.live().blocks() {
            let mut at = Some(f.terminator(block));
            let mut next = None;
            while let Some(inst) = at {
                if anchors.contains(inst.as_u32() as usize) {
                    next = Some(inst);
                }
                lines.next[inst.as_u32() as usize] = next;
                at = f.prev_inst(inst);
            }
        }
        for &block in version.live().blocks() {
            lines.tails[block.as_u32() as usize] = lines.follow(version, block);
        }
        lines
    }

    fn follow(&self, version: &Version<'_, '_>, block: Block) -> Option<Tail> {
        let mut crossings: SmallVec<[Crossing; 2]> = SmallVec::new();
        let mut at = version.f.terminator(block);
        while self.next_in_block(at).is_none() && crossings.len() < MAX_CROSSINGS {
            let edges: SmallVec<[Edge; 1]> = version.live_targets(at).collect();
            let block = version.f.target(*edges.first()?).block;
            if edges.iter().any(|e| version.f.target(*e).block != block) {
                return None;
            }
            let joins = version.live_into(block).any(|e| !edges.contains(&e));
            crossings.push(Crossing { edges, block, joins });
            if let Some(anchor) = self.next_in_block(version.f.first_inst(block)) {
                return Some(Tail { crossings, anchor });
            }
            at = version.f.terminator(block);
        }
        None
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        self.next.get(inst.as_u32() as usize).copied().flatten()
    }

    /// The line from before an instruction.
    pub(super) fn from(&self, version: &Version<'_, '_>, inst: Inst) -> Option<Line<'_>> {
        if let Some(anchor) = self.next_in_block(inst) {
            return Some(Line { first: None, rest: &[], anchor });
        }
        let block = version.f.inst_block(inst).as_u32() as usize;
        let tail = self.tails.get(block)?.as_ref()?;
        Some(Line { first: None, rest: &tail.crossings, anchor: tail.anchor })
    }

    /// The line over an edge.
    pub(super) fn over(&self, version: &Version<'_, '_>, edge: Edge) -> Option<Line<'_>> {
        let block = version.f.target(edge).block;
        let line = self.from(version, version.f.first_inst(block))?;
        // Whether control may come otherwise is asked of landing points alone.
        let first = Crossing { edges: SmallVec::from_iter([edge]), block, joins: true };
        Some(Line { first: Some(first), ..line })
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
}

impl Bindings {
    pub(super) fn new(terms: usize) -> Bindings {
        Bindings { bound: vec![(0, NO_TERM); terms], line: 0, leaves: Vec::new(), blocks: SmallVec::new() }
    }

    /// The class a leaf was bound to on this line.
    pub(super) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound.get(leaf as usize).filter(|(line, _)| *line == self.line).map(|(_, class)| *class)
    }

    /// Whether a line binds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether leaves bound on this line are among those a class depends on, as far as can be told.
    pub(super) fn affects(&self, version: &Version<'_, '_>, class: TermId) -> bool {
        match version.support(class) {
            Support::Anywhere => false,
            Support::Below(block) => self.blocks.contains(&block),
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
    pub(super) fn enter<'l>(
        &mut self,
        version: &Version<'_, '_>,
        crossings: impl Iterator<Item = &'l Crossing>,
        memory: TermId,
    ) {
        self.line += 1;
        self.leaves.clear();
        self.blocks.clear();
        let mut received: SmallVec<[(TermId, TermId); 8]> = SmallVec::new();
        for crossing in crossings {
            received.clear();
            for (index, &param) in version.f.block_params(crossing.block).iter().enumerate() {
                let leaf = version.class(param);
                if version.is_leaf_of(leaf, crossing.block) {
                    received.push((leaf, self.received(version, crossing, index)));
                }
            }
            received.extend(version.memory_leaf(crossing.block).map(|leaf| (leaf, memory)));
            // All at once: each argument was looked up before any of these is bound.
            for &(leaf, class) in &received {
                if let Some(slot) = self.bound.get_mut(leaf as usize) {
                    *slot = (self.line, class);
                    self.leaves.push(leaf);
                }
            }
            self.blocks.push(crossing.block);
        }
    }

    /// What a parameter receives, if the edges that may be taken agree.
    fn received(&self, version: &Version<'_, '_>, crossing: &Crossing, index: usize) -> TermId {
        let of = |e: &Edge| self.resolve(version, version.class(version.f.target(*e).args[index]));
        let mut all = crossing.edges.iter().map(of);
        let first = all.next().unwrap_or(NO_TERM);
        if all.all(|other| other == first) { first } else { NO_TERM }
    }
}
