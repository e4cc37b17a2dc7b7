//! The types at which operations and rules are well-formed.

use ir::eval::accepts;
use ir::rules::{Const, Pat, Rule, Term};
use ir::{Opcode, Shape, Type};

/// An operation with the types of its operands and its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Typing {
    /// The operation.
    pub opcode: Opcode,
    /// Its controlling type.
    pub ty: Type,
    /// The types of its operands. For a load, the type of the loaded contents, since claims about
    /// loads concern contents and not addresses.
    pub operands: Vec<Type>,
    /// The type of its result.
    pub result: Type,
}

/// All well-formed typings of an operation whose result depends on its operands, or on the loaded
/// contents. Empty for other operations.
pub fn typings(opcode: Opcode) -> Vec<Typing> {
    let count = match opcode.shape() {
        Shape::IntBinary | Shape::IntCompare | Shape::FloatBinary | Shape::FloatCompare => 2,
        Shape::RefCompare => 2,
        Shape::Select => 3,
        _ => 1,
    };
    let mut found = Vec::new();
    for ty in Type::ALL.into_iter().filter(|t| opcode.allows_type(*t)) {
        let Some(result) = opcode.result_type(ty) else { continue };
        if matches!(opcode.shape(), Shape::Load(_)) {
            found.push(Typing { opcode, ty, operands: vec![ty], result });
            continue;
        }
        for operands in tuples(count) {
            if accepts(opcode, ty, &operands) {
                found.push(Typing { opcode, ty, operands, result });
            }
        }
    }
    found
}

/// All lists of `count` types.
fn tuples(count: usize) -> Vec<Vec<Type>> {
    let mut lists = vec![Vec::new()];
    for _ in 0..count {
        lists = lists
            .into_iter()
            .flat_map(|l| Type::ALL.map(|t| [l.as_slice(), &[t]].concat()))
            .collect();
    }
    lists
}

/// The types of the bindings of a rule's variables.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VariableTypes {
    /// Of `X`.
    pub x: Option<Type>,
    /// Of `Y`.
    pub y: Option<Type>,
    /// Of `C`.
    pub c: Option<Type>,
    /// Of `D`.
    pub d: Option<Type>,
}

/// A pattern with types.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypedPattern {
    /// `X`, `Y`, `C` or `D`.
    Variable(char, Type),
    /// A constant with these bits.
    Bits(u64, Type),
    /// A constant other than 0.
    NonZero(Type),
    /// An operation, and whether its operands are in the opposite order of the pattern.
    Op(Typing, bool, Vec<TypedPattern>),
}

impl TypedPattern {
    /// The type of the values that match.
    pub fn ty(&self) -> Type {
        match self {
            TypedPattern::Variable(_, ty)
            | TypedPattern::Bits(_, ty)
            | TypedPattern::NonZero(ty) => *ty,
            TypedPattern::Op(typing, ..) => typing.result,
        }
    }
}

/// The right side of a rule, with types.
#[derive(Clone, Debug)]
pub enum Right {
    /// `X` or `Y`.
    Variable(char),
    /// The operand with this index.
    Operand(usize),
    /// A constant.
    Bits(u64),
    /// An operation on variables.
    Op(Typing, Vec<char>),
    /// An operation on `X` and a constant.
    WithConstant(Typing, Const),
    /// A constant.
    Made(Const),
    /// The rule would make code that the verifier rejects, for this reason.
    IllFormed(String),
}

/// A rule at one choice of types, for every order of the operands of commutative operations.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The rule.
    pub rule: Rule,
    /// The left sides, each a [`TypedPattern::Op`]: one for each order of operands.
    pub left: Vec<TypedPattern>,
    /// The types of the variables.
    pub variables: VariableTypes,
    /// The right side.
    pub right: Right,
}

/// Every choice of types at which the left side of a rule is well-formed and the pass applies the
/// rule. If the right side is an operand, both sides must have one type; otherwise the pass does
/// not apply the rule.
pub fn instances(rule: &Rule) -> Vec<Instance> {
    let mut found: Vec<Instance> = Vec::new();
    for typing in typings(rule.opcode).into_iter().filter(|t| rule.ty.is_none_or(|ty| ty == t.ty)) {
        for (left, variables) in operation(&typing, rule.operands, VariableTypes::default()) {
            let Some(right) = right(rule.result, typing.result, &left, variables) else { continue };
            // The orders of one choice of types are not adjacent in the list.
            let same =
                |i: &&mut Instance| i.variables == variables && types_agree(&i.left[0], &left);
            match found.iter_mut().find(same) {
                Some(instance) => instance.left.push(left),
                None => found.push(Instance { rule: *rule, left: vec![left], variables, right }),
            }
        }
    }
    found
}

/// Whether two left sides differ only in the order of operands.
fn types_agree(a: &TypedPattern, b: &TypedPattern) -> bool {
    match (a, b) {
        (TypedPattern::Op(ta, sa, na), TypedPattern::Op(tb, sb, nb)) => {
            let count = na.len();
            let at = |swapped: bool, i: usize| if swapped { count - 1 - i } else { i };
            ta == tb && (0..count).all(|i| types_agree(&na[at(*sa, i)], &nb[at(*sb, i)]))
        }
        _ => a == b,
    }
}

