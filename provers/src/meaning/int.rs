//! Integer operations, in the theory of bit-vectors.

use super::Meaning;
use crate::encoder::SmtTerms;
use crate::typing::Typing;
use easy_smt::SExpr;
use ir::{Opcode, TrapKind, Type};

pub(super) fn unary(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr) -> SExpr {
    let width = ty.bits();
    let bit = |i: u32| t.extract(i, i, x);
    let is_set = |i: u32| t.equal(bit(i), t.atom("#b1"));
    let number = |n: u32| t.of_type(u64::from(n), ty);
    match opcode {
        // The fold nests inside out: the condition written last is tested first.
        Opcode::Clz => {
            (0..width).fold(number(width), |rest, i| t.ite(is_set(i), number(width - 1 - i), rest))
        }
        Opcode::Ctz => {
            (0..width).rev().fold(number(width), |rest, i| t.ite(is_set(i), number(i), rest))
        }
        Opcode::Popcnt => {
            let bits: Vec<SExpr> =
                (0..width).map(|i| t.indexed("zero_extend", &[width - 1], &[bit(i)])).collect();
            t.app("bvadd", &bits)
        }
        // `concat` takes the highest byte first.
        Opcode::Bswap => {
            let bytes: Vec<SExpr> =
                (0..width / 8).map(|i| t.extract(8 * i + 7, 8 * i, x)).collect();
            t.app("concat", &bytes)
        }
        Opcode::Sext8 => sign_extended(t, x, 8, width),
        Opcode::Sext16 => sign_extended(t, x, 16, width),
        Opcode::Sext32 => sign_extended(t, x, 32, width),
        _ => panic!("{} is not a unary integer operation", opcode.name()),
    }
}

/// The low `from` bits as a signed number of `to` bits.
fn sign_extended(t: SmtTerms<'_>, x: SExpr, from: u32, to: u32) -> SExpr {
    t.indexed("sign_extend", &[to - from], &[t.extract(from - 1, 0, x)])
}

pub(super) fn binary(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr, y: SExpr) -> Meaning {
    let width = u64::from(ty.bits());
    // Widths are powers of two, so the amount modulo the width is its low bits.
    let amount = || t.app("bvand", &[y, t.of_type(width - 1, ty)]);
    // In SMT-LIB, a shift by the whole width gives 0, as a rotation by 0 requires.
    let rest = || t.app("bvsub", &[t.of_type(width, ty), amount()]);
    let rotated = |to: &str, back: &str| {
        t.app("bvor", &[t.app(to, &[x, amount()]), t.app(back, &[x, rest()])])
    };
    let value = match opcode {
        Opcode::Add => t.app("bvadd", &[x, y]),
        Opcode::Sub => t.app("bvsub", &[x, y]),
        Opcode::Mul => t.app("bvmul", &[x, y]),
        Opcode::Sdiv => t.app("bvsdiv", &[x, y]),
        Opcode::Udiv => t.app("bvudiv", &[x, y]),
        Opcode::Srem => t.app("bvsrem", &[x, y]),
        Opcode::Urem => t.app("bvurem", &[x, y]),
        Opcode::And => t.app("bvand", &[x, y]),
        Opcode::Or => t.app("bvor", &[x, y]),
        Opcode::Xor => t.app("bvxor", &[x, y]),
        Opcode::Shl => t.app("bvshl", &[x, amount()]),
        Opcode::Sshr => t.app("bvashr", &[x, amount()]),
        Opcode::Ushr => t.app("bvlshr", &[x, amount()]),
        Opcode::Rotl => rotated("bvshl", "bvlshr"),
        Opcode::Rotr => rotated("bvlshr", "bvshl"),
        _ => panic!("{} is not a binary integer operation", opcode.name()),
    };
    let mut meaning = Meaning::bits(value);
    if matches!(opcode, Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem) {
        meaning.traps.push((TrapKind::DivisionByZero, t.equal(y, t.of_type(0, ty))));
    }
    if opcode == Opcode::Sdiv {
        let is_minimum = t.equal(x, t.of_type(1 << (width - 1), ty));
        let is_minus_one = t.equal(y, t.of_type(ty.mask(), ty));
        meaning.traps.push((TrapKind::IntegerOverflow, t.and(&[is_minimum, is_minus_one])));
    }
    meaning
}

pub(super) fn comparison(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr, y: SExpr) -> SExpr {
    let operator = match opcode {
        Opcode::Eq => "=",
        Opcode::Ne => "distinct",
        Opcode::Slt => "bvslt",
        Opcode::Sle => "bvsle",
        Opcode::Sgt => "bvsgt",
        Opcode::Sge => "bvsge",
        Opcode::Ult => "bvult",
        Opcode::Ule => "bvule",
        Opcode::Ugt => "bvugt",
        Opcode::Uge => "bvuge",
        Opcode::SaddOverflows => return overflows(t, "bvadd", ty, 1, [x, y]),
        Opcode::SsubOverflows => return overflows(t, "bvsub", ty, 1, [x, y]),
        Opcode::SmulOverflows => return overflows(t, "bvmul", ty, ty.bits(), [x, y]),
        _ => panic!("{} is not an integer comparison", opcode.name()),
    };
    t.app(operator, &[x, y])
}

/// Whether an operation on signed numbers gives another result in a type without these `more` bits,
/// which always suffice.
fn overflows(t: SmtTerms<'_>, operator: &str, ty: Type, more: u32, operands: [SExpr; 2]) -> SExpr {
    let (width, whole) = (ty.bits(), ty.bits() + more);
    let result = t.app(operator, &operands.map(|x| sign_extended(t, x, width, whole)));
    t.app("distinct", &[result, sign_extended(t, result, width, whole)])
}

pub(super) fn resized(t: SmtTerms<'_>, opcode: Opcode, typing: &Typing, x: SExpr) -> SExpr {
    let (from, to) = (typing.operands[0].bits(), typing.ty.bits());
    match opcode {
        Opcode::Sextend => sign_extended(t, x, from, to),
        Opcode::Uextend => t.indexed("zero_extend", &[to - from], &[x]),
        Opcode::Wrap => t.extract(to - 1, 0, x),
        _ => panic!("{} changes no width", opcode.name()),
    }
}

/// The result of a partial load from the contents, whose low `part` bits are loaded.
pub(super) fn loaded(
    t: SmtTerms<'_>,
    opcode: Opcode,
    ty: Type,
    part: u32,
    contents: SExpr,
) -> SExpr {
    match opcode {
        Opcode::Uload8 | Opcode::Uload16 | Opcode::Uload32 => {
            t.indexed("zero_extend", &[ty.bits() - part], &[t.extract(part - 1, 0, contents)])
        }
        Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => {
            sign_extended(t, contents, part, ty.bits())
        }
        _ => panic!("{} loads no part of a value", opcode.name()),
    }
}
