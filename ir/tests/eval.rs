//! Operations on values, compared with independent definitions. Integer operations are compared
//! with arithmetic on `i128`, exhaustively at 8 bits. Float operations are compared with
//! hand-chosen cases, with computations in a wider format, and with exact integers.

use osier_ir as ir;

use ir::eval::{canonical_nan, eval, is_evaluated};
use ir::{Opcode, Shape, TrapKind, Type};

const INTS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];

/// The unsigned and the signed number that the bits represent.
fn numbers(ty: Type, bits: u64) -> (i128, i128) {
    let unsigned = i128::from(bits);
    let limit = 1i128 << (ty.bits() - 1);
    (unsigned, if unsigned >= limit { unsigned - 2 * limit } else { unsigned })
}

/// The bits of a number modulo the width.
fn reduce(ty: Type, number: i128) -> u64 {
    number.rem_euclid(1i128 << ty.bits()) as u64
}

fn bit(x: u64, index: u32) -> bool {
    x >> index & 1 == 1
}

/// Binary integer operations, by their mathematical definition.
fn int_binary(opcode: Opcode, ty: Type, x: u64, y: u64) -> Result<u64, TrapKind> {
    let ((ux, sx), (uy, sy)) = (numbers(ty, x), numbers(ty, y));
    let bits = ty.bits();
    let amount = (uy % i128::from(bits)) as u32;
    let bitwise = |f: fn(bool, bool) -> bool| {
        (0..bits).filter(|i| f(bit(x, *i), bit(y, *i))).map(|i| 1u64 << i).sum()
    };
    let rotated =
        |left: u32| (0..bits).filter(|i| bit(x, *i)).map(|i| 1u64 << ((i + left) % bits)).sum();
    if matches!(opcode, Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem) && y == 0 {
        return Err(TrapKind::DivisionByZero);
    }
    Ok(match opcode {
        Opcode::Add => reduce(ty, ux + uy),
        Opcode::Sub => reduce(ty, ux - uy),
        Opcode::Mul => reduce(ty, sx * sy),
        Opcode::Sdiv if sx / sy == 1i128 << (bits - 1) => return Err(TrapKind::IntegerOverflow),
        Opcode::Sdiv => reduce(ty, sx / sy),
        Opcode::Udiv => reduce(ty, ux / uy),
        Opcode::Srem => reduce(ty, sx - sx / sy * sy),
        Opcode::Urem => reduce(ty, ux - ux / uy * uy),
        Opcode::And => bitwise(|a, b| a && b),
        Opcode::Or => bitwise(|a, b| a || b),
        Opcode::Xor => bitwise(|a, b| a != b),
        Opcode::Shl => reduce(ty, ux << amount),
        Opcode::Sshr => reduce(ty, sx.div_euclid(1i128 << amount)),
        Opcode::Ushr => reduce(ty, ux.div_euclid(1i128 << amount)),
        Opcode::Rotl => rotated(amount),
        Opcode::Rotr => rotated(bits - amount),
        _ => panic!("{} has no definition here", opcode.name()),
    })
}

fn int_compare(opcode: Opcode, ty: Type, x: u64, y: u64) -> u64 {
    let ((ux, sx), (uy, sy)) = (numbers(ty, x), numbers(ty, y));
    let (difference, signed) = (ux - uy, sx - sy);
    u64::from(match opcode {
        Opcode::Eq => difference == 0,
        Opcode::Ne => difference != 0,
        Opcode::Slt => signed < 0,
        Opcode::Sle => signed <= 0,
        Opcode::Sgt => signed > 0,
        Opcode::Sge => signed >= 0,
        Opcode::Ult => difference < 0,
        Opcode::Ule => difference <= 0,
        Opcode::Ugt => difference > 0,
        Opcode::Uge => difference >= 0,
        _ => panic!("{} has no definition here", opcode.name()),
    })
}

fn int_unary(opcode: Opcode, ty: Type, x: u64) -> u64 {
    let bits = ty.bits();
    let extended = |narrow: u32| {
        let low = i128::from(x) % (1i128 << narrow);
        reduce(ty, if bit(x, narrow - 1) { low - (1i128 << narrow) } else { low })
    };
    match opcode {
        Opcode::Clz => (0..bits).rev().take_while(|i| !bit(x, *i)).count() as u64,
        Opcode::Ctz => (0..bits).take_while(|i| !bit(x, *i)).count() as u64,
        Opcode::Popcnt => (0..bits).filter(|i| bit(x, *i)).count() as u64,
        Opcode::Sext8 => extended(8),
        Opcode::Sext16 => extended(16),
        Opcode::Sext32 => extended(32),
        _ => panic!("{} has no definition here", opcode.name()),
    }
}

