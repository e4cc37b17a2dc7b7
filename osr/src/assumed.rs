//! Assumptions of a single version.
//!
//! The version after `speculate` assumes `%x` to be 7 where the version before continues for any
//! `%x`. No entry lands behind the assumption from the version before: it may have failed in the
//! run that would land, and a later pass may have built on it. Behind means on any path from the
//! assumption, the next rounds of a loop included.

use crate::facts::Facts;
use fixedbitset::FixedBitSet;
use ir::{Block, Function, Inst, Opcode, Point};
use std::collections::BTreeMap;
use transition::Side;

/// The assumptions of a version that the other version lacks, and their reach.
#[derive(Debug, Default)]
pub(crate) struct LoneAssumptions {
    /// By block: its first assumption.
    first: BTreeMap<Block, Inst>,
    /// The blocks that a run may enter behind an assumption.
    behind: FixedBitSet,
}

impl LoneAssumptions {
    /// The assumptions that are no anchors, except assumptions proved to hold. Cost: linear in the
    /// version.
    pub(crate) fn new(
        f: &Function,
        side: Side,
        facts: &Facts,
        anchors: &FixedBitSet,
    ) -> LoneAssumptions {
        let mut found = LoneAssumptions::default();
        for inst in f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Assume) {
            if !anchors.contains(inst.as_u32() as usize) && !is_proved(f, side, facts, inst) {
                let first = found.first.entry(f.inst_block(inst)).or_insert(inst);
                if f.stands_before(inst, *first) {
                    *first = inst;
                }
            }
        }
        found.behind.grow(f.block_bound());
        let mut work: Vec<Block> = found.first.keys().copied().collect();
        while let Some(block) = work.pop() {
            let targets = f.inst(f.terminator(block)).targets.iter().map(|t| t.block);
            work.extend(targets.filter(|b| !found.behind.put(b.as_u32() as usize)));
        }
        found
    }

    /// The assumption in whose reach a point lies; of several, the first of its block.
    pub(crate) fn before(&self, f: &Function, point: Point) -> Option<Inst> {
        let block = f.inst_block(point.inst());
        let own = self.first.get(&block).copied().filter(|i| f.stands_before(*i, point.inst()));
        let is_behind = self.behind.contains(block.as_u32() as usize);
        own.or_else(|| self.first.values().next().copied().filter(|_| is_behind))
    }
}

/// Whether the log shows that the operand of an assumption has the bits assumed.
fn is_proved(f: &Function, side: Side, facts: &Facts, inst: Inst) -> bool {
    let data = f.inst(inst);
    let Some((operand, bits)) = data.assumed() else { return false };
    let of_log = || facts.constant(operand, side).map(|(_, bits)| bits);
    f.constant(operand).or_else(of_log) == Some(bits)
}
