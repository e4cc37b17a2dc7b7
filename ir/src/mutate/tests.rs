//! Tests of `ir::mutate`.

use super::*;
use crate::builder::FunctionBuilder;
use crate::inst::InstSpec;
use crate::types::Signature;

/// Inserts `count` constants, each before the last, the middle or the first of `count`
/// instructions, or at changing places. Returns the number of instructions renumbered.
fn renumbered(count: u32, place: &str) -> usize {
    let mut b = FunctionBuilder::new("f", Signature::default());
    let entry = b.create_block();
    b.switch_to(entry);
    let mut at: Vec<Inst> =
        (0..count).map(|n| b.insert(InstSpec::constant(Type::I32, n.into()))).collect();
    at.push(b.ret(&[]));
    let mut f = b.finish().expect("complete");
    let mut work = 0;
    for n in 0..count as usize {
        let next = match place {
            "last" => at[count as usize],
            "middle" => at[count as usize / 2],
            "first" => f.first_inst(entry),
            _ => at[n * 7919 % 16],
        };
        let inst = f.family.new_inst();
        let spec = InstSpec::constant(Type::I32, 0);
        let data = InstData {
            opcode: spec.opcode,
            ty: spec.ty,
            imm: spec.imm,
            args: spec.args,
            results: SmallVec::new(),
            targets: Vec::new(),
        };
        let (prev, after) = (None.into(), None.into());
        f.insts.insert(inst, InstNode { data, block: entry, prev, next: after, order: 0 });
        work += f.link(inst, InsertPosition::Before(next));
    }
    let order: Vec<u32> = f.block_insts(entry).map(|inst| f.node(inst).order).collect();
    assert!(order.is_sorted_by(|a, b| a < b), "{place}: the numbers do not ascend");
    assert_eq!(order.len(), 2 * count as usize + 1);
    work
}

/// Renumbering the block at every fifth insertion would give 20,000 times 10,000 here.
#[test]
fn insertions_at_one_position_renumber_a_logarithm_of_the_block() {
    for place in ["last", "middle", "first", "scattered"] {
        let (small, large) = (renumbered(20_000, place), renumbered(40_000, place));
        assert!(large <= 40_000 * 40, "{place}: {large}");
        assert!(10 * large <= 25 * small, "{place}: {small}, then {large}");
    }
}