/// All ways to assign types to the operands of an operation of a pattern.
fn operation(
    typing: &Typing,
    pats: &[Pat],
    known: VariableTypes,
) -> Vec<(TypedPattern, VariableTypes)> {
    let orders: &[bool] = if typing.opcode.is_commutative() { &[false, true] } else { &[false] };
    let mut found = Vec::new();
    for &swapped in orders {
        let mut pats = pats.to_vec();
        if swapped {
            pats.reverse();
        }
        let mut partial = vec![(Vec::new(), known)];
        for (index, pat) in pats.iter().enumerate() {
            let ty = typing.operands[index];
            partial =
                partial.iter().flat_map(|(nodes, known)| extend(nodes, *pat, ty, *known)).collect();
        }
        found.extend(
            partial
                .into_iter()
                .map(|(nodes, known)| (TypedPattern::Op(typing.clone(), swapped, nodes), known)),
        );
    }
    found
}

/// All ways to match one more operand of a type.
fn extend(
    nodes: &[TypedPattern],
    pat: Pat,
    ty: Type,
    known: VariableTypes,
) -> Vec<(Vec<TypedPattern>, VariableTypes)> {
    let with = |(node, known): (TypedPattern, VariableTypes)| ([nodes, &[node]].concat(), known);
    operand(pat, ty, known).into_iter().map(with).collect()
}

/// All ways in which a pattern matches an operand of a type. A constant has no bit outside the
/// type, since the verifier rejects others.
fn operand(pat: Pat, ty: Type, mut known: VariableTypes) -> Vec<(TypedPattern, VariableTypes)> {
    let node = match pat {
        Pat::X | Pat::Y | Pat::C | Pat::D => {
            let (name, slot) = match pat {
                Pat::X => ('X', &mut known.x),
                Pat::Y => ('Y', &mut known.y),
                Pat::C => ('C', &mut known.c),
                _ => ('D', &mut known.d),
            };
            if *slot.get_or_insert(ty) != ty {
                return Vec::new();
            }
            TypedPattern::Variable(name, ty)
        }
        Pat::Zero => TypedPattern::Bits(0, ty),
        Pat::One => TypedPattern::Bits(1, ty),
        Pat::Ones => TypedPattern::Bits(ty.mask(), ty),
        Pat::Bits(bits) if bits & !ty.mask() != 0 => return Vec::new(),
        Pat::Bits(bits) => TypedPattern::Bits(bits, ty),
        Pat::NonZero => TypedPattern::NonZero(ty),
        Pat::Op(opcode, pats) => {
            let fits = typings(opcode).into_iter().filter(|t| t.result == ty);
            return fits.flat_map(|t| operation(&t, pats, known)).collect();
        }
    };
    vec![(node, known)]
}

/// The right side; `None` if the pass does not apply the rule.
fn right(term: Term, result: Type, left: &TypedPattern, variables: VariableTypes) -> Option<Right> {
    let TypedPattern::Op(_, _, operands) = left else { return None };
    let of_type = |ty: Option<Type>, right: Right| (ty == Some(result)).then_some(right);
    let (opcode, names) = match term {
        Term::X => return of_type(variables.x, Right::Variable('X')),
        Term::Y => return of_type(variables.y, Right::Variable('Y')),
        Term::Operand(index) => {
            return of_type(operands.get(index).map(TypedPattern::ty), Right::Operand(index));
        }
        Term::Zero => return Some(Right::Bits(0)),
        Term::One => return Some(Right::Bits(1)),
        Term::Ones => return Some(Right::Bits(result.mask())),
        Term::Unary(opcode) => (opcode, vec!['X']),
        Term::Binary(opcode) => (opcode, vec!['X', 'Y']),
        Term::WithConstant(opcode, constant) => {
            return Some(with_constant(opcode, constant, result, variables));
        }
        Term::Made(constant) if constant_fits(constant, result, variables) => {
            return of_type(variables.x, Right::Made(constant));
        }
        Term::Made(_) => {
            return Some(Right::IllFormed(format!("the constant does not fit {result}")));
        }
    };
    let types: Option<Vec<Type>> =
        [variables.x, variables.y].into_iter().take(names.len()).collect();
    Some(match types.and_then(|types| made(opcode, &types, result)) {
        Some(typing) => Right::Op(typing, names),
        None => {
            Right::IllFormed(format!("{} does not make {result} of these operands", opcode.name()))
        }
    })
}

fn with_constant(opcode: Opcode, constant: Const, result: Type, variables: VariableTypes) -> Right {
    let Some(x) = variables.x else { return Right::IllFormed("X is bound by nothing".to_owned()) };
    match made(opcode, &[x, x], result) {
        Some(typing) if constant_fits(constant, x, variables) => {
            Right::WithConstant(typing, constant)
        }
        Some(_) => Right::IllFormed(format!("the constant does not fit {x}")),
        None => Right::IllFormed(format!("{} does not make {result} of two {x}", opcode.name())),
    }
}

/// Whether a constant of the right side has this type.
fn constant_fits(constant: Const, ty: Type, variables: VariableTypes) -> bool {
    match constant {
        Const::Bits(bits) => bits & !ty.mask() == 0,
        Const::C => variables.c == Some(ty),
        Const::CthenD(op) | Const::DthenC(op) => {
            variables.c == Some(ty) && variables.d == Some(ty) && made(op, &[ty, ty], ty).is_some()
        }
    }
}

/// The typing of a new operation, whose controlling type is the type of `X`, its first operand.
fn made(opcode: Opcode, operands: &[Type], result: Type) -> Option<Typing> {
    let ty = operands[0];
    typings(opcode).into_iter().find(|t| t.ty == ty && t.operands == operands && t.result == result)
}
