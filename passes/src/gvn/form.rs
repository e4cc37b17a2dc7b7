//! Terms as `gvn` keeps them: with a class and no reason.

use ir::Type;
use number::{AppliedRule, ClassOperation, TermForm, TermIndex, TermKey};

/// A term without a reason.
#[derive(Debug)]
pub(super) struct UnexplainedTerm {
    /// `None` for a leaf, which is equal to no other term.
    operation: Option<ClassOperation>,
    ty: Option<Type>,
    class: TermIndex,
}

/// The form that records classes alone.
#[derive(Debug)]
pub(super) struct ClassesAlone;

impl TermForm for ClassesAlone {
    type Term = UnexplainedTerm;
    type Leaf = ();
    type Reason = ();

    fn leaf(id: TermIndex, (): (), ty: Option<Type>) -> UnexplainedTerm {
        UnexplainedTerm { operation: None, ty, class: id }
    }

    fn operation(
        id: TermIndex,
        operation: ClassOperation,
        ty: Option<Type>,
        reason: Option<(TermIndex, ())>,
    ) -> UnexplainedTerm {
        let class = reason.map_or(id, |(class, ())| class);
        UnexplainedTerm { operation: Some(operation), ty, class }
    }

    fn key(term: &UnexplainedTerm) -> TermKey<'_, ()> {
        match &term.operation {
            Some(operation) => TermKey::Operation(operation.borrowed()),
            None => TermKey::Leaf(&()),
        }
    }

    fn ty(term: &UnexplainedTerm) -> Option<Type> {
        term.ty
    }

    fn class(term: &UnexplainedTerm) -> TermIndex {
        term.class
    }

    fn folding() {}

    fn by_sum(_result: TermIndex) {}

    fn by_rule(_rule: u32, _applied: AppliedRule<TermIndex>, _result: TermIndex) {}

    fn tells_bits((): &()) -> bool {
        true
    }
}
