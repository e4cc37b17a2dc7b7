//! Lines: how a version runs from one anchor to the next, and what it binds on the way.

use super::version::{Support, Version};
use crate::verdict::{Check, Finding, Place};
use fixedbitset::FixedBitSet;
use ir::eval::{eval, is_evaluated};
use ir::{Block, Edge, Inst};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// Blocks entered on one line; beyond, the line is not followed. Keeps the cost linear.
const MAX_CROSSINGS: usize = 64;

/// Classes looked at to decide one branch.
const MAX_LOOKED_AT: u32 = 32;

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
    /// The leaves that parameters of the block bind, ascending, and the class that each is given by
    /// all edges that may be taken; [`NO_TERM`] where they give several.
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
        let mut leaves: Vec<(usize, TermId)> =
            params.filter(|(_, leaf)| version.is_leaf_of(*leaf, block)).collect();
        leaves.sort_unstable_by_key(|(_, leaf)| *leaf);
        let mut binds: Vec<_> =
            leaves.iter().map(|(index, leaf)| (*leaf, given(first, *index))).collect();
        for edge in edges {
            if f.target(edge).block != block {
                return None;
            }
            for ((index, _), (_, class)) in leaves.iter().zip(&mut binds) {
                *class = if given(edge, *index) == *class { *class } else { NO_TERM };
            }
        }
        // Whether control may come otherwise is asked of landing points alone.
        Some(Crossing {
            block,
            joins: true,
            memory: version.memory_at_end(f.inst_block(first.inst)),
            binds,
        })
    }
}

/// The lines of a version.
pub(super) struct Lines {
    /// Branches that a line goes on past where constants it binds decide them.
    pub(super) passed: Rc<BTreeSet<Inst>>,
    /// By instruction index: the anchor at or after it in its block.
    next: Vec<Option<Inst>>,
    /// By block index: what its end leads to, where no anchor is on the way.
    onward: Vec<Option<Crossing>>,
}

type Crossings<'l> = SmallVec<[Cow<'l, Crossing>; 2]>;

/// A line from some place to an anchor.
#[derive(Clone, Debug)]
pub(super) struct Line<'l> {
    crossings: Crossings<'l>,
    pub(super) anchor: Inst,
    /// The crossings into blocks that lines lead on from to other ends: all behind the first that
    /// decides a branch, up to the last branch decided.
    shared: Range<usize>,
}

impl Line<'_> {
    pub(super) fn crossings(&self) -> impl Iterator<Item = &Crossing> {
        self.crossings.iter().map(|c| &**c)
    }

    /// The blocks through which control may come to another end than this one, the line having
    /// bound what decides.
    pub(super) fn shared(&self) -> impl Iterator<Item = Block> + '_ {
        self.crossings[self.shared.clone()].iter().map(|c| c.block)
    }
}

impl Lines {
    /// Cost: linear in instructions and operands.
    pub(super) fn new(
        version: &Version<'_, '_>,
        anchors: &FixedBitSet,
        passed: Rc<BTreeSet<Inst>>,
    ) -> Lines {
        let f = version.f;
        let mut lines =
            Lines { passed, next: vec![None; f.inst_bound()], onward: vec![None; f.block_bound()] };
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
                lines.onward[block.as_u32() as usize] =
                    crossing.map(|c| Crossing { joins: otherwise(c.block), ..c });
            }
        }
        lines
    }

    fn next_in_block(&self, inst: Inst) -> Option<Inst> {
        self.next.get(inst.as_u32() as usize).copied().flatten()
    }

    /// The line from before an instruction.
    pub(super) fn from(&self, version: &Version<'_, '_>, inst: Inst) -> Option<Line<'_>> {
        self.follow(version, Crossings::new(), inst)
    }

    /// The line over an edge.
    pub(super) fn over(&self, version: &Version<'_, '_>, edge: Edge) -> Option<Line<'_>> {
        let first = Crossing::over(version, std::iter::once(edge))?;
        let at = version.f.first_inst(first.block);
        self.follow(version, Crossings::from_iter([Cow::Owned(first)]), at)
    }

    fn follow<'l>(
        &'l self,
        version: &Version<'_, '_>,
        mut crossings: Crossings<'l>,
        mut at: Inst,
    ) -> Option<Line<'l>> {
        let most = crossings.len() + MAX_CROSSINGS;
        let (mut first_shared, mut shared_end) = (usize::MAX, 0);
        loop {
            let block = version.f.inst_block(at);
            let next = self.next_in_block(at);
            let onward = self.onward[block.as_u32() as usize].as_ref().filter(|_| next.is_none());
            let end = next.unwrap_or(version.f.terminator(block));
            let may_pass = onward.is_none() && self.passed.contains(&end);
            let decided = may_pass.then(|| Decision::find(version, &crossings, end)).flatten();
            let crossing = match (onward, decided, next) {
                (Some(crossing), ..) => Cow::Borrowed(crossing),
                (_, Some((edge, first)), _) => {
                    (first_shared, shared_end) = (first_shared.min(first), crossings.len());
                    Cow::Owned(Crossing::over(version, std::iter::once(edge))?)
                }
                (.., Some(anchor)) => {
                    let shared = first_shared.min(shared_end)..shared_end;
                    return Some(Line { crossings, anchor, shared });
                }
                _ => return None,
            };
            // No block twice: what is said of what stands on a line, traps and writes, is said of
            // one execution of it.
            if crossings.len() == most || crossings.iter().any(|c| c.block == crossing.block) {
                return None;
            }
            at = version.f.first_inst(crossing.block);
            crossings.push(crossing);
        }
    }
}

