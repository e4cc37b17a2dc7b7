//! Terms for memory: what reads find past writes, and writes that hide earlier ones.
//!
//! A write of one place is an operation on the memory before it. So a read can be traced up through
//! writes that are apart from what it reads, to the one that wrote it, to a leaf, or through a leaf
//! at the start of a block to what all edges bring (`number`, which knows the edges).

use super::table::{Args, Table};
use ir::place::{Place, gives_back};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;
use transition::certificate::{By, NO_TERM, TermId, TermKind};

/// Writes that one read is traced through.
const MAX_WRITES: usize = 64;

/// Lone writes that a write looks for one it covers among, and writes between the two. Passes that
/// find dead stores look less far ahead of each: only several of them, one after the other, could
/// make more of it.
const MAX_LONE: usize = 256;
const MAX_BETWEEN: usize = 256;

/// Terms of the class of an address that are asked whether they add a constant.
const MAX_MEMBERS: usize = 16;

/// An address as something plus a constant, and the term that says so; [`NO_TERM`] for the class
/// itself.
type Sum = (TermId, u32, TermId);

/// Memories, and for the address of an access and that of the write each is, how they compare.
type Past = Vec<(TermId, [TermId; 2])>;

/// A read, apart from the memory it reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Reader {
    pub(super) opcode: Opcode,
    pub(super) ty: Type,
    pub(super) imm: Imm,
    /// Without the memory.
    pub(super) args: Args,
}

impl Reader {
    /// The operands of the read of a memory.
    pub(super) fn of(&self, memory: TermId) -> Args {
        let mut args = self.args.clone();
        args.push(memory);
        args
    }
}

/// Where tracing a read ends.
pub(super) struct Trace {
    /// The memories read on the way, each the one before the last, and how the addresses compare.
    past: Past,
    /// The memory at the end.
    pub(super) memory: TermId,
    /// What the read finds there, if that is what a write was given.
    stored: Option<(TermId, [TermId; 2])>,
}

impl Trace {
    /// The memory at the end, if the read does not find there what a write was given.
    pub(super) fn leaf(&self) -> Option<TermId> {
        self.stored.is_none().then_some(self.memory)
    }
}

impl Table {
    /// Traces a read up through writes. Cost: bounded.
    pub(super) fn trace(&self, read: &Reader, mut memory: TermId) -> Trace {
        let mut past = Vec::new();
        let place = Place::read(read.opcode, read.ty, &read.imm);
        while past.len() < MAX_WRITES
            && let Some(place) = place
            && let Some((write, written)) = self.write_of(memory)
        {
            let TermKind::Op { opcode, ty, args, .. } = write else { break };
            let (distance, via) = match (read.args.first(), args.len()) {
                (Some(address), 3) => self.distance(*address, args[0]),
                _ => (None, [NO_TERM; 2]),
            };
            if place.is_apart_from(&written, distance) {
                past.push((memory, via));
                memory = args[args.len() - 1];
                continue;
            }
            let is_same = place.covers(&written, distance)
                && written.covers(&place, distance.map(u32::wrapping_neg));
            if is_same && gives_back((*opcode, *ty), (read.opcode, read.ty)) {
                return Trace { past, memory, stored: Some((args[args.len() - 2], via)) };
            }
            break;
        }
        Trace { past, memory, stored: None }
    }

    /// The term of a read whose trace ends in a term `found` for what it finds there.
    pub(super) fn read_along(
        &mut self,
        read: &Reader,
        trace: &Trace,
        found: Option<TermId>,
    ) -> TermId {
        let Reader { opcode, ty, imm, .. } = *read;
        let reason = trace.stored.map(|(class, via)| (class, By::Stored { via }));
        let mut term = match found {
            Some(term) => term,
            None => self.op_because(opcode, ty, imm, read.of(trace.memory), reason),
        };
        for (memory, via) in trace.past.iter().rev() {
            let reason = Some((self.class(term), By::Apart { via: *via, result: term }));
            term = self.op_because(opcode, ty, imm, read.of(*memory), reason);
        }
        term
    }

    /// The term of a write of one place; the memory it writes to is the last of its operands. Lone
    /// writes it covers are left out of its class: what both versions have need not be, and how far
    /// a write looks does not depend on it (`dead_stores_in_a_row_cost_no_entries`). Cost: bounded.
    pub(super) fn write(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: Args) -> TermId {
        if args.contains(&NO_TERM) {
            return NO_TERM;
        }
        self.find_op(opcode, ty, imm, args.clone()).unwrap_or_else(|| {
            let reason = self.without_covered(opcode, ty, imm, &args).map(|rest| {
                let result = self.write(opcode, ty, imm, args_on(&args, rest));
                (self.class(result), By::Covers { result })
            });
            self.op_because(opcode, ty, imm, args, reason)
        })
    }

