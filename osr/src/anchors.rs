//! Bounding anchors: the instructions at which paths end.
//!
//! An *anchor* of two versions is an instruction that both have and that the log moved nowhere. It
//! bounds paths if it is a terminator, has an effect, or may trap. In most code, one follows
//! another within a few blocks. In code that inlining makes, anchors may be far apart:
//!
//! ```text
//! jump callee1          %x1 = add %a, %b        jump rest1(%x1)
//! jump callee2          %x2 = add %r1, %b       jump rest2(%x2)          and so on
//! ```
//!
//! `cfg_clean` merges all these blocks, so their jumps are no anchors, and a path through
//! hundreds of them exceeds the limits of `paths` and of the checker. The anchor at its start is
//! then unproved, and every point behind it loses its entry. [`bounding_anchors`] therefore makes
//! pure instructions bound paths, too, where a path would be long. An `add` that stayed where it
//! was is executed by both versions alike, as a store would be.

use crate::facts::Facts;
use crate::paths::{MAX_JUMPS, edges_taken};
use fixedbitset::FixedBitSet;
use ir::cfg::Cfg;
use ir::{Block, Function, Inst, Value};
use transition::{Pair, Side};

/// Beyond this number of jumps, a path ends at the next pure instruction that may bound it. Half of
/// the limit leaves room for blocks without such an instruction.
const LONG: usize = MAX_JUMPS / 2;

/// The bounding anchors of two versions, by the index of the instruction. Cost: linear in both
/// versions.
pub(crate) fn bounding_anchors(before: &Function, after: &Function, facts: &Facts) -> FixedBitSet {
    let mut anchors = FixedBitSet::with_capacity(before.inst_bound().max(after.inst_bound()));
    let stays = |i: &Inst| after.has_inst(*i) && !facts.is_moved(*i);
    // The version after executes a terminator less often once an edge was redirected past it. Such
    // a jump bounds nothing, and paths run on through it in both versions.
    let leads_on = |i: &Inst| facts.control.is_skipped(*i);
    for inst in before.all_insts().filter(stays).filter(|i| !leads_on(i)) {
        let opcode = before.inst(inst).opcode;
        // In either version: `may_trap` depends on operands, and a pass may have shown the divisor
        // to be a constant.
        if !opcode.is_effect_free() || before.may_trap(inst) || after.may_trap(inst) {
            anchors.insert(inst.as_u32() as usize);
        }
    }
    let versions = Pair::new(before, after);
    for side in Side::BOTH {
        bound_long_paths(&versions, side, facts, &mut anchors);
    }
    anchors
}

/// Adds pure anchors to the long paths of one version.
fn bound_long_paths(
    versions: &Pair<&Function>,
    side: Side,
    facts: &Facts,
    anchors: &mut FixedBitSet,
) {
    let f = versions[side];
    let leads_on = |block: Block| !anchors.contains(f.terminator(block).as_u32() as usize);
    // Most versions end here, without a control-flow graph.
    if f.blocks().filter(|block| leads_on(*block)).count() <= LONG {
        return;
    }
    // By block: the jumps from its start to the next anchor. A block without an entry is one that
    // the walk has not met, at the other end of a back edge.
    let mut jumps = vec![0; f.block_bound()];
    for &block in Cfg::new(f).rpo().iter().rev() {
        let end = f.terminator(block);
        let is_anchor = |i: Inst, anchors: &FixedBitSet| anchors.contains(i.as_u32() as usize);
        let from_end = match edges_taken(f, facts, end).filter(|_| !is_anchor(end, anchors)) {
            Some(edges) => 1 + jumps[f.target(edges[0]).block.as_u32() as usize],
            None => 0,
        };
        if from_end >= LONG
            && let Some(inst) = pure_anchor(versions, side, facts, block)
        {
            anchors.insert(inst.as_u32() as usize);
        }
        let has_anchor = f.block_insts(block).any(|i| is_anchor(i, anchors));
        jumps[block.as_u32() as usize] = if has_anchor { 0 } else { from_end };
    }
}

/// The last pure instruction of a block that both versions execute alike, with operands that the
/// log shows to be equal. If the checker cannot prove the operands of an anchor equal, it has to
/// leave everything behind the anchor unproved.
fn pure_anchor(
    versions: &Pair<&Function>,
    side: Side,
    facts: &Facts,
    block: Block,
) -> Option<Inst> {
    let other = versions[side.other()];
    let is_alike = |inst: &Inst| {
        // Redirected edges skip whole blocks, with the pure instructions in them.
        let is_passed = facts.control.is_passed_over(*inst);
        if !other.has_inst(*inst) || facts.is_moved(*inst) || is_passed {
            return false;
        }
        let (x, y) = (versions.before.inst(*inst), versions.after.inst(*inst));
        x.opcode.is_effect_free()
            && (x.opcode, x.ty, &x.imm) == (y.opcode, y.ty, &y.imm)
            && x.args.len() == y.args.len()
            && x.args.iter().zip(&y.args).all(|(a, b)| are_linked(facts, *a, *b))
    };
    let f = versions[side];
    let insts = std::iter::successors(Some(f.terminator(block)), |inst| f.prev_inst(*inst));
    insts.skip(1).find(is_alike)
}

/// Whether the log shows that a value of the version before equals one of the version after.
fn are_linked(facts: &Facts, before: Value, after: Value) -> bool {
    before == after
        || facts.chain(before, Side::Before).contains(&after)
        || facts.chain(after, Side::After).contains(&before)
}
