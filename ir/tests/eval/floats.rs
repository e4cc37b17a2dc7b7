//! Float operations against hand-chosen cases and computations in a wider format.

use super::integers::opcodes;
use ir::eval::{canonical_nan, eval};
use ir::{Opcode, Shape, Type};

pub(super) fn f32s() -> Vec<f32> {
    let mut values =
        vec![0.0, 1.0, 0.5, 1.5, 2.5, 3.5, 1.25, 0.1, 3.0, 1e10, 1e-10, 8_388_607.5, 8_388_609.0];
    values.extend([
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x7f_ffff),
        f32::MAX,
        f32::INFINITY,
    ]);
    values.extend([16_777_216.0, 16_777_217.0, 2_147_483_648.0, 1.0 + f32::EPSILON, 0.49999997]);
    values.iter().flat_map(|v| [*v, -*v]).collect()
}

pub(super) fn f64s() -> Vec<f64> {
    let mut values: Vec<f64> = f32s().into_iter().map(f64::from).collect();
    let more = [
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        4_503_599_627_370_495.5,
        9_007_199_254_740_993.0,
    ];
    values.extend(more.iter().flat_map(|v| [*v, -*v]));
    values
}

fn single(op: Opcode, args: &[f32]) -> u64 {
    let bits: Vec<u64> = args.iter().map(|x| u64::from(x.to_bits())).collect();
    eval(op, Type::F32, Type::F32, &bits).expect("float arithmetic does not trap")
}

fn double(op: Opcode, args: &[f64]) -> u64 {
    let bits: Vec<u64> = args.iter().map(|x| x.to_bits()).collect();
    eval(op, Type::F64, Type::F64, &bits).expect("float arithmetic does not trap")
}

/// The bits of a float that arithmetic computed, with NaN made canonical.
fn canonical32(x: f32) -> u64 {
    if x.is_nan() { 0x7fc0_0000 } else { u64::from(x.to_bits()) }
}

fn canonical64(x: f64) -> u64 {
    if x.is_nan() { 0x7ff8_0000_0000_0000 } else { x.to_bits() }
}

/// The four basic operations and the square root of `f32` equal the same operations of `f64`,
/// rounded once more. With 53 bits, double rounding equals single rounding (Figueroa 1995).
#[test]
fn f32_arithmetic_is_rounded_f64_arithmetic() {
    for x in f32s() {
        assert_eq!(
            single(Opcode::Fsqrt, &[x]),
            canonical32(f64::from(x).sqrt() as f32),
            "fsqrt {x}"
        );
        for y in f32s() {
            let (wx, wy) = (f64::from(x), f64::from(y));
            assert_eq!(single(Opcode::Fadd, &[x, y]), canonical32((wx + wy) as f32), "{x} + {y}");
            assert_eq!(single(Opcode::Fsub, &[x, y]), canonical32((wx - wy) as f32), "{x} - {y}");
            assert_eq!(single(Opcode::Fmul, &[x, y]), canonical32((wx * wy) as f32), "{x} * {y}");
            assert_eq!(single(Opcode::Fdiv, &[x, y]), canonical32((wx / wy) as f32), "{x} / {y}");
        }
    }
}

#[test]
fn f64_arithmetic_by_hand() {
    assert_eq!(double(Opcode::Fadd, &[0.1, 0.2]), 0x3fd3_3333_3333_3334);
    assert_eq!(double(Opcode::Fsub, &[0.3, 0.1]), 0x3fc9_9999_9999_9999);
    assert_eq!(double(Opcode::Fmul, &[0.1, 0.1]), 0x3f84_7ae1_47ae_147c);
    assert_eq!(double(Opcode::Fdiv, &[1.0, 3.0]), 0x3fd5_5555_5555_5555);
    assert_eq!(double(Opcode::Fdiv, &[-1.0, 0.0]), 0xfff0_0000_0000_0000);
    assert_eq!(double(Opcode::Fsqrt, &[2.0]), 0x3ff6_a09e_667f_3bcd);
    assert_eq!(double(Opcode::Fsqrt, &[-0.0]), 1 << 63);
    assert_eq!(double(Opcode::Fadd, &[-0.0, 0.0]), 0);
    assert_eq!(double(Opcode::Fadd, &[f64::INFINITY, f64::NEG_INFINITY]), canonical_nan(Type::F64));
}

