//! Ways past blocks: edges whose constant arguments decide the branch at the end of their target
//! lead directly to the target of that branch.
//!
//! `a && b` of C, compiled without optimization, is a block that receives 0 over one edge and `b`
//! over the other, and branches on what it received. The first edge can go where the branch leads
//! with 0. The pass `thread` does the same to the function, and costs entries. The lowering may do
//! it without any: the function stays as it is, and an OSR point makes a block one that no edge
//! passes.

use super::Unit;
use crate::config::Interruption;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::edit::way_past;
use ir::loops::LoopForest;
use ir::{Block, Edge, Function, Opcode, Target};

/// The most instructions of a block that an edge passes: a bound on the cost of the search.
const MAX_INSTS: usize = 8;

/// The blocks that edges may pass, by index.
///
/// Empty if blocks pay fuel or branches count: a passed block would not pay or count
/// (`a_decided_edge_leads_past_its_target`). Loop headers are never among them. A loop would get a
/// second entry, and an endless run could miss all tests for interrupts. Linear in the function.
pub(super) fn passable(unit: Unit<'_>, cfg: &Cfg) -> FixedBitSet {
    let function = unit.function;
    let mut blocks = FixedBitSet::with_capacity(function.block_bound());
    if unit.config.interruption == Interruption::Fuel || unit.counting.is_some() {
        return blocks;
    }
    for &block in cfg.rpo().iter().filter(|block| is_short_branch(function, **block)) {
        blocks.insert(block.index());
    }
    if !blocks.is_clear() {
        let forest = LoopForest::new(function, cfg);
        forest.loops().for_each(|l| blocks.set(forest.header(l).index(), false));
        blocks.set(function.entry().index(), false);
    }
    blocks
}

fn is_short_branch(function: &Function, block: Block) -> bool {
    let end = function.inst(function.terminator(block)).opcode;
    matches!(end, Opcode::BrIf | Opcode::Switch)
        && function.block_insts(block).nth(MAX_INSTS).is_none()
}

/// The target of an edge, past its own target if that is possible and permitted. Cost: constant,
/// and the number of uses of what the passed block defines.
pub(super) fn way(function: &Function, passable: &FixedBitSet, edge: Edge) -> Option<Target> {
    let Target { block: passed, args } = function.target(edge);
    if !passable.contains(passed.index()) {
        return None;
    }
    let index = way_past(function, edge).ok()?;
    let mut target = function.target(Edge { inst: function.terminator(*passed), index }).clone();
    let params = function.block_params(*passed);
    for arg in &mut target.args {
        // `way_past` permits arguments that the passed block receives, and none that it computes.
        if let Some(at) = params.iter().position(|param| param == arg) {
            *arg = args[at];
        }
    }
    Some(target)
}
