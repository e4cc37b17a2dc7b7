//! Reads of the memory at the start of a block, where edges bring different memories that all give
//! the same.
//!
//! Found as copies are: what the edges from above bring is assumed of all, and every edge is asked
//! when the round is over. A read for which it does not hold is traced no further than to that
//! block from then on.

use super::leaves::{Leaves, Name};
use super::memory::Reader;
use super::number::Numbering;
use super::place::Site;
use super::table::Table;
use ir::{Block, Imm, Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{By, NO_TERM, TermId};

/// Blocks whose start one read is traced through.
pub(super) const MAX_MERGES: u32 = 64;

/// What names a read from one round to the next, when terms have other numbers: the leaf, the
/// operation, and the address of the instruction it was traced from.
type Label = (Name, Opcode, Type, Imm, Option<Value>);

/// A read that is assumed to give the same on all edges into a block.
#[derive(Debug)]
struct Assumed {
    name: Name,
    leaf: TermId,
    read: Reader,
    term: TermId,
    askers: SmallVec<[Option<Value>; 2]>,
}

/// The reads assumed in this round, of both versions, and those found to be wrong in earlier ones.
#[derive(Debug, Default)]
pub(super) struct Merges {
    assumed: Vec<Assumed>,
    by_term: BTreeMap<TermId, usize>,
    wrong: BTreeSet<Label>,
}

impl Merges {
    /// Forgets what was assumed, but not what was wrong.
    pub(super) fn clear(&mut self) {
        self.assumed.clear();
        self.by_term.clear();
    }

    /// Tries again what was wrong: with fewer edges more may hold.
    /// Breaks `what_dead_edges_of_one_version_spoil_is_tried_again`.
    pub(super) fn forgive(&mut self) {
        self.wrong.clear();
    }

    /// Whether everything assumed is among the first `count`.
    pub(super) fn are_asked(&self, count: usize) -> bool {
        self.assumed.len() <= count
    }

    /// Notes that a read is asked for at an address; of others than those assumed there is nothing
    /// to note.
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

/// Who asks for a read, and how far it may still be traced.
pub(super) struct Asker<'l> {
    pub(super) leaves: &'l Leaves,
    /// The address operand of the instruction.
    pub(super) address: Option<Value>,
    /// Blocks whose start may still be traced through.
    pub(super) budget: u32,
}

impl Numbering<'_> {
    /// The term of a read of a memory. Cost: bounded by the budget. Recursion is as deep as that.
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

    /// The term of a read of a leaf at the start of a block, if all edges from above give the same.
    fn merged(
        &mut self,
        table: &mut Table,
        read: &Reader,
        leaf: TermId,
        asker: &mut Asker<'_>,
    ) -> Option<TermId> {
        let block = self.memory_home(table, leaf)?;
        let name = asker.leaves.name_of(leaf)?;
        if let Some(term) = table.find_op(read.opcode, read.ty, read.imm, read.of(leaf)) {
            table.merges.ask(term, asker.address);
            return Some(term);
        }
        let label = (name, read.opcode, read.ty, read.imm, asker.address);
        if self.is_plain() || asker.budget == 0 || table.merges.wrong.contains(&label) {
            return None;
        }
        asker.budget -= 1;
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
        let class = class.filter(|class| self.is_above(table, *class, block))?;
        let reason = Some((class, By::Merged { reads: SmallVec::new() }));
        let term = table.op_because(read.opcode, read.ty, read.imm, read.of(leaf), reason);
        table.merges.assume(name, leaf, read.clone(), term, asker.address);
        Some(term)
    }

    /// Whether all that a class depends on is bound strictly above a block.
    fn is_above(&mut self, table: &Table, class: TermId, block: Block) -> bool {
        match self.site(table, class) {
            Site::Anywhere => true,
            Site::Below(home) => home != block && self.dom.dominates(home, block),
            Site::Nowhere => false,
        }
    }

    /// Asks every edge for what was assumed, from the assumption numbered `next` on. Whether
    /// something was wrong, and how many assumptions were asked about.
    pub(super) fn revise_merges(
        &mut self,
        table: &mut Table,
        leaves: &Leaves,
        mut next: usize,
    ) -> (bool, usize) {
        let mut changed = false;
        // Asking may assume more, of blocks that edges back lead from.
        while next < table.merges.assumed.len() {
            let Assumed { leaf, term, ref read, ref askers, .. } = table.merges.assumed[next];
            let (read, address) = (read.clone(), askers[0]);
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
