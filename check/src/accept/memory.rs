//! The reasons for terms of memory: reads past writes, and writes over writes.
//!
//! A memory is a chain of writes on top of a leaf. A read names the memory that it reads; a write
//! is a term for the memory after it. Whether two accesses overlap follows from their places and
//! the distance of their addresses ([`ir::place`]). The distance is known if both addresses are one
//! class plus constants.
//!
//! [`Check::MemoryRule`](super::checks::Check::MemoryRule) rests on this file. It stops a
//! certificate that reads past a write to the same place, or hides a write that is still visible.

use super::terms::TermTable;
use ir::place::{Place, gives_back};
use ir::{Imm, Opcode, Type};
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind};

/// The largest number of writes that are compared to find two memories alike. Beyond it, the reason
/// is not accepted.
const MAX_WRITES: usize = 1024;

/// An operation that reads or writes one place.
#[derive(Clone, Copy)]
pub(crate) struct MemoryAccess<'c> {
    opcode: Opcode,
    ty: Type,
    imm: &'c Imm,
    pub(crate) place: Place,
    /// The address, if the place has one, and the value written, if it is a write.
    pub(crate) operands: &'c [TermId],
    /// The memory before the access.
    pub(crate) memory: TermId,
}

impl MemoryAccess<'_> {
    /// The class of the address; `None` for globals and sizes, which have no address.
    fn address(&self) -> Option<TermId> {
        self.operands.first().copied().filter(|_| matches!(self.place, Place::Bytes { .. }))
    }

    /// Whether this is the same operation on the same operands, on any memory.
    pub(crate) fn is_like(&self, other: &MemoryAccess<'_>) -> bool {
        (self.opcode, self.ty, self.imm, self.operands)
            == (other.opcode, other.ty, other.imm, other.operands)
    }
}

