//! Matches operations with the rules of [`ir::rules`].
//!
//! The caller chooses the operands: the pass `simplify` matches the values of a function, and a
//! [`crate::ClassTable`] matches classes of equal values. The matcher tries every way to fit a
//! pattern until one also satisfies the guard.

use crate::features::OperandFeatures;
use ir::eval::eval;
use ir::rules::{Const, Guard, Pat, RULES, Rule, Term};
use ir::{Imm, Opcode, Type};
use smallvec::SmallVec;

/// The operands that the rules are matched with.
pub trait Operands {
    /// The identifier of an operand.
    type Id: Copy + Eq;

    /// The bits of an operand that is a constant.
    fn constant(&self, id: Self::Id) -> Option<u64>;
    /// The type of an operand; `None` for memory.
    fn ty(&self, id: Self::Id) -> Option<Type>;
    /// A mask of the bits that an operand may have set.
    fn possible(&self, id: Self::Id) -> u64;
    /// The operations with this opcode that compute an operand: for each, an identifier and the
    /// operands.
    fn operations(
        &self,
        id: Self::Id,
        opcode: Opcode,
    ) -> impl Iterator<Item = (Self::Id, SmallVec<[Self::Id; 3]>)>;
    /// The controlling type and the immediate of an operation, by the identifier that
    /// [`Operands::operations`] gives it.
    fn typed(&self, operation: Self::Id) -> Option<(Type, Imm)>;
}

/// The rules, grouped by the opcode of their left side, in the order of the table.
#[derive(Debug)]
pub struct RuleIndex {
    /// The rules of the opcode numbered `n` are `numbers[start[n]..start[n + 1]]`.
    start: Vec<u32>,
    numbers: Vec<u32>,
    /// By position: the features that some operand must have.
    needed: Vec<OperandFeatures>,
}

impl Default for RuleIndex {
    fn default() -> RuleIndex {
        let mut numbers: Vec<u32> = (0..RULES.len() as u32).collect();
        // A stable sort keeps the rules of one operation in the order of the table.
        numbers.sort_by_key(|n| RULES[*n as usize].opcode);
        let before =
            |op: usize| numbers.partition_point(|n| (RULES[*n as usize].opcode as usize) < op);
        let start = (0..=Opcode::ALL.len()).map(|op| before(op) as u32).collect();
        let operands = |n: &u32| RULES[*n as usize].operands;
        let needed = numbers.iter().map(|n| OperandFeatures::of_pattern(operands(n))).collect();
        RuleIndex { start, numbers, needed }
    }
}

impl RuleIndex {
    /// The positions of the rules about an operation.
    pub fn of(&self, opcode: Opcode) -> std::ops::Range<usize> {
        self.start[opcode as usize] as usize..self.start[opcode as usize + 1] as usize
    }

    /// The positions of the rules about an operation whose operands have these features. Some of
    /// the rules may still not fit.
    pub fn fitting(
        &self,
        opcode: Opcode,
        features: OperandFeatures,
    ) -> impl Iterator<Item = usize> + Clone + '_ {
        self.of(opcode).filter(move |position| features.have(self.needed[*position]))
    }

    /// The rule at a position, with its number in the table.
    pub fn get(&self, position: usize) -> (u32, &'static Rule) {
        (self.numbers[position], &RULES[self.numbers[position] as usize])
    }
}

/// The replacement that a rule gives for an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RightSide<I> {
    /// An operand of the operation, or an operand of an inner operation.
    Operand(I),
    /// A constant of the operation's result type.
    Constant(u64),
    /// Another operation on these operands, with the type of the first of them.
    Operation(Opcode, SmallVec<[I; 3]>),
    /// Another operation on an operand and a constant, both of the operand's type.
    WithConstant(Opcode, I, u64),
}

/// The application of a rule to an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedRule<I> {
    /// The replacement.
    pub right: RightSide<I>,
    /// A bit mask over the operations of the pattern, the outermost first, then in the order of the
    /// pattern. A set bit i means that operation i matched with its operands swapped.
    pub swapped: u8,
    /// The identifiers of the inner operations, in the same order.
    pub inner: SmallVec<[I; 2]>,
}

/// Applies a rule to an operation with the rule's opcode. Returns `None` if the rule does not fit
/// or the types disagree. Cost: proportional to the inner operations that the matcher tries.
pub fn apply<O: Operands>(
    on: &O,
    rule: &Rule,
    ty: Type,
    args: &[O::Id],
    result: Type,
) -> Option<AppliedRule<O::Id>> {
    if rule.ty.is_some_and(|t| t != ty) || !may_fit(on, rule, args) {
        return None;
    }
    let start = RuleMatch {
        x: None,
        y: None,
        c: None,
        d: None,
        guard: rule.guard,
        swapped: 0,
        inner: SmallVec::new(),
    };
    let mut goals = PatternGoals::new();
    let found = start.with_operands(on, rule.opcode, rule.operands, args, &mut goals, 0)?;
    let right = found.right_side(on, rule.result, args, result)?;
    Some(AppliedRule { right, swapped: found.swapped, inner: found.inner })
}

