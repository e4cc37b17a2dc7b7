//! Rule instances: the check that a term matches the left side of a rule and its class matches the
//! right side.
//!
//! The terms are the terms of a certificate (`transition::certificate`), identified by number. The
//! first term of a class identifies the class.

use super::{Const, Guard, Pat, Rule, Term};
use crate::eval::{accepts, eval};
use crate::opcode::Opcode;
use crate::types::Type;
use smallvec::SmallVec;

/// The terms that rules apply to. Each method answers "unknown" for a term or class that does not
/// exist.
pub trait Terms {
    /// The operation of a term: its opcode, its controlling type, and its operands, which are
    /// classes.
    fn operation(&self, term: u32) -> Option<(Opcode, Type, &[u32])>;
    /// The class of a term.
    fn class(&self, term: u32) -> u32;
    /// The type of a class; `None` also for memory.
    fn ty(&self, class: u32) -> Option<Type>;
    /// The bits of a class that contains a constant.
    fn constant(&self, class: u32) -> Option<u64>;
    /// A mask of the bits that may be set in a class.
    fn possible(&self, class: u32) -> u64;
}

/// The classes and constants bound to the variables of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bound {
    x: Option<u32>,
    y: Option<u32>,
    c: Option<u64>,
    d: Option<u64>,
}

impl Bound {
    /// Matches a term against the pattern of a rule. The bits of `swapped` mark commutative
    /// operations that match with swapped operands. The list `inner` has the terms of the inner
    /// operations. Both have the form described in `transition::certificate::By::Rule`. Returns
    /// `None` if the term does not match. Cost: linear in the pattern.
    pub fn find(
        terms: &impl Terms,
        rule: &Rule,
        term: u32,
        swapped: u8,
        inner: &[u32],
    ) -> Option<Bound> {
        let mut bound = Bound::default();
        let mut inner = inner.iter();
        let mut work: SmallVec<[(u32, Opcode, &'static [Pat]); 4]> = SmallVec::new();
        work.push((term, rule.opcode, rule.operands));
        let mut at = 0;
        // Breadth-first over the operations of the pattern: `swapped` and `inner` number them in
        // this order.
        while let Some(&(term, wanted, pats)) = work.get(at) {
            let (opcode, ty, args) = terms.operation(term)?;
            let is_swapped = swapped.checked_shr(at as u32).is_some_and(|bits| bits & 1 != 0);
            let typed = at > 0 || rule.ty.is_none_or(|t| t == ty);
            if opcode != wanted
                || args.len() != pats.len()
                || !typed
                || (is_swapped && !opcode.is_commutative())
            {
                return None;
            }
            let mut args: SmallVec<[u32; 3]> = args.into();
            if is_swapped {
                args.reverse();
            }
            for (arg, pat) in args.iter().zip(pats) {
                match pat {
                    Pat::Op(opcode, pats) => {
                        let named = *inner.next()?;
                        // The certificate is untrusted. An inner term must come earlier in the
                        // table, or the derivation could be circular.
                        if named >= term || terms.class(named) != *arg {
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

    fn bind(&mut self, terms: &impl Terms, arg: u32, pat: Pat) -> Option<()> {
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

    /// Whether the guard of the rule holds.
    pub fn satisfies(&self, terms: &impl Terms, guard: Guard) -> bool {
        let possible = self.x.map_or(u64::MAX, |x| terms.possible(x));
        match guard {
            Guard::Always => true,
            Guard::XIsBool => possible & !1 == 0,
            Guard::CCoversX => self.c.is_some_and(|c| possible & !c == 0),
            Guard::CAboveX => match (self.c, self.x.and_then(|x| terms.ty(x))) {
                (Some(c), Some(ty)) => c & ty.mask() == 0,
                _ => false,
            },
            Guard::XMissesD => self.d.is_some_and(|d| possible & d == 0),
            Guard::XBelowD => match (self.d, self.x.and_then(|x| terms.ty(x))) {
                (Some(d), Some(ty)) => possible >> (d % u64::from(ty.bits())) == 0,
                _ => false,
            },
            Guard::XWithin(bits) => possible & !bits == 0,
            Guard::CWithin(bits) => self.c.is_some_and(|c| c & !bits == 0),
            Guard::CCovers(bits) => self.c.is_some_and(|c| bits & !c == 0),
        }
    }

    /// Whether a class is the right side of a rule with `term` as its left side. If the right side
    /// is an operation, `result` is the term of the class that is this operation. Cost: constant.
    pub fn gives(
        &self,
        terms: &impl Terms,
        rule: &Rule,
        term: u32,
        class: u32,
        result: u32,
    ) -> bool {
        let constant = terms.constant(class);
        match rule.result {
            Term::X => self.x == Some(class),
            Term::Y => self.y == Some(class),
            Term::Operand(index) => {
                terms.operation(term).and_then(|(_, _, args)| args.get(index)) == Some(&class)
            }
            Term::Zero => constant == Some(0),
            Term::One => constant == Some(1),
            Term::Ones => constant.is_some() && constant == terms.ty(class).map(Type::mask),
            Term::Unary(opcode) => self.is_made(
                terms,
                opcode,
                class,
                result,
                &|args| matches!(args, [x] if Some(*x) == self.x),
            ),
            Term::Binary(opcode) => self.is_made(
                terms,
                opcode,
                class,
                result,
                &|args| matches!(args, [x, y] if Some(*x) == self.x && Some(*y) == self.y),
            ),
            Term::Made(wanted) => {
                let ty = terms.ty(class).filter(|ty| self.x.and_then(|x| terms.ty(x)) == Some(*ty));
                constant.is_some() && constant == ty.and_then(|ty| self.made(wanted, ty))
            }
            Term::WithConstant(opcode, wanted) => {
                let bits = self.x.and_then(|x| terms.ty(x)).and_then(|ty| self.made(wanted, ty));
                self.is_made(terms, opcode, class, result, &|args| {
                    matches!(
                        args,
                        [x, k] if Some(*x) == self.x
                            && bits.is_some()
                            && terms.constant(*k) == bits
                    )
                })
            }
        }
    }

    /// Whether the term `result` belongs to the class and is this operation, has the type of `X`,
    /// and has operands that fit.
    fn is_made(
        &self,
        terms: &impl Terms,
        opcode: Opcode,
        class: u32,
        result: u32,
        fits: &dyn Fn(&[u32]) -> bool,
    ) -> bool {
        let Some((found, ty, args)) = terms.operation(result) else { return false };
        let mut swapped: SmallVec<[u32; 3]> = args.into();
        swapped.reverse();
        let typed = self.x.and_then(|x| terms.ty(x)) == Some(ty);
        let in_order = fits(args) || (opcode.is_commutative() && fits(&swapped));
        found == opcode && terms.class(result) == class && typed && in_order
    }

    /// The bits of a constant computed from the matched constants.
    fn made(&self, constant: Const, ty: Type) -> Option<u64> {
        let (opcode, a, b) = match constant {
            Const::Bits(bits) => return Some(bits),
            Const::C => return self.c,
            Const::CthenD(opcode) => (opcode, self.c?, self.d?),
            Const::DthenC(opcode) => (opcode, self.d?, self.c?),
        };
        accepts(opcode, ty, &[ty, ty]).then(|| eval(opcode, ty, ty, &[a, b]).ok()).flatten()
    }
}
