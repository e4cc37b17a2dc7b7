//! Terms for memory: what reads find past writes, and what writes hide.

use super::terms::Terms;
use ir::place::{Place, gives_back};
use ir::{Imm, Opcode, Type};
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind};

/// Writes looked at to compare two memories.
const MAX_WRITES: usize = 1024;

/// An operation that reads or writes one place.
#[derive(Clone, Copy)]
pub(super) struct Access<'c> {
    opcode: Opcode,
    ty: Type,
    imm: &'c Imm,
    pub(super) place: Place,
    /// The address, if it has one, and what is written.
    pub(super) operands: &'c [TermId],
    /// The memory before.
    pub(super) memory: TermId,
}

impl Access<'_> {
    fn address(&self) -> Option<TermId> {
        self.operands.first().copied().filter(|_| matches!(self.place, Place::Bytes { .. }))
    }

    /// Whether it does the same to another memory.
    pub(super) fn is_like(&self, other: &Access<'_>) -> bool {
        (self.opcode, self.ty, self.imm, self.operands)
            == (other.opcode, other.ty, other.imm, other.operands)
    }
}

impl<'c> Terms<'c> {
    fn access(
        &self,
        id: TermId,
        of: impl Fn(Opcode, Type, &Imm) -> Option<Place>,
    ) -> Option<Access<'c>> {
        let TermKind::Op { opcode, ty, imm, args } = self.kind(id)? else { return None };
        let (memory, operands) = args.split_last()?;
        Some(Access {
            opcode: *opcode,
            ty: *ty,
            imm,
            place: of(*opcode, *ty, imm)?,
            operands,
            memory: *memory,
        })
    }

    /// A term that reads one place.
    pub(super) fn read(&self, id: TermId) -> Option<Access<'c>> {
        self.access(id, Place::read)
    }

    /// A term that writes one place.
    pub(super) fn write(&self, id: TermId) -> Option<Access<'c>> {
        self.access(id, Place::written)
    }

    /// The address and the place that a write writes; `None` of what writes no memory.
    pub(super) fn bytes_written(&self, id: TermId) -> Option<(TermId, Place)> {
        let write = self.write(id)?;
        Some((write.address()?, write.place))
    }

    /// Whether a term is of its class by what reads find and writes hide.
    pub(super) fn follows_memory(&self, term: &Term, id: TermId) -> bool {
        self.follows(term, id).unwrap_or(false)
    }

    fn follows(&self, term: &Term, id: TermId) -> Option<bool> {
        match &term.by {
            By::Apart { via, result } => {
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
                let read = self.read(id)?;
                let write = self.write(read.memory)?;
                let distance = self.distance(&read, &write, *via);
                let is_same = read.place.covers(&write.place, distance)
                    && write.place.covers(&read.place, distance.map(u32::wrapping_neg));
                let gives_back = gives_back((write.opcode, write.ty), (read.opcode, read.ty));
                Some(is_same && gives_back && write.operands.last() == Some(&term.class))
            }
            By::Covers { result } => {
                let (write, other) =
                    (self.write(id)?, self.write(*result).filter(|_| *result < id)?);
                let hides = |w: &Access<'_>| {
                    write.place.covers(&w.place, self.distance(&write, w, [NO_TERM; 2]))
                };
                let same =
                    other.is_like(&write) && self.are_alike([write.memory, other.memory], hides);
                Some(same && self.class(*result) == term.class)
            }
            By::Swaps { via, inner, result } => {
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

    /// Whether two memories are the same but for writes that are hidden.
    fn are_alike(&self, mut memories: [TermId; 2], hides: impl Fn(&Access<'_>) -> bool) -> bool {
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

    /// The address of `to` minus that of `from`, modulo 2^32, if they are one thing plus constants.
    fn distance(&self, from: &Access<'_>, to: &Access<'_>, via: [TermId; 2]) -> Option<u32> {
        let (base, less) = self.sum(from.address()?, via[0])?;
        let (other, more) = self.sum(to.address()?, via[1])?;
        (base == other).then(|| more.wrapping_sub(less))
    }

    /// A class as another plus a constant, as a term of it says; a constant is itself plus nothing.
    fn sum(&self, class: TermId, via: TermId) -> Option<(TermId, u32)> {
        if via == NO_TERM {
            return Some(self.constant(class).map_or((class, 0), |bits| (NO_TERM, bits as u32)));
        }
        let Some(TermKind::Op { opcode: Opcode::Add, ty: Type::I32, args, .. }) = self.kind(via)
        else {
            return None;
        };
        let pick =
            |base: usize| Some((*args.get(base)?, self.constant(*args.get(1 - base)?)? as u32));
        pick(0).or_else(|| pick(1)).filter(|_| self.class(via) == class)
    }
}