/// Whether each operand fits its own pattern: constants are the constants wanted, operations have
/// the opcode wanted, and the guard may hold. Almost all rules fail here, before the matcher copies
/// anything.
fn may_fit<O: Operands>(on: &O, rule: &Rule, args: &[O::Id]) -> bool {
    let constant = |arg: &O::Id| on.constant(*arg);
    let fits = |pat: &Pat, arg: &O::Id| match pat {
        Pat::X | Pat::Y => true,
        Pat::Op(opcode, _) => on.operations(*arg, *opcode).next().is_some(),
        Pat::Zero => constant(arg) == Some(0),
        Pat::One => constant(arg) == Some(1),
        Pat::Bits(bits) => constant(arg) == Some(*bits),
        Pat::Ones | Pat::NonZero | Pat::C | Pat::D => constant(arg).is_some(),
    };
    let pats = || rule.operands.iter();
    if let ([Pat::X, Pat::X], [a, b]) = (rule.operands, args)
        && a != b
    {
        return false;
    }
    // The guard, where it depends on operands of the operation itself.
    let guard_holds = |args: &mut dyn Iterator<Item = O::Id>| {
        let (mut possible, mut known) = (None, None);
        for (pat, arg) in pats().zip(args) {
            match pat {
                Pat::X => possible = Some(on.possible(arg)),
                Pat::C => known = on.constant(arg),
                _ => {}
            }
        }
        match (rule.guard, possible, known) {
            (Guard::XIsBool, Some(possible), _) => possible & !1 == 0,
            (Guard::CCoversX, Some(possible), Some(known)) => possible & !known == 0,
            (Guard::XWithin(bits), Some(possible), _) => possible & !bits == 0,
            (Guard::CWithin(bits), _, Some(known)) => known & !bits == 0,
            _ => true,
        }
    };
    let may_hold = |args: &mut dyn Iterator<Item = O::Id>| {
        matches!(rule.guard, Guard::Always) || guard_holds(args)
    };
    (pats().zip(args).all(|(pat, arg)| fits(pat, arg)) && may_hold(&mut args.iter().copied()))
        || (rule.opcode.is_commutative()
            && pats().zip(args.iter().rev()).all(|(pat, arg)| fits(pat, arg))
            && may_hold(&mut args.iter().rev().copied()))
}

/// Operands still to be matched.
type PatternGoals<I> = SmallVec<[(I, Pat); 6]>;

/// The bindings of a rule's variables, and the operations matched so far.
#[derive(Clone, Debug)]
struct RuleMatch<I> {
    x: Option<I>,
    y: Option<I>,
    c: Option<u64>,
    d: Option<u64>,
    guard: Guard,
    swapped: u8,
    inner: SmallVec<[I; 2]>,
}

impl<I: Copy + Eq> RuleMatch<I> {
    /// Matches the operands of one more operation, in either order if it is commutative, and then
    /// the remaining goals. The recursion is as deep as the pattern.
    fn with_operands<O: Operands<Id = I>>(
        &self,
        on: &O,
        opcode: Opcode,
        pats: &'static [Pat],
        args: &[I],
        goals: &mut PatternGoals<I>,
        at: usize,
    ) -> Option<RuleMatch<I>> {
        if args.len() != pats.len() {
            return None;
        }
        // Backtracking: the goals of this operation are at the end of the list. They are removed
        // before the matcher tries the other order, and before the caller tries another operation.
        let known = goals.len();
        goals.extend(args.iter().copied().zip(pats.iter().copied()));
        let mut found = self.solve(on, goals, at);
        goals.truncate(known);
        if found.is_none() && opcode.is_commutative() {
            goals.extend(args.iter().rev().copied().zip(pats.iter().copied()));
            let mut other = self.clone();
            // Operation number 0 is the outermost; each inner operation first adds itself to
            // `inner`. The length of `inner` is therefore the number of this operation.
            other.swapped |= 1 << other.inner.len();
            found = other.solve(on, goals, at);
            goals.truncate(known);
        }
        found
    }