#[test]
fn minimum_and_maximum() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let cases = [
        (0.0, -0.0, -0.0, 0.0),
        (-0.0, 0.0, -0.0, 0.0),
        (-0.0, -0.0, -0.0, -0.0),
        (0.0, 0.0, 0.0, 0.0),
        (1.0, 2.0, 1.0, 2.0),
        (2.0, 1.0, 1.0, 2.0),
        (-1.0, 1.0, -1.0, 1.0),
        (3.0, 3.0, 3.0, 3.0),
        (-inf, inf, -inf, inf),
        (nan, 1.0, nan, nan),
        (1.0, nan, nan, nan),
        (inf, nan, nan, nan),
    ];
    for (x, y, least, greatest) in cases {
        assert_eq!(double(Opcode::Fmin, &[x, y]), canonical64(least), "fmin {x} {y}");
        assert_eq!(double(Opcode::Fmax, &[x, y]), canonical64(greatest), "fmax {x} {y}");
        let (x, y) = (x as f32, y as f32);
        assert_eq!(single(Opcode::Fmin, &[x, y]), canonical32(least as f32), "fmin {x} {y}");
        assert_eq!(single(Opcode::Fmax, &[x, y]), canonical32(greatest as f32), "fmax {x} {y}");
    }
}

/// Rounding to integers. The columns are operand, ceil, floor, trunc, nearest.
#[test]
fn rounding_to_integers() {
    let cases = [
        (0.5, 1.0, 0.0, 0.0, 0.0),
        (1.5, 2.0, 1.0, 1.0, 2.0),
        (2.5, 3.0, 2.0, 2.0, 2.0),
        (3.5, 4.0, 3.0, 3.0, 4.0),
        (-0.5, -0.0, -1.0, -0.0, -0.0),
        (-1.5, -1.0, -2.0, -1.0, -2.0),
        (-2.5, -2.0, -3.0, -2.0, -2.0),
        (0.25, 1.0, 0.0, 0.0, 0.0),
        (-0.75, -0.0, -1.0, -0.0, -1.0),
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (-0.0, -0.0, -0.0, -0.0, -0.0),
        (8_388_607.5, 8_388_608.0, 8_388_607.0, 8_388_607.0, 8_388_608.0),
        (8_388_609.0, 8_388_609.0, 8_388_609.0, 8_388_609.0, 8_388_609.0),
        (f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY),
        (f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN),
    ];
    for (x, ceil, floor, trunc, nearest) in cases {
        let expected = [
            (Opcode::Fceil, ceil),
            (Opcode::Ffloor, floor),
            (Opcode::Ftrunc, trunc),
            (Opcode::Fnearest, nearest),
        ];
        for (op, result) in expected {
            assert_eq!(double(op, &[x]), canonical64(result), "{}.f64 {x}", op.name());
            assert_eq!(
                single(op, &[x as f32]),
                canonical32(result as f32),
                "{}.f32 {x}",
                op.name()
            );
        }
    }
    // The largest `f32` and `f64` below one half. An implementation that adds one half and takes
    // the floor would round them up.
    assert_eq!(single(Opcode::Fnearest, &[0.499_999_97]), 0);
    assert_eq!(double(Opcode::Fnearest, &[0.499_999_999_999_999_94]), 0);
    assert_eq!(
        double(Opcode::Fnearest, &[4_503_599_627_370_495.5]),
        4_503_599_627_370_496f64.to_bits()
    );
}

