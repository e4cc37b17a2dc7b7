//! How a version runs from one anchor to the next, and what it binds on the way.

use super::leaves::Dense;
use super::number::Numbering;
use super::place::Site;
use super::table::Table;
use fixedbitset::FixedBitSet;
use ir::certificate::{NO_TERM, TermId};
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;

/// Blocks entered on one run before it is given up: keeps the cost linear.
const MAX_CROSSINGS: usize = 64;

/// A block entered on a run, and the edges that may be taken there.
#[derive(Clone, Debug)]
pub(super) struct Crossing {
    pub(super) edges: SmallVec<[Edge; 1]>,
    pub(super) block: Block,
}

/// How a block is left whose end no anchor stands before.
#[derive(Clone, Debug)]
struct Tail {
    crossings: SmallVec<[Crossing; 2]>,
    anchor: Inst,
}

/// A run to an anchor.
#[derive(Clone, Debug)]
pub(super) struct Run<'r> {
    /// The edge it begins with, if it begins with one.
    first: Option<Crossing>,
    rest: &'r [Crossing],
    pub(super) anchor: Inst,
}

impl Run<'_> {
    /// The blocks it enters, in order.
    pub(super) fn crossings(&self) -> impl Iterator<Item = &Crossing> {
        self.first.iter().chain(self.rest)
    }
}

/// The runs of one version.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// By instruction: the anchor at or after it in its block.
    next: Dense<Inst>,
    /// By block: the index of its tail.
    tail_of: Dense<Block>,
    tails: Vec<Tail>,
}

impl Runs {
    /// Cost: linear in the live instructions of the version.
    pub(super) fn new(version: &Numbering<'_>, anchors: &FixedBitSet) -> Runs {
        let f = version.f;
        let mut runs = Runs::default();
        runs.next.reset(f.inst_bound());
        runs.tail_of.reset(f.block_bound());
        let live = || version.blocks().iter().copied().filter(|b| version.live.has_block(*b));
        for block in live() {
            let mut next = NO_TERM;
            let mut at = Some(f.terminator(block));
            while let Some(inst) = at {
                if anchors.contains(inst.as_u32() as usize) {
                    next = inst.as_u32();
                }
                runs.next.set(inst, next);
                at = f.prev_inst(inst);
            }
        }
        for block in live() {
            if let Some(tail) = runs.follow(version, block) {
                runs.tail_of.set(block, runs.tails.len() as u32);
                runs.tails.push(tail);
            }
        }
        runs
    }

    fn follow(&self, version: &Numbering<'_>, block: Block) -> Option<Tail> {
        let f = version.f;
        let mut crossings: SmallVec<[Crossing; 2]> = SmallVec::new();
        let mut at = block;
        while self.next_in_block(f.terminator(at)).is_none() && crossings.len() < MAX_CROSSINGS {
            let edges: SmallVec<[Edge; 1]> = version.live.out_of(f, at).into_iter().collect();
            at = f.target(*edges.first()?).block;
            if edges.iter().any(|e| f.target(*e).block != at) {
                return None;
            }
            crossings.push(Crossing { edges, block: at });
            if let Some(anchor) = self.next_in_block(f.first_inst(at)) {
                return Some(Tail { crossings, anchor });
            }
        }
        None
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        Some(self.next.get(inst)).filter(|n| *n != NO_TERM).map(Inst::from_u32)
    }

    /// The run from before an instruction of the version.
    pub(super) fn from(&self, version: &Numbering<'_>, inst: Inst) -> Option<Run<'_>> {
        if let Some(anchor) = self.next_in_block(inst) {
            return Some(Run { first: None, rest: &[], anchor });
        }
        let tail = self.tails.get(self.tail_of.get(version.f.inst_block(inst)) as usize)?;
        Some(Run { first: None, rest: &tail.crossings, anchor: tail.anchor })
    }

    /// The run over an edge.
    pub(super) fn over(&self, version: &Numbering<'_>, edge: Edge) -> Option<Run<'_>> {
        let block = version.f.target(edge).block;
        let run = self.from(version, version.f.first_inst(block))?;
        Some(Run { first: Some(Crossing { edges: SmallVec::from_iter([edge]), block }), ..run })
    }
}

/// What the leaves bound on a run stand for, in terms of what leaves stood for where it begins.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// By leaf: the run that bound it last, and the class; [`NO_TERM`] where there is none to name.
    bound: Vec<(u32, TermId)>,
    run: u32,
    /// The leaves bound, in order.
    pub(super) leaves: Vec<TermId>,
    /// The blocks entered.
    blocks: SmallVec<[Block; 2]>,
    received: Vec<(TermId, TermId)>,
}

impl Bindings {
    /// The class that a leaf was bound to on this run.
    pub(super) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound.get(leaf as usize).filter(|(run, _)| *run == self.run).map(|(_, class)| *class)
    }

    /// Whether a class with its leaves as they stand at the start of the run means the same at its end.
    pub(super) fn spares(&self, site: Site) -> bool {
        match site {
            Site::Anywhere => true,
            Site::Below(block) => !self.blocks.contains(&block),
            Site::Nowhere => false,
        }
    }

    /// Binds what a run binds. Cost: linear in the parameters of the blocks it enters.
    pub(super) fn enter<'r>(
        &mut self,
        version: &mut Numbering<'_>,
        table: &Table,
        crossings: impl Iterator<Item = &'r Crossing>,
    ) {
        self.run += 1;
        self.bound.resize(table.terms.len(), (0, NO_TERM));
        self.leaves.clear();
        self.blocks.clear();
        for crossing in crossings {
            let mut received = std::mem::take(&mut self.received);
            received.clear();
            for (index, &param) in version.f.block_params(crossing.block).iter().enumerate() {
                if let Some(leaf) = version.bound_leaf(param) {
                    received.push((leaf, self.brought(version, table, crossing, index)));
                }
            }
            if let (Some(leaf), Some(edge)) = (version.bound_memory(crossing.block), crossing.edges.first()) {
                let memory = version.at_end.get(version.f.inst_block(edge.inst));
                received.push((leaf, self.resolve(version, table, memory)));
            }
            // All at once: what edges bring was looked up before any of these is bound.
            for (leaf, class) in received.drain(..) {
                self.bound[leaf as usize] = (self.run, class);
                self.leaves.push(leaf);
            }
            self.received = received;
            self.blocks.push(crossing.block);
        }
    }

    /// What edges bring to a parameter, if they agree.
    fn brought(&self, version: &mut Numbering<'_>, table: &Table, crossing: &Crossing, index: usize) -> TermId {
        let mut found = None;
        for edge in &crossing.edges {
            let class = version.class(table, version.f.target(*edge).args[index]);
            let class = self.resolve(version, table, class);
            if *found.get_or_insert(class) != class {
                return NO_TERM;
            }
        }
        found.unwrap_or(NO_TERM)
    }

    /// What a class is in terms of where the run begins.
    fn resolve(&self, version: &mut Numbering<'_>, table: &Table, class: TermId) -> TermId {
        match self.get(class) {
            Some(bound) => bound,
            None if self.blocks.is_empty() || self.spares(version.site(table, class)) => class,
            None => NO_TERM,
        }
    }
}
