//! Merges: reads of the memory at the start of a block that find the same class over all edges,
//! although the edges bring different memories.
//!
//! Example: a loop reads one address and stores to another, apart from it. The entry edge and the
//! back edge bring different memories, but the read finds the same contents in both.
//!
//! Merges are found like copies. The walk assumes that all live edges bring the class that the
//! edges from above bring. After the walk, every live edge is checked. A read for which the check
//! fails is traced no further than to that block in later rounds.

use super::leaves::{Leaves, Name};
use super::memory::Reader;
use super::number::Numbering;
use super::place::Site;
use super::table::Table;
use ir::{Block, Imm, Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{By, NO_TERM, TermId};

/// Blocks through whose start one read is traced.
pub(super) const MAX_MERGES: u32 = 64;

/// Identifies a read across rounds, in which terms have other numbers: the name of the leaf, the
/// operation, and the address operand of the instruction that reads.
type Label = (Name, Opcode, Type, Imm, Option<Value>);

/// A read that is assumed to find the same class over all edges into a block.
#[derive(Debug)]
struct Assumed {
    name: Name,
    leaf: TermId,
    read: Reader,
    term: TermId,
    askers: SmallVec<[Option<Value>; 2]>,
}

/// The reads assumed in this round, of both versions, and the reads refuted in earlier rounds.
#[derive(Debug, Default)]
pub(super) struct Merges {
    assumed: Vec<Assumed>,
    by_term: BTreeMap<TermId, usize>,
    wrong: BTreeSet<Label>,
}

impl Merges {
    /// Forgets the assumptions of a round, but not the refuted reads.
    pub(super) fn clear(&mut self) {
        self.assumed.clear();
        self.by_term.clear();
    }

    /// Forgets the refuted reads too: with fewer edges more may hold. Without it breaks
    /// `what_dead_edges_of_one_version_spoil_is_tried_again`.
    pub(super) fn forgive(&mut self) {
        self.wrong.clear();
    }

    /// Whether every assumption is among the first `count`.
    pub(super) fn are_asked(&self, count: usize) -> bool {
        self.assumed.len() <= count
    }

    /// Records another instruction that relies on an assumed read. Other reads need no record.
    fn ask(&mut self, term: TermId, asker: Option<Value>) {
        if let Some(index) = self.by_term.get(&term) {
            let askers = &mut self.assumed[*index].askers;
            if !askers.contains(&asker) {
                askers.push(asker);
            }
        }
    }

    fn refuse(&mut self, index: usize) {
        let Assumed { name, read, askers, .. } = &self.assumed[index];
        self.wrong
            .extend(askers.iter().map(|asker| (*name, read.opcode, read.ty, read.imm, *asker)));
    }

    fn assume(
        &mut self,
        name: Name,
        leaf: TermId,
        read: Reader,
        term: TermId,
        asker: Option<Value>,
    ) {
        self.by_term.insert(term, self.assumed.len());
        self.assumed.push(Assumed { name, leaf, read, term, askers: SmallVec::from_iter([asker]) });
    }
}

/// The instruction that asks for a read, and the rest of its budget.
pub(super) struct Asker<'l> {
    pub(super) leaves: &'l Leaves,
    /// The address operand of the instruction.
    pub(super) address: Option<Value>,
    /// Blocks through whose start the read may still be traced.
    pub(super) budget: u32,
}

