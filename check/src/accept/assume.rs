//! Assumptions of one version alone.
//!
//! A version may assume what the other does not: `speculate` has added `%y = assume.i32 %x, 7, 1`.
//! Where `%x` is 7, both versions do the same; where it is not, the version with the assumption
//! leaves, and reaches none of its later points. So the claim of an entry that lands at one of them
//! is false for some runs, and what a third version has made of the assumption would be false with
//! it. Such an entry is refused ([`super::checks::Check::AssumePassed`]), wherever a path leads from
//! the assumption to the landing point: in the next round of a loop, too
//! (`no_entry_lands_in_the_next_round_of_a_loop_that_assumes`). In the other direction nothing is to
//! be checked: a run that has come to a point of the version has passed its assumptions, and the
//! other version has no fewer runs.
//!
//! An assumption whose operand has the class of the constant holds in every run, and bars nothing.

use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::{Block, Function, Imm, Inst, InstData, Value};
use std::collections::BTreeMap;
use transition::certificate::NO_TERM;

/// Whether the result of an assumption has the class that it must have: a part of
/// [`super::checks::Check::ValueTerm`].
///
/// Of an anchor, which both versions execute, it is the constant assumed: where the result is
/// available, the assumption has held. Of another, it has the class of the operand. Each is true
/// for all contents of the leaves. With both for one assumption, the operand would have the
/// constant *above* it too (`an_assumption_says_nothing_above_itself`).
pub(crate) fn has_class(version: &ProvedVersion<'_, '_>, data: &InstData, is_anchor: bool) -> bool {
    let ([operand], Some(result)) = (&data.args[..], data.result()) else { return false };
    let is_copy = || [version.class(*operand), NO_TERM].map(|c| c == version.class(result));
    if is_anchor { is_assumed(version, data, result) } else { is_copy() == [true, false] }
}

/// Whether the operand of an assumption has the class of the constant: it holds in every run.
pub(crate) fn is_proved(version: &ProvedVersion<'_, '_>, data: &InstData) -> bool {
    data.args.iter().all(|operand| is_assumed(version, data, *operand))
}

/// Whether a value has the class of the constant assumed.
fn is_assumed(version: &ProvedVersion<'_, '_>, data: &InstData, value: Value) -> bool {
    matches!(data.imm, Imm::Assumed(bits, _) if version.constant(value) == Some(bits))
}

/// The assumptions of a version that the other does not make.
pub(crate) struct Assumes {
    /// By block: the first of them.
    first: BTreeMap<Block, Inst>,
    /// The blocks that a run may enter after one of them, by index.
    behind: FixedBitSet,
}

impl Assumes {
    pub(crate) fn new(f: &Function) -> Assumes {
        Assumes { first: BTreeMap::new(), behind: FixedBitSet::with_capacity(f.block_bound()) }
    }

    /// Adds an assumption. Those of one block are added in order.
    pub(crate) fn add(&mut self, f: &Function, inst: Inst) {
        self.first.entry(f.inst_block(inst)).or_insert(inst);
    }

    /// Finds the blocks behind the assumptions, over all edges. Cost: linear in the function.
    pub(crate) fn spread(&mut self, f: &Function) {
        let mut work: Vec<Block> = self.first.keys().copied().collect();
        while let Some(block) = work.pop() {
            for target in &f.inst(f.terminator(block)).targets {
                if !self.behind.put(target.block.as_u32() as usize) {
                    work.push(target.block);
                }
            }
        }
    }

    /// Whether one of them may have executed before the point before an instruction.
    pub(crate) fn precede(&self, f: &Function, inst: Inst) -> bool {
        let block = f.inst_block(inst);
        self.behind.contains(block.as_u32() as usize)
            || self.first.get(&block).is_some_and(|first| f.stands_before(*first, inst))
    }
}
