//! The term table: every term is well-formed, and belongs to its class.
//!
//! The claim: all terms of one class have the same contents, for all contents of the leaves.
//! Operations are read as total functions here. One that traps has some fixed result for its
//! operands; whether it does trap is the question of `traps` and of the steps of entries.
//!
//! Terms are checked in order, and a term names only earlier terms. The proof is thus an induction
//! over the table: the reason of a term rests on classes that are already proved. The only
//! exception is [`By::Merged`], which each version has to confirm (`version`).

use super::checks::{Check, Finding, Options, Place};
use super::declared::{DeclaredBound, DeclaredReason};
use ir::eval::{accepts, fold};
use ir::ranges::Interval;
use ir::rules::declared::{DeclaredRule, ModuleRules};
use ir::rules::{self, Bound, Operand, RULES};
use ir::{Imm, Inst, Opcode, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind, is_well_typed};

/// The table, with the facts about classes that follow from it alone.
pub(crate) struct TermTable<'c> {
    pub(crate) options: Options,
    all: &'c [Term],
    /// The rules of the embedder, which both versions have.
    declared: Option<Arc<ModuleRules>>,
    /// By class: its bits, if it is a constant.
    constants: Vec<Option<u64>>,
    /// By class: a mask of the bits that may be set. Guards of rules use it.
    masks: Vec<u64>,
    /// By term: the class and the constant whose sum modulo 2^32 is the term; [`NO_TERM`] and the
    /// constant for a constant. Chains of sums are resolved. Meaningful for addresses.
    sums: Vec<(TermId, u64)>,
    /// By class of a term `ne x, 0`: the class of `x`.
    tested: BTreeMap<TermId, TermId>,
    /// By anchor: the leaf that stands for memory after it.
    pub(crate) after: BTreeMap<Inst, TermId>,
    /// The terms with the reason [`By::Merged`]: reads of a block-start memory, which versions have
    /// to confirm.
    pub(crate) merged: Vec<TermId>,
}

