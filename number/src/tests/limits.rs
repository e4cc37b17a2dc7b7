//! Terms that reach a limit of the table: at the limit a rule applies, beyond it the term stays in
//! a class of its own.

use super::*;

/// Whether `x - a` is `b`, where `a + b` is a term of the class of `x` behind `others` more.
fn finds_a_sum_behind(others: usize) -> bool {
    let mut table = ClassTable::<RuleNames>::default();
    let [x, a, b] = [0, 1, 2].map(|leaf| table.named_leaf(leaf, Some(Type::I32)));
    let given = |table: &mut ClassTable<RuleNames>, opcode, args: [TermIndex; 2]| {
        let args = ClassArgs::from_slice(&args);
        table.op_because(opcode, Type::I32, Imm::None, args, Some((x, "given")))
    };
    for bits in 0..others as u64 {
        let constant = table.make_constant(Type::I32, 1 + bits);
        given(&mut table, Opcode::Rotl, [a, constant]);
    }
    given(&mut table, Opcode::Add, [b, a]);
    let difference = binary(&mut table, Opcode::Sub, [x, a]);
    let class = table.class(difference);
    assert!(class == b || class == difference);
    class == b
}

#[test]
fn a_rule_sees_so_many_terms_of_a_class() {
    // The leaf comes first, and the sum last.
    assert!(finds_a_sum_behind(MAX_MEMBERS - 2));
    assert!(!finds_a_sum_behind(MAX_MEMBERS - 1));
}

/// Whether the low byte of a value cut to its low half `cuts` times is the low byte of the value.
fn drops_cuts(cuts: usize) -> bool {
    let mut table = ClassTable::<RuleNames>::default();
    let x = table.named_leaf(0, Some(Type::I32));
    let mut unary = |opcode, of: TermIndex, by_rules: bool| {
        let args = ClassArgs::from_slice(&[of]);
        match by_rules {
            true => table.op(opcode, Type::I32, Imm::None, args),
            false => table.op_because(opcode, Type::I32, Imm::None, args, None),
        }
    };
    // Without rules, which leave one cut of several in a row.
    let cut = (0..cuts).fold(x, |of, _| unary(Opcode::Sext16, of, false));
    let [byte, direct] = [cut, x].map(|of| unary(Opcode::Sext8, of, true));
    table.class(byte) == table.class(direct)
}

#[test]
fn a_term_is_rewritten_so_often() {
    assert!(drops_cuts(8));
    assert!(!drops_cuts(9));
}
