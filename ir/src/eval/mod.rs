//! The meaning of operations on values.
//!
//! [`eval`] defines every operation whose result depends on its operands alone, traps included.
//! Constant folding and compensation code call it with an opcode known at run time. The
//! interpreter's handlers call the functions per shape ([`int_binary`] and its siblings) with a
//! constant opcode and type. The compiler then folds the matches away, and the meaning still exists
//! only once.
//!
//! Operands and results are bits in the form of [`Type::mask`]. The functions mask operands before
//! use. Bits outside the type occur only in poisoned values; they never reach a result and never
//! cause a panic.
//!
//! Arithmetic that produces a NaN always produces the canonical quiet NaN ([`canonical_nan`]).
//! `fneg`, `fabs`, `fcopysign`, `bitcast` and `select` only move bits and keep payloads.

mod float;
mod int;

pub use float::{
    canonical_nan, demote, float_binary, float_compare, float_from_int, float_unary,
    int_from_float, promote,
};
pub use int::{int_binary, int_compare, int_test, int_unary, sign_extend};

use crate::opcode::{Opcode, Shape};
use crate::reference;
use crate::trap::TrapKind;
use crate::types::Type;

/// Whether [`eval`] defines the operation: its result depends on the operands and the types alone.
/// Constants do not count, because their bits are in the immediate. Calls of pure functions do not
/// count either: the embedder alone knows their results.
pub const fn is_evaluated(opcode: Opcode) -> bool {
    opcode.is_step() && !matches!(opcode, Opcode::Const)
}

/// Whether [`eval`] accepts an operation with this controlling type and operands of these types.
/// The operation must be one on values, and the types must match its shape. This check serves input
/// that the verifier has not checked, such as the steps of a mapping read from a file.
pub fn accepts(opcode: Opcode, ty: Type, operands: &[Type]) -> bool {
    if !is_evaluated(opcode) || !opcode.allows_type(ty) {
        return false;
    }
    match (opcode.shape(), operands) {
        (Shape::IntUnary | Shape::IntTest | Shape::FloatUnary, [a]) => *a == ty,
        (
            Shape::IntBinary | Shape::IntCompare | Shape::FloatBinary | Shape::FloatCompare,
            [a, b],
        ) => *a == ty && *b == ty,
        (Shape::Extend, [a]) => a.is_int() && a.bits() < ty.bits(),
        (Shape::Wrap, [a]) => a.is_int() && a.bits() > ty.bits(),
        (Shape::IntToFloat, [a]) => matches!(a, Type::I32 | Type::I64),
        (Shape::FloatToInt, [a]) => a.is_float(),
        (Shape::Promote, [a]) => *a == Type::F32,
        (Shape::Demote, [a]) => *a == Type::F64,
        (Shape::Bitcast, [a]) => {
            a.bits() == ty.bits() && a.is_number() && a.is_int() != ty.is_int()
        }
        (Shape::RefTest, [a]) => *a == ty,
        (Shape::RefCompare, [Type::Ref, Type::Ref]) => true,
        (Shape::Select, [c, a, b]) => c.is_int() && *a == ty && *b == ty,
        _ => false,
    }
}

/// Whether a division by this constant cannot trap, for any dividend. The answer is `false` for
/// every other operation.
pub fn is_safe_divisor(opcode: Opcode, ty: Type, divisor: Option<u64>) -> bool {
    match (opcode, divisor) {
        (Opcode::Udiv | Opcode::Urem | Opcode::Srem, Some(d)) => d != 0,
        (Opcode::Sdiv, Some(d)) => d != 0 && d != ty.mask(),
        _ => false,
    }
}

