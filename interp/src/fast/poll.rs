//! Fast code that counts visits of blocks.

use super::code::Fast;
use super::op::{FastOp, FastOpCode, Jumps};
use std::collections::BTreeMap;

/// The code with polls: jumps to a block of the list lead to an operation that counts a visit and
/// continues at the block. The list has the pcs of blocks, each with the index of its counter.
/// Cost: linear in the code.
pub(crate) fn with_polls(fast: &Fast, blocks: &[(u32, u32)]) -> Fast {
    let mut made = fast.clone();
    let first = made.ops.len() as u32;
    let polls: BTreeMap<u32, u32> =
        blocks.iter().zip(first..).map(|((block, _), poll)| (*block, poll)).collect();
    let redirect = |pc: &mut u32| *pc = polls.get(pc).copied().unwrap_or(*pc);
    for op in &mut made.ops {
        match op.code.jumps() {
            Jumps::Nowhere => {}
            Jumps::First => redirect(&mut op.x),
            Jumps::Both => {
                redirect(&mut op.x);
                redirect(&mut op.y);
            }
        }
    }
    made.targets.iter_mut().for_each(redirect);
    // A poll executes no instruction and takes no fuel, so no run stops at its pc, which the exact
    // code lacks (`a_run_without_fuel_stops_at_the_same_place_when_visits_count`).
    made.ops.extend(blocks.iter().map(|(block, counter)| FastOp {
        length: 0,
        ..FastOp::new(FastOpCode::Poll, [0, 0], [*block, *counter])
    }));
    made
}
