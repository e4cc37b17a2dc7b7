//! Merges: reads of the memory at the start of a block that find the same class over all edges,
//! although the edges bring different memories.
//!
//! Example: a loop reads one address and stores to another, apart from it. The entry edge and the
//! back edge bring different memories, but the read finds the same contents in both.
//!
//! Merges are found like copies. The walk assumes that all live edges bring the class that the
//! edges from above bring. Every live edge is checked as soon as the walk has gone past the region
//! that begins with the block. This is at the end of a turn of the region, or, for a read behind
//! it, at once. A read for which the check fails is traced no further than to that block from then
//! on.

use super::leaves::LeafName;
use super::memory::MemoryRead;
use super::walk::VersionWalk;
use ir::{Block, Edge, Imm, Opcode, Type, Value};
use number::NumberingRound;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use transition::certificate::{By, NO_TERM, TermId};

/// Blocks through whose start one read is traced.
pub(super) const MAX_MERGES: u32 = 64;

/// Identifies a read across rounds, in which terms have other numbers: the name of the leaf, the
/// operation, and the address operand of the instruction that reads.
pub(super) type ReadLabel = (LeafName, Opcode, Type, Imm, Option<Value>);

/// A read that is assumed to find the same class over all edges into a block.
#[derive(Debug)]
struct AssumedMerge {
    name: LeafName,
    leaf: TermId,
    read: MemoryRead,
    term: TermId,
    askers: SmallVec<[Option<Value>; 2]>,
    /// By version: whether it has checked all of its edges.
    is_checked: [bool; 2],
}

/// The reads assumed in this round, of both versions, and the reads refuted so far.
#[derive(Debug, Default)]
pub(super) struct Merges {
    assumed: Vec<AssumedMerge>,
    /// By term: one more than the index of its assumption; 0 or no place for other terms.
    by_term: Vec<u32>,
    /// The assumed reads that further instructions have requested, in order.
    asked: Vec<usize>,
    wrong: BTreeSet<ReadLabel>,
}

/// A state of [`Merges`] to return to. Refuted reads stay refuted.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergesMark {
    assumed: usize,
    asked: usize,
}

impl Merges {
    /// Forgets the assumptions of a round, but not the refuted reads.
    pub(super) fn clear(&mut self) {
        self.assumed.clear();
        self.by_term.clear();
        self.asked.clear();
    }

    /// Marks the state.
    pub(super) fn mark(&self) -> MergesMark {
        MergesMark { assumed: self.assumed.len(), asked: self.asked.len() }
    }

    /// Returns to a marked state.
    pub(super) fn rewind(&mut self, mark: MergesMark) {
        for index in self.asked.drain(mark.asked..).rev() {
            self.assumed[index].askers.pop();
        }
        for merge in self.assumed.drain(mark.assumed..) {
            self.by_term[merge.term as usize] = 0;
        }
    }

    /// The reads refuted so far.
    pub(super) fn refuted(&self) -> BTreeSet<ReadLabel> {
        self.wrong.clone()
    }

    /// Restores this set of refuted reads, and forgets all later refutations.
    pub(super) fn restore(&mut self, refuted: &BTreeSet<ReadLabel>) {
        self.wrong.clone_from(refuted);
    }

    /// The number of refuted reads.
    pub(super) fn failed(&self) -> usize {
        self.wrong.len()
    }

    /// Forgets the refuted reads too: with fewer edges more may hold
    /// (`assumptions_spoiled_by_dead_edges_are_tried_again`).
    pub(super) fn forgive(&mut self) {
        self.wrong.clear();
    }

    /// Whether every assumption is among the first `count`.
    pub(super) fn are_asked(&self, count: usize) -> bool {
        self.assumed.len() <= count
    }

    /// Records another instruction that relies on an assumed read. Other reads need no record.
    fn ask(&mut self, term: TermId, asker: Option<Value>) {
        let found = self.by_term.get(term as usize).and_then(|found| found.checked_sub(1));
        if let Some(index) = found.map(|index| index as usize) {
            let askers = &mut self.assumed[index].askers;
            if !askers.contains(&asker) {
                askers.push(asker);
                self.asked.push(index);
            }
        }
    }

    fn refuse(&mut self, index: usize) {
        let AssumedMerge { name, read, askers, .. } = &self.assumed[index];
        self.wrong
            .extend(askers.iter().map(|asker| (*name, read.opcode, read.ty, read.imm, *asker)));
    }

