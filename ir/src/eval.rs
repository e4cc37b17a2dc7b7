//! The meaning of operations on values.

use crate::opcode::Opcode;
use crate::trap::TrapKind;
use crate::types::Type;

/// The result of an operation.
///
/// # Errors
/// When it traps.
pub fn eval(_opcode: Opcode, _ty: Type, _operand_ty: Type, _args: &[u64]) -> Result<u64, TrapKind> {
    Err(TrapKind::Unreachable)
}
