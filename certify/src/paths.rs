//! Paths: the way of a version from one anchor to the next, and the leaves that it binds there.
//!
//! The paths follow live edges alone.

use super::terms::ReasonedTerms;
use super::version::NumberedVersion;
use ir::{Block, Edge, Inst};
use number::{Dense, Home};
use smallvec::SmallVec;
use transition::Correspondence;
use transition::certificate::{NO_TERM, TermId};

/// Blocks entered on one path before it is dropped. The limit keeps the cost linear, and the
/// checker has the same.
const MAX_CROSSINGS: usize = 256;

/// Blocks entered by all tails together, which bounds the memory for functions of many long paths.
/// Beyond the limit, blocks get no tails and paths get no facts.
const MAX_ENTERED: usize = 1 << 22;

/// A block entered on a path, and the edges that may be taken to it.
#[derive(Clone, Debug)]
pub(super) struct EnteredBlock {
    pub(super) edges: SmallVec<[Edge; 1]>,
    pub(super) block: Block,
}

/// The rest of a path from the end of a block that no anchor ends.
#[derive(Clone, Debug)]
struct PathTail {
    crossings: SmallVec<[EnteredBlock; 2]>,
    anchor: Inst,
}

/// A path to an anchor.
#[derive(Clone, Debug)]
pub(super) struct LivePath<'r> {
    /// The edge it starts with, if it starts with one.
    first: Option<EnteredBlock>,
    rest: &'r [EnteredBlock],
    pub(super) anchor: Inst,
}

impl LivePath<'_> {
    /// The blocks it enters, in order.
    pub(super) fn crossings(&self) -> impl Iterator<Item = &EnteredBlock> {
        self.first.iter().chain(self.rest.iter())
    }
}

/// The paths of one version.
#[derive(Debug, Default)]
pub(super) struct LivePaths {
    /// By instruction: the anchor at or after it in its block.
    next: Dense<Inst>,
    /// By block: the index of its tail.
    tail_of: Dense<Block>,
    tails: Vec<PathTail>,
}

impl LivePaths {
    /// Finds the paths of a version. Cost: linear in its live instructions.
    pub(super) fn new(version: &NumberedVersion<'_>, common: &Correspondence<'_>) -> LivePaths {
        LivePaths::within(version, common, MAX_ENTERED)
    }

    /// As [`LivePaths::new`], with another limit for the blocks entered by all tails together.
    pub(super) fn within(
        version: &NumberedVersion<'_>,
        common: &Correspondence<'_>,
        most: usize,
    ) -> LivePaths {
        let (f, anchors) = (version.f(), &common.anchors);
        let mut paths = LivePaths::default();
        paths.next.reset(f.inst_bound());
        paths.tail_of.reset(f.block_bound());
        let live = || version.blocks().iter().copied().filter(|b| version.live().has_block(*b));
        for block in live() {
            // From the end of the block upward: one walk finds the next anchor of every
            // instruction.
            let mut next = NO_TERM;
            let mut at = Some(f.terminator(block));
            while let Some(inst) = at {
                if anchors.contains(inst.as_u32() as usize) {
                    next = inst.as_u32();
                }
                paths.next.set(inst, next);
                at = f.prev_inst(inst);
            }
        }
        let mut entered = 0;
        for block in live() {
            if entered > most {
                break;
            }
            if let Some(tail) = paths.follow(version, block) {
                entered += tail.crossings.len();
                paths.tail_of.set(block, paths.tails.len() as u32);
                paths.tails.push(tail);
            }
        }
        paths
    }

    fn follow(&self, version: &NumberedVersion<'_>, block: Block) -> Option<PathTail> {
        let f = version.f();
        let mut crossings: SmallVec<[EnteredBlock; 2]> = SmallVec::new();
        let mut at = block;
        while self.next_in_block(f.terminator(at)).is_none() && crossings.len() < MAX_CROSSINGS {
            let edges: SmallVec<[Edge; 1]> = version.live().out_of(f, at).into_iter().collect();
            at = f.target(*edges.first()?).block;
            // A branch with two live targets and no anchor: the path has no unique end, and points
            // before it have no facts.
            if edges.iter().any(|e| f.target(*e).block != at) {
                return None;
            }
            crossings.push(EnteredBlock { edges, block: at });
            if let Some(anchor) = self.next_in_block(f.first_inst(at)) {
                return Some(PathTail { crossings, anchor });
            }
        }
        None
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        Some(self.next.get(inst)).filter(|n| *n != NO_TERM).map(Inst::from_u32)
    }

