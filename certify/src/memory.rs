//! Terms for memory: traces reads up through writes, and leaves covered writes out.
//!
//! A write of one place is an operation on the memory before it. Example: `load a` after
//! `store b, y` after `store a, x`, with `a` and `b` apart. The trace skips the second store, finds
//! the first, and gives the load the class of `x`. A trace ends at the write that wrote the place,
//! or at a leaf. If the leaf is the memory at the start of a block, `merges` continues through the
//! edges into that block.
//!
//! A lone write is in one version only. A write that covers it leaves it out of its class: memory
//! behind the covering write then has equal classes in both versions.

use super::terms::{CertificateTerms, LoneWrite};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use ir::place::{Place, gives_back};
use ir::{Imm, Opcode, Type};
use number::{ClassArgs, ClassOperation, ClassSum, MAX_MEMBERS, OperationRef};
use smallvec::SmallVec;
use transition::certificate::{By, NO_TERM, TermId};

/// The number of writes that the trace of a read passes at most.
const MAX_WRITES: usize = 64;

/// Lone writes among which a write looks for one that it covers, and writes between the two. Passes
/// that find dead stores look less far ahead of each store. Only several passes in a row could
/// exceed the limits.
const MAX_LONE: usize = 256;
const MAX_BETWEEN: usize = 256;

/// Memories made by writes that an access was moved past. With each, the terms that show how its
/// address compares with the address of the access.
type PassedWrites = Vec<(TermId, [TermId; 2])>;

/// Lone writes by their operation.
pub(super) type LoneWrites = HashMap<LoneWrite, TermId, FixedState>;

/// A read, apart from the memory it reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct MemoryRead {
    pub(super) opcode: Opcode,
    pub(super) ty: Type,
    pub(super) imm: Imm,
    /// Without the memory.
    pub(super) args: ClassArgs,
}

impl MemoryRead {
    /// The operands of the read, with the memory read.
    pub(super) fn of(&self, memory: TermId) -> ClassArgs {
        let mut args = self.args.clone();
        args.push(memory);
        args
    }
}

/// The end of the trace of a read.
pub(super) struct ReadTrace {
    /// The memories traced through, the last in time first.
    past: PassedWrites,
    /// The memory at the end.
    pub(super) memory: TermId,
    /// The class that the write at the end stored, if the read finds just that, and the terms that
    /// compare the addresses.
    stored: Option<(TermId, [TermId; 2])>,
}

impl ReadTrace {
    /// The memory at the end, unless the read finds a stored value there.
    pub(super) fn leaf(&self) -> Option<TermId> {
        self.stored.is_none().then_some(self.memory)
    }
}

impl CertificateTerms {
    /// Traces a read up through writes that are apart from it. Cost: at most `MAX_WRITES`
    /// comparisons of addresses.
    pub(super) fn trace(&self, read: &MemoryRead, mut memory: TermId) -> ReadTrace {
        let mut past = Vec::new();
        let place = Place::read(read.opcode, read.ty, &read.imm);
        while past.len() < MAX_WRITES
            && let Some(place) = place
            && let Some((write, written)) = self.write_of(memory)
        {
            let OperationRef { opcode, ty, args, .. } = write;
            let (distance, via) = match (read.args.first(), args.len()) {
                (Some(address), 3) => self.distance(*address, args[0]),
                _ => (None, [NO_TERM; 2]),
            };
            if place.is_apart_from(&written, distance) {
                past.push((memory, via));
                memory = args[args.len() - 1];
                continue;
            }
            // The read must find exactly the bytes stored. A read of a part of them, or of more,
            // ends the trace at this memory.
            let is_same = place.covers(&written, distance)
                && written.covers(&place, distance.map(u64::wrapping_neg));
            if is_same && gives_back(opcode, ty, read.opcode, read.ty) {
                return ReadTrace { past, memory, stored: Some((args[args.len() - 2], via)) };
            }
            break;
        }
        ReadTrace { past, memory, stored: None }
    }

