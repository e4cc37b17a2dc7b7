//! The term table: every operation once, in the class that folding and the rules give it.

use super::merges::Merges;
use super::rewrite::{Match, RuleIndex};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use ir::eval::{eval, is_evaluated};
use ir::rules::{self, Const, Operand, Rule, possible_bits};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use transition::certificate::{By, NO_TERM, Term, TermId, TermKind};

/// Rewrites of the right side of a rule while one term is made. Each rule makes an operation
/// simpler, so few happen. The limit ends the recursion even if the rules do not.
const MAX_REWRITES: u32 = 8;

/// Operands, each a class.
pub(super) type Args = SmallVec<[TermId; 3]>;

/// A write apart from its operands.
pub(super) type WriteKind = (Opcode, Type, Imm);

/// The terms, with an index to find them again.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) terms: Vec<Term>,
    /// By term, meaningful for classes: the bits that may be set, by all terms of the class.
    masks: Vec<u64>,
    /// `next`, by term: the next term of its class. `last`, by class: its last term.
    next: Vec<TermId>,
    last: Vec<TermId>,
    /// Writes, apart from the memory they are applied to, that a covering write leaves out. The set
    /// names operations, not terms, so it depends on no order and on no version.
    hidden: BTreeSet<(WriteKind, Args)>,
    /// By term, meaningful for memories: the last hidden write that the memory contains; possibly
    /// the term itself.
    lone: Vec<TermId>,
    index: HashTable<TermId>,
    hasher: FixedState,
    /// Reads through the memory at the start of blocks.
    pub(super) merges: Merges,
    rules: RuleIndex,
}

impl Table {
    /// Forgets every term.
    pub(super) fn clear(&mut self) {
        self.terms.clear();
        self.masks.clear();
        self.next.clear();
        self.last.clear();
        self.lone.clear();
        self.hidden.clear();
        self.index.clear();
        self.merges.clear();
    }

    /// The class of a term; [`NO_TERM`] if there is no such term.
    pub(super) fn class(&self, term: TermId) -> TermId {
        self.terms.get(term as usize).map_or(NO_TERM, |t| t.class)
    }

    /// The type of a term, unless it is a memory.
    pub(super) fn ty(&self, term: TermId) -> Option<Type> {
        self.terms.get(term as usize).and_then(|t| t.ty)
    }

    /// The bits of a class that is a constant.
    pub(super) fn constant(&self, class: TermId) -> Option<u64> {
        match self.terms.get(class as usize)?.kind {
            TermKind::Op { opcode: Opcode::Const, imm: Imm::Bits(bits), .. } => Some(bits),
            _ => None,
        }
    }

    /// The bits that may be set in a class.
    pub(super) fn mask(&self, class: TermId) -> u64 {
        self.masks.get(class as usize).copied().unwrap_or(u64::MAX)
    }

