//! Integer operations against arithmetic on `i128`, exhaustively at 8 bits.

use ir::eval::{eval, is_evaluated};
use ir::{Opcode, Shape, TrapKind, Type};

const INTS: [Type; 4] = [Type::I8, Type::I16, Type::I32, Type::I64];

/// The unsigned and the signed number that the bits represent.
pub(super) fn numbers(ty: Type, bits: u64) -> (i128, i128) {
    let unsigned = i128::from(bits);
    let limit = 1i128 << (ty.bits() - 1);
    (unsigned, if unsigned >= limit { unsigned - 2 * limit } else { unsigned })
}

/// The bits of a number modulo the width.
pub(super) fn reduce(ty: Type, number: i128) -> u64 {
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
    let limit = 1i128 << (ty.bits() - 1);
    let overflows = |number: i128| number < -limit || number >= limit;
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
        Opcode::SaddOverflows => overflows(sx + sy),
        Opcode::SsubOverflows => overflows(sx - sy),
        Opcode::SmulOverflows => overflows(sx * sy),
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
        Opcode::Bswap => {
            let moved = |i: u32| (bits / 8 - 1 - i / 8) * 8 + i % 8;
            (0..bits).filter(|i| bit(x, *i)).map(|i| 1 << moved(i)).sum()
        }
        Opcode::Sext8 => extended(8),
        Opcode::Sext16 => extended(16),
        Opcode::Sext32 => extended(32),
        _ => panic!("{} has no definition here", opcode.name()),
    }
}

/// Operands at which integer operations of some width change their behavior, and some operands
/// between them.
pub(super) fn interesting(ty: Type) -> Vec<u64> {
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

pub(super) fn opcodes(shape: Shape) -> impl Iterator<Item = Opcode> {
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
    let garbage = 0xdead_beef_dead_beefu64;
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
                    source.bits() == ty.bits()
                        && source.is_number()
                        && source.is_int() != ty.is_int()
                }
                Shape::RefCompare => source == Type::Ref,
                _ => source == ty,
            };
            if fits {
                pairs.push((ty, source));
            }
        }
    }
    pairs
}

#[test]
fn select_looks_at_the_whole_condition_and_no_more() {
    assert_eq!(eval(Opcode::Select, Type::I32, Type::I64, &[1 << 40, 7, 9]), Ok(7));
    assert_eq!(eval(Opcode::Select, Type::I64, Type::I8, &[0x100, 7, 9]), Ok(9));
}
