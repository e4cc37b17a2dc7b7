//! The classes of a table as operands of rules.

use crate::matcher::Operands;
use crate::table::{ClassArgs, ClassTable, TermForm};
use crate::{MAX_MEMBERS, NO_TERM, TermIndex};
use ir::{Imm, Opcode, Type};

/// A table whose rules see the first term of each class alone.
pub(crate) struct FirstTerms<'t, F: TermForm>(pub(crate) &'t ClassTable<F>);

impl<F: TermForm> Operands for FirstTerms<'_, F> {
    type Id = TermIndex;

    fn constant(&self, class: TermIndex) -> Option<u64> {
        self.0.constant(class)
    }

    fn ty(&self, class: TermIndex) -> Option<Type> {
        self.0.ty(class)
    }

    fn possible(&self, class: TermIndex) -> u64 {
        self.0.possible(class)
    }

    fn operations(
        &self,
        class: TermIndex,
        opcode: Opcode,
    ) -> impl Iterator<Item = (TermIndex, ClassArgs)> {
        Operands::operations(self.0, class, opcode).take_while(move |(id, _)| *id == class)
    }

    fn typed(&self, term: TermIndex) -> Option<(Type, Imm)> {
        self.0.typed(term)
    }
}

impl<F: TermForm> Operands for ClassTable<F> {
    type Id = TermIndex;

    fn constant(&self, class: TermIndex) -> Option<u64> {
        ClassTable::constant(self, class)
    }

    fn ty(&self, class: TermIndex) -> Option<Type> {
        ClassTable::ty(self, class)
    }

    fn possible(&self, class: TermIndex) -> u64 {
        ClassTable::possible(self, class)
    }

    fn operations(
        &self,
        class: TermIndex,
        opcode: Opcode,
    ) -> impl Iterator<Item = (TermIndex, ClassArgs)> {
        // A class that is a constant also holds the operations that fold to it. Patterns match such
        // an operand by its bits alone.
        let class = if self.constant(class).is_some() { NO_TERM } else { class };
        self.members(class).take(MAX_MEMBERS).filter_map(move |id| {
            let operation = self.operation(id).filter(|o| o.opcode == opcode)?;
            Some((id, operation.args.into()))
        })
    }

    fn typed(&self, term: TermIndex) -> Option<(Type, Imm)> {
        self.operation(term).map(|operation| (operation.ty, operation.imm))
    }
}
