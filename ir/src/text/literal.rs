//! Numbers of the text form.

use crate::types::Type;
use std::fmt;

/// The sign and magnitude of an integer literal: decimal, or hexadecimal after `0x`. `None` when it is
/// not an integer, or does not fit 64 bits.
fn integer(text: &str) -> Option<(bool, u64)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    // `from_str_radix` would take a plus sign too.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(|magnitude| (negative, magnitude))
}

/// An unsigned literal of at most `max`.
pub(super) fn unsigned(text: &str, max: u64) -> Option<u64> {
    match integer(text)? {
        (false, magnitude) if magnitude <= max => Some(magnitude),
        _ => None,
    }
}

/// The bits of a literal of an integer type. Signed and unsigned readings are both accepted, so an
/// `i8` ranges from -128 to 255.
pub(super) fn int_bits(text: &str, ty: Type) -> Option<u64> {
    match integer(text)? {
        (false, magnitude) => Some(magnitude).filter(|m| *m <= ty.mask()),
        (true, magnitude) => {
            let fits = magnitude <= ty.mask() / 2 + 1;
            fits.then(|| magnitude.wrapping_neg() & ty.mask())
        }
    }
}

/// The bits of a finite decimal literal of a float type. One that would round to infinity is `None`.
pub(super) fn float_bits(text: &str, ty: Type) -> Option<u64> {
    // The standard parser also takes `inf`, `nan`, `.5` and `+1`.
    if !text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match ty {
        Type::F32 => text.parse::<f32>().ok().filter(|f| f.is_finite()).map(|f| u64::from(f.to_bits())),
        _ => text.parse::<f64>().ok().filter(|f| f.is_finite()).map(f64::to_bits),
    }
}

/// The bits of `inf` or `-inf`.
pub(super) fn infinity_bits(negative: bool, ty: Type) -> u64 {
    match ty {
        Type::F32 => u64::from(if negative { f32::NEG_INFINITY } else { f32::INFINITY }.to_bits()),
        _ => if negative { f64::NEG_INFINITY } else { f64::INFINITY }.to_bits(),
    }
}

/// Whether these are the bits of a NaN of a float type.
pub(super) fn is_nan(bits: u64, ty: Type) -> bool {
    match ty {
        Type::F32 => u32::try_from(bits).is_ok_and(|b| f32::from_bits(b).is_nan()),
        _ => f64::from_bits(bits).is_nan(),
    }
}

/// Writes the literal of a type with these bits: integers signed, floats as the shortest decimal that
/// reads back as the same bits. Bits outside the type, which the verifier refuses, are shown as they are.
pub(super) fn write_literal(out: &mut dyn fmt::Write, ty: Type, bits: u64) -> fmt::Result {
    if bits & !ty.mask() != 0 {
        return write!(out, "{bits:#x}");
    }
    match ty {
        Type::I8 => write!(out, "{}", bits as i8),
        Type::I16 => write!(out, "{}", bits as i16),
        Type::I32 => write!(out, "{}", bits as i32),
        Type::I64 => write!(out, "{}", bits as i64),
        Type::F32 | Type::F64 if is_nan(bits, ty) => write!(out, "nan:{bits:#x}"),
        // `Debug` writes `inf`, `-inf`, `-0.0` and `1e16` as the grammar does.
        Type::F32 => write!(out, "{:?}", f32::from_bits(bits as u32)),
        Type::F64 => write!(out, "{:?}", f64::from_bits(bits)),
    }
}
