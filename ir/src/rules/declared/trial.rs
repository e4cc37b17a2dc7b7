//! Evaluates rules on operands at the edges of their types.

use super::{DeclaredRule, DeclaredSide, ModuleRules, RuleOperand, RuleOperation, RulePart};
use crate::entity::Func;
use crate::eval::eval;
use crate::inst::Imm;
use crate::types::Type;
use std::fmt;

/// The most lists of operands that a rule is evaluated on.
const MAX_LISTS: usize = 20_000;

/// Operands for which an axiom is false.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxiomFailure {
    /// The name of the axiom.
    pub name: String,
    /// The values of its variables.
    pub values: Vec<u64>,
    /// The values of the left and of the right side.
    pub sides: [u64; 2],
}

impl fmt::Display for AxiomFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(|v| format!("{v:#x}")).collect();
        let [left, right] = self.sides;
        write!(f, "{} ({}): {left:#x} is not {right:#x}", self.name, values.join(", "))
    }
}

impl ModuleRules {
    /// Evaluates every axiom on operands at the edges of their types, and on `more` as contents
    /// of every variable. `call` calls a function of the embedder with the bits of arguments.
    ///
    /// # Errors
    /// The first axiom whose sides differ; outside of it, the first error of `call`.
    pub fn test_axioms<E>(
        &self,
        more: &[u64],
        mut call: impl FnMut(Func, &[u64]) -> Result<u64, E>,
    ) -> Result<Result<(), AxiomFailure>, E> {
        for rule in self.rules.iter().filter(|rule| rule.is_axiom) {
            for values in operand_lists(rule, more) {
                let mut side = |side: &DeclaredSide| evaluated(rule, side, &values, &mut call);
                let sides = [side(&rule.left)?, side(&rule.right)?];
                if sides[0] != sides[1] {
                    return Ok(Err(AxiomFailure { name: rule.name.clone(), values, sides }));
                }
            }
        }
        Ok(Ok(()))
    }
}

/// Values of the variables of a rule without calls for which the sides differ.
pub(super) fn difference(rule: &DeclaredRule) -> Option<Vec<u64>> {
    // No function means no call.
    let mut call = |_: Func, _: &[u64]| Err(());
    let mut side = |side: &DeclaredSide, values: &[u64]| evaluated(rule, side, values, &mut call);
    let differ = |values: &Vec<u64>| side(&rule.left, values) != side(&rule.right, values);
    let mut differ = differ;
    operand_lists(rule, &[]).find(|values| differ(values))
}

fn evaluated<E>(
    rule: &DeclaredRule,
    side: &DeclaredSide,
    values: &[u64],
    call: &mut impl FnMut(Func, &[u64]) -> Result<u64, E>,
) -> Result<u64, E> {
    side.compute(|part| match part {
        RulePart::Variable(number) => Ok(values[number]),
        RulePart::Constant(_, bits) => Ok(bits),
        RulePart::Operation(_, RuleOperation { ty, imm: Imm::Func(func), .. }, operands) => {
            call(*func, operands).map(|bits| bits & ty.mask())
        }
        RulePart::Operation(_, operation, operands) => {
            let source = rule.type_of(side, operation.operands[0]);
            let result = eval(operation.opcode, operation.ty, source, operands);
            Ok(result.expect("operations of rules do not trap"))
        }
    })
}

/// Contents at the edges of a type, and around the constants of a rule.
fn edges(rule: &DeclaredRule, ty: Type, more: &[u64]) -> Vec<u64> {
    let mut all: Vec<u64> = more.to_vec();
    // Every position of a single bit, and of a run of bits from it up.
    for bit in 0..ty.bits() {
        all.extend([1 << bit, (1 << bit) - 1, u64::MAX << bit, !(1 << bit)]);
    }
    // Fixed patterns without structure.
    all.extend([0x5555_5555_5555_5555, 0x0123_4567_89ab_cdef, 0x9e37_79b9_7f4a_7c15]);
    for leaf in rule.left.leaves().chain(rule.right.leaves()) {
        if let RuleOperand::Constant(_, bits) = leaf {
            all.extend([bits, bits.wrapping_add(1), bits.wrapping_sub(1), !bits]);
        }
    }
    all.iter_mut().for_each(|bits| *bits &= ty.mask());
    all.sort_unstable();
    all.dedup();
    all
}

/// Lists of values of the variables, at most [`MAX_LISTS`] of them. With one variable, or two of
/// up to 32 bits, all combinations of the edges are among them.
fn operand_lists<'r>(
    rule: &'r DeclaredRule,
    more: &[u64],
) -> impl Iterator<Item = Vec<u64>> + use<'r> {
    let edges: Vec<Vec<u64>> =
        rule.variables.iter().map(|(_, ty)| edges(rule, *ty, more)).collect();
    let all = edges.iter().try_fold(1usize, |product, e| product.checked_mul(e.len()));
    let all = all.unwrap_or(usize::MAX);
    // The stride is odd and has no small factor in common with the lengths, so that all variables
    // change from list to list.
    let stride = if all <= MAX_LISTS { 1 } else { (all / MAX_LISTS) | 1 };
    (0..all.min(MAX_LISTS)).map(move |number| {
        let mut at = number.wrapping_mul(stride);
        let pick = |edges: &Vec<u64>| {
            let value = edges[at % edges.len()];
            at /= edges.len();
            value
        };
        edges.iter().map(pick).collect()
    })
}
