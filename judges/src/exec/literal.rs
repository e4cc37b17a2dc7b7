//! Arguments and results as text, in the notation of the corpus: `i32:-5`, and floats as bits
//! (`f64:0x4014a00000000000`) or, as arguments, as decimals.

use std::fmt;

/// A number with its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scalar {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::I32(value) => write!(f, "i32:{value}"),
            Scalar::I64(value) => write!(f, "i64:{value}"),
            Scalar::F32(bits) => write!(f, "f32:0x{bits:08x}"),
            Scalar::F64(bits) => write!(f, "f64:0x{bits:016x}"),
        }
    }
}

/// The bits of an argument.
///
/// # Errors
/// If the text is no literal.
pub(super) fn bits(text: &str) -> Result<u64, String> {
    let parsed = text.split_once(':').and_then(|(ty, value)| match ty {
        "i32" => value.parse().ok().map(|v: i32| u64::from(v as u32)),
        "i64" => value.parse().ok().map(|v: i64| v as u64),
        "f32" => value.parse().ok().map(|v: f32| u64::from(v.to_bits())),
        "f64" => value.parse().ok().map(|v: f64| v.to_bits()),
        _ => None,
    });
    parsed.ok_or_else(|| format!("{text:?} is no argument (TYPE:VALUE)"))
}

#[cfg(test)]
mod tests {
    use super::{Scalar, bits};

    #[test]
    fn arguments_and_results_have_the_notation_of_the_corpus() {
        assert_eq!(bits("i32:-1"), Ok(0xffff_ffff));
        assert_eq!(bits("i64:-1"), Ok(u64::MAX));
        assert_eq!(bits("f32:1"), Ok(0x3f80_0000));
        assert_eq!(bits("f64:12.5"), Ok(0x4029_0000_0000_0000));
        for wrong in ["5", "i32:", "i32:x", "v128:0", "i32:4294967296"] {
            assert!(bits(wrong).is_err(), "{wrong}");
        }
        let shown = [Scalar::I32(-5), Scalar::I64(7), Scalar::F32(1), Scalar::F64(2)];
        let shown = shown.map(|scalar| scalar.to_string());
        assert_eq!(shown, ["i32:-5", "i64:7", "f32:0x00000001", "f64:0x0000000000000002"]);
    }
}
