//! Ways past blocks: edges whose constant arguments decide the branch at the end of their target
//! lead directly to the target of that branch.
//!
//! Example: `a && b` of C, compiled without optimization, is a block that receives 0 over one edge
//! and `b` over the other, and branches on the received value. The first edge can lead directly to
//! the target for 0. If a pass changed the function this way, it would cost entries. The lowering
//! costs no entries: the function stays unchanged, and no edge passes a block with an OSR point.

use super::Unit;
use crate::config::Interruption;
use cranelift_entity::EntityRef;
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::edit::onward;
use ir::eval::{fold, is_evaluated};
use ir::loops::LoopForest;
use ir::{Block, Edge, Function, Opcode, Target, Value};
use std::collections::BTreeMap;

/// The most instructions of a block that an edge passes: a bound on the cost of the search.
const MAX_INSTS: usize = 8;

/// The blocks that edges may pass, by index.
///
/// Empty if blocks pay fuel or branches count: a passed block would not pay or count
/// (`a_decided_edge_leads_past_its_target`). Loop headers are never among them. Otherwise a loop
/// would get a second entry, and an endless run could miss all polls for interrupts. Linear in the
/// function.
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

/// The target of an edge, past its own target if that is possible and permitted. Cost: linear in
/// the uses of values that the passed block defines.
pub(super) fn way(function: &Function, passable: &FixedBitSet, edge: Edge) -> Option<Target> {
    let Target { block: passed, args } = function.target(edge);
    if !passable.contains(passed.index()) {
        return None;
    }
    let index = decision(function, *passed, args)?;
    onward(function, edge, index).ok()
}

/// The index of the target that the branch at the end of a block takes, given the arguments of the
/// block; `None` if the constants among these do not decide it.
fn decision(function: &Function, block: Block, args: &[Value]) -> Option<u32> {
    let end = function.inst(function.terminator(block));
    let given = function.block_params(block).iter().zip(args);
    let mut known: BTreeMap<Value, u64> =
        given.filter_map(|(param, arg)| Some((*param, function.constant(*arg)?))).collect();
    for inst in function.block_insts(block) {
        let data = function.inst(inst);
        let operand = |v: &Value| known.get(v).copied().or_else(|| function.constant(*v));
        if let Some(result) = data.result().filter(|_| is_evaluated(data.opcode))
            && let Some(bits) = data.args.iter().map(operand).collect::<Option<Vec<u64>>>()
            && let Some(first) = data.args.first()
            && let Some(bits) = fold(data.opcode, data.ty, function.value_type(*first), &bits)
        {
            known.insert(result, bits);
        }
    }
    let condition = *end.args.first()?;
    let bits = known.get(&condition).copied().or_else(|| function.constant(condition))?;
    match end.opcode {
        Opcode::BrIf => Some(u32::from(bits == 0)),
        Opcode::Switch => {
            let last = (end.targets.len() as u64).checked_sub(1)?;
            Some(bits.min(last) as u32)
        }
        _ => None,
    }
}