    /// The term of a read along its trace. `found` is the term of the read at the end of the trace,
    /// if the caller has one.
    pub(super) fn read_along(
        &mut self,
        read: &MemoryRead,
        trace: &ReadTrace,
        found: Option<TermId>,
    ) -> TermId {
        let MemoryRead { opcode, ty, imm, .. } = *read;
        let reason = trace.stored.map(|(class, via)| (class, By::Stored { via }));
        let mut term = match found {
            Some(term) => term,
            None => self.op_because(opcode, ty, imm, read.of(trace.memory), reason),
        };
        // From the end of the trace back to the read: the reason of each term names the term of the
        // same read one write earlier, which must exist first.
        for (memory, via) in trace.past.iter().rev() {
            let reason = Some((self.table.class(term), By::Apart { via: *via, result: term }));
            term = self.op_because(opcode, ty, imm, read.of(*memory), reason);
        }
        term
    }

    /// The term of a write of one place; the last of `args` is the memory it writes to. The class
    /// of the term leaves out lone writes that the write covers. Covered writes of both versions
    /// stay in the class, and do not shorten the search (`dead_stores_in_a_row_cost_no_entries`).
    /// Cost: bounded.
    pub(super) fn write(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: ClassArgs) -> TermId {
        if args.contains(&NO_TERM) {
            return NO_TERM;
        }
        self.table.find_op(opcode, ty, imm, args.clone()).unwrap_or_else(|| {
            // One lone write at a time: the recursion leaves out the next lone write, and every
            // step has a reason that names two terms.
            let reason = self.without_covered(opcode, ty, imm, &args).map(|rest| {
                let result = self.write(opcode, ty, imm, args_on(&args, rest));
                (self.table.class(result), By::Covers { result })
            });
            self.op_because(opcode, ty, imm, args, reason)
        })
    }

    /// Finds the term of a store that the target version executed earlier: drops the stores it
    /// covers, then commutes it past non-aliasing stores. If several earlier places are possible,
    /// it prefers the place that gives a term of the class `made`. Cost: bounded.
    pub(super) fn late_write(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: ClassArgs,
        made: TermId,
    ) -> TermId {
        let mut without: SmallVec<[ClassArgs; 2]> = SmallVec::from_iter([args]);
        while let Some(last) = without.last().filter(|_| without.len() <= MAX_LONE).cloned()
            && let Some(rest) = self.without_covered(opcode, ty, imm, &last)
        {
            without.push(args_on(&last, rest));
        }
        let Some(args) = without.pop() else { return NO_TERM };
        let moved = self.moved_up(OperationRef { opcode, ty, imm, args: &args }, made);
        let mut term = moved.unwrap_or_else(|| self.write(opcode, ty, imm, args));
        // Back through the memories with more covered writes, up to the given memory. The table may
        // have such a write in another class, made without a search for an earlier place. The new
        // term then has a reason of its own.
        for args in without.into_iter().rev() {
            let (class, result) = (self.table.class(term), term);
            let known = self
                .table
                .find_op(opcode, ty, imm, args.clone())
                .filter(|known| self.table.class(*known) == class);
            term = known.unwrap_or_else(|| {
                self.another(ClassOperation { opcode, ty, imm, args }, class, By::Covers { result })
            });
        }
        term
    }

    fn moved_up(&mut self, write: OperationRef<'_>, made: TermId) -> Option<TermId> {
        let OperationRef { opcode, ty, imm, args } = write;
        let (mut inner, past) = self.earlier(write, made)?;
        // From the earlier place to the late one: moving past one write swaps the two, so the other
        // write is made again on top.
        for (memory, via) in past.into_iter().rev() {
            let result = self.write_again(memory, self.table.class(inner))?;
            let class = self.table.class(result);
            let known = self
                .table
                .find_op(opcode, ty, imm, args_on(args, memory))
                .filter(|term| self.table.class(*term) == class);
            // A covering write of the same contents: the table has it in a class of its own
            // (`an_equal_store_is_replayed_as_the_first`).
            inner = known.unwrap_or_else(|| {
                let write = ClassOperation { opcode, ty, imm, args: args_on(args, memory) };
                self.another(write, class, By::Swaps { via, inner, result })
            });
        }
        Some(inner)
    }

