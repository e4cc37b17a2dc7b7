//! Redirecting an edge past its target block, to the block where control continues from there.

use super::fault::Fault;
use crate::entity::{Block, Value};
use crate::eval::{fold, is_evaluated};
use crate::function::Function;
use crate::inst::{Edge, Target};
use crate::opcode::Opcode;
use std::collections::BTreeMap;

fn fault<T>(text: String) -> Result<T, Fault> {
    Err(Fault(text))
}

/// The index of the target at which the target block of an edge continues when control enters it
/// over that edge.
///
/// Redirecting the edge to that target is possible under two conditions:
///
/// - No other code misses the skipped block. Its instructions have no effect and cannot trap, and
///   all uses of its definitions (parameters included) are inside the block.
/// - The continuation is known: the block ends in a jump, or in a branch that the constants among
///   the edge's arguments decide. The continuation is not the block itself, and receives no value
///   that the block computes.
///
/// The edge must exist. Cost: linear in the block and in the number of uses of its definitions.
///
/// # Errors
/// When the edge cannot be redirected; the error gives the reason.
pub fn way_past(f: &Function, edge: Edge) -> Result<u32, Fault> {
    let Target { block: past, args } = f.target(edge);
    if f.inst_block(edge.inst) == *past {
        return fault(format!("the edge leads from {past} to itself"));
    }
    misses_nothing(f, *past)?;
    let Some(index) = decision(f, *past, args) else {
        return fault(format!("no constant decides the branch of {past}"));
    };
    onward(f, edge, index).map(|_| index)
}

/// The target of an edge after its redirection past its target block, to that block's target with
/// this index. Arguments that are parameters of the skipped block become the edge's arguments.
pub(super) fn onward(f: &Function, edge: Edge, index: u32) -> Result<Target, Fault> {
    let Target { block: past, args } = f.target(edge);
    let mut target = f.target(Edge { inst: f.terminator(*past), index }).clone();
    if target.block == *past {
        return fault(format!("{past} is its own successor"));
    }
    for arg in &mut target.args {
        match f.block_params(*past).iter().position(|p| p == arg) {
            Some(n) => *arg = args[n],
            None if f.value_block(*arg) == *past => {
                return fault(format!("{past} computes {arg} and passes it to its successor"));
            }
            None => {}
        }
    }
    Ok(target)
}

/// Checks that no other code misses a skipped block.
fn misses_nothing(f: &Function, past: Block) -> Result<(), Fault> {
    let end = f.terminator(past);
    let beyond = |value: &Value| f.users(*value).iter().any(|u| f.inst_block(*u) != past);
    if let Some(param) = f.block_params(past).iter().find(|p| beyond(p)) {
        return fault(format!("{param} is used outside {past}"));
    }
    for inst in f.block_insts(past).filter(|i| *i != end) {
        let data = f.inst(inst);
        let does_nothing = data.opcode.is_effect_free() && !f.may_trap(inst);
        if !does_nothing {
            return fault(format!(
                "{inst} in {past} has an effect or may trap, and would be skipped"
            ));
        }
        if let Some(result) = data.results.iter().find(|v| beyond(v)) {
            return fault(format!("{result} is used outside {past}"));
        }
    }
    Ok(())
}

/// The index of the target at which a block continues, given its arguments; `None` if the constants
/// among the arguments do not decide the branch.
fn decision(f: &Function, block: Block, args: &[Value]) -> Option<u32> {
    let end = f.inst(f.terminator(block));
    if end.opcode == Opcode::Jump {
        return Some(0);
    }
    let given = f.block_params(block).iter().zip(args);
    let mut known: BTreeMap<Value, u64> =
        given.filter_map(|(p, a)| Some((*p, f.constant(*a)?))).collect();
    for inst in f.block_insts(block) {
        let data = f.inst(inst);
        let operand = |v: &Value| known.get(v).copied().or_else(|| f.constant(*v));
        if let Some(result) = data.result().filter(|_| is_evaluated(data.opcode))
            && let Some(bits) = data.args.iter().map(operand).collect::<Option<Vec<u64>>>()
            && let Some(first) = data.args.first()
            && let Some(bits) = fold(data.opcode, data.ty, f.value_type(*first), &bits)
        {
            known.insert(result, bits);
        }
    }
    let condition = *end.args.first()?;
    let bits = known.get(&condition).copied().or_else(|| f.constant(condition))?;
    let last = (end.targets.len() as u64).checked_sub(1)?;
    match end.opcode {
        Opcode::BrIf => Some(u32::from(bits == 0)),
        Opcode::Switch => Some(bits.min(last) as u32),
        _ => None,
    }
}