#[test]
fn comparisons_of_floats() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    // The columns are the operands, and whether they are equal, less, greater.
    let cases = [
        (0.0, -0.0, true, false, false),
        (1.0, 2.0, false, true, false),
        (2.0, 1.0, false, false, true),
        (-inf, inf, false, true, false),
        (inf, inf, true, false, false),
        (nan, nan, false, false, false),
        (nan, 1.0, false, false, false),
        (1.0, nan, false, false, false),
    ];
    for (x, y, equal, less, greater) in cases {
        let expected = [
            (Opcode::Feq, equal),
            (Opcode::Fne, !equal),
            (Opcode::Flt, less),
            (Opcode::Fle, less || equal),
            (Opcode::Fgt, greater),
            (Opcode::Fge, greater || equal),
        ];
        for (op, result) in expected {
            assert_eq!(double(op, &[x, y]), u64::from(result), "{} {x} {y}", op.name());
            assert_eq!(
                single(op, &[x as f32, y as f32]),
                u64::from(result),
                "{} {x} {y}",
                op.name()
            );
        }
    }
}

/// NaNs of every kind: quiet and signaling, both signs, with payloads.
pub(super) fn nans(ty: Type) -> Vec<u64> {
    match ty {
        Type::F32 => {
            vec![0x7fc0_0000, 0xffc0_0000, 0x7fc0_1234, 0xff80_0001, 0x7fbf_ffff, 0xffff_ffff]
        }
        _ => vec![
            0x7ff8 << 48,
            0xfff8 << 48,
            (0x7ff8 << 48) | 0x1234,
            (0xfff0 << 48) | 1,
            (0x7ff4 << 48),
            u64::MAX,
        ],
    }
}

#[test]
fn arithmetic_gives_the_canonical_nan() {
    for ty in [Type::F32, Type::F64] {
        let (canonical, one) =
            (Ok(canonical_nan(ty)), if ty == Type::F32 { 0x3f80_0000 } else { 0x3ff0 << 48 });
        for nan in nans(ty) {
            for op in
                opcodes(Shape::FloatUnary).filter(|op| !matches!(op, Opcode::Fabs | Opcode::Fneg))
            {
                assert_eq!(eval(op, ty, ty, &[nan]), canonical, "{}.{ty} {nan:#x}", op.name());
            }
            for op in opcodes(Shape::FloatBinary).filter(|op| *op != Opcode::Fcopysign) {
                assert_eq!(eval(op, ty, ty, &[nan, one]), canonical, "{}.{ty} {nan:#x}", op.name());
                assert_eq!(eval(op, ty, ty, &[one, nan]), canonical, "{}.{ty} {nan:#x}", op.name());
            }
        }
    }
    for nan in nans(Type::F32) {
        assert_eq!(
            eval(Opcode::Fpromote, Type::F64, Type::F32, &[nan]),
            Ok(canonical_nan(Type::F64))
        );
    }
    for nan in nans(Type::F64) {
        assert_eq!(
            eval(Opcode::Fdemote, Type::F32, Type::F64, &[nan]),
            Ok(canonical_nan(Type::F32))
        );
    }
}

#[test]
fn moves_keep_nan_payloads() {
    for ty in [Type::F32, Type::F64] {
        let sign = 1u64 << (ty.bits() - 1);
        let int = if ty == Type::F32 { Type::I32 } else { Type::I64 };
        for nan in nans(ty) {
            assert_eq!(eval(Opcode::Fneg, ty, ty, &[nan]), Ok(nan ^ sign));
            assert_eq!(eval(Opcode::Fabs, ty, ty, &[nan]), Ok(nan & !sign));
            assert_eq!(eval(Opcode::Fcopysign, ty, ty, &[nan, sign]), Ok(nan | sign));
            assert_eq!(eval(Opcode::Fcopysign, ty, ty, &[nan, 0]), Ok(nan & !sign));
            assert_eq!(eval(Opcode::Bitcast, int, ty, &[nan]), Ok(nan));
            assert_eq!(eval(Opcode::Bitcast, ty, int, &[nan]), Ok(nan));
            assert_eq!(eval(Opcode::Select, ty, Type::I32, &[1, nan, 0]), Ok(nan));
            assert_eq!(eval(Opcode::Select, ty, Type::I32, &[0, 0, nan]), Ok(nan));
        }
    }
}
