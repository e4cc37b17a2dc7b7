//! Matching operations with the rules of [`ir::rules`].
//!
//! The caller chooses the operands: `simplify` matches the values of a function, `gvn`
//! matches classes of equal values. The matcher tries every way to fit a pattern until one also
//! satisfies the guard.

use ir::eval::eval;
use ir::rules::{Const, Guard, Pat, RULES, Rule, Term};
use ir::{Opcode, Type};
use smallvec::SmallVec;

/// Operands of one operation.
pub(crate) type Args<I> = SmallVec<[I; 3]>;

/// Operands still to be matched.
type Goals<I> = SmallVec<[(I, Pat); 6]>;

/// The operands that the rules are matched with.
pub(crate) trait Operands {
    /// The identifier of an operand.
    type Id: Copy + Eq;

    /// The bits of an operand that is a constant.
    fn constant(&self, id: Self::Id) -> Option<u64>;
    /// The type of an operand.
    fn ty(&self, id: Self::Id) -> Type;
    /// A mask of the bits that an operand may have set.
    fn possible(&self, id: Self::Id) -> u64;
    /// The operand lists of the operations with this opcode that compute an operand.
    fn operations(&self, id: Self::Id, opcode: Opcode) -> impl Iterator<Item = Args<Self::Id>>;
}

/// The replacement that a rule gives for an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome<I> {
    /// An operand of the operation, or an operand of an inner operation.
    Operand(I),
    /// A constant of the operation's result type.
    Constant(u64),
    /// Another operation on these operands, with the type of the first of them.
    Operation(Opcode, Args<I>),
    /// Another operation on an operand and a constant, both of the operand's type.
    WithConstant(Opcode, I, u64),
}

/// The rules by the opcode they match, each list in the order of the table.
pub(crate) fn rules_by_opcode() -> Vec<Vec<&'static Rule>> {
    let mut lists = vec![Vec::new(); Opcode::ALL.len()];
    RULES.iter().for_each(|r| lists[r.opcode as usize].push(r));
    lists
}

/// Applies a rule to an operation with the rule's opcode. Returns `None` if the rule does not fit
/// or the types disagree. Cost: proportional to the inner operations that the matcher tries.
pub(crate) fn apply<O: Operands>(
    on: &O,
    rule: &Rule,
    ty: Type,
    args: &[O::Id],
    result: Type,
) -> Option<Outcome<O::Id>> {
    if rule.ty.is_some_and(|t| t != ty) {
        return None;
    }
    let start = Match { x: None, y: None, c: None, d: None, guard: rule.guard };
    let found = start.with_operands(on, rule.opcode, rule.operands, args, &mut Goals::new(), 0)?;
    found.outcome(on, rule.result, args, result)
}

/// The bindings of a rule's variables.
#[derive(Clone, Copy, Debug)]
struct Match<I> {
    x: Option<I>,
    y: Option<I>,
    c: Option<u64>,
    d: Option<u64>,
    guard: Guard,
}

impl<I: Copy + Eq> Match<I> {
    /// Matches the operands of one more operation, in either order if it is commutative, and then
    /// the remaining goals. The recursion is as deep as the pattern.
    fn with_operands<O: Operands<Id = I>>(
        self,
        on: &O,
        opcode: Opcode,
        pats: &'static [Pat],
        args: &[I],
        goals: &mut Goals<I>,
        at: usize,
    ) -> Option<Match<I>> {
        if args.len() != pats.len() {
            return None;
        }
        let known = goals.len();
        goals.extend(args.iter().copied().zip(pats.iter().copied()));
        let mut found = self.solve(on, goals, at);
        goals.truncate(known);
        if found.is_none() && opcode.is_commutative() {
            goals.extend(args.iter().rev().copied().zip(pats.iter().copied()));
            found = self.solve(on, goals, at);
            goals.truncate(known);
        }
        found
    }

