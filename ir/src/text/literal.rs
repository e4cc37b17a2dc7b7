//! Literals of the text form.

use crate::reference;
use crate::types::Type;
use std::fmt;

/// The sign and magnitude of an integer literal: decimal, or hexadecimal after `0x`. `None` if the
/// text is not an integer, or the magnitude does not fit 64 bits.
fn integer(text: &str) -> Option<(bool, u64)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    // `from_str_radix` also accepts a plus sign, which the grammar does not.
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(|magnitude| (negative, magnitude))
}

/// The value of an unsigned literal; `None` if it exceeds `max`.
pub(super) fn unsigned(text: &str, max: u64) -> Option<u64> {
    match integer(text)? {
        (false, magnitude) if magnitude <= max => Some(magnitude),
        _ => None,
    }
}

/// The bits of a literal of an integer type. Both signed and unsigned readings are valid, so an
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

/// The bits of a finite decimal literal of a float type; `None` if it would round to infinity.
pub(super) fn float_bits(text: &str, ty: Type) -> Option<u64> {
    // The standard parser also accepts `inf`, `nan`, `.5` and `+1`.
    if !text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    match ty {
        Type::F32 => {
            text.parse::<f32>().ok().filter(|f| f.is_finite()).map(|f| u64::from(f.to_bits()))
        }
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

/// The bits of a literal of a type, in the notation for constants: `-7`, `0xff`, `2.5`, `-inf`,
/// `nan:0x7fc00000`, `null`, `ref:7` (the bits of a reference). `None` if the text is not a
/// literal, or does not fit the type.
pub fn parse_literal(text: &str, ty: Type) -> Option<u64> {
    if ty.is_int() || ty == Type::Ref {
        return int_bits(text, ty);
    }
    if ty.is_ref() {
        return match text.strip_prefix("ref:") {
            Some(bits) => unsigned(bits, ty.mask()).filter(|b| *b != reference::NULL),
            None => (text == "null").then_some(reference::NULL),
        };
    }
    match text {
        "inf" => Some(infinity_bits(false, ty)),
        "-inf" => Some(infinity_bits(true, ty)),
        _ => match text.strip_prefix("nan:") {
            Some(bits) => unsigned(bits, ty.mask()).filter(|b| is_nan(*b, ty)),
            None => float_bits(text, ty),
        },
    }
}

/// The bits of a value of a type as people write it to a command: a literal of the text form, or
/// `.5`, `-.5`, `5.`, and `nan`, the canonical NaN. `None` as for [`parse_literal`].
pub fn parse_argument(text: &str, ty: Type) -> Option<u64> {
    if !ty.is_float() {
        return parse_literal(text, ty);
    }
    let is_decimal = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    match (text, ty) {
        ("nan", Type::F32) => Some(0x7fc0_0000),
        ("nan", _) => Some(0x7ff8_0000_0000_0000),
        (_, Type::F32) if is_decimal => {
            text.parse::<f32>().ok().filter(|f| f.is_finite()).map(|f| f.to_bits().into())
        }
        _ if is_decimal => text.parse::<f64>().ok().filter(|f| f.is_finite()).map(f64::to_bits),
        _ => parse_literal(text, ty),
    }
}

/// The literal of a type with these bits, in the text form. Integers are signed. A float is the
/// shortest decimal that reads back as the same bits.
pub fn print_literal(ty: Type, bits: u64) -> String {
    let mut out = String::new();
    write_literal(&mut out, ty, bits).expect("writing to a string cannot fail");
    out
}

/// Writes the literal of a type with these bits. Integers are signed. A float is the shortest
/// decimal that reads back as the same bits. Bits outside the type, which the verifier rejects, are
/// written as one hexadecimal number.
pub(super) fn write_literal(out: &mut dyn fmt::Write, ty: Type, bits: u64) -> fmt::Result {
    if bits & !ty.mask() != 0 {
        return write!(out, "{bits:#x}");
    }
    match ty {
        Type::I8 => write!(out, "{}", bits as i8),
        Type::I16 => write!(out, "{}", bits as i16),
        Type::I32 => write!(out, "{}", bits as i32),
        Type::I64 | Type::Ref => write!(out, "{}", bits as i64),
        Type::F32 | Type::F64 if is_nan(bits, ty) => write!(out, "nan:{bits:#x}"),
        // `Debug` output has the notation of the grammar: `inf`, `-inf`, `-0.0` and `1e16`.
        Type::F32 => write!(out, "{:?}", f32::from_bits(bits as u32)),
        Type::F64 => write!(out, "{:?}", f64::from_bits(bits)),
        Type::FuncRef | Type::ExternRef if bits == reference::NULL => out.write_str("null"),
        Type::FuncRef | Type::ExternRef => write!(out, "ref:{bits}"),
    }
}

#[cfg(test)]
mod tests;
