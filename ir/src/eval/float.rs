//! Floating-point operations and conversions.

use super::sign_extend;
use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::Type;

/// The NaN that arithmetic produces: quiet, positive, without a payload.
///
/// # Panics
/// When the type is not a float.
#[inline(always)]
pub const fn canonical_nan(ty: Type) -> u64 {
    match ty {
        Type::F32 => 0x7fc0_0000,
        Type::F64 => 0x7ff8_0000_0000_0000,
        _ => panic!("eval: only floats have a NaN"),
    }
}

/// The bits of an `f32` that arithmetic computed, with NaN made canonical.
#[inline(always)]
fn from_f32(x: f32) -> u64 {
    if x.is_nan() { canonical_nan(Type::F32) } else { u64::from(x.to_bits()) }
}

/// The bits of an `f64` that arithmetic computed, with NaN made canonical.
#[inline(always)]
fn from_f64(x: f64) -> u64 {
    if x.is_nan() { canonical_nan(Type::F64) } else { x.to_bits() }
}

#[inline(always)]
fn to_f32(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

#[inline(always)]
fn to_f64(x: u64) -> f64 {
    f64::from_bits(x)
}

/// The sign bit of a float type.
#[inline(always)]
const fn sign_bit(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

macro_rules! unary {
    ($opcode:expr, $x:expr) => {
        match $opcode {
            Opcode::Fceil => $x.ceil(),
            Opcode::Ffloor => $x.floor(),
            Opcode::Ftrunc => $x.trunc(),
            Opcode::Fnearest => $x.round_ties_even(),
            Opcode::Fsqrt => $x.sqrt(),
            _ => panic!("eval: {} is not a unary floating-point operation", $opcode.name()),
        }
    };
}

/// Operations of shape `FloatUnary`.
///
/// # Panics
/// When the opcode has another shape. The function does not check that the type is a float.
#[inline(always)]
pub fn float_unary(opcode: Opcode, ty: Type, x: u64) -> u64 {
    let x = x & ty.mask();
    match (opcode, ty) {
        (Opcode::Fabs, _) => x & !sign_bit(ty),
        (Opcode::Fneg, _) => x ^ sign_bit(ty),
        (_, Type::F32) => from_f32(unary!(opcode, to_f32(x))),
        _ => from_f64(unary!(opcode, to_f64(x))),
    }
}

/// Minimum and maximum: NaN if either operand is NaN, and -0 less than +0. Among equal numbers only
/// the zeros differ in their bits. For a minimum the merge `|` keeps a minus sign; for a maximum
/// `&` clears it if one zero is positive.
macro_rules! extremum {
    ($float:ty, $x:expr, $y:expr, $less:tt, $merge:tt) => {{
        let (x, y): ($float, $float) = ($x, $y);
        if x.is_nan() || y.is_nan() {
            <$float>::NAN
        } else if x == y {
            <$float>::from_bits(x.to_bits() $merge y.to_bits())
        } else if x $less y {
            x
        } else {
            y
        }
    }};
}

macro_rules! binary {
    ($float:ty, $opcode:expr, $x:expr, $y:expr) => {
        match $opcode {
            Opcode::Fadd => $x + $y,
            Opcode::Fsub => $x - $y,
            Opcode::Fmul => $x * $y,
            Opcode::Fdiv => $x / $y,
            Opcode::Fmin => extremum!($float, $x, $y, <, |),
            Opcode::Fmax => extremum!($float, $x, $y, >, &),
            _ => panic!("eval: {} is not a binary floating-point operation", $opcode.name()),
        }
    };
}

/// Operations of shape `FloatBinary`.
///
/// # Panics
/// When the opcode has another shape. The function does not check that the type is a float.
#[inline(always)]
pub fn float_binary(opcode: Opcode, ty: Type, x: u64, y: u64) -> u64 {
    let (x, y) = (x & ty.mask(), y & ty.mask());
    match (opcode, ty) {
        (Opcode::Fcopysign, _) => (x & !sign_bit(ty)) | (y & sign_bit(ty)),
        (_, Type::F32) => from_f32(binary!(f32, opcode, to_f32(x), to_f32(y))),
        _ => from_f64(binary!(f64, opcode, to_f64(x), to_f64(y))),
    }
}

macro_rules! compare {
    ($opcode:expr, $x:expr, $y:expr) => {
        match $opcode {
            Opcode::Feq => $x == $y,
            Opcode::Fne => $x != $y,
            Opcode::Flt => $x < $y,
            Opcode::Fle => $x <= $y,
            Opcode::Fgt => $x > $y,
            Opcode::Fge => $x >= $y,
            _ => panic!("eval: {} is not a floating-point comparison", $opcode.name()),
        }
    };
}

/// Operations of shape `FloatCompare`.
///
/// # Panics
/// When the opcode has another shape.
#[inline(always)]
pub fn float_compare(opcode: Opcode, ty: Type, x: u64, y: u64) -> u64 {
    u64::from(match ty {
        Type::F32 => compare!(opcode, to_f32(x), to_f32(y)),
        _ => compare!(opcode, to_f64(x), to_f64(y)),
    })
}

/// `float_from_sint` and `float_from_uint`: the nearest float of type `ty`, ties to even.
///
/// # Panics
/// When the opcode is neither.
#[inline(always)]
pub fn float_from_int(opcode: Opcode, ty: Type, source: Type, x: u64) -> u64 {
    let signed = sign_extend(x, source.bits());
    let unsigned = x & source.mask();
    match (opcode, ty) {
        (Opcode::FloatFromSint, Type::F32) => from_f32(signed as f32),
        (Opcode::FloatFromSint, _) => from_f64(signed as f64),
        (Opcode::FloatFromUint, Type::F32) => from_f32(unsigned as f32),
        (Opcode::FloatFromUint, _) => from_f64(unsigned as f64),
        _ => panic!("eval: {} does not convert an integer to a float", opcode.name()),
    }
}

/// Operations of shape `FloatToInt`, to a `ty` of 32 or 64 bits.
///
/// # Errors
/// For the operations that do not saturate: `InvalidConversion` for NaN, and `IntegerOverflow` when
/// the operand rounded toward zero does not fit.
///
/// # Panics
/// When the opcode has another shape.
#[inline(always)]
pub fn int_from_float(opcode: Opcode, ty: Type, source: Type, x: u64) -> Result<u64, TrapKind> {
    // Every `f32` is exactly representable as `f64`, so one range check serves both types.
    let x = if source == Type::F32 { f64::from(to_f32(x)) } else { to_f64(x) };
    let narrow = ty == Type::I32;
    let result = match opcode {
        Opcode::SintFromFloat => {
            // The limit is 2^(bits - 1). At -2^63 neighboring `f64` values are far apart, so `x >
            // -limit - 1` alone would reject -2^63 itself.
            let limit = if narrow { 2_147_483_648.0 } else { 9_223_372_036_854_775_808.0 };
            check_range(x, (x > -limit - 1.0 || x == -limit) && x < limit)?;
            x as i64 as u64
        }
        Opcode::UintFromFloat => {
            let limit = if narrow { 4_294_967_296.0 } else { 18_446_744_073_709_551_616.0 };
            check_range(x, x > -1.0 && x < limit)?;
            x as u64
        }
        // `as` saturates and converts NaN to 0.
        Opcode::SintFromFloatSat if narrow => x as i32 as u64,
        Opcode::SintFromFloatSat => x as i64 as u64,
        Opcode::UintFromFloatSat if narrow => u64::from(x as u32),
        Opcode::UintFromFloatSat => x as u64,
        _ => panic!("eval: {} does not convert a float to an integer", opcode.name()),
    };
    Ok(result & ty.mask())
}

#[inline(always)]
fn check_range(x: f64, fits: bool) -> Result<(), TrapKind> {
    if x.is_nan() {
        Err(TrapKind::InvalidConversion)
    } else if !fits {
        Err(TrapKind::IntegerOverflow)
    } else {
        Ok(())
    }
}

/// `fpromote`.
#[inline(always)]
pub fn promote(x: u64) -> u64 {
    from_f64(f64::from(to_f32(x)))
}

/// `fdemote`.
#[inline(always)]
pub fn demote(x: u64) -> u64 {
    from_f32(to_f64(x) as f32)
}
