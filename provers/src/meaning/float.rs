//! Floating-point operations, in the theory of IEEE 754 numbers.

use super::Meaning;
use crate::encoder::SmtTerms;
use easy_smt::SExpr;
use ir::{Opcode, TrapKind, Type};

/// The mask of the sign bit.
fn sign(ty: Type) -> u64 {
    ty.mask() / 2 + 1
}

pub(super) fn unary(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr) -> Meaning {
    let number = t.float(x, ty);
    let integral =
        |mode: &str| Meaning::number(t.app("fp.roundToIntegral", &[t.atom(mode), number]));
    match opcode {
        Opcode::Fabs => Meaning::bits(t.app("bvand", &[x, t.of_type(sign(ty) - 1, ty)])),
        Opcode::Fneg => Meaning::bits(t.app("bvxor", &[x, t.of_type(sign(ty), ty)])),
        Opcode::Fceil => integral("RTP"),
        Opcode::Ffloor => integral("RTN"),
        Opcode::Ftrunc => integral("RTZ"),
        Opcode::Fnearest => integral("RNE"),
        Opcode::Fsqrt => Meaning::number(t.app("fp.sqrt", &[t.atom("RNE"), number])),
        _ => panic!("{} is not a unary floating-point operation", opcode.name()),
    }
}

pub(super) fn binary(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr, y: SExpr) -> Meaning {
    let (a, b) = (t.float(x, ty), t.float(y, ty));
    let arithmetic = |operator: &str| Meaning::number(t.app(operator, &[t.atom("RNE"), a, b]));
    match opcode {
        Opcode::Fadd => arithmetic("fp.add"),
        Opcode::Fsub => arithmetic("fp.sub"),
        Opcode::Fmul => arithmetic("fp.mul"),
        Opcode::Fdiv => arithmetic("fp.div"),
        Opcode::Fmin => Meaning::number(extremum(t, "fp.lt", "fp.isNegative", a, b)),
        Opcode::Fmax => Meaning::number(extremum(t, "fp.gt", "fp.isPositive", a, b)),
        Opcode::Fcopysign => {
            let magnitude = t.app("bvand", &[x, t.of_type(sign(ty) - 1, ty)]);
            Meaning::bits(
                t.app("bvor", &[magnitude, t.app("bvand", &[y, t.of_type(sign(ty), ty)])]),
            )
        }
        _ => panic!("{} is not a binary floating-point operation", opcode.name()),
    }
}

/// The minimum or maximum: NaN if an operand is NaN; of two zeros, the zero with the `preferred`
/// sign. SMT-LIB's own minimum gives the other operand for a NaN, and does not determine the zero.
fn extremum(t: SmtTerms<'_>, before: &str, preferred: &str, a: SExpr, b: SExpr) -> SExpr {
    let is = |predicate: &str, x: SExpr| t.app(predicate, &[x]);
    let zeros = t.and(&[is("fp.isZero", a), is("fp.isZero", b)]);
    let of_numbers =
        t.ite(zeros, t.ite(is(preferred, a), a, b), t.ite(t.app(before, &[a, b]), a, b));
    t.ite(is("fp.isNaN", a), a, t.ite(is("fp.isNaN", b), b, of_numbers))
}

pub(super) fn comparison(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr, y: SExpr) -> SExpr {
    let (a, b) = (t.float(x, ty), t.float(y, ty));
    match opcode {
        Opcode::Feq => t.app("fp.eq", &[a, b]),
        Opcode::Fne => t.not(t.app("fp.eq", &[a, b])),
        Opcode::Flt => t.app("fp.lt", &[a, b]),
        Opcode::Fle => t.app("fp.leq", &[a, b]),
        Opcode::Fgt => t.app("fp.gt", &[a, b]),
        Opcode::Fge => t.app("fp.geq", &[a, b]),
        _ => panic!("{} is not a floating-point comparison", opcode.name()),
    }
}

pub(super) fn of_int(t: SmtTerms<'_>, opcode: Opcode, ty: Type, x: SExpr) -> SExpr {
    let operator = if opcode == Opcode::FloatFromUint { "to_fp_unsigned" } else { "to_fp" };
    t.rounded(operator, ty, x)
}

/// The bits of a power of two, or of its negative, in a float type.
fn power_of_two(exponent: u64, negative: bool, ty: Type) -> u64 {
    let bits = if ty == Type::F32 { (127 + exponent) << 23 } else { (1023 + exponent) << 52 };
    if negative { bits | sign(ty) } else { bits }
}

pub(super) fn to_int(t: SmtTerms<'_>, opcode: Opcode, ty: Type, source: Type, x: SExpr) -> Meaning {
    let signed = matches!(opcode, Opcode::SintFromFloat | Opcode::SintFromFloatSat);
    let number = t.float(x, source);
    let whole = t.app("fp.roundToIntegral", &[t.atom("RTZ"), number]);
    let width = u64::from(ty.bits());
    let bound = |exponent: u64, negative: bool| {
        t.float(t.of_type(power_of_two(exponent, negative, source), source), source)
    };
    // The least result, which floats represent exactly, and one past the greatest.
    let least = if signed { bound(width - 1, true) } else { t.float(t.of_type(0, source), source) };
    let past = if signed { bound(width - 1, false) } else { bound(width, false) };
    let is_nan = t.app("fp.isNaN", &[number]);
    let too_low = t.app("fp.lt", &[whole, least]);
    let too_high = t.app("fp.geq", &[whole, past]);
    let operator = if signed { "fp.to_sbv" } else { "fp.to_ubv" };
    let exact = t.indexed(operator, &[ty.bits()], &[t.atom("RTZ"), number]);
    if matches!(opcode, Opcode::SintFromFloat | Opcode::UintFromFloat) {
        let overflows = t.or(&[too_low, too_high]);
        let mut meaning = Meaning::bits(exact);
        meaning.traps =
            vec![(TrapKind::InvalidConversion, is_nan), (TrapKind::IntegerOverflow, overflows)];
        return meaning;
    }
    let (minimum, maximum) =
        if signed { (1 << (width - 1), ty.mask() >> 1) } else { (0, ty.mask()) };
    let constant = |bits: u64| t.of_type(bits, ty);
    let in_range = t.ite(too_low, constant(minimum), t.ite(too_high, constant(maximum), exact));
    Meaning::bits(t.ite(is_nan, constant(0), in_range))
}
