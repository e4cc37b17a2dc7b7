//! The algebraic rules, as data. This table is their only statement.
//!
//! Four clients use the table. The pass `simplify` rewrites by the rules, certificates of mappings
//! cite them, the checker matches them again, and SMT solvers prove them at every width. A rule
//! holds for all inputs of all its types. The test `every_rule_holds_for_all_inputs` evaluates both
//! sides with every 8-bit integer for `X` and for `Y`. Constants and wider types take edge cases.
//!
//! To add a rule, add a row to [`RULES`], the same row to `proof/theories/Rules.v` with a proof in
//! `Rows.v`, and its line to `proof/rules.txt`. The tests evaluate it and the solvers prove it
//! (`docs/testing.md`, Rules proved). `simplify` and `gvn` apply every row, and certificates cite
//! the first row that fits. All rows must therefore rewrite toward one normal form: no row undoes
//! another. Where two rows fit one operation, both lead to one class of values
//! (`a_rule_keeps_the_class` in `number`, which names the only known exception).
//!
//! A new kind of pattern, guard or result requires changes in every matcher: `instance`,
//! `number/src/{matcher,table}.rs`, `provers/src/{rewrite,typing}.rs` and
//! `proof/theories/{Rules,Matching,Instance}.v`.

pub mod declared;
mod instance;

pub use instance::{Bound, Terms};

use crate::opcode::{Opcode, Shape};
use crate::types::Type;

/// The pattern that an operand must match.
#[derive(Clone, Copy, Debug)]
pub enum Pat {
    /// Any value; every further occurrence must be the same value.
    X,
    /// As `X`, for a second variable.
    Y,
    /// The constant 0.
    Zero,
    /// The constant 1.
    One,
    /// The constant with all bits of its type set.
    Ones,
    /// Any constant but 0.
    NonZero,
    /// This constant.
    Bits(u64),
    /// Any constant.
    C,
    /// As `C`, for a second variable.
    D,
    /// The result of this operation on operands that match, in either order if the operation is
    /// commutative.
    Op(Opcode, &'static [Pat]),
}

/// The right side of a rule.
#[derive(Clone, Copy, Debug)]
pub enum Term {
    /// The value bound to `X`.
    X,
    /// The value bound to `Y`.
    Y,
    /// The operand with this index.
    Operand(usize),
    /// The constant 0.
    Zero,
    /// The constant 1.
    One,
    /// The constant with all bits set.
    Ones,
    /// A new operation on `X`, of the type of `X`.
    Unary(Opcode),
    /// A new operation on `X` and `Y`, of the type of `X`.
    Binary(Opcode),
    /// A new operation on `X` and a constant, of the type of `X`.
    WithConstant(Opcode, Const),
    /// A constant.
    Made(Const),
}

/// A constant computed from the matched constants, in the type of `X`.
#[derive(Clone, Copy, Debug)]
pub enum Const {
    /// These bits.
    Bits(u64),
    /// `C` itself.
    C,
    /// An operation on `C` and `D`, in this order.
    CthenD(Opcode),
    /// An operation on `D` and `C`, in this order.
    DthenC(Opcode),
}

/// A condition on the match besides the pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// No condition.
    Always,
    /// `X` is 0 or 1.
    XIsBool,
    /// Every bit that may be set in `X` is set in `C`.
    CCoversX,
    /// No bit of the type of `X` is set in `C`, whose type is wider.
    CAboveX,
    /// No bit that may be set in `X` is set in `D`.
    XMissesD,
    /// `X`, shifted right by `D` modulo its width, is 0.
    XBelowD,
    /// Every bit that may be set in `X` is set in this constant.
    XWithin(u64),
    /// Every bit of `C` is set in this constant.
    CWithin(u64),
    /// Every bit of this constant is set in `C`.
    CCovers(u64),
}

/// A rule: `opcode operands` becomes `result`. It applies only if the result has the type of the
/// instruction.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name, unique among the rules.
    pub name: &'static str,
    /// The operation on the left side.
    pub opcode: Opcode,
    /// The type of the instruction, if the rule holds for one type only.
    pub ty: Option<Type>,
    /// The patterns of the operands.
    pub operands: &'static [Pat],
    /// The condition on the match.
    pub guard: Guard,
    /// The right side.
    pub result: Term,
}

const fn rule(name: &'static str, opcode: Opcode, operands: &'static [Pat], result: Term) -> Rule {
    Rule { name, opcode, ty: None, operands, guard: Guard::Always, result }
}

const fn guarded(
    name: &'static str,
    opcode: Opcode,
    operands: &'static [Pat],
    guard: Guard,
    result: Term,
) -> Rule {
    Rule { name, opcode, ty: None, operands, guard, result }
}

