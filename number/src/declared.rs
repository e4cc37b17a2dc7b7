//! Matches operations with the rules that an embedder declares ([`ir::rules::declared`]).

use crate::matcher::{AppliedRule, Operands, RightSide};
use crate::table::{ClassArgs, ClassOperation, ClassTable, TermForm};
use crate::{NO_TERM, TermIndex};
use ir::rules::declared::{DeclaredRule, RuleOperand, RuleOperation, RulePart};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;

/// The operation that a rule may rewrite.
#[derive(Clone, Copy, Debug)]
pub struct RuleRoot<'o, I> {
    /// The operation.
    pub opcode: Opcode,
    /// The controlling type.
    pub ty: Type,
    /// The immediate.
    pub imm: Imm,
    /// The operands.
    pub args: &'o [I],
}

/// The match of an operation with the left side of a declared rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredMatch<I> {
    /// The operands that the variables stand for, by number.
    pub variables: SmallVec<[I; 4]>,
    /// A bit mask over the operations of the left side: a set bit i means that operation i matched
    /// with its operands swapped.
    pub swapped: u8,
    /// The identifiers of the inner operations of the left side, in their order.
    pub inner: SmallVec<[I; 2]>,
}

/// Matches an operation with the left side of a rule. Cost: proportional to the inner operations
/// that the matcher tries.
pub fn match_declared<O: Operands>(
    on: &O,
    rule: &DeclaredRule,
    root: RuleRoot<'_, O::Id>,
) -> Option<DeclaredMatch<O::Id>> {
    let first = &rule.left.operations[0];
    if (first.opcode, first.ty, first.imm) != (root.opcode, root.ty, root.imm) {
        return None;
    }
    let search = LeftSide { on, rule };
    let start = PartialMatch {
        variables: std::iter::repeat_n(None, rule.variables.len()).collect(),
        wanted: std::iter::repeat_n(None, rule.left.operations.len()).collect(),
        swapped: 0,
        inner: SmallVec::new(),
    };
    let found = search.operands(&start, 0, root.args)?;
    let variables = found.variables.into_iter().collect::<Option<_>>()?;
    Some(DeclaredMatch { variables, swapped: found.swapped, inner: found.inner })
}

/// The bindings so far.
#[derive(Clone)]
struct PartialMatch<I> {
    variables: SmallVec<[Option<I>; 4]>,
    /// By operation: the operand that it must compute.
    wanted: SmallVec<[Option<I>; 4]>,
    swapped: u8,
    inner: SmallVec<[I; 2]>,
}

struct LeftSide<'m, O> {
    on: &'m O,
    rule: &'m DeclaredRule,
}

impl<O: Operands> LeftSide<'_, O> {
    /// Matches the operands of operation `number` in either order, then the operations behind it.
    /// The recursion is as deep as the operations are many.
    fn operands(
        &self,
        before: &PartialMatch<O::Id>,
        number: usize,
        args: &[O::Id],
    ) -> Option<PartialMatch<O::Id>> {
        let operation = &self.rule.left.operations[number];
        let in_order = self.bound(before, operation, args.iter().copied());
        let found = in_order.and_then(|bound| self.operation(bound, number + 1));
        if found.is_some() || !operation.opcode.is_commutative() {
            return found;
        }
        let mut bound = self.bound(before, operation, args.iter().rev().copied())?;
        bound.swapped |= 1 << number;
        self.operation(bound, number + 1)
    }

    /// Matches operation `number` with an operation that computes the operand in its place.
    fn operation(&self, before: PartialMatch<O::Id>, number: usize) -> Option<PartialMatch<O::Id>> {
        let Some(wanted) = self.rule.left.operations.get(number) else { return Some(before) };
        self.on.operations(before.wanted[number]?, wanted.opcode).find_map(|(id, args)| {
            if self.on.typed(id) != Some((wanted.ty, wanted.imm)) {
                return None;
            }
            let mut inner = before.clone();
            inner.inner.push(id);
            self.operands(&inner, number, &args)
        })
    }

    /// Binds the operands of an operation.
    fn bound(
        &self,
        before: &PartialMatch<O::Id>,
        operation: &RuleOperation,
        args: impl ExactSizeIterator<Item = O::Id>,
    ) -> Option<PartialMatch<O::Id>> {
        if args.len() != operation.operands.len() {
            return None;
        }
        let mut bound = before.clone();
        for (arg, operand) in args.zip(&operation.operands) {
            let fits = match *operand {
                RuleOperand::Variable(number) => {
                    let is_typed = self.on.ty(arg) == Some(self.rule.variables[number as usize].1);
                    is_typed && *bound.variables[number as usize].get_or_insert(arg) == arg
                }
                RuleOperand::Constant(ty, bits) => {
                    self.on.constant(arg) == Some(bits) && self.on.ty(arg) == Some(ty)
                }
                RuleOperand::Operation(number) => {
                    bound.wanted[number as usize] = Some(arg);
                    true
                }
            };
            if !fits {
                return None;
            }
        }
        Some(bound)
    }
}

impl<F: TermForm> ClassTable<F> {
    /// The class that the first fitting rule of the embedder gives an operation, and the reason.
    pub(crate) fn by_declared(
        &mut self,
        operation: &ClassOperation,
        rewrites: u32,
    ) -> Option<(TermIndex, F::Reason)> {
        let rules = self.declared.clone()?;
        let ClassOperation { opcode, ty, imm, ref args } = *operation;
        rules.of(opcode).find_map(|(number, rule)| {
            let found = match_declared(self, rule, RuleRoot { opcode, ty, imm, args })?;
            let (class, result, applied) = self.right_side(rule, found, operation, rewrites)?;
            Some((class, F::by_rule(number, applied, result)))
        })
    }

    /// Makes the right side of a rule. Returns its class, the term of its outermost operation, and
    /// the match with the inner operations of both sides. `None` for an operation that would be
    /// its own reason.
    fn right_side(
        &mut self,
        rule: &DeclaredRule,
        found: DeclaredMatch<TermIndex>,
        operation: &ClassOperation,
        rewrites: u32,
    ) -> Option<(TermIndex, TermIndex, AppliedRule<TermIndex>)> {
        let DeclaredMatch { variables, mut swapped, mut inner } = found;
        let on_the_left = rule.left.operations.len();
        let mut made = vec![NO_TERM; rule.right.operations.len()];
        let class = rule.right.compute(|part| {
            let (number, wanted, args) = match part {
                RulePart::Variable(number) => return Ok(variables[number]),
                RulePart::Constant(ty, bits) => return Ok(self.make_constant(ty, bits)),
                RulePart::Operation(number, wanted, args) => (number, wanted, args),
            };
            let args = ClassArgs::from_slice(args);
            let new = ClassOperation::new(wanted.opcode, wanted.ty, wanted.imm, args.clone());
            if new == *operation {
                return Err(());
            }
            // The term has the operands in the order of their numbers.
            swapped |= u8::from(new.args != args) << (on_the_left + number);
            made[number] = self.rewritten(new, rewrites);
            if made[number] == NO_TERM { Err(()) } else { Ok(self.class(made[number])) }
        });
        let class = class.ok()?;
        inner.extend(made.iter().skip(1).copied());
        let result = made.first().copied().unwrap_or(NO_TERM);
        Some((class, result, AppliedRule { right: RightSide::Operand(class), swapped, inner }))
    }
}