    /// The term of a write that another version has executed earlier, with a term of the class
    /// `made`: writes it covers are left out; behind those that are apart from it, where the table
    /// has it before them, it is of the class that they make of that. Cost: bounded.
    pub(super) fn late_write(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: Args,
        made: TermId,
    ) -> TermId {
        let mut without: SmallVec<[Args; 2]> = SmallVec::from_iter([args]);
        while let Some(last) = without.last().filter(|_| without.len() <= MAX_LONE).cloned()
            && let Some(rest) = self.without_covered(opcode, ty, imm, &last)
        {
            without.push(args_on(&last, rest));
        }
        let Some(args) = without.pop() else { return NO_TERM };
        let moved = self.moved_up((opcode, ty, imm), &args, made);
        let mut term = moved.unwrap_or_else(|| self.write(opcode, ty, imm, args));
        for args in without.into_iter().rev() {
            let (class, result) = (self.class(term), term);
            let known = self
                .find_op(opcode, ty, imm, args.clone())
                .filter(|known| self.class(*known) == class);
            term = known.unwrap_or_else(|| {
                self.another(TermKind::Op { opcode, ty, imm, args }, class, By::Covers { result })
            });
        }
        term
    }

    fn moved_up(
        &mut self,
        (opcode, ty, imm): (Opcode, Type, Imm),
        args: &Args,
        made: TermId,
    ) -> Option<TermId> {
        let (mut inner, past) = self.earlier((opcode, ty, imm), args, made)?;
        for (memory, via) in past.into_iter().rev() {
            let result = self.write_again(memory, self.class(inner))?;
            let class = self.class(result);
            let known = self
                .find_op(opcode, ty, imm, args_on(args, memory))
                .filter(|term| self.class(*term) == class);
            // Where the covering write writes the same, the table has it as a class of its own
            // (`an_equal_store_is_replayed_as_the_first`).
            inner = known.unwrap_or_else(|| {
                let kind = TermKind::Op { opcode, ty, imm, args: args_on(args, memory) };
                self.another(kind, class, By::Swaps { via, inner, result })
            });
        }
        Some(inner)
    }

    /// Where the table has a write already, of those memories that only writes apart from it have
    /// been made to since: the one of the class `made`, else the last. With those memories, and how
    /// the addresses compare.
    fn earlier(
        &self,
        (opcode, ty, imm): (Opcode, Type, Imm),
        args: &Args,
        made: TermId,
    ) -> Option<(TermId, Past)> {
        let place = Place::written(opcode, ty, &imm)?;
        let (memory, operands) = args.split_last()?;
        let (mut past, mut last) = (Past::new(), None);
        let mut at = *memory;
        loop {
            if let Some(term) = self.find_op(opcode, ty, imm, args_on(args, at)) {
                if self.class(term) == made {
                    return Some((term, past));
                }
                last = last.or(Some((term, past.len())));
            }
            let Some((TermKind::Op { args, .. }, written)) = self.write_of(at) else { break };
            let (distance, via) = match (operands, args.as_slice()) {
                ([address, _], [other, _, _]) => self.distance(*address, *other),
                _ => (None, [NO_TERM; 2]),
            };
            if past.len() == MAX_BETWEEN || !place.is_apart_from(&written, distance) {
                break;
            }
            past.push((at, via));
            at = *args.last()?;
        }
        let (term, count) = last?;
        past.truncate(count);
        Some((term, past))
    }

    /// The memory that a write is made to, without the first lone write found that it covers.
    fn without_covered(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: &Args,
    ) -> Option<TermId> {
        let (memory, operands) = args.split_last()?;
        let covered = self.covered(Place::written(opcode, ty, &imm)?, operands, *memory)?;
        let mut between: Vec<TermId> = Vec::new();
        let mut at = *memory;
        while at != covered {
            let below = self.below(at).filter(|_| between.len() < MAX_BETWEEN)?;
            between.push(at);
            at = below;
        }
        let mut rest = self.below(covered)?;
        for write in between.into_iter().rev() {
            let term = self.write_again(write, rest)?;
            rest = self.class(term);
        }
        // Where limits left others in, some of those made again leave them out, and the checker
        // would refuse the reason (`tests/oir/passes/dse/equal_stores_in_two_places.oir`).
        let hides = |write| self.covers(Place::written(opcode, ty, &imm), operands, write);
        self.are_alike([*memory, rest], hides).then_some(rest)
    }

    /// Whether two memories are the same but for writes that are hidden: what the checker asks.
    fn are_alike(&self, mut memories: [TermId; 2], hides: impl Fn(TermId) -> bool) -> bool {
        for _ in 0..2 * MAX_BETWEEN {
            if memories[0] == memories[1] {
                return true;
            }
            if let Some(side) = (0..2).find(|side| hides(memories[*side])) {
                let Some(below) = self.below(memories[side]) else { return false };
                memories[side] = below;
                continue;
            }
            let [Some((TermKind::Op { opcode, ty, imm, args }, _)), Some((other, _))] =
                memories.map(|m| self.write_of(m))
            else {
                return false;
            };
            let Some(below) = self.below(memories[1]) else { return false };
            if *other
                != (TermKind::Op {
                    opcode: *opcode,
                    ty: *ty,
                    imm: *imm,
                    args: args_on(args, below),
                })
            {
                return false;
            }
            let Some(own) = args.last() else { return false };
            memories = [*own, below];
        }
        false
    }