const fn of_type(
    ty: Type,
    name: &'static str,
    opcode: Opcode,
    operands: &'static [Pat],
    result: Term,
) -> Rule {
    Rule { name, opcode, ty: Some(ty), operands, guard: Guard::Always, result }
}

use Opcode::*;
use Pat::{C, D, NonZero, One, Ones, Op, X, Y, Zero};

/// All rules. Clients apply the first row that fits.
///
/// Both sides of a rule are equal as total functions, and they *trap alike*: no rule brings an
/// operation that may trap into the class of one that does not. The checker relies on this when it
/// tests whether an instruction can trap. `provers` prove both for every rule and choice of types
/// (`docs/testing.md`, *Rules*).
pub const RULES: &[Rule] = &[
    // Neutral and absorbing operands.
    rule("add-zero", Add, &[X, Zero], Term::X),
    rule("sub-zero", Sub, &[X, Zero], Term::X),
    rule("mul-one", Mul, &[X, One], Term::X),
    rule("mul-zero", Mul, &[X, Zero], Term::Zero),
    rule("sdiv-one", Sdiv, &[X, One], Term::X),
    rule("udiv-one", Udiv, &[X, One], Term::X),
    rule("srem-one", Srem, &[X, One], Term::Zero),
    rule("urem-one", Urem, &[X, One], Term::Zero),
    rule("and-zero", And, &[X, Zero], Term::Zero),
    rule("and-ones", And, &[X, Ones], Term::X),
    rule("or-zero", Or, &[X, Zero], Term::X),
    rule("or-ones", Or, &[X, Ones], Term::Ones),
    rule("xor-zero", Xor, &[X, Zero], Term::X),
    rule("shl-zero", Shl, &[X, Zero], Term::X),
    rule("sshr-zero", Sshr, &[X, Zero], Term::X),
    rule("ushr-zero", Ushr, &[X, Zero], Term::X),
    rule("rotl-zero", Rotl, &[X, Zero], Term::X),
    rule("rotr-zero", Rotr, &[X, Zero], Term::X),
    // Equal operands.
    rule("sub-same", Sub, &[X, X], Term::Zero),
    rule("and-same", And, &[X, X], Term::X),
    rule("or-same", Or, &[X, X], Term::X),
    rule("xor-same", Xor, &[X, X], Term::Zero),
    rule("eq-same", Eq, &[X, X], Term::One),
    rule("ne-same", Ne, &[X, X], Term::Zero),
    rule("slt-same", Slt, &[X, X], Term::Zero),
    rule("sle-same", Sle, &[X, X], Term::One),
    rule("sgt-same", Sgt, &[X, X], Term::Zero),
    rule("sge-same", Sge, &[X, X], Term::One),
    rule("ult-same", Ult, &[X, X], Term::Zero),
    rule("ule-same", Ule, &[X, X], Term::One),
    rule("ugt-same", Ugt, &[X, X], Term::Zero),
    rule("uge-same", Uge, &[X, X], Term::One),
    // Arithmetic that cannot overflow. Products of extended operands fit, too, but the solvers do
    // not prove it in 10 s at 32 bits and more.
    rule("sadd-zero-fits", SaddOverflows, &[X, Zero], Term::Zero),
    rule("ssub-zero-fits", SsubOverflows, &[X, Zero], Term::Zero),
    rule("ssub-same-fits", SsubOverflows, &[X, X], Term::Zero),
    rule("smul-zero-fits", SmulOverflows, &[X, Zero], Term::Zero),
    rule("smul-one-fits", SmulOverflows, &[X, One], Term::Zero),
    rule("sadd-sextend-fits", SaddOverflows, &[Op(Sextend, &[X]), Op(Sextend, &[Y])], Term::Zero),
    rule("ssub-sextend-fits", SsubOverflows, &[Op(Sextend, &[X]), Op(Sextend, &[Y])], Term::Zero),
    // Selection.
    rule("select-same", Select, &[Y, X, X], Term::X),
    rule("select-first", Select, &[NonZero, X, Y], Term::X),
    rule("select-second", Select, &[Zero, X, Y], Term::Y),
    guarded("select-bool", Select, &[X, One, Zero], Guard::XIsBool, Term::X),
    // Inverse and repeated operations.
    rule("add-sub", Add, &[Op(Sub, &[X, Y]), Y], Term::X),
    rule("sub-add", Sub, &[Op(Add, &[X, Y]), Y], Term::X),
    rule("sub-add-other", Sub, &[Op(Add, &[Y, X]), Y], Term::X),
    rule("xor-xor-other", Xor, &[Op(Xor, &[Y, X]), Y], Term::X),
    rule("xor-xor", Xor, &[Op(Xor, &[X, Y]), Y], Term::X),
    rule("wrap-sextend", Wrap, &[Op(Sextend, &[X])], Term::X),
    rule("wrap-uextend", Wrap, &[Op(Uextend, &[X])], Term::X),
    rule("sext8-twice", Sext8, &[Op(Sext8, &[X])], Term::Operand(0)),
    rule("sext16-twice", Sext16, &[Op(Sext16, &[X])], Term::Operand(0)),
    rule("sext32-twice", Sext32, &[Op(Sext32, &[X])], Term::Operand(0)),
    rule("sext16-sext8", Sext16, &[Op(Sext8, &[X])], Term::Operand(0)),
    rule("sext8-sext16", Sext8, &[Op(Sext16, &[X])], Term::Unary(Sext8)),
    rule("sext8-sext32", Sext8, &[Op(Sext32, &[X])], Term::Unary(Sext8)),
    rule("sext16-sext32", Sext16, &[Op(Sext32, &[X])], Term::Unary(Sext16)),
    // Truth values, and masks that change nothing or leave nothing.
    guarded("and-none", And, &[X, D], Guard::XMissesD, Term::Zero),
    guarded("and-known", And, &[X, C], Guard::CCoversX, Term::X),
    guarded("bool-ne-zero", Ne, &[X, Zero], Guard::XIsBool, Term::X),
    guarded("bool-eq-one", Eq, &[X, One], Guard::XIsBool, Term::X),
    guarded("not-not-bool", Eqz, &[Op(Eqz, &[X])], Guard::XIsBool, Term::X),
    guarded("not-ne-one", Ne, &[X, One], Guard::XIsBool, Term::Unary(Eqz)),
    rule("eq-zero", Eq, &[X, Zero], Term::Unary(Eqz)),
    rule("not-ne-zero", Eqz, &[Op(Ne, &[X, Zero])], Term::Unary(Eqz)),
    rule("not-eq", Eqz, &[Op(Eq, &[X, Y])], Term::Binary(Ne)),
    rule("not-ne", Eqz, &[Op(Ne, &[X, Y])], Term::Binary(Eq)),
    rule("not-slt", Eqz, &[Op(Slt, &[X, Y])], Term::Binary(Sge)),
    rule("not-sle", Eqz, &[Op(Sle, &[X, Y])], Term::Binary(Sgt)),
    rule("not-sgt", Eqz, &[Op(Sgt, &[X, Y])], Term::Binary(Sle)),
    rule("not-sge", Eqz, &[Op(Sge, &[X, Y])], Term::Binary(Slt)),
    rule("not-ult", Eqz, &[Op(Ult, &[X, Y])], Term::Binary(Uge)),
    rule("not-ule", Eqz, &[Op(Ule, &[X, Y])], Term::Binary(Ugt)),
    rule("not-ugt", Eqz, &[Op(Ugt, &[X, Y])], Term::Binary(Ule)),
    rule("not-uge", Eqz, &[Op(Uge, &[X, Y])], Term::Binary(Ult)),
    // Two constants become one.
    rule("add-add", Add, &[Op(Add, &[X, C]), D], Term::WithConstant(Add, Const::CthenD(Add))),
    rule(
        "add-sub-constants",
        Add,
        &[Op(Sub, &[X, C]), D],
        Term::WithConstant(Add, Const::DthenC(Sub)),
    ),
    rule(
        "sub-add-constants",
        Sub,
        &[Op(Add, &[X, C]), D],
        Term::WithConstant(Add, Const::CthenD(Sub)),
    ),
    rule(
        "sub-sub-constants",
        Sub,
        &[Op(Sub, &[X, C]), D],
        Term::WithConstant(Sub, Const::CthenD(Add)),
    ),
    rule("mul-mul", Mul, &[Op(Mul, &[X, C]), D], Term::WithConstant(Mul, Const::CthenD(Mul))),
    rule("and-and", And, &[Op(And, &[X, C]), D], Term::WithConstant(And, Const::CthenD(And))),
    rule("or-or", Or, &[Op(Or, &[X, C]), D], Term::WithConstant(Or, Const::CthenD(Or))),
    rule(
        "xor-xor-constants",
        Xor,
        &[Op(Xor, &[X, C]), D],
        Term::WithConstant(Xor, Const::CthenD(Xor)),
    ),
    // Tags: an integer or an address, and a constant in bits that it leaves free.
    guarded("wrap-tagged", Wrap, &[Op(Or, &[Op(Uextend, &[X]), C])], Guard::CAboveX, Term::X),
    guarded(
        "and-tagged",
        And,
        &[Op(Or, &[X, C]), D],
        Guard::XMissesD,
        Term::Made(Const::CthenD(And)),
    ),
    guarded(
        "ushr-tagged",
        Ushr,
        &[Op(Or, &[X, C]), D],
        Guard::XBelowD,
        Term::Made(Const::CthenD(Ushr)),
    ),
    // Sign extensions written as shifts, and extensions whose high bits are not needed.
    of_type(
        Type::I32,
        "shifts-sext8",
        Sshr,
        &[Op(Shl, &[X, Pat::Bits(24)]), Pat::Bits(24)],
        Term::Unary(Sext8),
    ),
    of_type(
        Type::I32,
        "shifts-sext16",
        Sshr,
        &[Op(Shl, &[X, Pat::Bits(16)]), Pat::Bits(16)],
        Term::Unary(Sext16),
    ),
    of_type(
        Type::I64,
        "shifts-sext32",
        Sshr,
        &[Op(Shl, &[X, Pat::Bits(32)]), Pat::Bits(32)],
        Term::Unary(Sext32),
    ),
    // The mask of a sign extension, in full: `simplify` may merge masks before it sees the
    // extension (`a_rule_keeps_the_class`).
    guarded(
        "sext8-mask",
        And,
        &[Op(Sext8, &[X]), C],
        Guard::CWithin(0xff),
        Term::WithConstant(And, Const::C),
    ),
    guarded(
        "sext16-mask",
        And,
        &[Op(Sext16, &[X]), C],
        Guard::CWithin(0xffff),
        Term::WithConstant(And, Const::C),
    ),
    guarded(
        "sext32-mask",
        And,
        &[Op(Sext32, &[X]), C],
        Guard::CWithin(0xffff_ffff),
        Term::WithConstant(And, Const::C),
    ),
    guarded("mask-sext8", Sext8, &[Op(And, &[X, C])], Guard::CCovers(0xff), Term::Unary(Sext8)),
    guarded(
        "mask-sext16",
        Sext16,
        &[Op(And, &[X, C])],
        Guard::CCovers(0xffff),
        Term::Unary(Sext16),
    ),
    guarded(
        "mask-sext32",
        Sext32,
        &[Op(And, &[X, C])],
        Guard::CCovers(0xffff_ffff),
        Term::Unary(Sext32),
    ),
    guarded("sext8-none", Sext8, &[X], Guard::XWithin(!0xff), Term::Zero),
    guarded("sext16-none", Sext16, &[X], Guard::XWithin(!0xffff), Term::Zero),
    guarded("sext32-none", Sext32, &[X], Guard::XWithin(!0xffff_ffff), Term::Zero),
];