    /// An earlier place of a write: a memory, reachable through writes that are apart from it, for
    /// which the table has the write already. Prefers the place whose term has the class `made`,
    /// then the latest. Returns the term and the memories in between.
    fn earlier(&self, write: OperationRef<'_>, made: TermId) -> Option<(TermId, PassedWrites)> {
        let OperationRef { opcode, ty, imm, args } = write;
        let place = Place::written(opcode, ty, &imm)?;
        let (memory, operands) = args.split_last()?;
        let (mut past, mut last) = (PassedWrites::new(), None);
        let mut at = *memory;
        loop {
            self.compared.set(self.compared.get() + 1);
            if let Some(term) = self.table.find_op(opcode, ty, imm, args_on(args, at)) {
                if self.table.class(term) == made {
                    return Some((term, past));
                }
                last = last.or(Some((term, past.len())));
            }
            let Some((OperationRef { args, .. }, written)) = self.write_of(at) else { break };
            let (distance, via) = match (operands, args) {
                ([address, _], [other, _, _]) => self.distance(*address, *other),
                _ => (None, [NO_TERM; 2]),
            };
            // A write that may alias ends the search: behind it the stored bytes may differ.
            if past.len() == MAX_BETWEEN || !place.is_apart_from(&written, distance) {
                break;
            }
            past.push((at, via));
            at = *args.last()?;
        }
        // The memories beyond the chosen place are not moved past.
        let (term, count) = last?;
        past.truncate(count);
        Some((term, past))
    }