    /// The lone write among the writes a memory is that is an operation on these operands; the
    /// memory is the last of them, and makes no difference.
    pub(super) fn lone_like(
        &self,
        memory: TermId,
        (opcode, ty, imm): (Opcode, Type, Imm),
        args: &Args,
    ) -> TermId {
        let is_like = |id: &TermId| {
            let below = self.below(*id).unwrap_or(NO_TERM);
            self.terms[*id as usize].kind
                == TermKind::Op { opcode, ty, imm, args: args_on(args, below) }
        };
        self.lone_writes(memory).find(is_like).unwrap_or(NO_TERM)
    }

    /// The lone writes among the writes that a memory is, the last first.
    fn lone_writes(&self, memory: TermId) -> impl Iterator<Item = TermId> + '_ {
        let next =
            |write: &TermId| Some(self.lone_below(self.below(*write)?)).filter(|id| *id != NO_TERM);
        let first = Some(self.lone_below(memory)).filter(|id| *id != NO_TERM);
        std::iter::successors(first, next).take(MAX_LONE)
    }

    /// The last lone write that a write of a place covers.
    fn covered(&self, place: Place, operands: &[TermId], memory: TermId) -> Option<TermId> {
        self.lone_writes(memory).find(|id| self.covers(Some(place), operands, *id))
    }

    /// Whether a write of a place covers the one that a memory is.
    fn covers(&self, place: Option<Place>, operands: &[TermId], write: TermId) -> bool {
        let (Some(place), Some((TermKind::Op { args, .. }, written))) =
            (place, self.write_of(write))
        else {
            return false;
        };
        // Of one base, or of constants: the checker is not told how sums compare.
        let (distance, via) = match (operands, args.as_slice()) {
            ([address, _], [other, _, _]) => self.distance(*address, *other),
            _ => (None, [NO_TERM; 2]),
        };
        place.covers(&written, distance.filter(|_| via == [NO_TERM; 2]))
    }

    /// The write that a memory is, to another memory.
    fn write_again(&mut self, write: TermId, memory: TermId) -> Option<TermId> {
        let TermKind::Op { opcode, ty, imm, mut args } =
            self.terms.get(write as usize)?.kind.clone()
        else {
            return None;
        };
        *args.last_mut()? = memory;
        Some(self.write(opcode, ty, imm, args))
    }

    /// The memory that a write is to.
    fn below(&self, write: TermId) -> Option<TermId> {
        let (TermKind::Op { args, .. }, _) = self.write_of(write)? else { return None };
        args.last().copied()
    }

    /// The write that a memory is, with its place.
    fn write_of(&self, memory: TermId) -> Option<(&TermKind, Place)> {
        let kind = &self.terms.get(memory as usize)?.kind;
        let TermKind::Op { opcode, ty, imm, .. } = kind else { return None };
        Some((kind, Place::written(*opcode, *ty, imm)?))
    }

    /// The address `to` minus the address `from`, if both are one thing plus constants, and the
    /// terms that say so.
    fn distance(&self, from: TermId, to: TermId) -> (Option<u32>, [TermId; 2]) {
        if from == to {
            return (Some(0), [NO_TERM; 2]);
        }
        let (froms, tos) = (self.sums(from), self.sums(to));
        for (base, less, via) in &froms {
            if let Some((_, more, other)) = tos.iter().find(|(b, ..)| b == base) {
                return (Some(more.wrapping_sub(*less)), [*via, *other]);
            }
        }
        (None, [NO_TERM; 2])
    }

    fn sums(&self, class: TermId) -> SmallVec<[Sum; 4]> {
        let own = match self.constant(class) {
            Some(bits) => (NO_TERM, bits as u32, NO_TERM),
            None => (class, 0, NO_TERM),
        };
        let mut sums = SmallVec::from_iter([own]);
        for id in self.members(class).take(MAX_MEMBERS) {
            if let TermKind::Op { opcode: Opcode::Add, ty: Type::I32, args, .. } =
                &self.terms[id as usize].kind
            {
                let pick =
                    |base: usize| Some((args[base], self.constant(args[1 - base])? as u32, id));
                sums.extend(pick(0).or_else(|| pick(1)));
            }
        }
        sums
    }
}

/// The operands of a write, to another memory.
fn args_on(args: &Args, memory: TermId) -> Args {
    let operands = args.len().saturating_sub(1);
    args.iter().copied().take(operands).chain([memory]).collect()
}
