//! Possible traps that bar landings: an entry must not land behind an instruction that may trap and
//! that the source version has not passed.
//!
//! On an input for which the instruction traps, the target version never reaches the landing point,
//! and has no state there (`docs/osr.md`, *Rules for landing points*, *Traps*). Both versions pass
//! anchors alike. Any other instruction of the target version that may trap must have been passed
//! by the source version, by itself or by a member of its class. Example: a pass hoists a division
//! to the top of its block. A source point between the two places has not executed it, while the
//! target version, behind the hoisted division, may have trapped. The entry must land before it.
//!
//! The rule applies to entries that land at
//!
//! - points that the instruction dominates;
//! - points in its *window*: reachable from it before an anchor shows that the source version has
//!   passed it too.

use crate::accesses::{LeastSizes, harmless_accesses};
use crate::facts::Facts;
use crate::pair::{Analyzed, members};
use crate::run_graph::RunGraph;
use cranelift_entity::SecondaryMap;
use fixedbitset::FixedBitSet;
use ir::{Block, Inst, Point, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// An instruction of the target version that may trap and is not an anchor.
#[derive(Debug)]
struct Trap {
    inst: Inst,
    /// Values of the source version. If one is available, the source version has passed the
    /// instruction.
    witnesses: SmallVec<[Value; 2]>,
    /// The anchors that end the window.
    closing: BTreeSet<Inst>,
}

/// The instructions of one version that may trap and are not anchors, and the blocks they concern.
#[derive(Debug)]
pub(crate) struct Traps {
    traps: Vec<Trap>,
    /// By block: the instructions in it.
    own: SecondaryMap<Block, Vec<u32>>,
    /// By block: the nearest strict dominator that has some.
    above: SecondaryMap<Block, Option<Block>>,
    /// By block: the instructions whose window holds the start of the block, and that do not
    /// dominate it.
    window: SecondaryMap<Block, Vec<u32>>,
}

impl Traps {
    /// Finds the traps for landings in `q` from `p`. Cost: near linear in the instructions of `q`,
    /// plus the blocks of each window.
    pub(crate) fn new(
        p: &Analyzed<'_>,
        q: &Analyzed<'_>,
        (facts, least): (&Facts, &LeastSizes),
        anchors: &FixedBitSet,
    ) -> Traps {
        let mut traps = Traps {
            traps: Vec::new(),
            own: SecondaryMap::new(),
            above: SecondaryMap::new(),
            window: SecondaryMap::new(),
        };
        let runs = &RunGraph::new(q, facts);
        let harmless = harmless_accesses((q, runs), facts, least);
        for &block in runs.cfg.rpo() {
            for inst in q.f.block_insts(block) {
                let is_anchor = anchors.contains(inst.as_u32() as usize);
                let is_harmless = harmless.contains(inst.as_u32() as usize);
                let may_trap = facts.may_trap(q.f, inst) && !is_harmless;
                if is_anchor || !may_trap || !q.f.inst(inst).opcode.is_effect_free() {
                    continue;
                }
                traps.enter(p, (q, runs), facts, block, inst);
            }
        }
        // In preorder, the parent's link is final when its children read it.
        for &block in runs.dom.preorder() {
            let parent = runs.dom.idom(block).filter(|b| *b != block);
            traps.above[block] =
                parent.and_then(|b| if traps.own[b].is_empty() { traps.above[b] } else { Some(b) });
        }
        traps
    }

    fn enter(
        &mut self,
        p: &Analyzed<'_>,
        (q, runs): (&Analyzed<'_>, &RunGraph),
        facts: &Facts,
        block: Block,
        inst: Inst,
    ) {
        let id = self.traps.len() as u32;
        let results = &q.f.inst(inst).results;
        let witnesses: SmallVec<[Value; 2]> =
            results.iter().flat_map(|v| members(facts, p, q, *v)).collect();
        let closing: BTreeSet<Inst> = witnesses
            .iter()
            .filter_map(|w| p.f.defining_inst(*w))
            .filter_map(|at| p.paths.end(p.f, p.f.next_inst(at)?))
            // Behind a join, control may have reached the anchor without passing the witness.
            .filter(|end| !end.jumps.iter().any(|j| j.joins))
            .map(|end| end.anchor)
            .collect();
        self.own[block].push(id);
        // An anchor before the instruction proves that the source version has passed it: there is
        // no window.
        let passed_before =
            closing.iter().any(|c| q.f.has_inst(*c) && runs.dom.inst_dominates(q.f, *c, inst));
        if !passed_before {
            self.open_window((q, runs, facts), (block, inst), id, &closing);
        }
        self.traps.push(Trap { inst, witnesses, closing });
    }

    /// Marks the blocks that are reachable from behind the instruction without passing a closing
    /// anchor.
    fn open_window(
        &mut self,
        (q, runs, facts): (&Analyzed<'_>, &RunGraph, &Facts),
        (block, inst): (Block, Inst),
        id: u32,
        closing: &BTreeSet<Inst>,
    ) {
        let closes = |b: Block, from: Option<Inst>| {
            let mut anchors =
                closing.iter().filter(|c| q.f.has_inst(**c) && q.f.inst_block(**c) == b);
            anchors.any(|c| from.is_none_or(|i| q.f.stands_before(i, *c)))
        };
        // The window ends in the block of the instruction itself.
        if closes(block, Some(inst)) {
            return;
        }
        // Through all edges, back edges included: in the next iteration the target version has
        // executed the instruction, and the source version perhaps not yet.
        let mut seen = FixedBitSet::with_capacity(q.f.block_bound());
        let mut work: Vec<Block> = q.entered_from(facts, block).collect();
        while let Some(b) = work.pop() {
            if seen.put(b.as_u32() as usize) {
                continue;
            }
            // Landings in dominated blocks are found through `above`; entering the block here would
            // list the instruction twice.
            if !runs.dom.dominates(block, b) {
                self.window[b].push(id);
            }
            if !closes(b, None) {
                work.extend(q.entered_from(facts, b));
            }
        }
    }

    /// The first instruction that may trap and that a landing at `point` would skip. `passed` says
    /// whether the source version has a value available.
    pub(crate) fn skipped(
        &self,
        q: &Analyzed<'_>,
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
        // A window that holds the start of the block ends at a closing anchor above the point.
        let window = self.window[block].iter().filter(|id| {
            let trap = &self.traps[**id as usize];
            !trap.closing.iter().any(|c| {
                q.f.has_inst(*c)
                    && q.f.inst_block(*c) == block
                    && *c != point.inst()
                    && q.f.stands_before(*c, point.inst())
            })
        });
        // All dominators, however far above: the target version has executed them all.
        let above = std::iter::successors(self.above[block], |b| self.above[*b])
            .flat_map(|b| self.own[b].iter());
        own.chain(above)
            .chain(window)
            .map(|id| &self.traps[*id as usize])
            .find(|trap| !trap.witnesses.iter().any(|w| passed(*w)))
            .map(|trap| trap.inst)
    }
}
