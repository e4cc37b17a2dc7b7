//! Where a version must not be entered: behind an instruction that may trap and that the other
//! version has not passed.
//!
//! On an input for which it traps, the target version never reaches the landing point, so there is
//! no state to agree with (`mappings.md`, section 3, *Traps*). Instructions that may trap and are
//! anchors are passed by both versions alike. The others have to be passed, by themselves or by a
//! member of their class, at the source point of every entry that lands behind them: where they
//! dominate the landing point, and in their *window*, reachable from them before an anchor shows
//! that the source version has passed them too.

use crate::facts::Facts;
use crate::pair::{Side, members};
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::place::Place;
use ir::{Block, Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Accesses at one address looked at for one that vouches for another: the last ones.
const MAX_ACCESSES: usize = 256;

/// An instruction of the target version that may trap and is no anchor.
#[derive(Debug)]
struct Trap {
    inst: Inst,
    /// The values of the source version whose availability shows that it has passed the
    /// instruction.
    witnesses: SmallVec<[Value; 2]>,
    /// The anchors that end the window.
    closing: BTreeSet<Inst>,
}

/// The instructions of one version that may trap and are no anchors, and where they matter.
#[derive(Debug)]
pub(crate) struct Traps {
    traps: Vec<Trap>,
    /// Those that stand in the block.
    own: SecondaryMap<Block, Vec<u32>>,
    /// The nearest block that dominates this one, is another, and has some.
    above: SecondaryMap<Block, Option<Block>>,
    /// Those in whose window the start of the block lies and that do not dominate it.
    window: SecondaryMap<Block, Vec<u32>>,
}

/// The accesses to memory met so far, in reverse postorder, that no other vouches for, by what
/// their address is known to equal.
#[derive(Debug, Default)]
struct Passed {
    accesses: SecondaryMap<Value, SmallVec<[(Inst, Place); 2]>>,
}

impl Passed {
    /// Whether an access cannot trap where the one before it at the same address has not, which
    /// whoever has passed this one has passed too. Cost: bounded.
    fn vouches_for(&mut self, q: &Side<'_>, facts: &Facts, inst: Inst) -> bool {
        let data = q.f.inst(inst);
        let place = Place::read(data.opcode, data.ty, &data.imm).or(Place::written(
            data.opcode,
            data.ty,
            &data.imm,
        ));
        let (Some(place), Some(address)) =
            (place.filter(|_| data.opcode.can_trap()), data.args.first())
        else {
            return false;
        };
        let equal = facts.chain(*address, q.era).last().copied();
        let address = equal.filter(|a| q.available(*a, Point::before(inst))).unwrap_or(*address);
        let before = &mut self.accesses[address];
        let mut last = before.iter().rev().take(MAX_ACCESSES);
        if last.any(|(other, p)| p.vouches_for(&place) && q.dom.inst_dominates(q.f, *other, inst)) {
            return true;
        }
        before.push((inst, place));
        false
    }
}

impl Traps {
    /// Finds them for landings in `q` from `p`.
    pub(crate) fn new(p: &Side<'_>, q: &Side<'_>, facts: &Facts, anchors: &FixedBitSet) -> Traps {
        let mut traps = Traps {
            traps: Vec::new(),
            own: SecondaryMap::new(),
            above: SecondaryMap::new(),
            window: SecondaryMap::new(),
        };
        let mut passed = Passed::default();
        for &block in q.cfg.rpo().iter().filter(|b| !facts.removed_blocks.contains(b)) {
            for inst in q.f.block_insts(block) {
                let is_vouched = passed.vouches_for(q, facts, inst);
                let is_anchor = anchors.contains(inst.as_u32() as usize);
                let may_trap = facts.may_trap(q.f, inst) && !is_vouched;
                if is_anchor || !may_trap || !q.f.inst(inst).opcode.is_effect_free() {
                    continue;
                }
                traps.enter(p, q, facts, block, inst);
            }
        }
        for &block in q.dom.preorder() {
            let parent = q.dom.idom(block).filter(|b| *b != block);
            traps.above[block] =
                parent.and_then(|b| if traps.own[b].is_empty() { traps.above[b] } else { Some(b) });
        }
        traps
    }

    fn enter(&mut self, p: &Side<'_>, q: &Side<'_>, facts: &Facts, block: Block, inst: Inst) {
        let id = self.traps.len() as u32;
        let results = &q.f.inst(inst).results;
        let witnesses: SmallVec<[Value; 2]> =
            results.iter().flat_map(|v| members(facts, p, q, *v)).collect();
        let closing: BTreeSet<Inst> = witnesses
            .iter()
            .filter_map(|w| p.f.defining_inst(*w))
            .filter_map(|at| p.lines.end(p.f, p.f.next_inst(at)?))
            // Behind a join, control may have come to the anchor without passing the witness.
            .filter(|end| !end.jumps.iter().any(|j| j.joins))
            .map(|end| end.anchor)
            .collect();
        self.own[block].push(id);
        // When an anchor that proves the source version past it comes first, there is no window.
        let passed_before =
            closing.iter().any(|c| q.f.has_inst(*c) && q.dom.inst_dominates(q.f, *c, inst));
        if !passed_before {
            self.open_window(q, block, inst, id, &closing);
        }
        self.traps.push(Trap { inst, witnesses, closing });
    }

    /// Marks the blocks that can be reached from behind the instruction without passing a closing
    /// anchor.
    fn open_window(
        &mut self,
        q: &Side<'_>,
        block: Block,
        inst: Inst,
        id: u32,
        closing: &BTreeSet<Inst>,
    ) {
        let closes = |b: Block, from: Option<Inst>| {
            let mut anchors =
                closing.iter().filter(|c| q.f.has_inst(**c) && q.f.inst_block(**c) == b);
            anchors.any(|c| from.is_none_or(|i| q.f.stands_before(i, *c)))
        };
        if closes(block, Some(inst)) {
            return;
        }
        let mut seen = FixedBitSet::with_capacity(q.f.block_bound());
        let mut work: Vec<Block> = q.f.successors(block).iter().map(|t| t.block).collect();
        while let Some(b) = work.pop() {
            if seen.put(b.as_u32() as usize) {
                continue;
            }
            if !q.dom.dominates(block, b) {
                self.window[b].push(id);
            }
            if !closes(b, None) {
                work.extend(q.f.successors(b).iter().map(|t| t.block));
            }
        }
    }

    /// The first instruction that may trap and that a landing at `point` would skip, when `passed`
    /// tells which values the source version has available.
    pub(crate) fn skipped(
        &self,
        q: &Side<'_>,
        point: Point,
        mut passed: impl FnMut(Value) -> bool,
    ) -> Option<Inst> {
        if self.traps.is_empty() {
            return None;
        }
        let block = q.f.inst_block(point.inst());
        let own = self.own[block].iter().filter(|id| {
            let trap = self.traps[**id as usize].inst;
            trap != point.inst() && q.f.stands_before(trap, point.inst())
        });
        let window = self.window[block].iter().filter(|id| {
            let trap = &self.traps[**id as usize];
            !trap.closing.iter().any(|c| {
                q.f.has_inst(*c)
                    && q.f.inst_block(*c) == block
                    && *c != point.inst()
                    && q.f.stands_before(*c, point.inst())
            })
        });
        let above = std::iter::successors(self.above[block], |b| self.above[*b])
            .flat_map(|b| self.own[b].iter());
        own.chain(above)
            .chain(window)
            .map(|id| &self.traps[*id as usize])
            .find(|trap| !trap.witnesses.iter().any(|w| passed(*w)))
            .map(|trap| trap.inst)
    }
}
