//! Writes that only one version has: where memory differs, and what moving over then takes.
//!
//! A *lone write* is a write of one place that is no anchor: the other version does not have it (it
//! was found dead), or has it elsewhere. Its *window* is where it has been executed and no write
//! that covers it has. Inside, memory differs in that place (`mappings.md`, section 3, *Stores*).
//! From a point inside there is no way over: what was written cannot be undone. To a point inside
//! the write is *replayed*, if its address and value can be had.
//!
//! Windows are followed only where they are trees, as passes make them: into blocks with one
//! predecessor. What follows a write whose window has no end that is found has no entries.

use crate::facts::Facts;
use crate::pair::Analyzed;
use fixedbitset::FixedBitSet;
use ir::place::Place;
use ir::{Block, Effects, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;

/// Instructions looked at to follow one window.
const MAX_WINDOW: usize = 256;

/// Additions of constants that an address is taken apart into, one in the other.
const MAX_SUMS: usize = 8;

/// An address as something plus a constant.
type Sum = (Option<Value>, u32);

/// The lone writes of one version.
#[derive(Debug, Default)]
pub(crate) struct LoneWrites {
    /// By instruction, those whose window the point before it lies in, in the order of execution.
    open: BTreeMap<Inst, SmallVec<[Inst; 1]>>,
    /// Points in windows behind another write that may have written a part of the place: replayed
    /// there, the lone write would undo that. Breaks
    /// `nothing_is_replayed_behind_a_write_that_may_overlap`.
    late: BTreeSet<Inst>,
    /// Points that control may come to from a write whose window could not be followed, with the
    /// write.
    lost: BTreeMap<Inst, Inst>,
    /// Whether there are any.
    pub(crate) exist: bool,
}

/// What a version and the log tell about its writes.
#[derive(Clone, Copy)]
struct Writes<'a> {
    f: &'a Function,
    era: Side,
    facts: &'a Facts,
    anchors: &'a FixedBitSet,
}

impl LoneWrites {
    /// Finds them. Cost: linear in the instructions; for each lone write, bounded.
    pub(crate) fn new(side: &Analyzed<'_>, anchors: &FixedBitSet, facts: &Facts) -> LoneWrites {
        let mut lone = LoneWrites::default();
        let (f, mut followed) = (side.f, FixedBitSet::with_capacity(side.f.block_bound()));
        let writes = Writes { f, era: side.era, facts, anchors };
        for &block in side.cfg.rpo().iter().filter(|b| !facts.removed_blocks.contains(b)) {
            for inst in f.block_insts(block) {
                let is_write = f.inst(inst).opcode.effects().has(Effects::WRITES);
                if is_write && !anchors.contains(inst.as_u32() as usize) {
                    lone.exist = true;
                    if lone.follow(&writes, inst).is_none() {
                        lone.lose(f, inst, &mut followed);
                    }
                }
            }
        }
        lone
    }

    /// The lone writes in whose windows a point lies, in the order they were executed.
    pub(crate) fn open(&self, at: Inst) -> &[Inst] {
        self.open.get(&at).map_or(&[], |open| open)
    }

    /// Whether replaying the writes whose windows a point lies in would undo a part of what others
    /// wrote since.
    pub(crate) fn are_late(&self, at: Inst) -> bool {
        self.late.contains(&at)
    }

    /// A lone write whose effect a point may lie behind, where it is not known how far that lasts.
    pub(crate) fn lost(&self, at: Inst) -> Option<Inst> {
        self.lost.get(&at).copied()
    }

    /// Marks all that control may come to behind a write. `followed` are the blocks marked as a
    /// whole.
    fn lose(&mut self, f: &Function, write: Inst, followed: &mut FixedBitSet) {
        let mut work: SmallVec<[Block; 4]> = SmallVec::new();
        let mut next = f.next_inst(write);
        loop {
            while let Some(inst) = next {
                // What is lost already is so to the end of the block, and beyond.
                if self.lost.contains_key(&inst) {
                    break;
                }
                self.lost.insert(inst, write);
                work.extend(f.inst(inst).targets.iter().map(|t| t.block));
                next = f.next_inst(inst);
            }
            let Some(block) = work.pop() else { return };
            next = (!followed.put(block.as_u32() as usize)).then(|| f.first_inst(block));
        }
    }