    fn assume(
        &mut self,
        name: LeafName,
        leaf: TermId,
        read: MemoryRead,
        term: TermId,
        asker: Option<Value>,
    ) {
        // Terms are numbered in the order of creation, so the list grows a little at a time.
        let count = self.by_term.len().max(term as usize + 1);
        self.by_term.resize(count, 0);
        self.by_term[term as usize] = self.assumed.len() as u32 + 1;
        self.assumed.push(AssumedMerge {
            name,
            leaf,
            read,
            term,
            askers: SmallVec::from_iter([asker]),
            is_checked: [false; 2],
        });
    }
}

/// The instruction that requests a read, and the rest of its budget.
pub(super) struct MergeAsker {
    /// The address operand of the instruction.
    pub(super) address: Option<Value>,
    /// Blocks through whose start the read may still be traced.
    pub(super) budget: u32,
}

impl VersionWalk<'_, '_> {
    /// The term of a read of a memory. Cost: bounded by the budget, as is the depth of the
    /// recursion.
    pub(super) fn read(
        &mut self,
        read: &MemoryRead,
        memory: TermId,
        asker: &mut MergeAsker,
    ) -> TermId {
        if memory == NO_TERM {
            return NO_TERM;
        }
        let MemoryRead { opcode, ty, imm, .. } = *read;
        if let Some(term) = self.terms.table.find_op(opcode, ty, imm, read.of(memory)) {
            self.ask_again(term, asker.address);
            return term;
        }
        let trace = self.terms.trace(read, memory);
        let merged = trace.leaf().and_then(|leaf| self.merged(read, leaf, asker));
        self.terms.read_along(read, &trace, merged)
    }

    /// Records that another instruction relies on the reads that a read in the table rests on.
    fn ask_again(&mut self, mut term: TermId, address: Option<Value>) {
        let terms = self.terms.table.terms();
        while let Some(By::Apart { result, .. }) = terms.get(term as usize).map(|t| &t.by) {
            term = *result;
        }
        let leaf = self.terms.table.operation(term).and_then(|read| read.args.last().copied());
        // Only the version that binds the memory checks the read (`check_merge`).
        if leaf.and_then(|leaf| self.memory_home(leaf)).is_some() {
            self.merges.ask(term, address);
        }
    }

    /// The term of a read of a leaf at the start of a block, if all edges from above bring the same
    /// class.
    fn merged(
        &mut self,
        read: &MemoryRead,
        leaf: TermId,
        asker: &mut MergeAsker,
    ) -> Option<TermId> {
        let block = self.memory_home(leaf)?;
        let name = self.leaves.name_of(leaf)?;
        // Another read may have assumed this. If the assumption fails, the label of this
        // instruction must be refuted too, or else the next round assumes it again on its behalf.
        if let Some(term) = self.terms.table.find_op(read.opcode, read.ty, read.imm, read.of(leaf))
        {
            self.merges.ask(term, asker.address);
            return Some(term);
        }
        let label = (name, read.opcode, read.ty, read.imm, asker.address);
        let is_wrong = self.merges.wrong.contains(&label);
        let is_opaque = self.assumed.opaque.contains(block.as_u32() as usize);
        if is_opaque || asker.budget == 0 || is_wrong {
            return None;
        }
        // Spent before the recursion: the budget bounds its depth, and ends it where only back
        // edges lead to a block.
        asker.budget -= 1;
        // A class bound in the block itself or below has other contents on the way in.
        if !read.args.iter().all(|class| self.is_above(*class, block)) {
            return None;
        }
        let mut class = None;
        for memory in self.brought_from_above(block) {
            let term = self.read(read, memory, asker);
            let found = self.terms.table.class(term);
            if found == NO_TERM || *class.get_or_insert(found) != found {
                return None;
            }
        }
        // The list of reads is empty yet: `check_merge` fills it with the read of each edge.
        let class = class.filter(|class| self.is_above(*class, block))?;
        let reason = Some((class, By::Merged { reads: SmallVec::new() }));
        let term = self.terms.op_because(read.opcode, read.ty, read.imm, read.of(leaf), reason);
        self.merges.assume(name, leaf, read.clone(), term, asker.address);
        Some(term)
    }

    /// The classes of the memories that a block's parameters are numbered from
    /// ([`number::LiveEdges::incoming`]).
    fn brought_from_above(&self, block: Block) -> SmallVec<[TermId; 4]> {
        let graph = self.graph();
        let Some(place) = graph.place(block) else { return SmallVec::new() };
        let incoming: SmallVec<[Edge; 4]> = self.found().live.incoming(graph, place);
        self.version.brought(incoming.into_iter())
    }