/// Operands at which integer operations of some width change their behavior, and some operands
/// between them.
fn interesting(ty: Type) -> Vec<u64> {
    let mut values: Vec<u64> = (0..=10).collect();
    for shift in 1..ty.bits() {
        let power = 1u64 << shift;
        values.extend([
            power - 1,
            power,
            power + 1,
            power.wrapping_neg(),
            !power,
            power | power >> 3,
        ]);
    }
    values.extend([
        u64::MAX,
        u64::MAX - 1,
        0x0123_4567_89ab_cdef,
        0xfedc_ba98_7654_3210,
        0x5555_5555_5555_5555,
    ]);
    values.iter_mut().for_each(|v| *v &= ty.mask());
    values.sort_unstable();
    values.dedup();
    values
}

fn opcodes(shape: Shape) -> impl Iterator<Item = Opcode> {
    Opcode::ALL.iter().copied().filter(move |op| op.shape() == shape)
}

fn check_integers(ty: Type, values: &[u64]) {
    for &x in values {
        assert_eq!(eval(Opcode::Eqz, ty, ty, &[x]), Ok(u64::from(x == 0)), "eqz.{ty} {x:#x}");
        for op in opcodes(Shape::IntUnary).filter(|op| op.allows_type(ty)) {
            assert_eq!(
                eval(op, ty, ty, &[x]),
                Ok(int_unary(op, ty, x)),
                "{}.{ty} {x:#x}",
                op.name()
            );
        }
        for &y in values {
            for op in opcodes(Shape::IntBinary) {
                let expected = int_binary(op, ty, x, y);
                assert_eq!(eval(op, ty, ty, &[x, y]), expected, "{}.{ty} {x:#x} {y:#x}", op.name());
            }
            for op in opcodes(Shape::IntCompare) {
                let expected = int_compare(op, ty, x, y);
                assert_eq!(
                    eval(op, ty, ty, &[x, y]),
                    Ok(expected),
                    "{}.{ty} {x:#x} {y:#x}",
                    op.name()
                );
            }
        }
    }
}

#[test]
fn every_operation_on_all_8_bit_integers() {
    check_integers(Type::I8, &(0..=255).collect::<Vec<u64>>());
}

#[test]
fn operations_on_wider_integers_at_their_edges() {
    for ty in [Type::I16, Type::I32, Type::I64] {
        check_integers(ty, &interesting(ty));
    }
}

#[test]
fn division_traps_by_name() {
    let min = 0x8000_0000;
    let minus_one = 0xffff_ffff;
    assert_eq!(
        eval(Opcode::Sdiv, Type::I32, Type::I32, &[min, minus_one]),
        Err(TrapKind::IntegerOverflow)
    );
    assert_eq!(eval(Opcode::Srem, Type::I32, Type::I32, &[min, minus_one]), Ok(0));
    assert_eq!(eval(Opcode::Srem, Type::I64, Type::I64, &[1 << 63, u64::MAX]), Ok(0));
    assert_eq!(
        eval(Opcode::Sdiv, Type::I64, Type::I64, &[1 << 63, u64::MAX]),
        Err(TrapKind::IntegerOverflow)
    );
    for op in [Opcode::Sdiv, Opcode::Udiv, Opcode::Srem, Opcode::Urem] {
        for ty in INTS {
            assert_eq!(eval(op, ty, ty, &[1, 0]), Err(TrapKind::DivisionByZero));
        }
    }
}

#[test]
fn shifts_take_the_amount_modulo_the_width() {
    assert_eq!(eval(Opcode::Shl, Type::I32, Type::I32, &[1, 33]), Ok(2));
    assert_eq!(eval(Opcode::Ushr, Type::I64, Type::I64, &[8, 65]), Ok(4));
    assert_eq!(eval(Opcode::Sshr, Type::I8, Type::I8, &[0x80, 0xff]), Ok(0xff));
    assert_eq!(eval(Opcode::Rotl, Type::I16, Type::I16, &[0x8001, 16]), Ok(0x8001));
    assert_eq!(eval(Opcode::Rotr, Type::I32, Type::I32, &[1, 1]), Ok(0x8000_0000));
}

