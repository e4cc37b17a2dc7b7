//! The visits of blocks, from those of branches.

use super::FunctionProfile;
use cranelift_entity::EntityRef;
use ir::{Block, Function, Opcode};

/// See [`FunctionProfile::visits`].
pub(super) fn visits(profile: &FunctionProfile, base: &Function) -> Vec<u64> {
    let mut visits = vec![0u64; base.block_bound()];
    let add = |visits: &mut [u64], block: Block, more: u64| {
        let visits = &mut visits[block.index()];
        *visits = visits.saturating_add(more);
    };
    add(&mut visits, base.entry(), profile.calls);
    // Each block has at most one edge by a `jump`, so these edges form trees that lead to a root or
    // to a cycle. A block hands its visits on when it has received all of its own.
    let mut awaited = vec![0u32; base.block_bound()];
    for block in base.blocks() {
        let targets = base.successors(block);
        match profile.branches.get(&base.terminator(block)) {
            Some(sides) => {
                for (target, side) in targets.iter().zip(sides) {
                    add(&mut visits, target.block, *side);
                }
            }
            None => {
                if let Some(target) = jump(base, block) {
                    awaited[target.index()] += 1;
                }
            }
        }
    }
    let mut ready: Vec<Block> = base.blocks().filter(|block| awaited[block.index()] == 0).collect();
    while let Some(block) = ready.pop() {
        if let Some(target) = jump(base, block) {
            let more = visits[block.index()];
            add(&mut visits, target, more);
            awaited[target.index()] -= 1;
            if awaited[target.index()] == 0 {
                ready.push(target);
            }
        }
    }
    visits
}

/// The block that a `jump` at the end of a block leads to.
fn jump(base: &Function, block: Block) -> Option<Block> {
    let is_jump = base.inst(base.terminator(block)).opcode == Opcode::Jump;
    is_jump.then(|| base.successors(block)[0].block)
}
