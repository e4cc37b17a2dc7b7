//! Writes that only one version has: where memory differs, and what moving over then takes.
//!
//! A *lone write* is a write of one place that is no anchor: the other version does not have it (it was found dead), or
//! has it elsewhere. Its *window* is where it has been executed and no write that covers it has. Inside, memory differs
//! in that place (`mappings.md`, section 3, *Stores*). From a point inside there is no way over: what was written
//! cannot be undone. To a point inside the write is *replayed*, if its address and value can be had.
//!
//! Windows are followed only where they are trees, as passes make them: into blocks with one predecessor.

use crate::facts::Facts;
use crate::pair::Side;
use fixedbitset::FixedBitSet;
use ir::place::Place;
use ir::{Effects, Function, Inst, Opcode, Type, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Instructions looked at to follow one window.
const MAX_WINDOW: usize = 256;

/// An address as something plus a constant.
type Sum = (Option<Value>, u32);

/// The lone writes of one version.
#[derive(Debug, Default)]
pub(crate) struct LoneWrites {
    /// By instruction, those whose window the point before it lies in, in the order of execution.
    open: BTreeMap<Inst, SmallVec<[Inst; 1]>>,
    /// Points in windows behind another write that may have written a part of the place: replayed there, the lone write
    /// would undo that. Breaks `nothing_is_replayed_behind_a_write_that_may_overlap`.
    late: BTreeSet<Inst>,
    /// The first one whose window could not be followed.
    pub(crate) endless: Option<Inst>,
    /// Whether there are any.
    pub(crate) exist: bool,
}

impl LoneWrites {
    /// Finds them. Cost: linear in the instructions; for each lone write, bounded.
    pub(crate) fn new(side: &Side<'_>, anchors: &FixedBitSet, facts: &Facts) -> LoneWrites {
        let mut lone = LoneWrites::default();
        let f = side.f;
        for &block in side.cfg.rpo().iter().filter(|b| !facts.removed_blocks.contains(b)) {
            for inst in f.block_insts(block) {
                let writes = f.inst(inst).opcode.effects().has(Effects::WRITES);
                if writes && !anchors.contains(inst.as_u32() as usize) {
                    lone.exist = true;
                    if lone.follow(f, anchors, inst).is_none() {
                        lone.endless.get_or_insert(inst);
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

    /// Whether replaying the writes whose windows a point lies in would undo a part of what others wrote since.
    pub(crate) fn are_late(&self, at: Inst) -> bool {
        self.late.contains(&at)
    }

    /// Marks the window of a write; `None` when it has no end that can be found.
    fn follow(&mut self, f: &Function, anchors: &FixedBitSet, write: Inst) -> Option<()> {
        let place = written(f, write)?;
        let mut looked_at = 0;
        let mut work: SmallVec<[(Inst, bool); 4]> = SmallVec::from_iter([(f.next_inst(write)?, false)]);
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
                if covers(f, inst, write, &place) {
                    break;
                }
                is_late |= anchors.contains(inst.as_u32() as usize) && may_overlap(f, inst, write, &place);
                at = f.next_inst(inst);
                if at.is_none() {
                    let targets = &f.inst(inst).targets;
                    if targets.is_empty() || targets.iter().any(|t| f.predecessors(t.block).len() != 1) {
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

/// Whether an instruction leaves nothing of what a write has written.
fn covers(f: &Function, inst: Inst, write: Inst, place: &Place) -> bool {
    written(f, inst).is_some_and(|w| w.covers(place, between(f, inst, write)))
}

/// Whether an instruction may write a part of what a write has written.
fn may_overlap(f: &Function, inst: Inst, write: Inst, place: &Place) -> bool {
    let writes = f.inst(inst).opcode.effects().has(Effects::WRITES);
    writes && !written(f, inst).is_some_and(|w| w.is_apart_from(place, between(f, inst, write)))
}

/// The address of a write minus that of another, if that is known.
fn between(f: &Function, from: Inst, to: Inst) -> Option<u32> {
    match (f.inst(from).args.as_slice(), f.inst(to).args.as_slice()) {
        ([from, _], [to, _]) => distance(f, *from, *to),
        _ => None,
    }
}

/// The address `to` minus the address `from`, modulo 2^32, where both are one value plus constants.
fn distance(f: &Function, from: Value, to: Value) -> Option<u32> {
    let ((base, less), (other, more)) = (sum(f, from), sum(f, to));
    (base == other).then(|| more.wrapping_sub(less))
}

fn sum(f: &Function, address: Value) -> Sum {
    let (mut base, mut plus) = (address, 0u32);
    // Chains are short where additions of constants are joined; of longer ones less is known.
    for _ in 0..8 {
        if let Some(bits) = f.constant(base) {
            return (None, plus.wrapping_add(bits as u32));
        }
        let Some(data) = f.defining_inst(base).map(|i| f.inst(i)) else { break };
        let (Opcode::Add, Type::I32, [x, y]) = (data.opcode, data.ty, data.args.as_slice()) else { break };
        let Some((rest, bits)) =
            f.constant(*y).map(|bits| (*x, bits)).or_else(|| f.constant(*x).map(|bits| (*y, bits)))
        else {
            break;
        };
        (base, plus) = (rest, plus.wrapping_add(bits as u32));
    }
    (Some(base), plus)
}
