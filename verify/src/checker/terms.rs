//! The term table: every term is what it says, and belongs to its class.

use super::verdict::{Check, Finding, Options, Place};
use ir::certificate::{By, NO_TERM, Term, TermId, TermKind};
use ir::eval::{accepts, eval, is_evaluated};
use ir::rules::{self, Const, Guard, Operand, Pat, RULES, Rule};
use ir::{Effects, Imm, Inst, Opcode, Shape, Type};
use smallvec::SmallVec;
use std::collections::BTreeMap;

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
}

impl<'c> Terms<'c> {
    /// Checks every term, in order. Cost: linear in the table.
    pub(super) fn check(all: &'c [Term], options: Options) -> Result<Terms<'c>, Finding> {
        let count = all.len();
        options.require(Check::Size, count < NO_TERM as usize, Place::Whole)?;
        let mut terms =
            Terms { options, all, constants: vec![None; count], masks: vec![u64::MAX; count], after: BTreeMap::new() };
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
            _ => term.class < id && self.class(term.class) == term.class && self.ty(term.class) == term.ty,
        };
        self.require(Check::TermClass, fits, Place::Term(id))
    }

    fn check_shape(&self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        let is_own = term.by == By::Itself;
        let fits = match &term.kind {
            TermKind::Argument(_) | TermKind::Param | TermKind::Result(..) => is_own && term.ty.is_some(),
            TermKind::MemoryAtEntry | TermKind::MemoryParam | TermKind::MemoryAfter(_) => is_own && term.ty.is_none(),
            TermKind::Op { opcode, ty, imm, args } => {
                let before = args.iter().all(|a| *a < id && self.class(*a) == *a);
                self.require(Check::TermOrder, before, Place::Term(id))?;
                let types: SmallVec<[Option<Type>; 3]> = args.iter().map(|a| self.ty(*a)).collect();
                is_operation(*opcode, *ty, imm, &types) && term.ty == opcode.result_type(*ty)
            }
        };
        self.require(Check::TermShape, fits, Place::Term(id))
    }

    /// Takes note of what a term tells about its class.
    fn learn(&mut self, id: TermId) {
        let term = &self.all[id as usize];
        let Some(class) = self.masks.get(term.class as usize).map(|_| term.class as usize) else { return };
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
                let of = |a: &TermId| Operand { possible: self.mask(*a), constant: self.constant(*a) };
                let operands: SmallVec<[Operand; 3]> = args.iter().map(of).collect();
                rules::possible_bits(*opcode, *ty, result, &operands)
            }
            (_, Some(ty)) => ty.mask(),
            (_, None) => u64::MAX,
        };
        self.masks[class] &= own;
    }

    fn check_reason(&self, id: TermId) -> Result<(), Finding> {
        let term = &self.all[id as usize];
        match &term.by {
            By::Itself => Ok(()),
            By::Folding => {
                let folded = self.fold(&term.kind);
                let fits = folded.is_some() && folded == self.constant(term.class);
                self.require(Check::Folding, fits, Place::Term(id))
            }
            By::Rule { rule, swapped, inner, result } => {
                let place = Place::Term(id);
                let found = RULES.get(*rule as usize).map(|r| (r, Match::find(self, id, r, *swapped, inner)));
                let (rule, bound) = match found {
                    Some((rule, Some(bound))) => (rule, bound),
                    _ => return self.require(Check::RulePattern, false, place),
                };
                self.require(Check::RuleGuard, self.guard_holds(rule.guard, &bound), place)?;
                self.require(Check::RuleResult, self.is_result(term, rule, &bound, *result), place)
            }
        }
    }

    fn fold(&self, kind: &TermKind) -> Option<u64> {
        let TermKind::Op { opcode, ty, args, .. } = kind else { return None };
        let bits: SmallVec<[u64; 3]> = args.iter().map(|a| self.constant(*a)).collect::<Option<_>>()?;
        let types: SmallVec<[Type; 3]> = args.iter().map(|a| self.ty(*a)).collect::<Option<_>>()?;
        let source = types.first()?;
        accepts(*opcode, *ty, &types).then(|| eval(*opcode, *ty, *source, &bits).ok()).flatten()
    }

    fn guard_holds(&self, guard: Guard, bound: &Match) -> bool {
        let possible = bound.x.map_or(u64::MAX, |x| self.mask(x));
        match guard {
            Guard::Always => true,
            Guard::XIsBool => possible & !1 == 0,
            Guard::CCoversX => bound.c.is_some_and(|c| possible & !c == 0),
        }
    }

    /// Whether the class of a term is the right side of a rule.
    fn is_result(&self, term: &Term, rule: &Rule, bound: &Match, result: TermId) -> bool {
        let (class, constant) = (term.class, self.constant(term.class));
        let is_op = |opcode: Opcode, fits: &dyn Fn(&[TermId]) -> bool| match self.get(result) {
            Some(Term { kind: TermKind::Op { opcode: o, ty, args, .. }, class: c, .. }) => {
                let mut swapped = args.clone();
                swapped.reverse();
                let typed = *o == opcode && *c == class && bound.x.and_then(|x| self.ty(x)) == Some(*ty);
                typed && (fits(args) || (opcode.is_commutative() && fits(&swapped)))
            }
            _ => false,
        };
        match rule.result {
            rules::Term::X => bound.x == Some(class),
            rules::Term::Y => bound.y == Some(class),
            rules::Term::Operand(index) => match &term.kind {
                TermKind::Op { args, .. } => args.get(index) == Some(&class),
                _ => false,
            },
            rules::Term::Zero => constant == Some(0),
            rules::Term::One => constant == Some(1),
            rules::Term::Ones => constant.is_some() && constant == term.ty.map(Type::mask),
            rules::Term::Unary(opcode) => is_op(opcode, &|a| a.first().copied() == bound.x && a.len() == 1),
            rules::Term::Binary(opcode) => {
                is_op(opcode, &|a| matches!(a, [x, y] if Some(*x) == bound.x && Some(*y) == bound.y))
            }
            rules::Term::WithConstant(opcode, wanted) => {
                let bits = bound.x.and_then(|x| self.ty(x)).and_then(|ty| bound.made(wanted, ty));
                is_op(
                    opcode,
                    &|a| matches!(a, [x, k] if Some(*x) == bound.x && bits.is_some() && self.constant(*k) == bits),
                )
            }
        }
    }
}

