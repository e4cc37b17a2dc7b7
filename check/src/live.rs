//! What an entry has to provide: the checker's own liveness.
//!
//! A value is *needed* when an effect, a trap, a branch or a result depends on it; live are the
//! needed values still to be read. For each value the blocks are marked from its uses up to its
//! definition (Boissinot et al., "Computing Liveness Sets for SSA-Form Programs", 2011, section
//! 4.2).
//!
//! Where a transition lands, what stands behind edges that the class of a condition excludes reads
//! nothing. That is enough: the relation says that a run of the version could be before the landing
//! point with the values that the classes have there, and what is live is handed over equal to
//! them. The two go on alike, step by step: effects, traps, branches, decided ones too, and
//! transitions that are armed read only what is live, so that both compute the same and take the
//! same edges; and no run takes an edge that is excluded. Where a transition *starts* all edges
//! count: live is what the text of the version still reads.

use super::graph::Graph;
use super::version::Version;
use crate::verdict::{Check, Finding, Options, Place};
use fixedbitset::FixedBitSet;
use ir::{Block, Edge, Function, Inst, Value, ValueDef};
use std::collections::{BTreeMap, BTreeSet};
use transition::Demand;

/// Uses besides those of the instructions: what armed entries read, by the instruction they start
/// before.
pub(super) type Extra = BTreeMap<Inst, Vec<Value>>;

/// Which values are live at the start of each block.
pub(super) struct Liveness<'v> {
    f: &'v Function,
    version: &'v Version<'v, 'v>,
    /// Edges that may not be taken are left out.
    in_run: bool,
    needed: FixedBitSet,
    everything: bool,
    /// By block index.
    at_start: Vec<Vec<Value>>,
}

impl<'v> Liveness<'v> {
    /// What is live in the text of a version, or in its runs. Cost: linear in operands and in what
    /// is live at block starts.
    pub(super) fn new(
        version: &'v Version<'_, '_>,
        in_run: bool,
        extra: &Extra,
        options: &Options,
    ) -> Result<Self, Finding> {
        let f = version.f;
        let needed = FixedBitSet::with_capacity(f.value_bound());
        let everything = options.demand == Demand::Live;
        let at_start = vec![Vec::new(); f.block_bound()];
        let mut liveness =
            Liveness { f, version, in_run: in_run && !everything, needed, everything, at_start };
        liveness.find_needed(extra);
        let total = liveness.spread(extra, options.live_limit);
        options.require(Check::Size, total <= options.live_limit, Place::Whole)?;
        Ok(liveness)
    }

    fn graph(&self) -> &'v Graph {
        if self.in_run { self.version.live() } else { &self.version.full }
    }

    /// Nothing is known of conditions in blocks that are not reached: what those pass on does not
    /// count at all (`what_excluded_blocks_pass_on_is_not_live`).
    fn counts_edge(&self, edge: Edge) -> bool {
        let comes = self.graph().has(self.f.inst_block(edge.inst));
        comes && (!self.in_run || self.version.may_take(edge))
    }

    fn counted_edges(&self, inst: Inst) -> impl Iterator<Item = Edge> + '_ {
        let edges =
            (0..self.f.inst(inst).targets.len() as u32).map(move |index| Edge { inst, index });
        edges.filter(|e| self.counts_edge(*e))
    }

    fn find_needed(&mut self, extra: &Extra) {
        let mut work: Vec<Value> = extra.values().flatten().copied().collect();
        for &block in self.graph().blocks() {
            for inst in self.f.block_insts(block) {
                work.extend(demanded(self.f, inst));
            }
        }
        while let Some(value) = work.pop() {
            if self.needed.put(value.as_u32() as usize) {
                continue;
            }
            match self.f.value_def(value) {
                ValueDef::Result(inst, _) => work.extend(&self.f.inst(inst).args),
                ValueDef::Param(block, index) => {
                    let edges = self.f.predecessors(block).iter().filter(|e| self.counts_edge(**e));
                    work.extend(edges.map(|e| self.f.target(*e).args[index as usize]));
                }
            }
        }
    }

    fn counts(&self, value: Value) -> bool {
        self.everything || self.needed.contains(value.as_u32() as usize)
    }

    /// Calls `read` for every value that an instruction reads and that counts.
    fn reads(&self, inst: Inst, extra: &Extra, mut read: impl FnMut(Value)) {
        let data = self.f.inst(inst);
        let computes = self.everything || data.results.iter().any(|v| self.counts(*v));
        let args = if computes { &data.args[..] } else { demanded(self.f, inst) };
        args.iter().for_each(|v| read(*v));
        for target in self.counted_edges(inst).map(|e| self.f.target(e)) {
            let params = self.f.block_params(target.block);
            target
                .args
                .iter()
                .zip(params)
                .filter(|(_, p)| self.counts(**p))
                .for_each(|(v, _)| read(*v));
        }
        extra.get(&inst).into_iter().flatten().for_each(|v| read(*v));
    }

    /// Marks every block on the way up from the uses of each value, up to a limit; returns how many
    /// marks there are.
    fn spread(&mut self, extra: &Extra, limit: usize) -> usize {
        let mut uses: Vec<(Value, Block)> = Vec::new();
        for &block in self.graph().blocks() {
            for inst in self.f.block_insts(block) {
                self.reads(inst, extra, |value| {
                    if self.f.has_value(value) && !self.is_defined_in(value, block) {
                        uses.push((value, block));
                    }
                });
            }
        }
        uses.sort_unstable();
        uses.dedup();
        let mut total = 0;
        let mut work = Vec::new();
        for (value, block) in uses {
            work.push(block);
            while let Some(block) = work.pop() {
                let live = &mut self.at_start[block.as_u32() as usize];
                if live.last() == Some(&value) || total > limit {
                    continue;
                }
                live.push(value);
                total += 1;
                let preds = self.f.predecessors(block).iter().filter(|e| self.counts_edge(**e));
                let preds = preds.map(|e| self.f.inst_block(e.inst));
                work.extend(preds.filter(|b| !self.is_defined_in(value, *b)));
            }
        }
        total
    }

    fn is_defined_in(&self, value: Value, block: Block) -> bool {
        self.f.value_block(value) == block
    }

    /// Walks a block upward: calls `visit` at each instruction with what is live before it.
    pub(super) fn walk(
        &self,
        block: Block,
        extra: &Extra,
        mut visit: impl FnMut(Inst, &BTreeSet<Value>),
    ) {
        // Not a set of bits: its size would be that of the function, for every block and every
        // entry.
        let edges = self.counted_edges(self.f.terminator(block)).map(|e| self.f.target(e).block);
        let mut live: BTreeSet<Value> =
            edges.flat_map(|b| &self.at_start[b.as_u32() as usize]).copied().collect();
        let mut at = Some(self.f.terminator(block));
        while let Some(inst) = at {
            for result in &self.f.inst(inst).results {
                live.remove(result);
            }
            self.reads(inst, extra, |v| live.extend([v]));
            visit(inst, &live);
            at = self.f.prev_inst(inst);
        }
    }
}

/// The operands that an instruction needs whatever becomes of its results. What cannot trap only
/// because of its divisor needs that.
fn demanded(f: &Function, inst: Inst) -> &[Value] {
    let data = f.inst(inst);
    if !data.opcode.is_effect_free() || f.may_trap(inst) {
        &data.args
    } else if data.opcode.can_trap() {
        data.args.get(1..).unwrap_or(&[])
    } else {
        &[]
    }
}