    /// Whether all leaves of a class are bound strictly above a block.
    fn is_above(&mut self, class: TermId, block: Block) -> bool {
        self.home(class).is_above(self.version.dom(), block)
    }

    /// The term of a read that an instruction makes. Reads assumed on the way, of memory at the
    /// start of a region that the walk has gone past, are checked at once. If one fails, the read
    /// is made again without it.
    pub(super) fn read_checked(
        &mut self,
        read: &MemoryRead,
        memory: TermId,
        address: Option<Value>,
    ) -> TermId {
        loop {
            let mark = self.mark();
            let term = self.read(read, memory, &mut MergeAsker { address, budget: MAX_MERGES });
            if self.check_past(mark.merges) {
                return term;
            }
            self.rewind(&mark, 0..0);
        }
    }

    /// Checks the reads assumed since a mark that an edge back may refute and no later turn checks.
    /// Returns whether all hold.
    fn check_past(&mut self, mark: MergesMark) -> bool {
        // From the last read: it is the nearest to the instruction, so if it fails, the instruction
        // needs none of the others. A check may add more.
        let mut from = mark.assumed;
        while from < self.merges.assumed.len() {
            let until = self.merges.assumed.len();
            for index in (from..until).rev() {
                let home = self.memory_home(self.merges.assumed[index].leaf);
                let graph = self.graph();
                let end = home.and_then(|block| graph.region_end(graph.place(block)?));
                let is_past = end.is_some_and(|end| end <= self.found().at);
                if is_past && !self.check_merge(index) {
                    return false;
                }
            }
            from = until;
        }
        true
    }

    /// Checks the reads assumed since a mark of the memory at the start of a block. Returns whether
    /// all hold.
    pub(super) fn check_merges_at(&mut self, block: Block, mark: MergesMark) -> bool {
        let mut holds = true;
        let mut next = mark.assumed;
        // A check may make further assumptions about the block. The loop checks these too.
        while next < self.merges.assumed.len() {
            if self.memory_home(self.merges.assumed[next].leaf) == Some(block) {
                holds &= self.check_merge(next);
            }
            next += 1;
        }
        holds
    }

    /// Checks all assumptions, from number `next` on. Returns whether one failed, and the number of
    /// assumptions checked.
    pub(super) fn revise_merges(&mut self, mut next: usize) -> (bool, usize) {
        let mut changed = false;
        // A check may make further assumptions, about blocks that back edges come from. The loop
        // checks these too.
        while next < self.merges.assumed.len() {
            changed |= !self.check_merge(next);
            next += 1;
        }
        (changed, next)
    }

    /// Checks an assumption on every live edge. Returns whether it holds.
    fn check_merge(&mut self, index: usize) -> bool {
        let AssumedMerge { leaf, term, is_checked, .. } = self.merges.assumed[index];
        let side = self.version.code.side as usize;
        // The leaf may belong only to the other version, which checks it itself.
        let Some(block) = self.memory_home(leaf).filter(|_| !is_checked[side]) else {
            return true;
        };
        // Of several instructions, any serves: a refuted read is refuted for all.
        let AssumedMerge { ref read, ref askers, .. } = self.merges.assumed[index];
        let (read, address) = (read.clone(), askers[0]);
        let class = self.terms.table.class(term);
        let brought = self.version.brought(self.version.live().leading_to(self.f(), block));
        let mut found: SmallVec<[TermId; 2]> = SmallVec::new();
        for memory in brought {
            let mut asker = MergeAsker { address, budget: MAX_MERGES };
            found.push(self.read(&read, memory, &mut asker));
        }
        let stays = read.args.iter().chain([&class]).all(|c| self.is_above(*c, block));
        let holds = stays && found.iter().all(|term| self.terms.table.class(*term) == class);
        if holds {
            self.add_reads(term, found);
            self.merges.assumed[index].is_checked[side] = true;
        } else {
            self.merges.refuse(index);
        }
        holds
    }

    /// Adds the reads of one version to a merged term. Both versions add their reads: the checker
    /// looks for the read of each edge among all of them.
    fn add_reads(&mut self, term: TermId, found: SmallVec<[TermId; 2]>) {
        let by = self.terms.table.term_mut(term).map(|term| &mut term.by);
        if let Some(By::Merged { reads }) = by {
            reads.extend(found);
            reads.sort_unstable();
            reads.dedup();
        }
    }
}
