//! The claims of [`ir::rules::reach`]: a result has only bits that the masks of its operands allow.

use crate::batch::{Generator, hex};
use crate::encoder::SmtTerms;
use crate::goal::SolverGoal;
use crate::meaning::{SmtDefinitions, SmtValue};
use crate::typing::Typing;
use easy_smt::SExpr;
use ir::Type;
use ir::rules::{Operand, Reach, possible_bits, reach};
use std::io;

/// The mask of a result, computed from the masks of the operands and the constant value of operand
/// 1, all of 64 bits.
fn reached(
    t: SmtTerms<'_>,
    typing: &Typing,
    reach: Reach,
    masks: &[SExpr],
    constant: SExpr,
) -> SExpr {
    let amount = || t.app("bvurem", &[constant, t.constant(u64::from(typing.ty.bits()), 64)]);
    let found = match reach {
        Reach::Any => t.constant(u64::MAX, 64),
        Reach::Bits(bits) => t.constant(bits, 64),
        Reach::Of(index) => masks[index],
        Reach::Both(first, second) => t.app("bvand", &[masks[first], masks[second]]),
        Reach::Either(first, second) => t.app("bvor", &[masks[first], masks[second]]),
        Reach::Left => t.app("bvshl", &[masks[0], amount()]),
        Reach::Right => t.app("bvlshr", &[masks[0], amount()]),
    };
    t.app("bvand", &[found, t.constant(typing.result.mask(), 64)])
}

/// The goal that, for all masks and all operands within them, the result is within its mask.
pub(crate) fn within(
    definitions: &mut SmtDefinitions<'_>,
    typing: &Typing,
    reach: Reach,
) -> io::Result<SolverGoal> {
    let (mut given, mut shown, mut operands, mut masks) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, ty) in typing.operands.iter().enumerate() {
        let operand = definitions.variable(&format!("operand{index}"), *ty)?;
        let mask = definitions.variable(&format!("mask{index}"), *ty)?;
        let t = definitions.terms();
        given.push(nothing_outside(t, operand, mask, *ty));
        masks.push(t.widened(mask, *ty));
        operands.push(operand);
        shown.extend([(format!("operand{index}"), operand), (format!("mask{index}"), mask)]);
    }
    let meaning = definitions.apply(typing, &operands)?;
    let SmtValue::Bits(result) = meaning.value else {
        return Err(io::Error::other("a mask is claimed for a number"));
    };
    let t = definitions.terms();
    let last = operands.len().min(2) - 1;
    let constant = t.widened(operands[last], typing.operands[last]);
    let mask = reached(t, typing, reach, &masks, constant);
    shown.extend([("result".to_owned(), result), ("its mask".to_owned(), mask)]);
    let inside = nothing_outside(t, t.widened(result, typing.result), mask, Type::I64);
    let trapped: Vec<SExpr> = meaning.traps.into_iter().map(|(_, condition)| condition).collect();
    let holds = Some(t.or(&[trapped, vec![inside]].concat()));
    Ok(SolverGoal { given, holds, shown, cases: Vec::new() })
}

fn nothing_outside(t: SmtTerms<'_>, x: SExpr, mask: SExpr, ty: Type) -> SExpr {
    t.equal(t.app("bvand", &[x, t.app("bvnot", &[mask])]), t.of_type(0, ty))
}

/// The goal that [`possible_bits`] computes the masks that were proved.
pub(crate) fn computed(
    definitions: &mut SmtDefinitions<'_>,
    typing: &Typing,
    seed: u64,
) -> io::Result<SolverGoal> {
    let mut random = Generator::new(seed);
    let mut goal = SolverGoal::default();
    let mut equalities = Vec::new();
    for _ in 0..200 {
        let known = typing.operands.iter().map(|ty| {
            let possible = random.masked(*ty);
            Operand { possible, constant: Some(random.masked(*ty) & possible) }
        });
        let known: Vec<Operand> = known.collect();
        let mask = possible_bits(typing.opcode, typing.ty, typing.result, &known);
        let t = definitions.terms();
        let masks: Vec<SExpr> = known.iter().map(|o| t.constant(o.possible, 64)).collect();
        let constant = known[known.len().min(2) - 1].constant.unwrap_or(0);
        let found = reached(t, typing, reach(typing.opcode), &masks, t.constant(constant, 64));
        equalities.push(t.equal(found, t.constant(mask, 64)));
        let possible: Vec<u64> = known.iter().map(|o| o.possible).collect();
        goal.cases
            .push(format!("masks {}, constant {constant:#x}: computed {mask:#x}", hex(&possible)));
    }
    goal.holds_in_each_case(definitions, &equalities)?;
    Ok(goal)
}