/// The result of an operation on values. `ty` is the controlling type. `source` is the type of
/// operand 0, which only conversions use. Cost: constant.
///
/// # Errors
/// The trap of the operation on these operands.
///
/// # Panics
/// When [`is_evaluated`] rejects the opcode, or when an operand is missing. It may panic when the
/// opcode does not allow the types. The verifier excludes the last two cases.
pub fn eval(opcode: Opcode, ty: Type, source: Type, args: &[u64]) -> Result<u64, TrapKind> {
    match opcode.shape() {
        Shape::IntUnary => Ok(int_unary(opcode, ty, args[0])),
        Shape::IntBinary => int_binary(opcode, ty, args[0], args[1]),
        Shape::IntTest => Ok(int_test(opcode, ty, args[0])),
        Shape::IntCompare => Ok(int_compare(opcode, ty, args[0], args[1])),
        Shape::FloatUnary => Ok(float_unary(opcode, ty, args[0])),
        Shape::FloatBinary => Ok(float_binary(opcode, ty, args[0], args[1])),
        Shape::FloatCompare => Ok(float_compare(opcode, ty, args[0], args[1])),
        Shape::Extend => Ok(extend(opcode, ty, source, args[0])),
        Shape::Wrap => Ok(args[0] & ty.mask()),
        Shape::IntToFloat => Ok(float_from_int(opcode, ty, source, args[0])),
        Shape::FloatToInt => int_from_float(opcode, ty, source, args[0]),
        Shape::Promote => Ok(promote(args[0])),
        Shape::Demote => Ok(demote(args[0])),
        Shape::Bitcast => Ok(args[0] & ty.mask()),
        Shape::RefTest => Ok(ref_is_null(args[0])),
        Shape::RefCompare => Ok(ref_eq(args[0], args[1])),
        Shape::Select => Ok(select(args[0] & source.mask(), args[1], args[2]) & ty.mask()),
        _ => panic!("eval: {} is not an operation on values", opcode.name()),
    }
}

/// The result that compilers may put in place of an operation on constants. `None` if the operation
/// traps, or if it is arithmetic that gives a NaN.
///
/// [`eval`] determines the bits of that NaN, but native code may compute another NaN
/// (`jit::Nans::Platform`). Whatever is derived from constants must hold for both, so no fold,
/// decided branch or certificate rests on the bits of such a NaN
/// (`tests/oir/passes/sccp/a_nan_is_not_folded.oir`). Operations that move bits fold, NaNs
/// included. Cost and panics: as [`eval`].
pub fn fold(opcode: Opcode, ty: Type, source: Type, args: &[u64]) -> Option<u64> {
    let bits = eval(opcode, ty, source, args).ok()?;
    (!(makes_nans(opcode) && is_nan(ty, bits))).then_some(bits)
}

/// Whether the operation is arithmetic on floats: it gives the canonical NaN for every NaN operand.
/// `fneg`, `fabs` and `fcopysign` only move bits.
pub const fn makes_nans(opcode: Opcode) -> bool {
    match opcode {
        Opcode::Fcopysign | Opcode::Fabs | Opcode::Fneg => false,
        _ => matches!(
            opcode.shape(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::Promote | Shape::Demote
        ),
    }
}

/// Whether these are the bits of a NaN of a float type.
pub fn is_nan(ty: Type, bits: u64) -> bool {
    match ty {
        Type::F32 => f32::from_bits(bits as u32).is_nan(),
        Type::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// `sextend` and `uextend` from `source` to the wider `ty`.
///
/// # Panics
/// When the opcode is neither.
#[inline(always)]
pub fn extend(opcode: Opcode, ty: Type, source: Type, x: u64) -> u64 {
    match opcode {
        Opcode::Sextend => sign_extend(x, source.bits()) as u64 & ty.mask(),
        Opcode::Uextend => x & source.mask(),
        _ => panic!("eval: {} is not an extension", opcode.name()),
    }
}

/// 1 if these are the bits of a null reference, else 0.
#[inline(always)]
pub fn ref_is_null(bits: u64) -> u64 {
    u64::from(bits == reference::NULL)
}

/// 1 if both words represent one reference, read at one time, else 0.
#[inline(always)]
pub fn ref_eq(x: u64, y: u64) -> u64 {
    u64::from(x == y)
}

/// The second operand if the condition is not zero, else the third.
#[inline(always)]
pub fn select(condition: u64, then: u64, otherwise: u64) -> u64 {
    if condition != 0 { then } else { otherwise }
}