/// Whether an operation without effect may have such operands. The last operand of a read is the memory.
fn is_operation(opcode: Opcode, ty: Type, imm: &Imm, types: &[Option<Type>]) -> bool {
    if opcode == Opcode::Const {
        return types.is_empty() && matches!(imm, Imm::Bits(bits) if bits & !ty.mask() == 0);
    }
    if !opcode.effects().has(Effects::READS) {
        let types: Option<SmallVec<[Type; 3]>> = types.iter().copied().collect();
        return *imm == Imm::None && is_evaluated(opcode) && types.is_some_and(|t| accepts(opcode, ty, &t));
    }
    match (opcode.shape(), types) {
        (Shape::Load(_), [address, None]) => *address == Some(Type::I32) && matches!(imm, Imm::Address(..)),
        (Shape::MemorySize, [None]) => matches!(imm, Imm::Memory(_)),
        (Shape::GlobalGet, [None]) => matches!(imm, Imm::Global(_)),
        _ => false,
    }
}

/// What the variables of a rule stand for.
#[derive(Default)]
struct Match {
    x: Option<TermId>,
    y: Option<TermId>,
    c: Option<u64>,
    d: Option<u64>,
}

impl Match {
    /// Matches a term, and those named for the inner operations, with the pattern of a rule.
    fn find(terms: &Terms<'_>, id: TermId, rule: &Rule, swapped: u8, inner: &[TermId]) -> Option<Match> {
        let mut bound = Match::default();
        let mut inner = inner.iter();
        let mut work: SmallVec<[(TermId, Opcode, &'static [Pat]); 4]> = SmallVec::new();
        work.push((id, rule.opcode, rule.operands));
        let mut at = 0;
        while let Some(&(id, wanted, pats)) = work.get(at) {
            let TermKind::Op { opcode, ty, args, .. } = &terms.get(id)?.kind else { return None };
            let is_swapped = swapped.checked_shr(at as u32).is_some_and(|bits| bits & 1 != 0);
            let typed = at > 0 || rule.ty.is_none_or(|t| t == *ty);
            if *opcode != wanted || args.len() != pats.len() || !typed || (is_swapped && !opcode.is_commutative()) {
                return None;
            }
            let mut args = args.clone();
            if is_swapped {
                args.reverse();
            }
            for (arg, pat) in args.iter().zip(pats) {
                match pat {
                    Pat::Op(opcode, pats) => {
                        let named = *inner.next()?;
                        if named >= id || terms.class(named) != *arg {
                            return None;
                        }
                        work.push((named, *opcode, pats));
                    }
                    _ => bound.bind(terms, *arg, *pat)?,
                }
            }
            at += 1;
        }
        inner.next().is_none().then_some(bound)
    }

    fn bind(&mut self, terms: &Terms<'_>, arg: TermId, pat: Pat) -> Option<()> {
        let constant = terms.constant(arg);
        let fits = match pat {
            Pat::X => *self.x.get_or_insert(arg) == arg,
            Pat::Y => *self.y.get_or_insert(arg) == arg,
            Pat::Zero => constant == Some(0),
            Pat::One => constant == Some(1),
            Pat::Ones => constant.is_some() && constant == terms.ty(arg).map(Type::mask),
            Pat::NonZero => constant.is_some_and(|b| b != 0),
            Pat::Bits(bits) => constant == Some(bits),
            Pat::C => constant.is_some_and(|b| *self.c.get_or_insert(b) == b),
            Pat::D => constant.is_some_and(|b| *self.d.get_or_insert(b) == b),
            Pat::Op(..) => false,
        };
        fits.then_some(())
    }

    /// The bits of a constant made from those matched.
    fn made(&self, constant: Const, ty: Type) -> Option<u64> {
        let (opcode, a, b) = match constant {
            Const::Bits(bits) => return Some(bits),
            Const::CthenD(opcode) => (opcode, self.c?, self.d?),
            Const::DthenC(opcode) => (opcode, self.d?, self.c?),
        };
        accepts(opcode, ty, &[ty, ty]).then(|| eval(opcode, ty, ty, &[a, b]).ok()).flatten()
    }
}
