//! The claim of a rule that an embedder declares: both sides have equal bits, for all values of the
//! variables. Operations of rules do not trap.

use crate::goal::SolverGoal;
use crate::meaning::{SmtDefinitions, SmtValue};
use crate::typing::Typing;
use easy_smt::SExpr;
use ir::rules::declared::{DeclaredRule, DeclaredSide, RulePart};
use std::io;

/// The goal of a rule.
///
/// # Errors
/// If the solver ends, or the rule is an axiom, which is no claim for solvers.
pub(crate) fn goal(
    definitions: &mut SmtDefinitions<'_>,
    rule: &DeclaredRule,
) -> io::Result<SolverGoal> {
    let mut variables = Vec::new();
    for (number, (_, ty)) in rule.variables.iter().enumerate() {
        variables.push(definitions.variable(&format!("v{number}"), *ty)?);
    }
    let left = side(definitions, rule, &rule.left, &variables)?;
    let right = side(definitions, rule, &rule.right, &variables)?;
    let names = rule.variables.iter().map(|(name, _)| name.clone());
    let mut shown: Vec<(String, SExpr)> = names.zip(variables).collect();
    shown.extend([("left".to_owned(), left), ("right".to_owned(), right)]);
    let holds = Some(definitions.terms().equal(left, right));
    Ok(SolverGoal { holds, shown, ..SolverGoal::default() })
}

fn side(
    definitions: &mut SmtDefinitions<'_>,
    rule: &DeclaredRule,
    side: &DeclaredSide,
    variables: &[SExpr],
) -> io::Result<SExpr> {
    if rule.is_axiom {
        return Err(io::Error::other("no solver knows the functions of an axiom"));
    }
    side.compute(|part| {
        let (operation, operands) = match part {
            RulePart::Variable(number) => return Ok(variables[number]),
            RulePart::Constant(ty, bits) => return Ok(definitions.terms().of_type(bits, ty)),
            RulePart::Operation(_, operation, operands) => (operation, operands),
        };
        let types = operation.operands.iter().map(|o| rule.type_of(side, *o)).collect();
        let (opcode, ty, result) = (operation.opcode, operation.ty, operation.result());
        let typing = Typing { opcode, ty, operands: types, result };
        let meaning = definitions.apply(&typing, operands)?;
        match meaning.value {
            SmtValue::Bits(bits) if meaning.traps.is_empty() => Ok(bits),
            _ => Err(io::Error::other(format!("{} is not allowed in rules", opcode.name()))),
        }
    })
}
