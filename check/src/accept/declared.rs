//! Terms that belong to their class by a rule that the embedder declares.
//!
//! The claim of a term with such a reason: the term is the left side of the rule, on some classes,
//! and its class is the right side on the same classes. The rule itself is part of the trusted
//! input: a [`ModuleRules`](ir::rules::declared::ModuleRules) has rules that the solvers have
//! proved, and axioms for which the embedder answers. Both versions have the same rules
//! ([`Check::Versions`](super::checks::Check::Versions)).

use super::terms::TermTable;
use ir::rules::declared::{DeclaredRule, DeclaredSide, RuleOperand, RuleOperation};
use smallvec::SmallVec;
use transition::certificate::{TermId, TermKind};

/// The classes that the variables of a rule stand for.
pub(crate) struct DeclaredBound(SmallVec<[Option<TermId>; 4]>);

/// The part of a reason that says how a term matches: the bits of swapped operations and the inner
/// terms, for the left side and then for the right side.
pub(crate) struct DeclaredReason<'c> {
    pub(crate) swapped: u8,
    pub(crate) inner: &'c [TermId],
}

impl DeclaredReason<'_> {
    /// The term of an operation of a side. `outermost` is the term of operation 0, and `before`
    /// the number of operations on the sides before this side.
    fn term(&self, number: usize, outermost: TermId, before: usize) -> Option<TermId> {
        match number.checked_sub(1) {
            None => Some(outermost),
            // The outermost operation of a side before has no place in the list.
            Some(at) => self.inner.get(before.saturating_sub(1) + at).copied(),
        }
    }

    fn is_swapped(&self, number: usize) -> bool {
        self.swapped.checked_shr(number as u32).is_some_and(|bits| bits & 1 != 0)
    }
}

impl DeclaredBound {
    /// Matches a term with the left side of a rule. `None` if it does not match. Cost: linear in
    /// the rule.
    pub(crate) fn find(
        terms: &TermTable<'_>,
        rule: &DeclaredRule,
        term: TermId,
        reason: &DeclaredReason<'_>,
    ) -> Option<DeclaredBound> {
        let inner = |side: &DeclaredSide| side.operations.len().saturating_sub(1);
        if reason.inner.len() != inner(&rule.left) + inner(&rule.right) {
            return None;
        }
        let mut bound = DeclaredBound(rule.variables.iter().map(|_| None).collect());
        bound.follows(terms, rule, &rule.left, term, 0, reason).then_some(bound)
    }

    /// Whether a class is the right side of the rule. `result` is the term of its outermost
    /// operation, if it has operations. Cost: linear in the rule.
    pub(crate) fn gives(
        &mut self,
        terms: &TermTable<'_>,
        rule: &DeclaredRule,
        class: TermId,
        result: TermId,
        reason: &DeclaredReason<'_>,
    ) -> bool {
        match rule.right.value {
            RuleOperand::Operation(_) => {
                let before = rule.left.operations.len();
                terms.class(result) == class
                    && self.follows(terms, rule, &rule.right, result, before, reason)
            }
            leaf => self.is_leaf(terms, rule, leaf, class),
        }
    }

    /// Whether terms are the operations of a side. `outermost` is the term of operation 0. All
    /// terms come before the term that is judged, except for that term itself.
    fn follows(
        &mut self,
        terms: &TermTable<'_>,
        rule: &DeclaredRule,
        side: &DeclaredSide,
        outermost: TermId,
        before: usize,
        reason: &DeclaredReason<'_>,
    ) -> bool {
        side.operations.iter().enumerate().all(|(number, operation)| {
            let Some(term) = reason.term(number, outermost, before) else { return false };
            let Some(mut args) = operands(terms, operation, term) else { return false };
            if reason.is_swapped(before + number) {
                if !operation.opcode.is_commutative() {
                    return false;
                }
                args.reverse();
            }
            args.iter().zip(&operation.operands).all(|(arg, operand)| match *operand {
                // The term belongs to the class of the operand, and comes before its user. A term
                // that comes later is not proved yet.
                RuleOperand::Operation(inner) => reason
                    .term(inner as usize, outermost, before)
                    .is_some_and(|inner| inner < term && terms.class(inner) == *arg),
                leaf => self.is_leaf(terms, rule, leaf, *arg),
            })
        })
    }

    /// Whether a class is a variable or a constant of the rule. Binds the variable, if it is new.
    fn is_leaf(
        &mut self,
        terms: &TermTable<'_>,
        rule: &DeclaredRule,
        leaf: RuleOperand,
        class: TermId,
    ) -> bool {
        match leaf {
            RuleOperand::Variable(number) => {
                let (Some(bound), Some((_, ty))) =
                    (self.0.get_mut(number as usize), rule.variables.get(number as usize))
                else {
                    return false;
                };
                terms.ty(class) == Some(*ty) && *bound.get_or_insert(class) == class
            }
            RuleOperand::Constant(ty, bits) => {
                terms.ty(class) == Some(ty) && terms.constant(class) == Some(bits)
            }
            RuleOperand::Operation(_) => false,
        }
    }
}

/// The operands of a term, if it is this operation. In a call, the function counts, too.
fn operands(
    terms: &TermTable<'_>,
    operation: &RuleOperation,
    term: TermId,
) -> Option<SmallVec<[TermId; 3]>> {
    match terms.kind(term)? {
        TermKind::Op { opcode, ty, imm, args }
            if (*opcode, *ty, *imm) == (operation.opcode, operation.ty, operation.imm)
                && args.len() == operation.operands.len() =>
        {
            Some(args.clone())
        }
        _ => None,
    }
}
