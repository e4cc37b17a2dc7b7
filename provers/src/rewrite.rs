//! The claim of a rewrite rule. For all values, both sides trap alike, and give equal results where
//! neither traps.

use crate::encoder::SmtTerms;
use crate::goal::SolverGoal;
use crate::meaning::{Meaning, SmtDefinitions, SmtValue};
use crate::typing::{Instance, Right, TypedPattern, Typing};
use easy_smt::SExpr;
use ir::eval::canonical_nan;
use ir::rules::{Const, Guard};
use ir::{TrapKind, Type};
use std::collections::BTreeMap;
use std::io;

/// Writes the two sides of an instance of a rule.
struct SideWriter<'d, 'c> {
    definitions: &'d mut SmtDefinitions<'c>,
    variables: BTreeMap<char, (SExpr, Type)>,
    given: Vec<SExpr>,
    /// The number of variables in addition to the variables of the rule.
    fresh: usize,
}

/// One side: its bits, and the conditions of its traps.
struct RuleSide {
    bits: SExpr,
    traps: BTreeMap<TrapKind, Vec<SExpr>>,
}

impl RuleSide {
    /// The condition that an operation of this side traps.
    fn trapped(&self, t: SmtTerms<'_>) -> SExpr {
        t.or(&self.traps.values().flatten().copied().collect::<Vec<SExpr>>())
    }
}

/// The goal of a rule at one choice of types, or the reason why its result is ill-formed.
pub(crate) fn goal(
    definitions: &mut SmtDefinitions<'_>,
    instance: &Instance,
) -> io::Result<Result<SolverGoal, String>> {
    let mut sides =
        SideWriter { definitions, variables: BTreeMap::new(), given: Vec::new(), fresh: 0 };
    let types = instance.variables;
    for (name, ty) in [('X', types.x), ('Y', types.y), ('C', types.c), ('D', types.d)] {
        if let Some(ty) = ty {
            let variable = sides.definitions.variable(&name.to_string(), ty)?;
            sides.variables.insert(name, (variable, ty));
        }
    }
    sides.guard(instance.rule.guard);
    let mut holds = Vec::new();
    let mut shown: Vec<(String, SExpr)> =
        sides.variables.iter().map(|(n, (v, _))| (n.to_string(), *v)).collect();
    for (order, node) in instance.left.iter().enumerate() {
        let (left, operands) = sides.left(node)?;
        let right = match sides.right(&instance.right, node.ty(), &operands)? {
            Ok(right) => right,
            Err(reason) => return Ok(Err(reason)),
        };
        holds.push(sides.agree(&left, &right));
        let which = if order == 0 { String::new() } else { format!(" in order {order}") };
        for (name, side) in [("left", &left), ("right", &right)] {
            shown.push((format!("{name}{which}"), side.bits));
            if !side.traps.is_empty() {
                shown.push((
                    format!("{name} traps{which}"),
                    side.trapped(sides.definitions.terms()),
                ));
            }
        }
    }
    let holds = sides.definitions.terms().and(&holds);
    Ok(Ok(SolverGoal { given: sides.given, holds: Some(holds), shown, cases: Vec::new() }))
}

impl SideWriter<'_, '_> {
    /// Adds the condition of the guard. Masks are compared at 64 bits, like the pass compares them.
    fn guard(&mut self, guard: Guard) {
        let t = self.definitions.terms();
        let wide = |name: char| self.variables.get(&name).map(|(v, ty)| t.widened(*v, *ty));
        let x = self.variables.get(&'X').map(|(_, ty)| *ty);
        let without = |bits, mask| t.app("bvand", &[bits, t.app("bvnot", &[mask])]);
        // The bits that must be 0. A guard about a variable that the rule lacks never holds.
        let bits = match (guard, wide('X'), x) {
            (Guard::Always, ..) => return,
            (Guard::XIsBool, Some(x), _) => Some(without(x, t.constant(1, 64))),
            (Guard::CCoversX, Some(x), _) => wide('C').map(|c| without(x, c)),
            (Guard::CAboveX, _, Some(ty)) => {
                wide('C').map(|c| t.app("bvand", &[c, t.constant(ty.mask(), 64)]))
            }
            (Guard::XMissesD, Some(x), _) => wide('D').map(|d| t.app("bvand", &[x, d])),
            (Guard::XWithin(mask), Some(x), _) => Some(without(x, t.constant(mask, 64))),
            (Guard::CWithin(mask), ..) => wide('C').map(|c| without(c, t.constant(mask, 64))),
            (Guard::CCovers(bits), ..) => wide('C').map(|c| without(t.constant(bits, 64), c)),
            // Widths are powers of two.
            (Guard::XBelowD, Some(x), Some(ty)) => wide('D').map(|d| {
                let count = t.app("bvand", &[d, t.constant(u64::from(ty.bits()) - 1, 64)]);
                t.app("bvlshr", &[x, count])
            }),
            _ => None,
        };
        let fits = bits.map_or_else(|| t.atom("false"), |bits| t.equal(bits, t.constant(0, 64)));
        self.given.push(fits);
    }

    fn variable(&self, name: char) -> io::Result<SExpr> {
        let unbound = || io::Error::other(format!("{name} is bound by nothing"));
        self.variables.get(&name).map(|(v, _)| *v).ok_or_else(unbound)
    }

    fn fresh(&mut self, ty: Type) -> io::Result<SExpr> {
        self.fresh += 1;
        self.definitions.variable(&format!("fresh{}", self.fresh), ty)
    }

