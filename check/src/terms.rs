//! The term table: every term is what it says, and belongs to its class.

use crate::verdict::{Check, Finding, Options, Place};
use ir::eval::{accepts, eval};
use ir::rules::{self, Bound, Operand, RULES};
use ir::{Imm, Inst, Opcode, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind, is_well_typed};

/// The table, with what follows from it alone.
pub(super) struct Terms<'c> {
    pub(super) options: Options,
    all: &'c [Term],
    /// By class: the bits, where it is a constant.
    constants: Vec<Option<u64>>,
    /// By class: the bits that may be set.
    masks: Vec<u64>,
    /// The leaves that stand for memory after a writing instruction.
    pub(super) after: BTreeMap<Inst, TermId>,
    /// Reads of what a block begins with, claimed to give the same on all edges into it.
    pub(super) merged: Vec<TermId>,
}

impl<'c> Terms<'c> {
    /// Checks every term, in order. Cost: linear in the table.
    pub(super) fn check(all: &'c [Term], options: Options) -> Result<Terms<'c>, Finding> {
        let count = all.len();
        options.require(Check::Size, count < NO_TERM as usize, Place::Whole)?;
        let (constants, masks) = (vec![None; count], vec![u64::MAX; count]);
        let mut terms =
            Terms { options, all, constants, masks, after: BTreeMap::new(), merged: Vec::new() };
        for id in 0..count as TermId {
            terms.check_class(id)?;
            terms.check_shape(id)?;
            terms.check_reason(id)?;
            // Only now: what a term tells of its class must not help to show that it belongs there
            // (`a_term_does_not_vouch_for_itself`).
            terms.learn(id);
        }
        Ok(terms)
    }

    /// Fails with a finding unless `ok`.
    pub(super) fn require(&self, check: Check, ok: bool, at: Place) -> Result<(), Finding> {
        self.options.require(check, ok, at)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, id: TermId) -> Option<&'c Term> {
        self.all.get(id as usize)
    }

    pub(super) fn kind(&self, id: TermId) -> Option<&'c TermKind> {
        self.get(id).map(|t| &t.kind)
    }

    /// The class of a term; [`NO_TERM`] of none.
    pub(super) fn class(&self, id: TermId) -> TermId {
        self.get(id).map_or(NO_TERM, |t| t.class)
    }

    pub(super) fn ty(&self, id: TermId) -> Option<Type> {
        self.get(id).and_then(|t| t.ty)
    }

    pub(super) fn constant(&self, class: TermId) -> Option<u64> {
        self.constants.get(class as usize).copied().flatten()
    }

    fn mask(&self, class: TermId) -> u64 {
        self.masks.get(class as usize).copied().unwrap_or(u64::MAX)
    }

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

    /// Takes note of what a term tells about its class.
    fn learn(&mut self, id: TermId) {
        let term = &self.all[id as usize];
        // What rests on what only one version was asked for tells nothing of the other
        // (`a_merged_read_tells_nothing`).
        if matches!(term.by, By::Merged { .. } | By::Apart { .. }) {
            return;
        }
        let Some(class) = self.masks.get(term.class as usize).map(|_| term.class as usize) else {
            return;
        };
        let own = match (&term.kind, term.ty) {
            (TermKind::MemoryAfter(inst), _) => {
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
                rules::possible_bits(*opcode, *ty, result, &operands)
            }
            (_, Some(ty)) => ty.mask(),
            (_, None) => u64::MAX,
        };
        self.masks[class] &= own;
    }

    fn check_reason(&mut self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        match &term.by {
            By::Itself => Ok(()),
            // That holds of a version which asks its edges (`Version::check_merged`).
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
            By::Folding => {
                let folded = self.fold(&term.kind);
                let fits = folded.is_some() && folded == self.constant(term.class);
                self.require(Check::Folding, fits, Place::Term(id))
            }
            By::Rule { rule, swapped, inner, result } => {
                let place = Place::Term(id);
                // A right side that comes later could rest on this term, or be it
                // (`a_right_side_comes_first`).
                let before = *result == NO_TERM || *result < id;
                self.require(Check::TermOrder, before, place)?;
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

    fn fold(&self, kind: &TermKind) -> Option<u64> {
        let TermKind::Op { opcode, ty, args, .. } = kind else { return None };
        let bits: SmallVec<[u64; 3]> =
            args.iter().map(|a| self.constant(*a)).collect::<Option<_>>()?;
        let types: SmallVec<[Type; 3]> = args.iter().map(|a| self.ty(*a)).collect::<Option<_>>()?;
        let source = types.first()?;
        accepts(*opcode, *ty, &types).then(|| eval(*opcode, *ty, *source, &bits).ok()).flatten()
    }
}

impl rules::Terms for Terms<'_> {
    fn operation(&self, term: TermId) -> Option<(Opcode, Type, &[TermId])> {
        match self.kind(term)? {
            TermKind::Op { opcode, ty, args, .. } => Some((*opcode, *ty, args)),
            _ => None,
        }
    }

    fn class(&self, term: TermId) -> TermId {
        Terms::class(self, term)
    }

    fn ty(&self, class: TermId) -> Option<Type> {
        Terms::ty(self, class)
    }

    fn constant(&self, class: TermId) -> Option<u64> {
        Terms::constant(self, class)
    }

    fn possible(&self, class: TermId) -> u64 {
        self.mask(class)
    }
}
