//! Conversions between integers and floats against exact integers.

use super::floats::{f32s, f64s, nans};
use super::integers::{interesting, numbers, reduce};
use ir::eval::eval;
use ir::{Opcode, TrapKind, Type};

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
