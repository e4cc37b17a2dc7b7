//! The terms of a certificate: the shared table, with a reason for each membership, and the hidden
//! writes that its memories contain.

use foldhash::fast::FixedState;
use hashbrown::HashSet;
use ir::rules::declared::ModuleRules;
use ir::{Imm, Opcode, Type};
use number::{AppliedRule, ClassArgs, ClassOperation, ClassTable, OperationRef, TermForm, TermKey};
use std::cell::Cell;
use std::sync::Arc;
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind};

// The numbering and the certificates mean the same by "no term".
const _: () = assert!(NO_TERM == number::NO_TERM);

/// The form of the terms of a certificate.
#[derive(Debug)]
pub(super) struct WithReasons;

/// The table of terms with reasons.
pub(super) type ReasonedTerms = ClassTable<WithReasons>;

impl TermForm for WithReasons {
    type Term = Term;
    type Leaf = TermKind;
    type Reason = By;

    fn leaf(id: TermId, kind: TermKind, ty: Option<Type>) -> Term {
        Term { kind, ty, class: id, by: By::Itself }
    }

    fn operation(
        id: TermId,
        operation: ClassOperation,
        ty: Option<Type>,
        reason: Option<(TermId, By)>,
    ) -> Term {
        let (class, by) = reason.unwrap_or((id, By::Itself));
        let ClassOperation { opcode, ty: controlling, imm, args } = operation;
        Term { kind: TermKind::Op { opcode, ty: controlling, imm, args }, ty, class, by }
    }

    fn key(term: &Term) -> TermKey<'_, TermKind> {
        match &term.kind {
            TermKind::Op { opcode, ty, imm, args } => {
                TermKey::Operation(OperationRef { opcode: *opcode, ty: *ty, imm: *imm, args })
            }
            leaf => TermKey::Leaf(leaf),
        }
    }

    fn ty(term: &Term) -> Option<Type> {
        term.ty
    }

    fn class(term: &Term) -> TermId {
        term.class
    }

    fn folding() -> By {
        By::Folding
    }

    fn by_sum(result: TermId) -> By {
        By::Sum { result }
    }

    fn by_rule(rule: u32, applied: AppliedRule<TermId>, result: TermId) -> By {
        By::Rule { rule, swapped: applied.swapped, inner: applied.inner, result }
    }

    fn tells_bits(reason: &By) -> bool {
        // The known bits of a merged or traced read rest on reads that may belong to a single
        // version. The checker draws no bits from such a term either.
        !matches!(reason, By::Merged { .. } | By::Apart { .. })
    }
}

/// A write apart from its operands.
pub(super) type WriteKind = (Opcode, Type, Imm);

/// A write apart from the memory it is applied to.
pub(super) type LoneWrite = (WriteKind, ClassArgs);

/// The terms of a certificate, with the hidden writes that memories contain.
#[derive(Debug, Default)]
pub(super) struct CertificateTerms {
    /// The terms. Writes are added through [`CertificateTerms::op_because`] and
    /// [`CertificateTerms::another`] alone.
    pub(super) table: ReasonedTerms,
    /// Writes, apart from the memory they are applied to, that a covering write leaves out. The set
    /// names operations, not terms, so it depends on no order and on no version.
    hidden: HashSet<LoneWrite, FixedState>,
    /// The members of `hidden`, in order.
    hidden_list: Vec<LoneWrite>,
    /// By term, meaningful for memories: the last hidden write that the memory contains; possibly
    /// the term itself. Terms beyond the end contain no hidden write.
    lone: Vec<TermId>,
    /// The writes looked at to find covered and earlier ones.
    pub(super) compared: Cell<usize>,
}

impl CertificateTerms {
    /// No terms yet, and the declared rules of the versions, if they have any.
    pub(super) fn new(declared: Option<&Arc<ModuleRules>>) -> CertificateTerms {
        CertificateTerms { table: ClassTable::with_rules(declared), ..CertificateTerms::default() }
    }

    /// Forgets every term.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.hidden.clear();
        self.hidden_list.clear();
        self.lone.clear();
    }

    /// Marks the state: the numbers of terms and of hidden writes.
    pub(super) fn mark(&self) -> [usize; 2] {
        [self.table.terms().len(), self.hidden_list.len()]
    }

    /// Returns to a marked state.
    pub(super) fn rewind(&mut self, [terms, hidden]: [usize; 2]) {
        self.table.rewind(terms);
        self.lone.truncate(terms);
        for write in self.hidden_list.drain(hidden..) {
            self.hidden.remove(&write);
        }
    }

    /// Hides a write, on any memory: covering writes made from now on leave it out of their
    /// classes. The memory is the last operand.
    pub(super) fn hide(&mut self, write: OperationRef<'_>) {
        let OperationRef { opcode, ty, imm, args } = write;
        let Some((_, operands)) = args.split_last() else { return };
        let write = ((opcode, ty, imm), ClassArgs::from_slice(operands));
        if self.hidden.insert(write.clone()) {
            self.hidden_list.push(write);
        }
    }

    /// Whether a term is a hidden write.
    pub(super) fn is_hidden(&self, term: TermId) -> bool {
        match self.table.operation(term) {
            Some(OperationRef { opcode, ty, imm, args })
                if !self.hidden.is_empty() && self.table.ty(term).is_none() =>
            {
                let operands = &args[..args.len().saturating_sub(1)];
                self.hidden.contains(&((opcode, ty, imm), ClassArgs::from_slice(operands)))
            }
            _ => false,
        }
    }

    /// The last hidden write that a memory contains, possibly the write that made it; [`NO_TERM`]
    /// for a memory without hidden writes.
    pub(super) fn lone_below(&self, memory: TermId) -> TermId {
        self.lone.get(memory as usize).copied().unwrap_or(NO_TERM)
    }

    /// A new leaf.
    pub(super) fn leaf(&mut self, kind: TermKind, ty: Option<Type>) -> TermId {
        self.table.leaf(kind, ty)
    }

    /// The leaf of this kind. Makes it if it is missing.
    pub(super) fn named_leaf(&mut self, kind: TermKind, ty: Option<Type>) -> TermId {
        self.table.named_leaf(kind, ty)
    }

    /// The term of an operation on values, as by [`ClassTable::op`].
    pub(super) fn op(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: ClassArgs) -> TermId {
        self.table.op(opcode, ty, imm, args)
    }

    /// The term of an operation, as by [`ClassTable::op_because`].
    pub(super) fn op_because(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: ClassArgs,
        reason: Option<(TermId, By)>,
    ) -> TermId {
        let count = self.table.terms().len();
        let id = self.table.op_because(opcode, ty, imm, args, reason);
        if id as usize == count {
            self.note_contents(id);
        }
        id
    }

    /// Another term of an operation that the table already has in a different class. Lookups do not
    /// find it.
    pub(super) fn another(&mut self, operation: ClassOperation, class: TermId, by: By) -> TermId {
        let id = self.table.another(operation, Some((class, by)));
        self.note_contents(id);
        id
    }

    /// Records the hidden write that a new memory contains.
    fn note_contents(&mut self, id: TermId) {
        let Some(operation) = self.table.operation(id).filter(|_| self.table.ty(id).is_none())
        else {
            return;
        };
        let lone = match operation.args.last() {
            _ if self.is_hidden(id) => id,
            Some(memory) => self.lone_below(*memory),
            None => NO_TERM,
        };
        if lone != NO_TERM {
            self.lone.resize(id as usize + 1, NO_TERM);
            self.lone[id as usize] = lone;
        }
    }
}