impl<'c> TermTable<'c> {
    /// The term as an access; `None` if `of` gives its operation no place.
    fn access(
        &self,
        id: TermId,
        of: impl Fn(Opcode, Type, &Imm) -> Option<Place>,
    ) -> Option<MemoryAccess<'c>> {
        let TermKind::Op { opcode, ty, imm, args } = self.kind(id)? else { return None };
        let (memory, operands) = args.split_last()?;
        Some(MemoryAccess {
            opcode: *opcode,
            ty: *ty,
            imm,
            place: of(*opcode, *ty, imm)?,
            operands,
            memory: *memory,
        })
    }

    /// The term as a read of one place; `None` for other terms.
    pub(crate) fn read(&self, id: TermId) -> Option<MemoryAccess<'c>> {
        self.access(id, Place::read)
    }

    /// The term as a write of one place; `None` for other terms.
    pub(crate) fn write(&self, id: TermId) -> Option<MemoryAccess<'c>> {
        self.access(id, Place::written)
    }

    /// The class of the address and the place of a write to memory bytes; `None` for other terms.
    pub(crate) fn bytes_written(&self, id: TermId) -> Option<(TermId, Place)> {
        let write = self.write(id)?;
        Some((write.address()?, write.place))
    }

    /// Whether the memory reason of a term proves its class. `term` is the term with the index
    /// `id`.
    pub(crate) fn follows_memory(&self, term: &Term, id: TermId) -> bool {
        self.follows(term, id).unwrap_or(false)
    }

    /// As [`TermTable::follows_memory`]; `None` where the terms named do not have the required
    /// form.
    ///
    /// Every other term that a reason names must come earlier in the table. Two terms could else
    /// vouch for one another.
    fn follows(&self, term: &Term, id: TermId) -> Option<bool> {
        match &term.by {
            By::Apart { via, result } => {
                // The read skips a write apart from it. Its class is the class of the same read
                // before the write.
                let (read, found) = (self.read(id)?, self.read(*result).filter(|_| *result < id)?);
                let write = self.write(read.memory)?;
                let is_apart =
                    read.place.is_apart_from(&write.place, self.distance(&read, &write, *via));
                Some(
                    is_apart
                        && found.is_like(&read)
                        && found.memory == write.memory
                        && self.class(*result) == term.class,
                )
            }
            By::Stored { via } => {
                // The read covers exactly the bytes written, and the operation gives back the
                // operand unchanged: a narrow store or load would cut or extend it.
                let read = self.read(id)?;
                let write = self.write(read.memory)?;
                let distance = self.distance(&read, &write, *via);
                let is_same = read.place.covers(&write.place, distance)
                    && write.place.covers(&read.place, distance.map(u64::wrapping_neg));
                let gives_back = gives_back(write.opcode, write.ty, read.opcode, read.ty);
                Some(is_same && gives_back && write.operands.last() == Some(&term.class))
            }
            By::Covers { result } => {
                // The same write to a memory without some writes that this write covers: memory
                // after both is equal, because nothing of the covered writes is left.
                let (write, other) =
                    (self.write(id)?, self.write(*result).filter(|_| *result < id)?);
                let hides = |w: &MemoryAccess<'_>| {
                    write.place.covers(&w.place, self.distance(&write, w, [NO_TERM; 2]))
                };
                let same =
                    other.is_like(&write) && self.are_alike([write.memory, other.memory], hides);
                Some(same && self.class(*result) == term.class)
            }
            By::Swaps { via, inner, result } => {
                // Two writes apart from each other commute. `inner` is this write on the memory
                // before both, and `result` is the other write on top of `inner`.
                let write = self.write(id)?;
                let (before, first) =
                    (self.write(write.memory)?, self.write(*inner).filter(|_| *inner < id)?);
                let last = self.write(*result).filter(|_| *result < id)?;
                let is_apart =
                    write.place.is_apart_from(&before.place, self.distance(&write, &before, *via));
                let same =
                    first.is_like(&write) && first.memory == before.memory && last.is_like(&before);
                Some(
                    is_apart
                        && same
                        && last.memory == self.class(*inner)
                        && self.class(*result) == term.class,
                )
            }
            _ => None,
        }
    }

    /// Whether two memories are equal after this write, which hides the places `hides`.
    ///
    /// Both are walked from the last write down. A hidden write is skipped on its side alone; other
    /// writes have to be the same on both sides. The walk succeeds where the two chains meet in one
    /// class. Skipping before matching is no loss: a hidden write on both sides is skipped on each.
    fn are_alike(
        &self,
        mut memories: [TermId; 2],
        hides: impl Fn(&MemoryAccess<'_>) -> bool,
    ) -> bool {
        for _ in 0..MAX_WRITES {
            if memories[0] == memories[1] {
                return true;
            }
            let writes = memories.map(|m| self.write(m));
            if let Some(side) = (0..2).find(|side| writes[*side].as_ref().is_some_and(&hides)) {
                memories[side] = writes[side].map_or(NO_TERM, |w| w.memory);
                continue;
            }
            match writes {
                [Some(one), Some(other)] if one.is_like(&other) => {
                    memories = [one.memory, other.memory]
                }
                _ => return false,
            }
        }
        false
    }

    /// The address of `to` minus the address of `from`, modulo 2^64. `None` if they are not one
    /// class plus constants, as far as the hints in `via` tell.
    fn distance(
        &self,
        from: &MemoryAccess<'_>,
        to: &MemoryAccess<'_>,
        via: [TermId; 2],
    ) -> Option<u64> {
        let (base, less) = self.sum_via(from.address()?, via[0])?;
        let (other, more) = self.sum_via(to.address()?, via[1])?;
        (base == other).then(|| more.wrapping_sub(less))
    }

    /// A class as a base plus a constant. The hint `via` is a term of the class that is such a sum;
    /// [`NO_TERM`] stands for the first term of the class. A constant has no base.
    ///
    /// The hint has to come earlier in the table, like every term that a reason names: `sums` has
    /// the terms that are proved (`a_sum_that_comes_later_is_not_believed`).
    fn sum_via(&self, class: TermId, via: TermId) -> Option<(TermId, u64)> {
        let term = if via == NO_TERM { class } else { via };
        self.sum(term).filter(|_| self.class(term) == class)
    }
}