    /// The memory that a write writes to, without one lone write that it covers: the last in time.
    fn without_covered(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: &ClassArgs,
    ) -> Option<TermId> {
        let (memory, operands) = args.split_last()?;
        let covered = self.covered(Place::written(opcode, ty, &imm)?, operands, *memory)?;
        // The covered write goes, and the writes made since are made again on the memory below it,
        // in their order.
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
            rest = self.table.class(term);
        }
        // Limits may have left a covered write in, and making writes again may then leave it out.
        // The checker would reject the reason
        // (`tests/oir/passes/dse/equal_stores_in_two_places.oir`).
        let hides = |write| self.covers(Place::written(opcode, ty, &imm), operands, write);
        self.are_alike([*memory, rest], hides).then_some(rest)
    }

    /// Whether two memories consist of the same writes, except the writes that `hides` holds for.
    /// The checker makes the same test.
    fn are_alike(&self, mut memories: [TermId; 2], hides: impl Fn(TermId) -> bool) -> bool {
        // Each turn removes a write from one or both memories, so this many turns reach everything
        // within the other limits.
        for _ in 0..2 * MAX_BETWEEN {
            if memories[0] == memories[1] {
                return true;
            }
            if let Some(side) = (0..2).find(|side| hides(memories[*side])) {
                let Some(below) = self.below(memories[side]) else { return false };
                memories[side] = below;
                continue;
            }
            let [Some((write, _)), Some((other, _))] = memories.map(|m| self.write_of(m)) else {
                return false;
            };
            let Some(below) = self.below(memories[1]) else { return false };
            if other != (OperationRef { args: &args_on(write.args, below), ..write }) {
                return false;
            }
            let Some(own) = write.args.last() else { return false };
            memories = [*own, below];
        }
        false
    }

    /// The lone writes that a memory contains, to find each by its operation. Of equal ones, the
    /// last in time.
    pub(super) fn lone_by_operation(&self, memory: TermId) -> LoneWrites {
        let mut found = LoneWrites::default();
        for id in self.lone_writes(memory) {
            self.compared.set(self.compared.get() + 1);
            let write = self.table.operation(id);
            let key = write.and_then(|OperationRef { opcode, ty, imm, args }| {
                let (_, operands) = args.split_last()?;
                Some(((opcode, ty, imm), ClassArgs::from_slice(operands)))
            });
            key.into_iter().for_each(|key| {
                found.entry(key).or_insert(id);
            });
        }
        found
    }

    /// The lone writes that a memory contains, the last in time first.
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

    /// Whether a write of a place covers the write that made a memory.
    fn covers(&self, place: Option<Place>, operands: &[TermId], write: TermId) -> bool {
        self.compared.set(self.compared.get() + 1);
        let (Some(place), Some((OperationRef { args, .. }, written))) =
            (place, self.write_of(write))
        else {
            return false;
        };
        // Only the first terms of the addresses count. The certificate has no room to name others.
        let distance = match (operands, args) {
            ([address, _], [other, _, _]) => self.plain_distance(*address, *other),
            _ => None,
        };
        place.covers(&written, distance)
    }

    /// The write that made one memory, applied to another that contains some of the same writes.
    /// Within the limits it covers none of them: its class would lack the covered write already. A
    /// search would cost the square of the writes in a memory for each write that covers one
    /// (`lone_writes_look_at_the_writes_of_one_memory_each`).
    fn write_again(&mut self, write: TermId, memory: TermId) -> Option<TermId> {
        let OperationRef { opcode, ty, imm, args } = self.table.operation(write)?;
        let args = args_on(args, memory);
        Some(self.op_because(opcode, ty, imm, args, None))
    }

    /// The memory that a write was applied to.
    fn below(&self, write: TermId) -> Option<TermId> {
        self.write_of(write)?.0.args.last().copied()
    }

    /// The write that made a memory, and its place.
    fn write_of(&self, memory: TermId) -> Option<(OperationRef<'_>, Place)> {
        let write = self.table.operation(memory)?;
        Some((write, Place::written(write.opcode, write.ty, &write.imm)?))
    }

    /// The address `to` minus the address `from`, modulo 2^64, if both are one base plus constants;
    /// and the terms that show it.
    fn distance(&self, from: TermId, to: TermId) -> (Option<u64>, [TermId; 2]) {
        if from == to {
            return (Some(0), [NO_TERM; 2]);
        }
        // Every pair of bases: the class of an address may hold several sums, and only one of them
        // may share its base with the other address.
        let (froms, tos) = (self.sums(from), self.sums(to));
        for ((base, less), via) in &froms {
            if let Some(((_, more), other)) = tos.iter().find(|((b, _), _)| b == base) {
                return (Some(more.wrapping_sub(*less)), [*via, *other]);
            }
        }
        (None, [NO_TERM; 2])
    }

    /// As [`CertificateTerms::distance`], by the first terms of both classes alone.
    fn plain_distance(&self, from: TermId, to: TermId) -> Option<u64> {
        let ((base, less), (other, more)) = (self.table.sum(from), self.table.sum(to));
        (base == other).then(|| more.wrapping_sub(less))
    }

    /// The sums that the terms of a class are, each with the term; [`NO_TERM`] for the first.
    fn sums(&self, class: TermId) -> SmallVec<[(ClassSum, TermId); 4]> {
        let mut sums = SmallVec::from_iter([(self.table.sum(class), NO_TERM)]);
        let others = self.table.members(class).take(MAX_MEMBERS).skip(1);
        sums.extend(others.map(|id| (self.table.sum(id), id)).filter(|((base, _), id)| base != id));
        sums
    }
}

/// The operands of a write, with another memory as the last.
fn args_on(args: &[TermId], memory: TermId) -> ClassArgs {
    let operands = args.len().saturating_sub(1);
    args.iter().copied().take(operands).chain([memory]).collect()
}