    /// The bits of a value. For a number, a new variable stands for the bits: they are unique,
    /// since NaN is canonical.
    fn bits(&mut self, value: SmtValue, ty: Type) -> io::Result<SExpr> {
        let number = match value {
            SmtValue::Bits(bits) => return Ok(bits),
            SmtValue::Number(number) => number,
        };
        let bits = self.fresh(ty)?;
        let stands = same_number(self.definitions, number, bits, ty);
        self.given.push(stands);
        Ok(bits)
    }

    /// The left side, and the bits of its operands. The recursion is as deep as the pattern, a few
    /// operations.
    fn left(&mut self, node: &TypedPattern) -> io::Result<(RuleSide, Vec<SExpr>)> {
        let leaf = |bits| Ok((RuleSide { bits, traps: BTreeMap::new() }, Vec::new()));
        match node {
            TypedPattern::Variable(name, _) => leaf(self.variable(*name)?),
            TypedPattern::Bits(bits, ty) => leaf(self.definitions.terms().of_type(*bits, *ty)),
            TypedPattern::NonZero(ty) => {
                let constant = self.fresh(*ty)?;
                let t = self.definitions.terms();
                self.given.push(t.not(t.equal(constant, t.of_type(0, *ty))));
                leaf(constant)
            }
            TypedPattern::Op(typing, _, nodes) => {
                let mut traps: BTreeMap<TrapKind, Vec<SExpr>> = BTreeMap::new();
                let mut operands = Vec::new();
                for node in nodes {
                    let (side, _) = self.left(node)?;
                    side.traps
                        .into_iter()
                        .for_each(|(kind, all)| traps.entry(kind).or_default().extend(all));
                    operands.push(side.bits);
                }
                let mut side = self.operation(typing, &operands)?;
                traps
                    .into_iter()
                    .for_each(|(kind, all)| side.traps.entry(kind).or_default().extend(all));
                Ok((side, operands))
            }
        }
    }

    fn operation(&mut self, typing: &Typing, operands: &[SExpr]) -> io::Result<RuleSide> {
        let Meaning { value, traps } = self.definitions.apply(typing, operands)?;
        let bits = self.bits(value, typing.result)?;
        Ok(RuleSide {
            bits,
            traps: traps.into_iter().map(|(kind, condition)| (kind, vec![condition])).collect(),
        })
    }

    fn right(
        &mut self,
        right: &Right,
        ty: Type,
        operands: &[SExpr],
    ) -> io::Result<Result<RuleSide, String>> {
        let bits = match right {
            Right::Variable(name) => self.variable(*name)?,
            Right::Operand(index) => operands[*index],
            Right::Bits(bits) => self.definitions.terms().of_type(*bits, ty),
            Right::Op(typing, names) => {
                let arguments =
                    names.iter().map(|n| self.variable(*n)).collect::<io::Result<Vec<_>>>()?;
                return self.operation(typing, &arguments).map(Ok);
            }
            Right::Made(constant) => self.constant(*constant, ty)?,
            Right::WithConstant(typing, constant) => {
                let constant = self.constant(*constant, typing.operands[1])?;
                let x = self.variable('X')?;
                return self.operation(typing, &[x, constant]).map(Ok);
            }
            Right::IllFormed(reason) => return Ok(Err(reason.clone())),
        };
        Ok(Ok(RuleSide { bits, traps: BTreeMap::new() }))
    }

    /// A constant of the right side. Where its computation traps, the pass does not apply the rule.
    fn constant(&mut self, constant: Const, ty: Type) -> io::Result<SExpr> {
        let (opcode, names) = match constant {
            Const::Bits(bits) => return Ok(self.definitions.terms().of_type(bits, ty)),
            Const::C => return self.variable('C'),
            Const::CthenD(opcode) => (opcode, ['C', 'D']),
            Const::DthenC(opcode) => (opcode, ['D', 'C']),
        };
        let arguments = [self.variable(names[0])?, self.variable(names[1])?];
        let typing = Typing { opcode, ty, operands: vec![ty, ty], result: ty };
        let side = self.operation(&typing, &arguments)?;
        let t = self.definitions.terms();
        self.given.extend(side.traps.values().flatten().map(|condition| t.not(*condition)));
        Ok(side.bits)
    }

    /// The condition that both sides trap alike, and agree in all cases without a trap.
    fn agree(&self, left: &RuleSide, right: &RuleSide) -> SExpr {
        let t = self.definitions.terms();
        let conditions = |side: &RuleSide, kind: &TrapKind| {
            t.or(side.traps.get(kind).map_or(&[], Vec::as_slice))
        };
        let kinds =
            left.traps.keys().chain(right.traps.keys().filter(|k| !left.traps.contains_key(k)));
        let mut all: Vec<SExpr> =
            kinds.map(|k| t.equal(conditions(left, k), conditions(right, k))).collect();
        let equal = t.equal(left.bits, right.bits);
        all.push(if left.traps.is_empty() { equal } else { t.or(&[left.trapped(t), equal]) });
        t.and(&all)
    }
}

/// The condition that the bits of a type represent a number.
pub(crate) fn same_number(
    definitions: &SmtDefinitions<'_>,
    number: SExpr,
    bits: SExpr,
    ty: Type,
) -> SExpr {
    let t = definitions.terms();
    let is_canonical = t.equal(bits, t.of_type(canonical_nan(ty), ty));
    t.ite(t.app("fp.isNaN", &[number]), is_canonical, t.equal(number, t.float(bits, ty)))
}
