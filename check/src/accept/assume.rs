//! Assumptions of one version alone.
//!
//! A version may have an assumption that the other version lacks: `speculate` has added
//! `%y = assume.i32 %x, 7, 1`. Where `%x` is 7, both versions do the same. Where it is 8, the
//! version with the assumption leaves, and does not reach its later points. So the claim of an
//! entry that lands at a later point is false for some runs, and a third version may rest on the
//! assumption. Such an entry is refused ([`super::checks::Check::AssumePassed`]) wherever a path
//! leads from the assumption to the landing point. Such a path may lead into the next round of a
//! loop (`what_a_loop_assumes_bars_its_next_round`).
//!
//! Entries that leave the version need no such check. A run that has come to a point of the version
//! has passed its assumptions, and the other version has every run.
//!
//! An assumption whose operand has the class of the constant holds in every run, and bars nothing.

use super::version::ProvedVersion;
use fixedbitset::FixedBitSet;
use ir::{Block, Function, Imm, Inst, InstData, Opcode, Value};
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
    let ([operand, ..], Some(result)) = (&data.args[..], data.result()) else { return false };
    let is_copy = || [version.class(*operand), NO_TERM].map(|c| c == version.class(result));
    if is_anchor { is_assumed(version, data, result) } else { is_copy() == [true, false] }
}

/// Whether the operand of an assumption has the class of the constant: it holds in every run.
fn is_proved(version: &ProvedVersion<'_, '_>, data: &InstData) -> bool {
    // The operands behind the first are kept values (`a_kept_value_proves_nothing`).
    data.args.first().is_some_and(|operand| is_assumed(version, data, *operand))
}

/// Whether a value has the class of the constant assumed.
fn is_assumed(version: &ProvedVersion<'_, '_>, data: &InstData, value: Value) -> bool {
    matches!(data.imm, Imm::Assumed(bits, _) if version.constant(value) == Some(bits))
}

/// The assumptions of a version that the other version lacks.
pub(crate) struct Assumes {
    /// By block: its first assumption.
    first: BTreeMap<Block, Inst>,
    /// The blocks that a run may enter after an assumption, by index.
    behind: FixedBitSet,
}

impl Assumes {
    /// The assumptions of a version that are no anchors and not proved, and their reach over all
    /// edges. Cost: linear in the version.
    pub(crate) fn new(version: &ProvedVersion<'_, '_>, anchors: &FixedBitSet) -> Assumes {
        let (f, mut first) = (version.f, BTreeMap::new());
        for &block in version.live().blocks() {
            let is_lone = |inst: &Inst| {
                let data = f.inst(*inst);
                data.opcode == Opcode::Assume
                    && !anchors.contains(inst.as_u32() as usize)
                    && !is_proved(version, data)
            };
            first.extend(f.block_insts(block).find(is_lone).map(|inst| (block, inst)));
        }
        let mut behind = FixedBitSet::with_capacity(f.block_bound());
        let mut work: Vec<Block> = first.keys().copied().collect();
        while let Some(block) = work.pop() {
            let targets = f.inst(f.terminator(block)).targets.iter().map(|t| t.block);
            work.extend(targets.filter(|b| !behind.put(b.as_u32() as usize)));
        }
        Assumes { first, behind }
    }

    /// Whether one of them may have executed before the point before an instruction.
    pub(crate) fn precede(&self, f: &Function, inst: Inst) -> bool {
        let block = f.inst_block(inst);
        self.behind.contains(block.as_u32() as usize)
            || self.first.get(&block).is_some_and(|first| f.stands_before(*first, inst))
    }
}
