//! Removal of empty blocks that only jump.

use crate::entity::Block;
use crate::function::Function;
use crate::opcode::Opcode;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::collections::BTreeSet;

/// By block to be dropped: the block that its edges lead to instead.
type SkipTargets = SecondaryMap<Block, PackedOption<Block>>;

/// Redirects every edge to an empty block to the target of that block's jump, and drops the block.
/// The entry and the blocks in `keep` remain. One block of every cycle of empty blocks remains too.
/// Only the predecessor lists of blocks that receive redirected edges change their order. Cost:
/// linear.
pub(super) fn skip_empty(
    function: &mut Function,
    keep: &BTreeSet<Block>,
    is_free: impl Fn(Block, Block) -> bool,
) {
    let mut onward = SkipTargets::new();
    for block in function.blocks().skip(1).filter(|b| !keep.contains(b)) {
        onward[block] = jumps_to(function, block).filter(|to| is_free(block, *to)).into();
    }
    for block in function.blocks().collect::<Vec<_>>() {
        resolve(&mut onward, block);
    }
    let skipped: Vec<Block> = function.blocks().filter(|b| onward[*b].is_some()).collect();
    redirect(function, &skipped, &onward);
    for block in &skipped {
        let jump = function.terminator(*block);
        function.insts.remove(jump);
    }
    function.drop_empty_blocks(&skipped);
}

/// The target of a block's jump if the block contains nothing else; `None` otherwise.
fn jumps_to(function: &Function, block: Block) -> Option<Block> {
    let only = function.first_inst(block);
    let data = function.inst(only);
    let empty = data.opcode == Opcode::Jump && function.block_params(block).is_empty();
    let target = data.targets.first().filter(|t| empty && t.args.is_empty())?;
    Some(target.block)
}

/// Makes `onward` map the blocks of a chain of jumps directly to its end. On a cycle, the block to
/// which the walk returns becomes the end.
fn resolve(onward: &mut SkipTargets, block: Block) {
    let mut path: Vec<Block> = Vec::new();
    let mut end = block;
    while let Some(next) = onward[end].expand() {
        path.push(end);
        // During the walk its blocks have no continuation, so a cycle ends the walk.
        onward[end] = None.into();
        end = next;
    }
    for step in path.into_iter().filter(|b| *b != end) {
        onward[step] = end.into();
    }
}

/// Redirects the edges to skipped blocks to the ends of their chains.
fn redirect(function: &mut Function, skipped: &[Block], onward: &SkipTargets) {
    let ends: BTreeSet<Block> = skipped.iter().filter_map(|b| onward[*b].expand()).collect();
    for end in ends {
        let mut preds = function.predecessors(end).to_vec();
        // The jumps of skipped blocks disappear together with their blocks.
        preds.retain(|edge| onward[function.inst_block(edge.inst)].is_none());
        function.block_mut(end).preds = preds.into();
    }
    for block in skipped {
        let end = onward[*block].expect("a skipped block leads on");
        for edge in std::mem::take(&mut function.block_mut(*block).preds) {
            if onward[function.inst_block(edge.inst)].is_none() {
                function.inst_mut(edge.inst).targets[edge.index as usize].block = end;
                function.block_mut(end).preds.push(edge);
            }
        }
    }
}
