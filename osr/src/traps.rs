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
use crate::pair::analyzed::{Analyzed, members};
use crate::run_graph::RunGraph;
use crate::source::SourcePoint;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use fixedbitset::FixedBitSet;
use ir::dom::DomTree;
use ir::{Block, Inst, Point, Value};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

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
    /// By value of the source version: the blocks that have an instruction of which it is a
    /// witness.
    witnessed: BTreeMap<Value, SmallVec<[Block; 1]>>,
    /// Dominance in the runs of the target version; `None` without traps.
    dom: Option<DomTree>,
    /// The blocks entered to find the windows: a measure of cost
    /// (`traps_of_loops_in_a_row_take_near_linear_work`).
    entered: usize,
}

/// The source version of a landing, and the source point.
pub(crate) struct LandingSource<'a, 'v> {
    pub(crate) p: &'a Analyzed<'v>,
    pub(crate) here: &'a SourcePoint,
}

/// The findings of a search from the points of one version about the traps of the other version.
#[derive(Debug, Default)]
pub(crate) struct PassedTraps {
    /// By block: the instruction of a source point at which the source version has passed all traps
    /// of the block and of the blocks above. The source version has also passed them at all points
    /// that the instruction dominates. Without this note, each point behind a row of loops would
    /// test each trap that a pass has hoisted out of a loop. The path from the point of a note
    /// binds no witness of these traps.
    at: SecondaryMap<Block, PackedOption<Inst>>,
    /// The witnesses tested: a measure of cost, like [`Traps::entered`].
    asked: usize,
}

/// The target version of landings, and the runs of it.
struct LandingRuns<'a, 'v> {
    q: &'a Analyzed<'v>,
    facts: &'a Facts,
    runs: &'a RunGraph,
    reached: &'a LeastDepths<'a>,
}

impl Traps {
    /// Finds the traps for landings in `q` from `p`. Cost: near linear in the instructions of `q`,
    /// plus the blocks of each window and the blocks on the way to them.
    pub(crate) fn new(
        p: &Analyzed<'_>,
        q: &Analyzed<'_>,
        facts: &Facts,
        least: &LeastSizes,
        anchors: &FixedBitSet,
    ) -> Traps {
        let mut traps = Traps {
            traps: Vec::new(),
            own: SecondaryMap::new(),
            above: SecondaryMap::new(),
            window: SecondaryMap::new(),
            witnessed: BTreeMap::new(),
            dom: None,
            entered: 0,
        };
        let runs = RunGraph::new(q, facts);
        let harmless = harmless_accesses(q, &runs, facts, least);
        let reached = LeastDepths::new(&runs);
        let landing = LandingRuns { q, facts, runs: &runs, reached: &reached };
        for &block in runs.cfg.rpo() {
            for inst in q.f.block_insts(block) {
                let is_anchor = anchors.contains(inst.as_u32() as usize);
                let is_harmless = harmless.contains(inst.as_u32() as usize);
                let may_trap = facts.may_trap(q.f, inst) && !is_harmless;
                if is_anchor || !may_trap || !q.f.inst(inst).opcode.is_effect_free() {
                    continue;
                }
                traps.enter(p, &landing, inst);
            }
        }
        // In preorder, the parent's link is final when its children read it.
        for &block in runs.dom.preorder() {
            let parent = runs.dom.idom(block).filter(|b| *b != block);
            traps.above[block] =
                parent.and_then(|b| if traps.own[b].is_empty() { traps.above[b] } else { Some(b) });
        }
        traps.dom = (!traps.traps.is_empty()).then_some(runs.dom);
        traps
    }

    fn enter(&mut self, p: &Analyzed<'_>, landing: &LandingRuns<'_, '_>, inst: Inst) {
        let LandingRuns { q, facts, runs, .. } = *landing;
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
        let home = q.f.inst_block(inst);
        self.own[home].push(id);
        for witness in &witnesses {
            let homes = self.witnessed.entry(*witness).or_default();
            if !homes.contains(&home) {
                homes.push(home);
            }
        }
        // An anchor before the instruction proves that the source version has passed it: there is
        // no window.
        let passed_before =
            closing.iter().any(|c| q.f.has_inst(*c) && runs.dom.inst_dominates(q.f, *c, inst));
        if !passed_before {
            self.open_window(landing, inst, id, &closing);
        }
        self.traps.push(Trap { inst, witnesses, closing });
    }

    /// Marks the blocks that are reachable from behind the instruction without passing a closing
    /// anchor.
    fn open_window(
        &mut self,
        landing: &LandingRuns<'_, '_>,
        inst: Inst,
        id: u32,
        closing: &BTreeSet<Inst>,
    ) {
        let LandingRuns { q, facts, runs, reached } = *landing;
        let block = q.f.inst_block(inst);
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
        // executed the instruction, and the source version perhaps not yet. Only where it may still
        // leave the blocks that the instruction dominates: the blocks behind a loop in a row are
        // all dominated, and there are many.
        let leaves = |b: &Block| !runs.dom.dominates(block, *b) || reached.leave(*b, block);
        let mut work: Vec<Block> = q.entered_from(facts, block).filter(leaves).collect();
        if work.is_empty() {
            return;
        }
        let mut seen = FixedBitSet::with_capacity(q.f.block_bound());
        while let Some(b) = work.pop() {
            if seen.put(b.as_u32() as usize) {
                continue;
            }
            self.entered += 1;
            // Landings in dominated blocks are found through `above`; entering the block here would
            // list the instruction twice.
            if !runs.dom.dominates(block, b) {
                self.window[b].push(id);
            }
            if !closes(b, None) {
                work.extend(q.entered_from(facts, b).filter(leaves));
            }
        }
    }

