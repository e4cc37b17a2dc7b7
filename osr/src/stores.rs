//! Writes of a single version: where memory differs, and the entries that remain possible.
//!
//! A *lone write* is a write of one place that is not an anchor: the other version lacks it,
//! because a pass proved it dead, or has it elsewhere. Its *window* consists of the points behind
//! it that no covering write precedes. In the window, memory differs at that place (`docs/osr.md`,
//! *Rules for landing points*, *Effects*). Example: of `store a, x` and a later `store a, y`, a
//! pass deletes the first; the window lies between the two. Two rules follow:
//!
//! - no entry leaves from a point in the window, since an executed write cannot be undone;
//! - an entry that lands in the window *replays* the write, if its address and value can be had.
//!
//! A *paired write* is executed by both versions, and counts as a lone write of each up to the next
//! anchor (`paired`). An entry replays the paired writes that the source version has ahead.
//!
//! The analysis follows a window only while it is a tree, into blocks with one predecessor; windows
//! that passes open look like that. If it finds no end of the window, the points that the write
//! reaches have no entries.

use crate::facts::Facts;
use crate::pair::analyzed::Analyzed;
use crate::pair::lone_writes::LoneWrites;
use fixedbitset::FixedBitSet;
use ir::place::Place;
use ir::{Block, Effects, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;
use transition::Side;

/// Instructions looked at in one window. Dead-store elimination opens windows of a few
/// instructions; a longer one counts as endless.
pub(crate) const MAX_WINDOW: usize = 256;

/// Nested additions of constants that an address is taken apart into.
const MAX_SUMS: usize = 8;

/// An address as a base plus a constant; `None` for a constant address.
type AddressSum = (Option<Value>, u64);

/// The knowledge of a version and the log about writes.
#[derive(Clone, Copy)]
pub(crate) struct Writes<'a> {
    version: &'a Analyzed<'a>,
    f: &'a Function,
    side: Side,
    facts: &'a Facts,
    anchors: &'a FixedBitSet,
}

/// Finds the lone writes and their windows. `anchors` include the writes of `paired`. Cost: linear
/// in the instructions, plus a bounded search for each lone write.
pub(crate) fn lone_writes(
    version: &Analyzed<'_>,
    anchors: &FixedBitSet,
    facts: &Facts,
    paired: &FixedBitSet,
) -> LoneWrites {
    let mut lone = LoneWrites::default();
    let (f, mut followed) = (version.f, FixedBitSet::with_capacity(version.f.block_bound()));
    let writes = Writes::of(version, facts, anchors);
    let is_paired = |inst: Inst| paired.contains(inst.as_u32() as usize);
    for &block in version.cfg.rpo().iter().filter(|b| !facts.control.is_removed(**b)) {
        for inst in f.block_insts(block) {
            if is_paired(inst) {
                follow_paired(&mut lone, f, inst, |i| writes.is_anchor(i) && !is_paired(i));
                continue;
            }
            let is_write = f.inst(inst).opcode.effects().has(Effects::WRITES);
            if is_write && !writes.is_anchor(inst) {
                lone.exist = true;
                // `follow` may have marked a part of the window as open by then. `lost` takes
                // precedence, and covers all of that.
                if follow(&mut lone, &writes, inst).is_none() {
                    lose(&mut lone, &writes, inst, &mut followed);
                }
            }
        }
    }
    lone
}

/// Marks every point that a write reaches. `followed` are the blocks marked as a whole.
fn lose(lone: &mut LoneWrites, writes: &Writes<'_>, write: Inst, followed: &mut FixedBitSet) {
    let f = writes.f;
    let mut work: SmallVec<[Block; 4]> = SmallVec::new();
    let mut next = f.next_inst(write);
    loop {
        while let Some(inst) = next {
            // A point already lost is followed to the end of its block and beyond. Without this
            // stop, a row of lone writes would cost their number squared.
            if !lone.lose(inst, write) {
                break;
            }
            next = f.next_inst(inst);
            if next.is_none() {
                work.extend(writes.version.entered_from(writes.facts, f.inst_block(inst)));
            }
        }
        let Some(block) = work.pop() else { return };
        next = (!followed.put(block.as_u32() as usize)).then(|| f.first_inst(block));
    }
}

/// Marks the window of a paired write. It ends at the next anchor, in the same block.
fn follow_paired(lone: &mut LoneWrites, f: &Function, write: Inst, is_end: impl Fn(Inst) -> bool) {
    for inst in std::iter::successors(f.next_inst(write), |inst| f.next_inst(*inst)) {
        lone.add(inst, write);
        if is_end(inst) {
            break;
        }
    }
}

