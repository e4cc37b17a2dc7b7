//! Integer operations, uniform over all widths.

use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::Type;

/// The low `bits` bits (1 to 64) of `x` as a two's complement number.
#[inline(always)]
pub const fn sign_extend(x: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    ((x << unused) as i64) >> unused
}

/// Operations of shape `IntUnary`.
///
/// # Panics
/// When the opcode has another shape.
#[inline(always)]
pub fn int_unary(opcode: Opcode, ty: Type, x: u64) -> u64 {
    let bits = ty.bits();
    let x = x & ty.mask();
    match opcode {
        Opcode::Clz => u64::from(x.leading_zeros() - (64 - bits)),
        Opcode::Ctz => u64::from(x.trailing_zeros().min(bits)),
        Opcode::Popcnt => u64::from(x.count_ones()),
        Opcode::Bswap => x.swap_bytes() >> (64 - bits),
        Opcode::Sext8 => sign_extend(x, 8) as u64 & ty.mask(),
        Opcode::Sext16 => sign_extend(x, 16) as u64 & ty.mask(),
        Opcode::Sext32 => sign_extend(x, 32) as u64 & ty.mask(),
        _ => panic!("eval: {} is not a unary integer operation", opcode.name()),
    }
}

/// Operations of shape `IntBinary`.
///
/// # Errors
/// `DivisionByZero`, and `IntegerOverflow` for the signed quotient of the minimum and -1.
///
/// # Panics
/// When the opcode has another shape.
#[inline(always)]
pub fn int_binary(opcode: Opcode, ty: Type, x: u64, y: u64) -> Result<u64, TrapKind> {
    let bits = ty.bits();
    let (x, y) = (x & ty.mask(), y & ty.mask());
    let amount = (y % u64::from(bits)) as u32;
    // The modulo keeps a rotation by 0 from shifting by the full width, which would overflow at 64
    // bits.
    let back = (bits - amount) % bits;
    let result = match opcode {
        Opcode::Add => x.wrapping_add(y),
        Opcode::Sub => x.wrapping_sub(y),
        Opcode::Mul => x.wrapping_mul(y),
        Opcode::Sdiv | Opcode::Udiv | Opcode::Srem | Opcode::Urem => {
            return divide(opcode, ty, x, y);
        }
        Opcode::And => x & y,
        Opcode::Or => x | y,
        Opcode::Xor => x ^ y,
        Opcode::Shl => x << amount,
        Opcode::Sshr => (sign_extend(x, bits) >> amount) as u64,
        Opcode::Ushr => x >> amount,
        Opcode::Rotl => (x << amount) | (x >> back),
        Opcode::Rotr => (x >> amount) | (x << back),
        _ => panic!("eval: {} is not a binary integer operation", opcode.name()),
    };
    Ok(result & ty.mask())
}

/// Quotients and remainders of masked operands.
#[inline(always)]
fn divide(opcode: Opcode, ty: Type, x: u64, y: u64) -> Result<u64, TrapKind> {
    if y == 0 {
        return Err(TrapKind::DivisionByZero);
    }
    let bits = ty.bits();
    let (sx, sy) = (sign_extend(x, bits), sign_extend(y, bits));
    let minimum = i64::MIN >> (64 - bits);
    let result = match opcode {
        Opcode::Sdiv if sy == -1 && sx == minimum => return Err(TrapKind::IntegerOverflow),
        Opcode::Sdiv => sx.wrapping_div(sy) as u64,
        // The remainder of the minimum by -1 is 0, without an overflow. `wrapping_rem` gives that
        // result at 64 bits too.
        Opcode::Srem => sx.wrapping_rem(sy) as u64,
        Opcode::Udiv => x / y,
        _ => x % y,
    };
    Ok(result & ty.mask())
}

/// `eqz`.
///
/// # Panics
/// When the opcode is another.
#[inline(always)]
pub fn int_test(opcode: Opcode, ty: Type, x: u64) -> u64 {
    assert!(matches!(opcode, Opcode::Eqz), "eval: the opcode is not an integer test");
    u64::from(x & ty.mask() == 0)
}

/// Operations of shape `IntCompare`.
///
/// # Panics
/// When the opcode has another shape.
#[inline(always)]
pub fn int_compare(opcode: Opcode, ty: Type, x: u64, y: u64) -> u64 {
    let (x, y) = (x & ty.mask(), y & ty.mask());
    let (sx, sy) = (sign_extend(x, ty.bits()), sign_extend(y, ty.bits()));
    u64::from(match opcode {
        Opcode::Eq => x == y,
        Opcode::Ne => x != y,
        Opcode::Slt => sx < sy,
        Opcode::Sle => sx <= sy,
        Opcode::Sgt => sx > sy,
        Opcode::Sge => sx >= sy,
        Opcode::Ult => x < y,
        Opcode::Ule => x <= y,
        Opcode::Ugt => x > y,
        Opcode::Uge => x >= y,
        Opcode::SaddOverflows => overflows(sx.checked_add(sy), ty),
        Opcode::SsubOverflows => overflows(sx.checked_sub(sy), ty),
        Opcode::SmulOverflows => overflows(sx.checked_mul(sy), ty),
        _ => panic!("eval: {} is not an integer comparison", opcode.name()),
    })
}

/// Whether a signed result, `None` beyond 64 bits, does not fit the type.
#[inline(always)]
fn overflows(result: Option<i64>, ty: Type) -> bool {
    result.is_none_or(|number| sign_extend(number as u64, ty.bits()) != number)
}