    /// Matches the goals from `at` on.
    fn solve<O: Operands<Id = I>>(
        &self,
        on: &O,
        goals: &mut PatternGoals<I>,
        at: usize,
    ) -> Option<RuleMatch<I>> {
        let mut found = self.clone();
        for next in at..goals.len() {
            let (arg, pat) = goals[next];
            let Pat::Op(opcode, pats) = pat else {
                found.bind(on, arg, pat)?;
                continue;
            };
            // The first operation for which all remaining goals match too. A later goal or the
            // guard may fail with one operation and hold with the next.
            return on.operations(arg, opcode).find_map(|(id, args)| {
                let mut inner = found.clone();
                inner.inner.push(id);
                inner.with_operands(on, opcode, pats, &args, goals, next + 1)
            });
        }
        // The guard is checked last, inside the search: another operation of an operand's class may
        // satisfy it (`a_guard_may_choose_the_term`).
        found.guard_holds(on).then_some(found)
    }

    fn bind<O: Operands<Id = I>>(&mut self, on: &O, arg: I, pat: Pat) -> Option<()> {
        let constant = || on.constant(arg);
        let fits = match pat {
            Pat::X => *self.x.get_or_insert(arg) == arg,
            Pat::Y => *self.y.get_or_insert(arg) == arg,
            Pat::Zero => constant() == Some(0),
            Pat::One => constant() == Some(1),
            Pat::Ones => constant().is_some_and(|b| on.ty(arg).is_some_and(|t| b == t.mask())),
            Pat::NonZero => constant().is_some_and(|b| b != 0),
            Pat::Bits(bits) => constant() == Some(bits),
            Pat::C => constant().is_some_and(|b| *self.c.get_or_insert(b) == b),
            Pat::D => constant().is_some_and(|b| *self.d.get_or_insert(b) == b),
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
            Guard::CAboveX => match (self.c, self.x.and_then(|x| on.ty(x))) {
                (Some(c), Some(ty)) => c & ty.mask() == 0,
                _ => false,
            },
            Guard::XMissesD => self.d.is_some_and(|d| possible() & d == 0),
            Guard::XBelowD => match (self.d, self.x.and_then(|x| on.ty(x))) {
                (Some(d), Some(ty)) => possible() >> (d % u64::from(ty.bits())) == 0,
                _ => false,
            },
            Guard::XWithin(bits) => possible() & !bits == 0,
            Guard::CWithin(bits) => self.c.is_some_and(|c| c & !bits == 0),
            Guard::CCovers(bits) => self.c.is_some_and(|c| bits & !c == 0),
        }
    }

    /// Instantiates the right side of a rule; `None` if the types disagree.
    fn right_side<O: Operands<Id = I>>(
        &self,
        on: &O,
        term: Term,
        args: &[I],
        result: Type,
    ) -> Option<RightSide<I>> {
        let operand =
            |id: Option<I>| id.filter(|id| on.ty(*id) == Some(result)).map(RightSide::Operand);
        match term {
            Term::X => operand(self.x),
            Term::Y => operand(self.y),
            Term::Operand(index) => operand(args.get(index).copied()),
            Term::Zero => Some(RightSide::Constant(0)),
            Term::One => Some(RightSide::Constant(1)),
            Term::Ones => Some(RightSide::Constant(result.mask())),
            Term::Unary(opcode) => self.operation(on, opcode, &[self.x?], result),
            Term::Binary(opcode) => self.operation(on, opcode, &[self.x?, self.y?], result),
            Term::Made(constant) => {
                let ty = on.ty(self.x?)?;
                let bits = self.made(constant, ty)?;
                (ty == result).then_some(RightSide::Constant(bits))
            }
            Term::WithConstant(opcode, constant) => {
                let x = self.x?;
                let bits = self.made(constant, on.ty(x)?)?;
                self.operation(on, opcode, &[x], result)
                    .map(|_| RightSide::WithConstant(opcode, x, bits))
            }
        }
    }

    fn operation<O: Operands<Id = I>>(
        &self,
        on: &O,
        opcode: Opcode,
        args: &[I],
        result: Type,
    ) -> Option<RightSide<I>> {
        let ty = on.ty(self.x?)?;
        let fits = opcode.allows_type(ty) && opcode.result_type(ty) == Some(result);
        fits.then(|| RightSide::Operation(opcode, args.into()))
    }

    /// Evaluates a constant of the right side from the matched constants.
    fn made(&self, constant: Const, ty: Type) -> Option<u64> {
        let (opcode, a, b) = match constant {
            Const::Bits(bits) => return Some(bits),
            Const::C => return self.c,
            Const::CthenD(opcode) => (opcode, self.c?, self.d?),
            Const::DthenC(opcode) => (opcode, self.d?, self.c?),
        };
        eval(opcode, ty, ty, &[a, b]).ok()
    }
}