/// Marks the window of a write. `None` when the analysis finds no end.
fn follow(lone: &mut LoneWrites, writes: &Writes<'_>, write: Inst) -> Option<()> {
    let f = writes.f;
    let place = written(f, write)?;
    let mut looked_at = 0;
    let mut work: SmallVec<[(Inst, bool); 4]> = SmallVec::from_iter([(f.next_inst(write)?, false)]);
    // Each entry of `work` is the start of a branch of the window, with whether a write on the
    // path to it may overlap. The flag belongs to the branch: entries into the other arm may
    // replay.
    while let Some((first, mut is_late)) = work.pop() {
        let mut at = Some(first);
        while let Some(inst) = at {
            looked_at += 1;
            if looked_at > MAX_WINDOW {
                return None;
            }
            // Before the check for an end: the point before the covering write is still in the
            // window.
            lone.add(inst, write);
            if is_late {
                lone.add_late(inst);
            }
            if writes.covers(inst, write, &place) {
                break;
            }
            // Behind the check: at the overlapping write itself a replay still comes first.
            is_late |= writes.may_overlap(inst, write, &place);
            at = f.next_inst(inst);
            if at.is_none() {
                let (version, facts) = (writes.version, writes.facts);
                let targets: SmallVec<[Block; 2]> =
                    version.entered_from(facts, f.inst_block(inst)).collect();
                // A return shows all of memory, so the window cannot end there. Behind a join,
                // the write may or may not have been executed, and an entry cannot know.
                if targets.is_empty()
                    || targets.iter().any(|t| version.entries_into(facts, *t) != 1)
                {
                    return None;
                }
                work.extend(targets.iter().map(|t| (f.first_inst(*t), is_late)));
            }
        }
    }
    Some(())
}

/// The place that an instruction writes, if it writes one place.
pub(crate) fn written(f: &Function, inst: Inst) -> Option<Place> {
    let data = f.inst(inst);
    Place::written(data.opcode, data.ty, &data.imm)
}

impl<'a> Writes<'a> {
    pub(crate) fn of(
        version: &'a Analyzed<'a>,
        facts: &'a Facts,
        anchors: &'a FixedBitSet,
    ) -> Writes<'a> {
        Writes { version, f: version.f, side: version.side, facts, anchors }
    }

    fn is_anchor(&self, inst: Inst) -> bool {
        self.anchors.contains(inst.as_u32() as usize)
    }

    /// Whether an instruction overwrites all that a write has written.
    pub(crate) fn covers(&self, inst: Inst, write: Inst, place: &Place) -> bool {
        written(self.f, inst).is_some_and(|w| w.covers(place, self.between(inst, write)))
    }

    /// Whether an anchor may overwrite a part of a write. Other lone writes need no check: entries
    /// replay them too, in order.
    fn may_overlap(&self, inst: Inst, write: Inst, place: &Place) -> bool {
        let writes = self.f.inst(inst).opcode.effects().has(Effects::WRITES);
        let is_apart = || {
            written(self.f, inst).is_some_and(|w| w.is_apart_from(place, self.between(inst, write)))
        };
        writes && self.is_anchor(inst) && !is_apart()
    }

    /// The address of the second write minus the address of the first, if known. A write of memory
    /// has two operands, address and value; a write of a global has no address.
    fn between(&self, from: Inst, to: Inst) -> Option<u64> {
        match (self.f.inst(from).args.as_slice(), self.f.inst(to).args.as_slice()) {
            ([from, _], [to, _]) => self.distance(*from, *to),
            _ => None,
        }
    }

    /// The address `to` minus the address `from`, modulo 2^64, if both are one base plus constants.
    fn distance(&self, from: Value, to: Value) -> Option<u64> {
        let ((base, less), (other, more)) = (self.sum(from), self.sum(to));
        (base == other).then(|| more.wrapping_sub(less))
    }

    /// An address as a base plus a constant. Equalities of the log also compare addresses that a
    /// single version computes alike: the other version may have kept two equal addresses that only
    /// look different (`windows_end_in_addresses_known_to_be_equal`).
    fn sum(&self, address: Value) -> AddressSum {
        let (mut base, mut plus) = (address, 0u64);
        // Chains are short, since passes join additions of constants. A longer one only makes two
        // addresses look unrelated, and loses entries.
        for _ in 0..MAX_SUMS {
            if let Some(bits) = self.constant(base) {
                return (None, plus.wrapping_add(bits));
            }
            // The addition may stand under any id of the class: a pass may have replaced the
            // address by an equal value that is no addition.
            let equal = self.facts.chain(base, self.side);
            let Some((rest, bits)) =
                std::iter::once(base).chain(equal).find_map(|id| self.addition(id))
            else {
                break;
            };
            (base, plus) = (rest, plus.wrapping_add(bits));
        }
        (Some(self.facts.chain(base, self.side).last().copied().unwrap_or(base)), plus)
    }

    fn constant(&self, value: Value) -> Option<u64> {
        let known = self.f.has_value(value).then(|| self.f.constant(value)).flatten();
        known.or_else(|| self.facts.constant(value, self.side).map(|(_, bits)| bits))
    }

    /// A value as another plus a constant.
    fn addition(&self, value: Value) -> Option<(Value, u64)> {
        let inst = self.f.has_value(value).then(|| self.f.defining_inst(value)).flatten()?;
        let data = self.f.inst(inst);
        let (Opcode::Add, Type::I32 | Type::I64, [x, y]) =
            (data.opcode, data.ty, data.args.as_slice())
        else {
            return None;
        };
        let with = |base: Value, other: Value| Some((base, self.constant(other)?));
        with(*x, *y).or_else(|| with(*y, *x))
    }
}