/// Where a branch at the end of a line goes on, by constants that the line has bound. What leaves
/// that it has not bound stand for is not known.
struct Decision<'d, 'a, 'c> {
    version: &'d Version<'a, 'c>,
    /// Classes that may be looked at yet: bounds recursion, too.
    left: u32,
    /// The first crossing that binds what was looked at.
    first: usize,
}

impl Decision<'_, '_, '_> {
    /// The only edge that may be taken, and the first crossing that matters to that.
    fn find(
        version: &Version<'_, '_>,
        line: &[Cow<'_, Crossing>],
        branch: Inst,
    ) -> Option<(Edge, usize)> {
        let mut decision = Decision { version, left: MAX_LOOKED_AT, first: usize::MAX };
        let bits = decision.bits(line, version.class(*version.f.inst(branch).args.first()?))?;
        let edge = version.target_for(branch, bits).filter(|edge| version.may_take(*edge))?;
        Some((edge, decision.first))
    }

    /// The bits of a class where a line has come so far. A parameter has what the block's last
    /// entry gave it, and that is a class where the line stood then.
    fn bits(&mut self, line: &[Cow<'_, Crossing>], class: TermId) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let table = &self.version.table;
        if let Some(bits) = table.constant(class) {
            return Some(bits);
        }
        match table.kind(class)? {
            TermKind::Param => {
                let at = line.iter().rposition(|c| self.version.is_leaf_of(class, c.block))?;
                let binds = &line[at].binds;
                let index = binds.binary_search_by_key(&class, |(leaf, _)| *leaf).ok()?;
                self.first = self.first.min(at);
                self.bits(&line[..at], binds[index].1)
            }
            TermKind::Op { opcode, ty, args, .. } if is_evaluated(*opcode) => {
                let bits: SmallVec<[u64; 3]> =
                    args.iter().map(|a| self.bits(line, *a)).collect::<Option<_>>()?;
                eval(*opcode, *ty, table.ty(*args.first()?)?, &bits).ok()
            }
            _ => None,
        }
    }
}

/// What the leaves bound on a line stand for, in terms of what the leaves stood for where it
/// starts.
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
        Bindings {
            bound: vec![(0, NO_TERM); terms],
            line: 0,
            leaves: Vec::new(),
            blocks: SmallVec::new(),
            work: 0,
        }
    }

    /// The class a leaf was bound to on this line.
    pub(super) fn get(&self, leaf: TermId) -> Option<TermId> {
        self.bound
            .get(leaf as usize)
            .filter(|(line, _)| *line == self.line)
            .map(|(_, class)| *class)
    }

    /// Whether a line binds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether leaves bound on this line are among those a class depends on, as far as can be told:
    /// those of its first term, though it may depend on fewer, and a block that binds one of them
    /// dominates the deepest of these blocks.
    pub(super) fn affects(&self, version: &Version<'_, '_>, class: TermId) -> bool {
        match version.support(class) {
            Support::Anywhere => false,
            Support::Below(home) => self.blocks.iter().any(|b| version.live().dominates(*b, home)),
            Support::Unbound => !self.blocks.is_empty(),
        }
    }

    /// What a class before the line's last binding is in terms of the start of the line.
    pub(super) fn resolve(&self, version: &Version<'_, '_>, class: TermId) -> TermId {
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
            let received =
                crossing.binds.iter().map(|(leaf, class)| (*leaf, self.resolve(version, *class)));
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