impl<'c> TermTable<'c> {
    /// Checks every term, in order. Cost: linear in the table.
    ///
    /// # Errors
    /// The first check that fails.
    pub(crate) fn check(
        all: &'c [Term],
        declared: Option<Arc<ModuleRules>>,
        options: Options,
    ) -> Result<TermTable<'c>, Finding> {
        let count = all.len();
        // `NO_TERM` is no index: a table that reaches it could make a missing term equal to an
        // existing one.
        options.require(Check::Size, count < NO_TERM as usize, Place::Whole)?;
        let (constants, masks) = (vec![None; count], vec![u64::MAX; count]);
        let mut terms = TermTable {
            options,
            all,
            declared,
            constants,
            masks,
            sums: Vec::with_capacity(count),
            tested: BTreeMap::new(),
            after: BTreeMap::new(),
            merged: Vec::new(),
        };
        for id in 0..count as TermId {
            terms.check_class(id)?;
            terms.check_shape(id)?;
            terms.check_reason(id)?;
            // The order matters. The term says something about its class, such as a mask of bits,
            // only after it is proved to belong there. Otherwise the guard of its own rule could
            // rest on it (`a_term_does_not_vouch_for_itself`).
            terms.learn(id);
        }
        Ok(terms)
    }

    /// Fails with a finding unless `ok`.
    pub(crate) fn require(&self, check: Check, ok: bool, at: Place) -> Result<(), Finding> {
        self.options.require(check, ok, at)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The term with this index; `None` beyond the table. Ids come from the certificate, so no
    /// caller may index without looking.
    pub(crate) fn get(&self, id: TermId) -> Option<&'c Term> {
        self.all.get(id as usize)
    }

    pub(crate) fn kind(&self, id: TermId) -> Option<&'c TermKind> {
        self.get(id).map(|t| &t.kind)
    }

    /// The class of a term; [`NO_TERM`] for an index beyond the table.
    pub(crate) fn class(&self, id: TermId) -> TermId {
        self.get(id).map_or(NO_TERM, |t| t.class)
    }

    /// The type of a term; `None` for memory, and beyond the table.
    pub(crate) fn ty(&self, id: TermId) -> Option<Type> {
        self.get(id).and_then(|t| t.ty)
    }

    /// The bits of a class that is a constant.
    pub(crate) fn constant(&self, class: TermId) -> Option<u64> {
        self.constants.get(class as usize).copied().flatten()
    }

    /// A class that is zero if and only if this class is zero. For `ne x, 0` it is the class of
    /// `x`, otherwise the class itself.
    pub(crate) fn zero_with(&self, class: TermId) -> TermId {
        self.tested.get(&class).copied().unwrap_or(class)
    }

    /// The bits that may be set in a class; all bits if nothing is known.
    fn mask(&self, class: TermId) -> u64 {
        self.masks.get(class as usize).copied().unwrap_or(u64::MAX)
    }

    /// The integers that a class can be, for all contents of the leaves; `None` if it has others.
    pub(super) fn interval(&self, class: TermId) -> Option<Interval> {
        let ty = self.ty(class).filter(|ty| ty.is_int())?;
        let of_mask = || Interval::of_mask(ty, self.mask(class));
        Some(self.constant(class).map_or_else(of_mask, |bits| Interval::of_bits(ty, bits)))
    }

    /// Proves [`Check::TermClass`]: a term without a reason starts its class; any other names an
    /// earlier term that starts a class, with the same type. One class thus has one name, and
    /// equality of classes is equality of numbers.
    fn check_class(&self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        let fits = match &term.by {
            By::Itself => term.class == id,
            _ => {
                term.class < id
                    && self.class(term.class) == term.class
                    && self.ty(term.class) == term.ty
            }
        };
        self.require(Check::TermClass, fits, Place::Term(id))
    }

    /// Proves [`Check::TermShape`], leaves have no reason and operations are well-typed, and
    /// [`Check::TermOrder`], operands are earlier classes. A leaf with a reason would be claimed
    /// equal to another term by fiat (`a_leaf_is_no_rewritten_term`).
    fn check_shape(&self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        let is_own = term.by == By::Itself;
        let fits = match &term.kind {
            TermKind::Argument(_) | TermKind::Param | TermKind::Result(..) => {
                is_own && term.ty.is_some()
            }
            TermKind::MemoryAtEntry | TermKind::MemoryParam | TermKind::MemoryAfter(_) => {
                is_own && term.ty.is_none()
            }
            TermKind::Op { opcode, ty, imm, args } => {
                let before = args.iter().all(|a| *a < id && self.class(*a) == *a);
                self.require(Check::TermOrder, before, Place::Term(id))?;
                let types: SmallVec<[Option<Type>; 3]> = args.iter().map(|a| self.ty(*a)).collect();
                is_well_typed(*opcode, *ty, imm, &types) && term.ty == opcode.result_type(*ty)
            }
        };
        self.require(Check::TermShape, fits, Place::Term(id))
    }

    /// A term as a class plus a constant, modulo 2^32 for an `i32` and 2^64 for an `i64`. `None`
    /// for a term that is not proved yet. Only the operation of the term itself counts, so the sum
    /// needs no reason of its own. A sum says nothing about the type of a constant.
    pub(crate) fn sum(&self, term: TermId) -> Option<(TermId, u64)> {
        self.sums.get(term as usize).copied()
    }

    /// The sum that the next term is. The class that a sum adds to counts as the sum that its first
    /// term is.
    fn sum_of(&self, id: TermId) -> (TermId, u64) {
        let own = (id, 0);
        let TermKind::Op { opcode, ty: ty @ (Type::I32 | Type::I64), imm, args } =
            &self.all[id as usize].kind
        else {
            return own;
        };
        let plus = |base: TermId, constant: TermId, negate: bool| {
            let constant = self.constant(constant)?;
            let (base, offset) = self.sum(base)?;
            let constant = if negate { constant.wrapping_neg() } else { constant };
            Some((base, offset.wrapping_add(constant) & ty.mask()))
        };
        let sum = match (opcode, imm, args.as_slice()) {
            (Opcode::Const, Imm::Bits(bits), []) => Some((NO_TERM, *bits)),
            (Opcode::Add, _, &[a, b]) => plus(a, b, false).or_else(|| plus(b, a, false)),
            (Opcode::Sub, _, &[a, b]) => plus(a, b, true),
            _ => None,
        };
        sum.unwrap_or(own)
    }

    /// Records the facts about the class that this term shows.
    fn learn(&mut self, id: TermId) {
        self.sums.push(self.sum_of(id));
        let term = &self.all[id as usize];
        // A merged read holds in the versions that bind its memory alone, and a read past writes
        // may end at such a read. A fact from it would serve both versions, even where no version
        // has confirmed it (`a_merged_read_tells_nothing`).
        if matches!(term.by, By::Merged { .. } | By::Apart { .. }) {
            return;
        }
        // In experiments without `TermClass`, the class may lie beyond the table.
        let Some(class) = self.masks.get(term.class as usize).map(|_| term.class as usize) else {
            return;
        };
        let own = match (&term.kind, term.ty) {
            (TermKind::MemoryAfter(inst), _) => {
                // If the table has several such leaves for one anchor, memory after the anchor is
                // the first of them. The later leaves go unused.
                self.after.entry(*inst).or_insert(id);
                u64::MAX
            }
            (TermKind::Op { opcode: Opcode::Const, imm: Imm::Bits(bits), .. }, _) => {
                self.constants[class] = Some(*bits);
                *bits
            }
            (TermKind::Op { opcode, ty, args, .. }, Some(result)) => {
                let of =
                    |a: &TermId| Operand { possible: self.mask(*a), constant: self.constant(*a) };
                let operands: SmallVec<[Operand; 3]> = args.iter().map(of).collect();
                if let (Opcode::Ne, [x, y]) = (opcode, &args[..]) {
                    let is_zero = |id: &TermId| self.constant(*id) == Some(0);
                    let tested = [(x, y), (y, x)].into_iter().find(|(_, other)| is_zero(other));
                    self.tested.extend(tested.map(|(tested, _)| (term.class, *tested)));
                }
                rules::possible_bits(*opcode, *ty, result, &operands)
            }
            (_, Some(ty)) => ty.mask(),
            (_, None) => u64::MAX,
        };
        // Every term of the class has the same contents, so a bit may be set only if all masks have
        // it.
        self.masks[class] &= own;
    }

    /// Checks the reason of a term.
    ///
    /// - [`Check::MemoryMerge`]: the part that needs no version. The memory that is read is a
    ///   block-start leaf.
    /// - [`Check::MemoryRule`]: see `memory`.
    /// - [`Check::Sum`]: the term and another of its class add one constant to one class.
    /// - [`Check::Folding`]: the operation on constants computes the constant of the class.
    /// - [`Check::RulePattern`], [`Check::RuleGuard`], [`Check::RuleResult`]: the term is the left
    ///   side of a rule, the guard holds for the matched operands, and the class is the right side.
    ///   Solvers prove the rules themselves (`docs/testing.md`); rules of the embedder: `declared`.
    fn check_reason(&mut self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        match &term.by {
            By::Itself => Ok(()),
            // Each version that binds this memory confirms the reason on its edges
            // (`ProvedVersion::check_merged`).
            By::Merged { .. } => {
                self.merged.push(id);
                let leaf = self
                    .read(id)
                    .is_some_and(|r| self.kind(r.memory) == Some(&TermKind::MemoryParam));
                self.require(Check::MemoryMerge, leaf, Place::Term(id))
            }
            By::Apart { .. } | By::Stored { .. } | By::Covers { .. } | By::Swaps { .. } => {
                self.require(Check::MemoryRule, self.follows_memory(term, id), Place::Term(id))
            }
            // Two terms that add one constant to one class are equal, for all contents of the
            // leaves. The other term comes earlier, so its sum is proved.
            By::Sum { result } => {
                let fits = *result < id
                    && self.class(*result) == term.class
                    && self.sum(*result) == Some(self.sum_of(id));
                self.require(Check::Sum, fits, Place::Term(id))
            }
            By::Folding => {
                let folded = self.fold(&term.kind);
                let fits = folded.is_some() && folded == self.constant(term.class);
                self.require(Check::Folding, fits, Place::Term(id))
            }
            By::Rule { rule, swapped, inner, result } => {
                let place = Place::Term(id);
                // The right side must come before this term. Otherwise it could rest on this very
                // term, or be this term (`a_right_side_comes_first`).
                let before = *result == NO_TERM || *result < id;
                self.require(Check::TermOrder, before, place)?;
                if let Some(rule) = self.declared.as_ref().and_then(|rules| rules.numbered(*rule)) {
                    let reason = DeclaredReason { swapped: *swapped, inner };
                    return self.check_declared(id, rule, *result, &reason);
                }
                let found = RULES.get(*rule as usize);
                let found =
                    found.and_then(|r| Some((r, Bound::find(self, r, id, *swapped, inner)?)));
                let Some((rule, bound)) = found else {
                    return self.require(Check::RulePattern, false, place);
                };
                self.require(Check::RuleGuard, bound.satisfies(self, rule.guard), place)?;
                self.require(
                    Check::RuleResult,
                    bound.gives(self, rule, id, term.class, *result),
                    place,
                )
            }
        }
    }

    /// Checks that a term belongs to its class by a rule of the embedder.
    fn check_declared(
        &self,
        id: TermId,
        rule: &DeclaredRule,
        result: TermId,
        reason: &DeclaredReason<'_>,
    ) -> Result<(), Finding> {
        let place = Place::Term(id);
        // An inner term of the right side comes before its user, so `result` bounds them all.
        let Some(mut bound) = DeclaredBound::find(self, rule, id, reason) else {
            return self.require(Check::RulePattern, false, place);
        };
        let gives = bound.gives(self, rule, self.class(id), result, reason);
        self.require(Check::RuleResult, gives, place)
    }

    /// The result of an operation on constants; `None` if it traps, or if an operand is no
    /// constant.
    fn fold(&self, kind: &TermKind) -> Option<u64> {
        let TermKind::Op { opcode, ty, args, .. } = kind else { return None };
        let bits: SmallVec<[u64; 3]> =
            args.iter().map(|a| self.constant(*a)).collect::<Option<_>>()?;
        let types: SmallVec<[Type; 3]> = args.iter().map(|a| self.ty(*a)).collect::<Option<_>>()?;
        // Constants themselves have no operands, and need no folding.
        let source = types.first()?;
        accepts(*opcode, *ty, &types).then(|| fold(*opcode, *ty, *source, &bits)).flatten()
    }
}

impl rules::Terms for TermTable<'_> {
    fn operation(&self, term: TermId) -> Option<(Opcode, Type, &[TermId])> {
        match self.kind(term)? {
            TermKind::Op { opcode, ty, args, .. } => Some((*opcode, *ty, args)),
            _ => None,
        }
    }

    fn class(&self, term: TermId) -> TermId {
        TermTable::class(self, term)
    }

    fn ty(&self, class: TermId) -> Option<Type> {
        TermTable::ty(self, class)
    }

    fn constant(&self, class: TermId) -> Option<u64> {
        TermTable::constant(self, class)
    }

    fn possible(&self, class: TermId) -> u64 {
        self.mask(class)
    }
}
