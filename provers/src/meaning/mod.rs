//! The meaning of operations in the language of solvers.
//!
//! It follows `docs/oir.md`, independently of [`ir::eval`], so that a comparison of the two shows a
//! mistake in either. A new opcode needs a meaning here; otherwise the test
//! `every_operation_on_values_has_a_meaning` fails.

mod float;
mod int;
#[cfg(test)]
mod tests;

use crate::encoder::SmtTerms;
use crate::typing::Typing;
use easy_smt::{Context, SExpr};
use ir::eval::is_evaluated;
use ir::{Opcode, Shape, TrapKind, Type};
use std::collections::BTreeMap;
use std::io;

/// The result of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SmtValue {
    /// Its bits.
    Bits(SExpr),
    /// The number that the bits represent, if arithmetic computes it. All NaNs are one number, with
    /// the canonical bits.
    Number(SExpr),
}

/// The result and the traps of an operation.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    /// The result, if the operation does not trap.
    pub(crate) value: SmtValue,
    /// The traps, each with its condition; no two conditions hold at once.
    pub(crate) traps: Vec<(TrapKind, SExpr)>,
}

impl Meaning {
    fn bits(term: SExpr) -> Meaning {
        Meaning { value: SmtValue::Bits(term), traps: Vec::new() }
    }

    fn number(term: SExpr) -> Meaning {
        Meaning { value: SmtValue::Number(term), traps: Vec::new() }
    }
}

/// Whether an operation has a meaning here: operations on values, and partial loads (as functions
/// of the contents).
pub(crate) fn has_meaning(opcode: Opcode) -> bool {
    is_evaluated(opcode) || matches!(opcode.shape(), Shape::Load(1..))
}

/// The definitions sent to a solver. Each operation is a function, which keeps queries short.
pub(crate) struct SmtDefinitions<'c> {
    context: &'c mut Context,
    /// By the name of the function: whether the result is a number, and the traps.
    known: BTreeMap<String, (bool, Vec<TrapKind>)>,
}

impl<'c> SmtDefinitions<'c> {
    pub(crate) fn new(context: &'c mut Context) -> SmtDefinitions<'c> {
        SmtDefinitions { context, known: BTreeMap::new() }
    }

    pub(crate) fn terms(&self) -> SmtTerms<'_> {
        SmtTerms::new(self.context)
    }

    /// A new variable that holds a value of a type.
    pub(crate) fn variable(&mut self, name: &str, ty: Type) -> io::Result<SExpr> {
        let sort = self.terms().bits_sort(ty);
        self.context.declare_const(name, sort)
    }

    /// The meaning of an operation on operands, which are bits.
    pub(crate) fn apply(&mut self, typing: &Typing, operands: &[SExpr]) -> io::Result<Meaning> {
        let name = self.define(typing)?;
        let (is_number, traps) = self.known[&name].clone();
        let terms = self.terms();
        let result = terms.app(&name, operands);
        let value = if is_number { SmtValue::Number(result) } else { SmtValue::Bits(result) };
        let traps = traps
            .into_iter()
            .map(|kind| (kind, terms.app(&trap_name(&name, kind), operands)))
            .collect();
        Ok(Meaning { value, traps })
    }

    /// Defines the functions of an operation, once. Returns the name of the function for the
    /// result.
    fn define(&mut self, typing: &Typing) -> io::Result<String> {
        let mut name = format!("{}.{}", typing.opcode.name(), typing.ty);
        typing.operands.iter().for_each(|t| name.push_str(&format!(".{t}")));
        if self.known.contains_key(&name) {
            return Ok(name);
        }
        let names = ["a", "b", "c"];
        let terms = self.terms();
        let operands: Vec<SExpr> =
            names.iter().take(typing.operands.len()).map(|n| terms.atom(n)).collect();
        let meaning = meaning(terms, typing, &operands);
        let (body, sort, is_number) = match meaning.value {
            SmtValue::Bits(body) => (body, terms.bits_sort(typing.result), false),
            SmtValue::Number(body) => (body, terms.float_sort(typing.result), true),
        };
        let sorts: Vec<SExpr> = typing.operands.iter().map(|t| terms.bits_sort(*t)).collect();
        let parameters =
            || names.iter().map(|n| (*n).to_owned()).zip(sorts.iter().copied()).collect();
        self.context.define_fun(name.clone(), parameters(), sort, body)?;
        for (kind, condition) in &meaning.traps {
            let truth = self.context.bool_sort();
            self.context.define_fun(trap_name(&name, *kind), parameters(), truth, *condition)?;
        }
        self.known.insert(
            name.clone(),
            (is_number, meaning.traps.into_iter().map(|(kind, _)| kind).collect()),
        );
        Ok(name)
    }
}

fn trap_name(operation: &str, kind: TrapKind) -> String {
    format!("{operation}!{kind}")
}

/// The meaning of an operation on terms that are bits.
///
/// # Panics
/// If [`has_meaning`] is false for the opcode.
fn meaning(t: SmtTerms<'_>, typing: &Typing, operands: &[SExpr]) -> Meaning {
    let (opcode, ty) = (typing.opcode, typing.ty);
    match (opcode.shape(), operands) {
        (Shape::IntUnary, [x]) => Meaning::bits(int::unary(t, opcode, ty, *x)),
        (Shape::IntBinary, [x, y]) => int::binary(t, opcode, ty, *x, *y),
        (Shape::IntTest, [x]) => Meaning::bits(truth(t, t.equal(*x, t.of_type(0, ty)))),
        (Shape::RefTest, [x]) => {
            Meaning::bits(truth(t, t.equal(*x, t.of_type(0, typing.operands[0]))))
        }
        (Shape::RefCompare, [x, y]) => Meaning::bits(truth(t, t.equal(*x, *y))),
        (Shape::IntCompare, [x, y]) => {
            Meaning::bits(truth(t, int::comparison(t, opcode, ty, *x, *y)))
        }
        (Shape::Extend | Shape::Wrap, [x]) => Meaning::bits(int::resized(t, opcode, typing, *x)),
        (Shape::Load(bytes), [x]) => {
            Meaning::bits(int::loaded(t, opcode, ty, u32::from(bytes) * 8, *x))
        }
        (Shape::Select, [c, x, y]) => {
            let is_zero = t.equal(*c, t.of_type(0, typing.operands[0]));
            Meaning::bits(t.ite(is_zero, *y, *x))
        }
        (Shape::Bitcast, [x]) => Meaning::bits(*x),
        (Shape::FloatUnary, [x]) => float::unary(t, opcode, ty, *x),
        (Shape::FloatBinary, [x, y]) => float::binary(t, opcode, ty, *x, *y),
        (Shape::FloatCompare, [x, y]) => {
            Meaning::bits(truth(t, float::comparison(t, opcode, ty, *x, *y)))
        }
        (Shape::IntToFloat, [x]) => Meaning::number(float::of_int(t, opcode, ty, *x)),
        (Shape::FloatToInt, [x]) => float::to_int(t, opcode, ty, typing.operands[0], *x),
        (Shape::Promote | Shape::Demote, [x]) => {
            Meaning::number(t.rounded("to_fp", ty, t.float(*x, typing.operands[0])))
        }
        _ => panic!("{} has no meaning on values", opcode.name()),
    }
}

/// 1 or 0, as an `i32`.
fn truth(t: SmtTerms<'_>, condition: SExpr) -> SExpr {
    t.ite(condition, t.of_type(1, Type::I32), t.of_type(0, Type::I32))
}