    /// The first instruction that may trap and that a landing at `point` would skip. `passed` says
    /// whether the source version has a value, in terms of `from`. `noted` keeps the findings for
    /// points behind `from`; `None` keeps and uses no findings.
    pub(crate) fn skipped(
        &self,
        q: &Analyzed<'_>,
        point: Point,
        from: Option<&LandingSource<'_, '_>>,
        noted: &mut PassedTraps,
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
        let mut above: SmallVec<[Block; 8]> =
            std::iter::successors(self.above[block], |b| self.above[*b])
                .take_while(|b| !from.is_some_and(|from| noted.hold(*b, from)))
                .collect();
        // The blocks with a note begin above the last of these.
        let (open, bound) = (above.len(), self.bound_above(block, from));
        for home in &bound {
            if !above[..open].contains(home) {
                above.push(*home);
            }
        }
        let asked = &mut noted.asked;
        let skipped = own
            .chain(above.iter().flat_map(|b| self.own[*b].iter()))
            .chain(window)
            .map(|id| &self.traps[*id as usize])
            .inspect(|_| *asked += 1)
            .find(|trap| !trap.witnesses.iter().any(|w| passed(*w)))
            .map(|trap| trap.inst);
        if let (None, Some(at), true) =
            (skipped, from.and_then(|from| from.here.point()), bound.is_empty())
        {
            above.iter().for_each(|b| noted.at[*b] = at.inst().into());
        }
        skipped
    }

    /// The blocks strictly above a block with instructions whose witnesses the path from a source
    /// point binds, the nearest first. No note says whether the source version has passed these:
    /// a bound value is no longer the value that was available at an earlier point
    /// (`notes_about_traps_change_no_answer_where_paths_bind_witnesses`).
    fn bound_above(
        &self,
        block: Block,
        from: Option<&LandingSource<'_, '_>>,
    ) -> SmallVec<[Block; 8]> {
        let (Some(dom), Some(from)) = (&self.dom, from) else { return SmallVec::new() };
        let homes = from.here.bound().filter_map(|value| self.witnessed.get(&value)).flatten();
        let mut homes: SmallVec<[Block; 8]> =
            homes.copied().filter(|home| *home != block && dom.dominates(*home, block)).collect();
        // Dominators of one block stand above one another.
        homes.sort_unstable_by(|a, b| match (a == b, dom.dominates(*a, *b)) {
            (true, _) => Ordering::Equal,
            (_, true) => Ordering::Greater,
            (_, false) => Ordering::Less,
        });
        homes.dedup();
        homes
    }
}

impl PassedTraps {
    /// Whether the source version has passed all traps of a block and of the blocks above, at a
    /// source point, by values that the path from there does not bind. Where the path leads to a
    /// point that other edges lead to as well, it reads values that are available there, too
    /// (`notes_about_traps_hold_where_the_path_leads_too`).
    fn hold(&self, block: Block, from: &LandingSource<'_, '_>) -> bool {
        let LandingSource { p, here } = *from;
        let Some(noted) = self.at[block].expand() else { return false };
        let is_behind =
            |at: Point| noted == at.inst() || p.dom.inst_dominates(p.f, noted, at.inst());
        here.point().is_some_and(is_behind) && here.far().is_none_or(is_behind)
    }
}

/// By block, in reverse postorder: the least depth in the dominator tree of the blocks that control
/// may reach from there, itself included. Control that leaves the blocks that `b` strictly
/// dominates enters a block that is no deeper than `b`: the parent of that block is above `b`.
struct LeastDepths<'r> {
    runs: &'r RunGraph,
    depth: Vec<u32>,
    least: Vec<u32>,
}

impl<'r> LeastDepths<'r> {
    /// Cost: near linear in the blocks and edges.
    fn new(runs: &'r RunGraph) -> LeastDepths<'r> {
        let cfg = &runs.cfg;
        let mut depth: Vec<u32> = Vec::with_capacity(cfg.rpo().len());
        for &block in cfg.rpo() {
            let parent = runs.dom.idom(block).and_then(|b| cfg.number(b));
            depth.push(parent.map_or(0, |n| depth[n as usize] + 1));
        }
        let mut order: Vec<u32> = (0..depth.len() as u32).collect();
        order.sort_by_key(|n| depth[*n as usize]);
        let mut least = vec![u32::MAX; depth.len()];
        let mut work = Vec::new();
        // The least first: each block takes the first depth that comes up against the edges.
        for from in order {
            work.push(from);
            while let Some(n) = work.pop() {
                if least[n as usize] == u32::MAX {
                    least[n as usize] = depth[from as usize];
                    work.extend(cfg.preds(n));
                }
            }
        }
        LeastDepths { runs, depth, least }
    }

    /// Whether control may leave the blocks that `top` strictly dominates, from a block on.
    fn leave(&self, block: Block, top: Block) -> bool {
        let [block, top] = [block, top].map(|b| self.runs.cfg.number(b));
        match (block, top) {
            (Some(block), Some(top)) => self.least[block as usize] <= self.depth[top as usize],
            // Control never reaches one of them.
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
