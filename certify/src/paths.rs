//! Paths: the way of a version from one anchor to the next, and the leaves that it binds there.
//!
//! The paths follow live edges alone, and continue past branches that constants bound on the path
//! decide.

use super::terms::ReasonedTerms;
use super::version::NumberedVersion;
use ir::eval::{fold, is_evaluated};
use ir::{Block, Edge, Inst, Opcode};
use number::{Dense, Home};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use transition::Correspondence;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// Blocks entered on one path before it is dropped. The limit keeps the cost linear, and the
/// checker has the same.
const MAX_CROSSINGS: usize = 256;

/// Blocks entered by all tails together, which bounds the memory for functions of many long paths.
/// A block beyond it has no tail, and paths through it have no facts.
const MAX_ENTERED: usize = 1 << 22;

/// Classes looked at to decide one branch. The checker looks at as many.
const MAX_LOOKED_AT: u32 = 32;

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
    rest: Cow<'r, [EnteredBlock]>,
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
    /// Branches that a path runs past if constants that it binds decide them.
    passed: BTreeSet<Inst>,
    /// If there are such branches: by leaf, the block that binds it, and the index of the
    /// parameter.
    homes: BTreeMap<TermId, (Block, usize)>,
}

impl LivePaths {
    /// Finds the paths of a version. Cost: linear in its live instructions.
    pub(super) fn new(version: &NumberedVersion<'_>, common: &Correspondence<'_>) -> LivePaths {
        let (f, anchors) = (version.f(), &common.anchors);
        let mut paths = LivePaths { passed: common.passed.clone(), ..LivePaths::default() };
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
            if entered > MAX_ENTERED {
                break;
            }
            if let Some(tail) = paths.follow(version, block) {
                entered += tail.crossings.len();
                paths.tail_of.set(block, paths.tails.len() as u32);
                paths.tails.push(tail);
            }
        }
        for block in live().filter(|_| !paths.passed.is_empty()) {
            let params = f.block_params(block).iter().enumerate();
            paths.homes.extend(
                params.filter_map(|(n, p)| Some((version.found.bound_leaf(*p)?, (block, n)))),
            );
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
    pub(super) fn from(
        &self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        inst: Inst,
    ) -> Option<LivePath<'_>> {
        if self.passed.is_empty() {
            self.straight(version, inst)
        } else {
            self.decided(version, table, None, inst)
        }
    }

    /// The path over an edge.
    pub(super) fn over(
        &self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        edge: Edge,
    ) -> Option<LivePath<'_>> {
        let block = version.f().target(edge).block;
        let at = version.f().first_inst(block);
        let first = Some(EnteredBlock { edges: SmallVec::from_iter([edge]), block });
        if self.passed.is_empty() {
            return Some(LivePath { first, ..self.straight(version, at)? });
        }
        self.decided(version, table, first, at)
    }

    /// The path that runs past no branch.
    fn straight(&self, version: &NumberedVersion<'_>, inst: Inst) -> Option<LivePath<'_>> {
        if let Some(anchor) = self.next_in_block(inst) {
            return Some(LivePath { first: None, rest: Cow::Borrowed(&[]), anchor });
        }
        let tail = self.tails.get(self.tail_of.get(version.f().inst_block(inst)) as usize)?;
        Some(LivePath { first: None, rest: Cow::Borrowed(&tail.crossings), anchor: tail.anchor })
    }

    /// The path that runs past branches which the constants it binds decide.
    fn decided(
        &self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        first: Option<EnteredBlock>,
        mut at: Inst,
    ) -> Option<LivePath<'_>> {
        let f = version.f();
        let mut path = LivePath { first, rest: Cow::Owned(Vec::new()), anchor: at };
        loop {
            let block = f.inst_block(at);
            let next = self.next_in_block(at);
            let end = next.unwrap_or(f.terminator(block));
            let onward: SmallVec<[Edge; 1]> = version.live().out_of(f, block).into_iter().collect();
            let to = f.target(*onward.first()?).block;
            // The order of the cases matters. A single live target needs no decision. A branch that
            // nothing decides ends the path, if it is an anchor. Otherwise there is no path.
            let is_straight = next.is_none() && onward.iter().all(|e| f.target(*e).block == to);
            let may_pass = !is_straight && self.passed.contains(&end);
            let passes = may_pass.then(|| self.decide(version, table, &path, end)).flatten();
            let (edges, to) = match (passes, next) {
                _ if is_straight => (onward, to),
                (Some(edge), _) => (SmallVec::from_iter([edge]), f.target(edge).block),
                (None, Some(anchor)) => return Some(LivePath { anchor, ..path }),
                (None, None) => return None,
            };
            // A block entered twice would bind its parameters twice. The checker admits no block
            // twice either.
            if path.rest.len() == MAX_CROSSINGS || path.crossings().any(|c| c.block == to) {
                return None;
            }
            path.rest.to_mut().push(EnteredBlock { edges, block: to });
            at = f.first_inst(to);
        }
    }

    /// The edge that a branch at the end of a path takes, if constants bound on the path decide it.
    fn decide(
        &self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        path: &LivePath<'_>,
        branch: Inst,
    ) -> Option<Edge> {
        let data = version.f().inst(branch);
        let entered: SmallVec<[&EnteredBlock; 4]> = path.crossings().collect();
        let class = version.class(table, *data.args.first()?);
        let bits = self.bits(version, table, &entered, class, &mut MAX_LOOKED_AT.clone())?;
        let index = match data.opcode {
            Opcode::BrIf => u32::from(bits == 0),
            Opcode::Switch => bits.min(data.targets.len() as u64 - 1) as u32,
            _ => return None,
        };
        let edge = Edge { inst: branch, index };
        version.live().has(version.f(), edge).then_some(edge)
    }

    /// The bits of a class at the end of the path so far, which has entered these blocks. The
    /// recursion ends when `left` classes have been looked at.
    fn bits(
        &self,
        version: &NumberedVersion<'_>,
        table: &ReasonedTerms,
        entered: &[&EnteredBlock],
        class: TermId,
        left: &mut u32,
    ) -> Option<u64> {
        *left = left.checked_sub(1)?;
        if let Some(bits) = table.constant(class) {
            return Some(bits);
        }
        match &table.terms().get(class as usize)?.kind {
            TermKind::Param => {
                let (home, index) = *self.homes.get(&class)?;
                // The last entry of the block counts. Its argument was evaluated before, so only
                // the path up to there is searched for it.
                let at = entered.iter().rposition(|c| c.block == home)?;
                let mut given = entered[at]
                    .edges
                    .iter()
                    .map(|e| version.class(table, version.f().target(*e).args[index]));
                let first = given.next()?;
                given
                    .all(|other| other == first)
                    .then(|| self.bits(version, table, &entered[..at], first, left))?
            }
            TermKind::Op { opcode, ty, args, .. } if is_evaluated(*opcode) => {
                let bits = args.iter().map(|a| self.bits(version, table, entered, *a, left));
                let bits: SmallVec<[u64; 3]> = bits.collect::<Option<_>>()?;
                fold(*opcode, *ty, table.ty(*args.first()?)?, &bits)
            }
            _ => None,
        }
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