    /// The terms of a class, the first one first.
    pub(super) fn members(&self, class: TermId) -> impl Iterator<Item = TermId> + '_ {
        let next = |id: &TermId| self.next.get(*id as usize).copied().filter(|id| *id != NO_TERM);
        std::iter::successors(Some(class).filter(|id| *id != NO_TERM), next)
    }

    /// Hides a write, on any memory: covering writes made from now on leave it out of their
    /// classes. The memory is the last of `args`.
    pub(super) fn hide(&mut self, kind: WriteKind, args: &Args) {
        let Some((_, operands)) = args.split_last() else { return };
        self.hidden.insert((kind, Args::from_slice(operands)));
    }

    /// Whether a term is a hidden write.
    pub(super) fn is_hidden(&self, term: TermId) -> bool {
        match self.terms.get(term as usize).map(|t| (&t.kind, t.ty)) {
            Some((TermKind::Op { opcode, ty, imm, args }, None)) if !self.hidden.is_empty() => {
                let operands = &args[..args.len().saturating_sub(1)];
                self.hidden.contains(&((*opcode, *ty, *imm), Args::from_slice(operands)))
            }
            _ => false,
        }
    }

    /// The last hidden write that a memory contains, possibly the one that made it; [`NO_TERM`] if
    /// there is none.
    pub(super) fn lone_below(&self, memory: TermId) -> TermId {
        self.lone.get(memory as usize).copied().unwrap_or(NO_TERM)
    }

    /// A new leaf.
    pub(super) fn leaf(&mut self, kind: TermKind, ty: Option<Type>) -> TermId {
        self.push(kind, ty, None)
    }

    /// The leaf of this kind. Makes it if there is none.
    pub(super) fn named_leaf(&mut self, kind: TermKind, ty: Option<Type>) -> TermId {
        let hash = self.hasher.hash_one(&kind);
        match self.find(hash, &kind) {
            Some(id) => id,
            None => {
                let id = self.push(kind, ty, None);
                self.enter(hash, id);
                id
            }
        }
    }

    /// The constant with these bits.
    pub(super) fn make_constant(&mut self, ty: Type, bits: u64) -> TermId {
        self.op(Opcode::Const, ty, Imm::Bits(bits & ty.mask()), Args::new())
    }

    /// The term of an operation, if the table has it.
    pub(super) fn find_op(&self, opcode: Opcode, ty: Type, imm: Imm, args: Args) -> Option<TermId> {
        let kind = operation(opcode, ty, imm, args);
        self.find(self.hasher.hash_one(&kind), &kind)
    }

    /// The term of an operation. Makes it if there is none, in the class that folding or a rule
    /// gives it. Types must agree. [`NO_TERM`] if an operand is [`NO_TERM`], or if the operation
    /// has no result.
    pub(super) fn op(&mut self, opcode: Opcode, ty: Type, imm: Imm, args: Args) -> TermId {
        self.rewritten_op(opcode, ty, imm, args, MAX_REWRITES)
    }

    fn rewritten_op(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: Args,
        rewrites: u32,
    ) -> TermId {
        let Some(result) = opcode.result_type(ty).filter(|_| !args.contains(&NO_TERM)) else {
            return NO_TERM;
        };
        let kind = operation(opcode, ty, imm, args);
        let hash = self.hasher.hash_one(&kind);
        if let Some(id) = self.find(hash, &kind) {
            return id;
        }
        // Folding first: a class with a constant is the constant, whichever rule would apply too.
        let reason = match self.fold(&kind, result) {
            Some(class) => Some((class, By::Folding)),
            None if rewrites > 0 => self.rewrite(&kind, result, rewrites),
            None => None,
        };
        // A rule may have made this very operation on the way.
        if let Some(id) = self.find(hash, &kind) {
            return id;
        }
        let id = self.push(kind, Some(result), reason);
        self.enter(hash, id);
        id
    }

    /// The term of an operation. If the table lacks it, makes it in the class that `reason` gives.
    /// [`NO_TERM`] if an operand is [`NO_TERM`].
    pub(super) fn op_because(
        &mut self,
        opcode: Opcode,
        ty: Type,
        imm: Imm,
        args: Args,
        reason: Option<(TermId, By)>,
    ) -> TermId {
        if args.contains(&NO_TERM) {
            return NO_TERM;
        }
        let kind = operation(opcode, ty, imm, args);
        let hash = self.hasher.hash_one(&kind);
        self.find(hash, &kind).unwrap_or_else(|| {
            let id = self.push(kind, opcode.result_type(ty), reason);
            self.enter(hash, id);
            id
        })
    }

    /// Another term of an operation that the table already has in a different class. Lookups do not
    /// find it.
    pub(super) fn another(&mut self, kind: TermKind, class: TermId, by: By) -> TermId {
        let TermKind::Op { opcode, ty, .. } = &kind else { return NO_TERM };
        let result = opcode.result_type(*ty);
        self.push(kind, result, Some((class, by)))
    }

    fn find(&self, hash: u64, kind: &TermKind) -> Option<TermId> {
        self.index.find(hash, |id| self.terms[*id as usize].kind == *kind).copied()
    }

    fn enter(&mut self, hash: u64, id: TermId) {
        let Table { terms, index, hasher, .. } = self;
        index.insert_unique(hash, id, |id| hasher.hash_one(&terms[*id as usize].kind));
    }

    fn push(&mut self, kind: TermKind, ty: Option<Type>, reason: Option<(TermId, By)>) -> TermId {
        let id = self.terms.len() as TermId;
        let (class, by) = reason.unwrap_or((id, By::Itself));
        // The bits known of a merged or traced read rest on reads that one version alone may have
        // made. The checker draws no bits from such a term either.
        let tells_nothing = matches!(by, By::Merged { .. } | By::Apart { .. });
        let possible = if tells_nothing { u64::MAX } else { self.possible(&kind, ty) };
        let lone = match &kind {
            TermKind::Op { args, .. } if ty.is_none() => {
                args.last().map_or(NO_TERM, |memory| self.lone_below(*memory))
            }
            _ => NO_TERM,
        };
        self.lone.push(lone);
        self.terms.push(Term { kind, ty, class, by });
        // Only now: `is_hidden` reads the term.
        if self.is_hidden(id) {
            self.lone[id as usize] = id;
        }
        self.masks.push(u64::MAX);
        self.next.push(NO_TERM);
        self.last.push(id);
        // The bits possible in a class are those possible in all of its terms, since the terms are
        // equal.
        self.masks[class as usize] &= possible;
        if class != id {
            let last = std::mem::replace(&mut self.last[class as usize], id);
            self.next[last as usize] = id;
        }
        id
    }

    fn possible(&self, kind: &TermKind, ty: Option<Type>) -> u64 {
        match (kind, ty) {
            (TermKind::Op { opcode: Opcode::Const, imm: Imm::Bits(bits), .. }, _) => *bits,
            (TermKind::Op { opcode, ty, args, .. }, Some(result)) => {
                let of =
                    |a: &TermId| Operand { possible: self.mask(*a), constant: self.constant(*a) };
                let operands: SmallVec<[Operand; 3]> = args.iter().map(of).collect();
                possible_bits(*opcode, *ty, result, &operands)
            }
            (_, Some(ty)) => ty.mask(),
            (_, None) => u64::MAX,
        }
    }

    /// The constant that an operation on constants computes.
    fn fold(&mut self, kind: &TermKind, result: Type) -> Option<TermId> {
        let TermKind::Op { opcode, ty, args, .. } = kind else { return None };
        if !is_evaluated(*opcode) {
            return None;
        }
        let bits: SmallVec<[u64; 3]> =
            args.iter().map(|a| self.constant(*a)).collect::<Option<_>>()?;
        let source = self.ty(*args.first()?)?;
        let bits = eval(*opcode, *ty, source, &bits).ok()?;
        Some(self.make_constant(result, bits))
    }

    /// The class that the first matching rule gives an operation.
    fn rewrite(&mut self, kind: &TermKind, result: Type, rewrites: u32) -> Option<(TermId, By)> {
        let TermKind::Op { opcode, ty, args, .. } = kind else { return None };
        for (number, rule) in
            self.rules.of(*opcode).map(|place| self.rules.get(place)).collect::<SmallVec<[_; 16]>>()
        {
            if rule.ty.is_some_and(|t| t != *ty) {
                continue;
            }
            let Some(found) = Match::find(self, rule, args) else { continue };
            let Some((class, term)) = self.right_side(rule, &found, kind, result, rewrites - 1)
            else {
                continue;
            };
            let by =
                By::Rule { rule: number, swapped: found.swapped, inner: found.inner, result: term };
            return Some((class, by));
        }
        None
    }

    /// The right side of a rule: its class and, if it is an operation, its term. `None` if types do
    /// not agree, or if the right side is the left side again.
    fn right_side(
        &mut self,
        rule: &Rule,
        found: &Match,
        left: &TermKind,
        result: Type,
        rewrites: u32,
    ) -> Option<(TermId, TermId)> {
        let TermKind::Op { args, .. } = left else { return None };
        let typed =
            |table: &Table, class: Option<TermId>| class.filter(|c| table.ty(*c) == Some(result));
        let (opcode, args) = match rule.result {
            rules::Term::X => return Some((typed(self, found.x)?, NO_TERM)),
            rules::Term::Y => return Some((typed(self, found.y)?, NO_TERM)),
            rules::Term::Operand(index) => {
                return Some((typed(self, args.get(index).copied())?, NO_TERM));
            }
            rules::Term::Zero => return Some((self.make_constant(result, 0), NO_TERM)),
            rules::Term::One => return Some((self.make_constant(result, 1), NO_TERM)),
            rules::Term::Ones => return Some((self.make_constant(result, result.mask()), NO_TERM)),
            rules::Term::Unary(opcode) => (opcode, Args::from_slice(&[found.x?])),
            rules::Term::Binary(opcode) => (opcode, Args::from_slice(&[found.x?, found.y?])),
            rules::Term::WithConstant(opcode, constant) => {
                let ty = self.ty(found.x?)?;
                let bits = made(constant, ty, found)?;
                (opcode, Args::from_slice(&[found.x?, self.make_constant(ty, bits)]))
            }
        };
        let ty = self.ty(found.x?)?;
        let fits = opcode.allows_type(ty) && opcode.result_type(ty) == Some(result);
        // A rule whose right side is the same operation would make the term its own reason, and the
        // table would look for it without end.
        if !fits || operation(opcode, ty, Imm::None, args.clone()) == *left {
            return None;
        }
        let term = self.rewritten_op(opcode, ty, Imm::None, args, rewrites);
        (term != NO_TERM).then(|| (self.class(term), term))
    }
}

/// The bits of a constant computed from matched constants.
fn made(constant: Const, ty: Type, found: &Match) -> Option<u64> {
    match constant {
        Const::Bits(bits) => Some(bits),
        Const::CthenD(opcode) => eval(opcode, ty, ty, &[found.c?, found.d?]).ok(),
        Const::DthenC(opcode) => eval(opcode, ty, ty, &[found.d?, found.c?]).ok(),
    }
}

/// An operation. If it is commutative, its operands are sorted, so that both orders are one term.
fn operation(opcode: Opcode, ty: Type, imm: Imm, mut args: Args) -> TermKind {
    if opcode.is_commutative() {
        args.sort_unstable();
    }
    TermKind::Op { opcode, ty, imm, args }
}