    /// Marks the window of a write; `None` when it has no end that can be found.
    fn follow(&mut self, writes: &Writes<'_>, write: Inst) -> Option<()> {
        let f = writes.f;
        let place = written(f, write)?;
        let mut looked_at = 0;
        let mut work: SmallVec<[(Inst, bool); 4]> =
            SmallVec::from_iter([(f.next_inst(write)?, false)]);
        while let Some((first, mut is_late)) = work.pop() {
            let mut at = Some(first);
            while let Some(inst) = at {
                looked_at += 1;
                if looked_at > MAX_WINDOW {
                    return None;
                }
                self.open.entry(inst).or_default().push(write);
                if is_late {
                    self.late.insert(inst);
                }
                if writes.covers(inst, write, &place) {
                    break;
                }
                is_late |= writes.may_overlap(inst, write, &place);
                at = f.next_inst(inst);
                if at.is_none() {
                    let targets = &f.inst(inst).targets;
                    if targets.is_empty()
                        || targets.iter().any(|t| f.predecessors(t.block).len() != 1)
                    {
                        return None;
                    }
                    work.extend(targets.iter().map(|t| (f.first_inst(t.block), is_late)));
                }
            }
        }
        Some(())
    }
}

fn written(f: &Function, inst: Inst) -> Option<Place> {
    let data = f.inst(inst);
    Place::written(data.opcode, data.ty, &data.imm)
}

impl Writes<'_> {
    /// Whether an instruction leaves nothing of what a write has written.
    fn covers(&self, inst: Inst, write: Inst, place: &Place) -> bool {
        written(self.f, inst).is_some_and(|w| w.covers(place, self.between(inst, write)))
    }

    /// Whether an anchor may write a part of what a write has written.
    fn may_overlap(&self, inst: Inst, write: Inst, place: &Place) -> bool {
        let writes = self.f.inst(inst).opcode.effects().has(Effects::WRITES);
        let is_apart = || {
            written(self.f, inst).is_some_and(|w| w.is_apart_from(place, self.between(inst, write)))
        };
        writes && self.anchors.contains(inst.as_u32() as usize) && !is_apart()
    }

    /// The address of a write minus that of another, if that is known.
    fn between(&self, from: Inst, to: Inst) -> Option<u32> {
        match (self.f.inst(from).args.as_slice(), self.f.inst(to).args.as_slice()) {
            ([from, _], [to, _]) => self.distance(*from, *to),
            _ => None,
        }
    }

    /// The address `to` minus the address `from`, modulo 2^32, where both are known to be one value
    /// plus constants.
    fn distance(&self, from: Value, to: Value) -> Option<u32> {
        let ((base, less), (other, more)) = (self.sum(from), self.sum(to));
        (base == other).then(|| more.wrapping_sub(less))
    }

    /// Addresses that one version computes alike are compared by what the log knows to be equal,
    /// for the other may have told two apart that only look different
    /// (`windows_end_in_addresses_known_to_be_equal`).
    fn sum(&self, address: Value) -> Sum {
        let (mut base, mut plus) = (address, 0u32);
        // Chains are short where additions of constants are joined; of longer ones less is known.
        for _ in 0..MAX_SUMS {
            if let Some(bits) = self.constant(base) {
                return (None, plus.wrapping_add(bits as u32));
            }
            let equal = self.facts.chain(base, self.era);
            let Some((rest, bits)) =
                std::iter::once(base).chain(equal).find_map(|id| self.addition(id))
            else {
                break;
            };
            (base, plus) = (rest, plus.wrapping_add(bits as u32));
        }
        (Some(self.facts.chain(base, self.era).last().copied().unwrap_or(base)), plus)
    }

    fn constant(&self, value: Value) -> Option<u64> {
        let known = self.f.has_value(value).then(|| self.f.constant(value)).flatten();
        known.or_else(|| self.facts.constant(value, self.era).map(|(_, bits)| bits))
    }

    /// A value as another plus a constant.
    fn addition(&self, value: Value) -> Option<(Value, u64)> {
        let inst = self.f.has_value(value).then(|| self.f.defining_inst(value)).flatten()?;
        let data = self.f.inst(inst);
        let (Opcode::Add, Type::I32, [x, y]) = (data.opcode, data.ty, data.args.as_slice()) else {
            return None;
        };
        let with = |base: Value, other: Value| Some((base, self.constant(other)?));
        with(*x, *y).or_else(|| with(*y, *x))
    }
}