    /// Matches the goals from `at` on. A nested pattern is tried with every operation that computes
    /// its operand: a later goal or the guard may fail with the first one and hold with another.
    fn solve<O: Operands<Id = I>>(
        mut self,
        on: &O,
        goals: &mut Goals<I>,
        at: usize,
    ) -> Option<Match<I>> {
        for next in at..goals.len() {
            let (arg, pat) = goals[next];
            let Pat::Op(opcode, pats) = pat else {
                self.bind(on, arg, pat)?;
                continue;
            };
            let mut inner = on.operations(arg, opcode);
            return inner
                .find_map(|args| self.with_operands(on, opcode, pats, &args, goals, next + 1));
        }
        self.guard_holds(on).then_some(self)
    }

    fn bind<O: Operands<Id = I>>(&mut self, on: &O, arg: I, pat: Pat) -> Option<()> {
        let constant = on.constant(arg);
        let fits = match pat {
            Pat::X => *self.x.get_or_insert(arg) == arg,
            Pat::Y => *self.y.get_or_insert(arg) == arg,
            Pat::Zero => constant == Some(0),
            Pat::One => constant == Some(1),
            Pat::Ones => constant == Some(on.ty(arg).mask()),
            Pat::NonZero => constant.is_some_and(|b| b != 0),
            Pat::Bits(bits) => constant == Some(bits),
            Pat::C => constant.is_some_and(|b| *self.c.get_or_insert(b) == b),
            Pat::D => constant.is_some_and(|b| *self.d.get_or_insert(b) == b),
            Pat::Op(..) => false,
        };
        fits.then_some(())
    }

    fn guard_holds<O: Operands<Id = I>>(&self, on: &O) -> bool {
        let possible = || self.x.map_or(u64::MAX, |x| on.possible(x));
        match self.guard {
            Guard::Always => true,
            Guard::XIsBool => possible() & !1 == 0,
            Guard::CCoversX => self.c.is_some_and(|c| possible() & !c == 0),
        }
    }

    /// Instantiates the right side of a rule; `None` if the types disagree.
    fn outcome<O: Operands<Id = I>>(
        &self,
        on: &O,
        term: Term,
        args: &[I],
        result: Type,
    ) -> Option<Outcome<I>> {
        let operand = |id: Option<I>| id.filter(|id| on.ty(*id) == result).map(Outcome::Operand);
        match term {
            Term::X => operand(self.x),
            Term::Y => operand(self.y),
            Term::Operand(index) => operand(args.get(index).copied()),
            Term::Zero => Some(Outcome::Constant(0)),
            Term::One => Some(Outcome::Constant(1)),
            Term::Ones => Some(Outcome::Constant(result.mask())),
            Term::Unary(opcode) => self.operation(on, opcode, &[self.x?], result),
            Term::Binary(opcode) => self.operation(on, opcode, &[self.x?, self.y?], result),
            Term::WithConstant(opcode, constant) => {
                let x = self.x?;
                let bits = self.made(constant, on.ty(x))?;
                self.operation(on, opcode, &[x], result)
                    .map(|_| Outcome::WithConstant(opcode, x, bits))
            }
        }
    }

    fn operation<O: Operands<Id = I>>(
        &self,
        on: &O,
        opcode: Opcode,
        args: &[I],
        result: Type,
    ) -> Option<Outcome<I>> {
        let ty = on.ty(self.x?);
        let fits = opcode.allows_type(ty) && opcode.result_type(ty) == Some(result);
        fits.then(|| Outcome::Operation(opcode, args.into()))
    }

    /// Evaluates a constant of the right side from the matched constants.
    fn made(&self, constant: Const, ty: Type) -> Option<u64> {
        let (opcode, a, b) = match constant {
            Const::Bits(bits) => return Some(bits),
            Const::CthenD(opcode) => (opcode, self.c?, self.d?),
            Const::DthenC(opcode) => (opcode, self.d?, self.c?),
        };
        eval(opcode, ty, ty, &[a, b]).ok()
    }
}
