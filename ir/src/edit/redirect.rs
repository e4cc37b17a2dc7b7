//! Leading an edge past its target block, to a target of that block.

use super::fault::Fault;
use crate::entity::{Block, Value};
use crate::function::Function;
use crate::inst::{Edge, Target};

fn fault<T>(text: String) -> Result<T, Fault> {
    Err(Fault(text))
}

/// The target of an edge that is led past its target block, to that block's target with this index.
/// Arguments that are parameters of the skipped block become the edge's arguments. The caller knows
/// that runs along the edge continue there: the block ends in a jump ([`Redirect`]), or the edge
/// decides its branch (native code).
///
/// An edge can skip the block under two conditions:
///
/// - No other code misses the block. Its instructions have no effect and cannot trap, and all uses
///   of its definitions (parameters included) are inside the block.
/// - The target is another block, which receives no value that the skipped block computes.
///
/// Edge and index must exist. Cost: linear in the block and in the number of uses of its
/// definitions.
///
/// # Errors
/// When the edge cannot skip the block; the error gives the reason.
///
/// [`Redirect`]: super::ActionKind::Redirect
pub fn onward(f: &Function, edge: Edge, index: u32) -> Result<Target, Fault> {
    let Target { block: past, args } = f.target(edge);
    if f.inst_block(edge.inst) == *past {
        return fault(format!("the edge leads from {past} to itself"));
    }
    misses_nothing(f, *past)?;
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