#[test]
fn extensions_and_wraps() {
    for source in INTS {
        for ty in INTS {
            for x in interesting(source) {
                let (unsigned, signed) = numbers(source, x);
                if ty.bits() > source.bits() {
                    assert_eq!(eval(Opcode::Sextend, ty, source, &[x]), Ok(reduce(ty, signed)));
                    assert_eq!(eval(Opcode::Uextend, ty, source, &[x]), Ok(reduce(ty, unsigned)));
                } else if ty.bits() < source.bits() {
                    assert_eq!(eval(Opcode::Wrap, ty, source, &[x]), Ok(reduce(ty, unsigned)));
                }
            }
        }
    }
}

/// Bits outside the type, which a poisoned operand has, never change a result and never cause a
/// panic.
#[test]
fn garbage_above_the_type_is_ignored() {
    let garbage = 0xdead_beef_0000_0000u64;
    for op in Opcode::ALL.iter().copied().filter(|op| is_evaluated(*op)) {
        for (ty, source) in type_pairs(op) {
            let dirty = |x: u64| x | (garbage & !source.mask());
            for x in [0, 1, 0x7f, 0x80, source.mask()] {
                let (clean, dirtied) = ([x, 3, 5], [dirty(x), dirty(3), dirty(5)]);
                assert_eq!(
                    eval(op, ty, source, &clean),
                    eval(op, ty, source, &dirtied),
                    "{}.{ty}",
                    op.name()
                );
            }
        }
    }
}

/// The controlling types of an operation, each with the possible types of its operand 0.
fn type_pairs(op: Opcode) -> Vec<(Type, Type)> {
    let mut pairs = Vec::new();
    for ty in Type::ALL.into_iter().filter(|ty| op.allows_type(*ty)) {
        for source in Type::ALL {
            let fits = match op.shape() {
                Shape::Extend => source.is_int() && source.bits() < ty.bits(),
                Shape::Wrap => source.is_int() && source.bits() > ty.bits(),
                Shape::IntToFloat => matches!(source, Type::I32 | Type::I64),
                Shape::FloatToInt => source.is_float(),
                Shape::Promote => source == Type::F32,
                Shape::Demote => source == Type::F64,
                Shape::Bitcast => {
                    source.bits() == ty.bits() && !source.is_ref() && source.is_int() != ty.is_int()
                }
                _ => source == ty,
            };
            if fits {
                pairs.push((ty, source));
            }
        }
    }
    pairs
}