/// The bits that may be set in the result of an operation, given the bits that may be set in its
/// operands. The description is data, so that solvers can prove it for all masks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Every bit of the type.
    Any,
    /// These bits only.
    Bits(u64),
    /// The bits of the operand with this index.
    Of(usize),
    /// The bits that both operands with these indices have.
    Both(usize, usize),
    /// The bits that at least one of the operands with these indices has.
    Either(usize, usize),
    /// The bits of operand 0, shifted left by operand 1 modulo the width if operand 1 is a
    /// constant; else every bit.
    Left,
    /// As `Left`, shifted right.
    Right,
}

/// The bits that may be set in the result of an operation.
pub const fn reach(opcode: Opcode) -> Reach {
    match opcode {
        And => Reach::Both(0, 1),
        Or | Xor => Reach::Either(0, 1),
        Select => Reach::Either(1, 2),
        Uextend | Wrap => Reach::Of(0),
        Shl => Reach::Left,
        Ushr => Reach::Right,
        Uload8 => Reach::Bits(0xff),
        Uload16 => Reach::Bits(0xffff),
        Uload32 => Reach::Bits(0xffff_ffff),
        _ => match opcode.shape() {
            Shape::IntTest | Shape::IntCompare | Shape::FloatCompare => Reach::Bits(1),
            _ => Reach::Any,
        },
    }
}

/// A mask of the bits that may be set in the result of an operation, given the masks of its
/// operands. The guards of rules depend on it.
pub fn possible_bits(opcode: Opcode, ty: Type, result: Type, operands: &[Operand]) -> u64 {
    let of = |index: usize| operands.get(index).map_or(u64::MAX, |o| o.possible);
    let shift =
        || operands.get(1).and_then(|o| o.constant).map(|k| (k % u64::from(ty.bits())) as u32);
    let found = match reach(opcode) {
        Reach::Any => u64::MAX,
        Reach::Bits(bits) => bits,
        Reach::Of(index) => of(index),
        Reach::Both(first, second) => of(first) & of(second),
        Reach::Either(first, second) => of(first) | of(second),
        Reach::Left => shift().map_or(u64::MAX, |k| of(0) << k),
        Reach::Right => shift().map_or(u64::MAX, |k| of(0) >> k),
    };
    found & result.mask()
}

/// The facts known about an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// A mask of the bits that may be set.
    pub possible: u64,
    /// The bits, if the operand is a constant.
    pub constant: Option<u64>,
}