impl Numbering<'_> {
    /// The term of a read of a memory. Cost: bounded by the budget, as is the depth of the
    /// recursion.
    pub(super) fn read(
        &mut self,
        table: &mut Table,
        read: &Reader,
        memory: TermId,
        asker: &mut Asker<'_>,
    ) -> TermId {
        if memory == NO_TERM {
            return NO_TERM;
        }
        let trace = table.trace(read, memory);
        let merged = trace.leaf().and_then(|leaf| self.merged(table, read, leaf, asker));
        table.read_along(read, &trace, merged)
    }

    /// The term of a read of a leaf at the start of a block, if all edges from above bring the same
    /// class.
    fn merged(
        &mut self,
        table: &mut Table,
        read: &Reader,
        leaf: TermId,
        asker: &mut Asker<'_>,
    ) -> Option<TermId> {
        let block = self.memory_home(table, leaf)?;
        let name = asker.leaves.name_of(leaf)?;
        // Another read may have assumed this. If the assumption fails, the label of this
        // instruction must be refuted too, or else the next round assumes it again on its behalf.
        if let Some(term) = table.find_op(read.opcode, read.ty, read.imm, read.of(leaf)) {
            table.merges.ask(term, asker.address);
            return Some(term);
        }
        let label = (name, read.opcode, read.ty, read.imm, asker.address);
        if self.is_plain() || asker.budget == 0 || table.merges.wrong.contains(&label) {
            return None;
        }
        // Spent before the recursion: the budget bounds its depth, and ends it where only back
        // edges lead to a block.
        asker.budget -= 1;
        // A class bound in the block itself or below has other contents on the way in.
        if !read.args.iter().all(|class| self.is_above(table, *class, block)) {
            return None;
        }
        let mut class = None;
        for memory in self.brought_from_above(block) {
            let term = self.read(table, read, memory, asker);
            let found = table.class(term);
            if found == NO_TERM || *class.get_or_insert(found) != found {
                return None;
            }
        }
        // The list of reads is empty yet: `revise_merges` fills it with the read of each edge.
        let class = class.filter(|class| self.is_above(table, *class, block))?;
        let reason = Some((class, By::Merged { reads: SmallVec::new() }));
        let term = table.op_because(read.opcode, read.ty, read.imm, read.of(leaf), reason);
        table.merges.assume(name, leaf, read.clone(), term, asker.address);
        Some(term)
    }

    /// Whether all leaves of a class are bound strictly above a block.
    fn is_above(&mut self, table: &Table, class: TermId, block: Block) -> bool {
        match self.site(table, class) {
            Site::Anywhere => true,
            Site::Below(home) => home != block && self.dom.dominates(home, block),
            Site::Nowhere => false,
        }
    }

    /// Checks assumptions on every live edge, from number `next` on. Returns whether one failed,
    /// and the number of assumptions checked.
    pub(super) fn revise_merges(
        &mut self,
        table: &mut Table,
        leaves: &Leaves,
        mut next: usize,
    ) -> (bool, usize) {
        let mut changed = false;
        // A check may make further assumptions, about blocks that back edges come from. The loop
        // checks these too.
        while next < table.merges.assumed.len() {
            // Of several instructions, any serves: a refuted read is refuted for all.
            let Assumed { leaf, term, ref read, ref askers, .. } = table.merges.assumed[next];
            let (read, address) = (read.clone(), askers[0]);
            // The leaf belongs to the other version alone, which checks it itself.
            let Some(block) = self.memory_home(table, leaf) else {
                next += 1;
                continue;
            };
            let class = table.class(term);
            let mut found: SmallVec<[TermId; 2]> = SmallVec::new();
            for memory in self.brought(block) {
                found.push(self.read(
                    table,
                    &read,
                    memory,
                    &mut Asker { leaves, address, budget: MAX_MERGES },
                ));
            }
            let stays = read.args.iter().chain([&class]).all(|c| self.is_above(table, *c, block));
            if stays && found.iter().all(|term| table.class(*term) == class) {
                // Both versions add their reads to the term: the checker looks for the read of each
                // edge among all of them.
                if let By::Merged { reads } = &mut table.terms[term as usize].by {
                    reads.extend(found);
                    reads.sort_unstable();
                    reads.dedup();
                }
            } else {
                changed = true;
                table.merges.refuse(next);
            }
            next += 1;
        }
        (changed, next)
    }
}