fn f32s() -> Vec<f32> {
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

fn f64s() -> Vec<f64> {
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

/// The four basic operations and the square root of `f32` equal those of `f64`, rounded once more.
/// With 53 bits, double rounding equals single rounding (Figueroa 1995).
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
fn nans(ty: Type) -> Vec<u64> {
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

/// The integer part of a finite float, exactly; `None` beyond 2^100.
fn truncated(x: f64) -> Option<i128> {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1075;
    let fraction = i128::from(bits & ((1 << 52) - 1));
    let mantissa = if exponent == -1075 { fraction } else { fraction | 1 << 52 };
    let magnitude = match exponent {
        -1075..=-64 => 0,
        -63..=-1 => mantissa >> -exponent,
        0..=47 => mantissa << exponent,
        _ => return None,
    };
    Some(if x.is_sign_negative() { -magnitude } else { magnitude })
}

/// Floats around every bound of every integer type.
fn near_bounds() -> Vec<f64> {
    let mut values = f64s();
    for bound in [2f64.powi(31), 2f64.powi(32), 2f64.powi(63), 2f64.powi(64), 1.0] {
        let around = [
            bound.next_down(),
            bound,
            bound.next_up(),
            bound - 1.0,
            bound - 0.5,
            bound + 0.5,
            bound + 1.0,
        ];
        values.extend(around.iter().flat_map(|v| [*v, -*v]));
    }
    values
}

#[test]
fn integers_of_floats() {
    for x in near_bounds() {
        for (source, x) in [(Type::F64, x), (Type::F32, f64::from(x as f32))] {
            let bits =
                if source == Type::F64 { x.to_bits() } else { u64::from((x as f32).to_bits()) };
            for ty in [Type::I32, Type::I64] {
                let ranges = [
                    (
                        Opcode::SintFromFloat,
                        Opcode::SintFromFloatSat,
                        -(1i128 << (ty.bits() - 1)),
                        1i128 << (ty.bits() - 1),
                    ),
                    (Opcode::UintFromFloat, Opcode::UintFromFloatSat, 0, 1i128 << ty.bits()),
                ];
                for (trapping, saturating, least, end) in ranges {
                    let number = if x.is_infinite() { None } else { truncated(x) };
                    let fits = number.filter(|n| (least..end).contains(n));
                    let expected = fits.map(|n| reduce(ty, n)).ok_or(TrapKind::IntegerOverflow);
                    assert_eq!(
                        eval(trapping, ty, source, &[bits]),
                        expected,
                        "{}.{ty} {x:e}",
                        trapping.name()
                    );
                    let bound = if x < 0.0 { least } else { end - 1 };
                    let saturated = Ok(reduce(ty, fits.unwrap_or(bound)));
                    assert_eq!(
                        eval(saturating, ty, source, &[bits]),
                        saturated,
                        "{}.{ty} {x:e}",
                        saturating.name()
                    );
                }
            }
        }
    }
}

#[test]
fn integers_of_nan() {
    for source in [Type::F32, Type::F64] {
        for nan in nans(source) {
            for ty in [Type::I32, Type::I64] {
                for op in [Opcode::SintFromFloat, Opcode::UintFromFloat] {
                    assert_eq!(eval(op, ty, source, &[nan]), Err(TrapKind::InvalidConversion));
                }
                for op in [Opcode::SintFromFloatSat, Opcode::UintFromFloatSat] {
                    assert_eq!(eval(op, ty, source, &[nan]), Ok(0));
                }
            }
        }
    }
}

/// No neighbor of the result is nearer to the integer. If a neighbor is equally near, the fraction
/// of the result is even.
#[test]
fn floats_of_integers_are_nearest() {
    for source in [Type::I32, Type::I64] {
        for x in
            interesting(source).into_iter().chain([(1 << 53) + 1, (1 << 24) + 1, (1 << 24) + 3])
        {
            let x = x & source.mask();
            let (unsigned, signed) = numbers(source, x);
            for (op, number) in [(Opcode::FloatFromUint, unsigned), (Opcode::FloatFromSint, signed)]
            {
                for ty in [Type::F32, Type::F64] {
                    let bits = eval(op, ty, source, &[x]).expect("it does not trap");
                    let exact = |bits: u64| {
                        let float = if ty == Type::F32 {
                            f32::from_bits(bits as u32).into()
                        } else {
                            f64::from_bits(bits)
                        };
                        truncated(float).expect("it is near a 64-bit integer")
                    };
                    let distance = (exact(bits) - number).abs();
                    if number == 0 {
                        assert_eq!(bits, 0);
                        continue;
                    }
                    for neighbor in [bits - 1, bits + 1] {
                        let other = (exact(neighbor) - number).abs();
                        let tie_to_even = distance == other && bits.is_multiple_of(2);
                        assert!(
                            distance < other || tie_to_even,
                            "{}.{ty} {number}: {bits:#x}",
                            op.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn demotion_rounds_to_nearest_even_and_promotion_is_exact() {
    let demote = |x: f64| {
        eval(Opcode::Fdemote, Type::F32, Type::F64, &[x.to_bits()]).expect("it does not trap")
    };
    assert_eq!(demote(16_777_217.0), u64::from(16_777_216f32.to_bits()));
    assert_eq!(demote(16_777_219.0), u64::from(16_777_220f32.to_bits()));
    assert_eq!(demote(f64::MAX), u64::from(f32::INFINITY.to_bits()));
    assert_eq!(demote(-1e-300), u64::from((-0f32).to_bits()));
    for x in f32s() {
        let bits = eval(Opcode::Fpromote, Type::F64, Type::F32, &[x.to_bits().into()])
            .expect("it does not trap");
        assert_eq!(demote(f64::from_bits(bits)), u64::from(x.to_bits()));
        assert_eq!(truncated(f64::from_bits(bits)).is_some(), x.abs() < 1e30, "{x}");
    }
}

#[test]
fn select_looks_at_the_whole_condition_and_no_more() {
    assert_eq!(eval(Opcode::Select, Type::I32, Type::I64, &[1 << 40, 7, 9]), Ok(7));
    assert_eq!(eval(Opcode::Select, Type::I64, Type::I8, &[0x100, 7, 9]), Ok(9));
}