    /// The path from before an instruction of the version.
    pub(super) fn from(&self, version: &NumberedVersion<'_>, inst: Inst) -> Option<LivePath<'_>> {
        if let Some(anchor) = self.next_in_block(inst) {
            return Some(LivePath { first: None, rest: &[], anchor });
        }
        let tail = self.tails.get(self.tail_of.get(version.f().inst_block(inst)) as usize)?;
        Some(LivePath { first: None, rest: &tail.crossings, anchor: tail.anchor })
    }

    /// The path over an edge.
    pub(super) fn over(&self, version: &NumberedVersion<'_>, edge: Edge) -> Option<LivePath<'_>> {
        let block = version.f().target(edge).block;
        let first = Some(EnteredBlock { edges: SmallVec::from_iter([edge]), block });
        Some(LivePath { first, ..self.from(version, version.f().first_inst(block))? })
    }
}

/// The leaves bound on a path, in terms of the contents of leaves at its start.
#[derive(Debug, Default)]
pub(super) struct PathBindings {
    /// By leaf: the number of the path that bound it last, and the class; [`NO_TERM`] where no
    /// class can be named.
    bound: Vec<(u32, TermId)>,
    path: u32,
    /// The leaves bound, in order.
    pub(super) leaves: Vec<TermId>,
    /// The blocks entered.
    blocks: SmallVec<[Block; 2]>,
    received: Vec<(TermId, TermId)>,
}

impl PathBindings {
    /// The class that this path bound a leaf to.
    pub(super) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound
            .get(leaf as usize)
            .filter(|(path, _)| *path == self.path)
            .map(|(_, class)| *class)
    }

    /// Whether a class means the same at the end of the path as at its start: none of its leaves is
    /// bound on the way.
    pub(super) fn spares(&self, home: Home) -> bool {
        match home {
            Home::Anywhere => true,
            Home::Below(block) => !self.blocks.contains(&block),
            Home::Nowhere => false,
        }
    }

    /// Binds the leaves of a path. Cost: linear in the parameters of the blocks it enters.
    pub(super) fn enter<'r>(
        &mut self,
        version: &mut NumberedVersion<'_>,
        table: &ReasonedTerms,
        crossings: impl Iterator<Item = &'r EnteredBlock>,
    ) {
        // A new number makes all earlier bindings stale at once: clearing the table would cost its
        // length for each path.
        self.path += 1;
        self.bound.resize(table.terms().len(), (0, NO_TERM));
        self.leaves.clear();
        self.blocks.clear();
        for crossing in crossings {
            let mut received = std::mem::take(&mut self.received);
            received.clear();
            for (index, &param) in version.f().block_params(crossing.block).iter().enumerate() {
                if let Some(leaf) = version.found.bound_leaf(param) {
                    received.push((leaf, self.brought(version, table, crossing, index)));
                }
            }
            if let (Some(leaf), Some(edge)) =
                (version.found.bound_memory(crossing.block), crossing.edges.first())
            {
                let memory = version.found.at_end.get(version.f().inst_block(edge.inst));
                received.push((leaf, self.resolve(version, table, memory)));
            }
            // All at once: the arguments are looked up before any parameter is bound, since a jump
            // may swap two parameters.
            for (leaf, class) in received.drain(..) {
                self.bound[leaf as usize] = (self.path, class);
                self.leaves.push(leaf);
            }
            self.received = received;
            self.blocks.push(crossing.block);
        }
    }

    /// The class that edges bring to a parameter, or [`NO_TERM`] if they disagree.
    fn brought(
        &self,
        version: &mut NumberedVersion<'_>,
        table: &ReasonedTerms,
        crossing: &EnteredBlock,
        index: usize,
    ) -> TermId {
        let mut found = None;
        for edge in &crossing.edges {
            let class = version.class(table, version.f().target(*edge).args[index]);
            let class = self.resolve(version, table, class);
            if *found.get_or_insert(class) != class {
                return NO_TERM;
            }
        }
        found.unwrap_or(NO_TERM)
    }

    /// A class in terms of the start of the path. [`NO_TERM`] if it depends on a leaf that the path
    /// has bound since: no term names the mixture.
    fn resolve(
        &self,
        version: &mut NumberedVersion<'_>,
        table: &ReasonedTerms,
        class: TermId,
    ) -> TermId {
        match self.get(class) {
            Some(bound) => bound,
            None if self.blocks.is_empty() || self.spares(version.home(table, class)) => class,
            None => NO_TERM,
        }
    }
}
