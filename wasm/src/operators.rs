//! Tables of operators: the supported proposals, and the IR operation of each plain operator.

use ir::{Opcode, Type};
use wasmparser::{MemArg, MemArgTarget, Operator};

/// The proposal of an operator and the name of its visitor, for example `simd` and
/// `visit_i32x4_add`.
fn origin(operator: &Operator<'_>) -> (&'static str, &'static str) {
    macro_rules! names {
        ($(
            @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })?
            => $visit:ident ($($ann:tt)*)
        )*) => {
            match operator {
                $(
                    Operator::$op $({ $($arg: _),* })? => {
                        (stringify!($proposal), stringify!($visit))
                    }
                )*
                _ => ("unknown", "visit_unknown"),
            }
        };
    }
    wasmparser::for_each_operator!(names)
}

/// The proposal of an operator; `mvp` for an operator of the first version. Called for every
/// operator of a module.
pub(crate) fn proposal(operator: &Operator<'_>) -> &'static str {
    origin(operator).0
}

/// The name of an operator in the text format, for example `i32x4.add`.
pub(crate) fn name(operator: &Operator<'_>) -> String {
    text_name(origin(operator).1.trim_start_matches("visit_"))
}

/// Prefixes of operator names that the text format separates with a dot.
const NAMESPACES: [&str; 22] = [
    "i32", "i64", "f32", "f64", "v128", "i8x16", "i16x8", "i32x4", "i64x2", "f32x4", "f64x2",
    "memory", "table", "ref", "struct", "array", "i31", "data", "elem", "local", "global", "any",
];

/// Converts the name of a visitor to the name in the text format: `i32x4_add` to `i32x4.add`, and
/// `i32_atomic_rmw8_add_u` to `i32.atomic.rmw8.add_u`.
fn text_name(name: &str) -> String {
    let dotted = match name.split_once('_') {
        Some((space, rest)) if NAMESPACES.contains(&space) => format!("{space}.{rest}"),
        _ => name.to_owned(),
    };
    let Some((before, after)) = dotted.split_once("atomic_") else { return dotted };
    let after = match after.split_once('_') {
        Some((rmw, rest)) if rmw.starts_with("rmw") => format!("{rmw}.{rest}"),
        _ => after.to_owned(),
    };
    format!("{before}atomic.{after}")
}

/// Whether the importer supports the operators of this proposal.
pub(crate) fn is_supported(proposal: &str) -> bool {
    matches!(
        proposal,
        "mvp" | "sign_extension" | "saturating_float_to_int" | "bulk_memory" | "reference_types"
    )
}

/// The common name of a proposal, for messages.
pub(crate) fn title(proposal: &'static str) -> &'static str {
    match proposal {
        "simd" => "SIMD",
        "relaxed_simd" => "relaxed SIMD",
        "tail_call" => "tail calls",
        "exceptions" | "legacy_exceptions" => "exceptions",
        "gc" => "GC",
        "function_references" => "function references",
        "wide_arithmetic" => "wide arithmetic",
        "memory_control" => "memory control",
        "shared_everything_threads" => "shared-everything threads",
        "stack_switching" => "stack switching",
        "custom_descriptors" => "custom descriptors",
        other => other,
    }
}

/// The IR operation of an operator that uses values only, with its controlling type.
#[rustfmt::skip] // a table
pub(crate) fn plain(operator: &Operator<'_>) -> Option<(Opcode, Type)> {
    use Operator as W;
    use Opcode::*;
    use Type::*;
    Some(match operator {
        W::I32Eqz => (Eqz, I32), W::I64Eqz => (Eqz, I64),
        W::I32Eq => (Eq, I32), W::I64Eq => (Eq, I64),
        W::I32Ne => (Ne, I32), W::I64Ne => (Ne, I64),
        W::I32LtS => (Slt, I32), W::I64LtS => (Slt, I64),
        W::I32LtU => (Ult, I32), W::I64LtU => (Ult, I64),
        W::I32GtS => (Sgt, I32), W::I64GtS => (Sgt, I64),
        W::I32GtU => (Ugt, I32), W::I64GtU => (Ugt, I64),
        W::I32LeS => (Sle, I32), W::I64LeS => (Sle, I64),
        W::I32LeU => (Ule, I32), W::I64LeU => (Ule, I64),
        W::I32GeS => (Sge, I32), W::I64GeS => (Sge, I64),
        W::I32GeU => (Uge, I32), W::I64GeU => (Uge, I64),
        W::F32Eq => (Feq, F32), W::F64Eq => (Feq, F64),
        W::F32Ne => (Fne, F32), W::F64Ne => (Fne, F64),
        W::F32Lt => (Flt, F32), W::F64Lt => (Flt, F64),
        W::F32Gt => (Fgt, F32), W::F64Gt => (Fgt, F64),
        W::F32Le => (Fle, F32), W::F64Le => (Fle, F64),
        W::F32Ge => (Fge, F32), W::F64Ge => (Fge, F64),
        W::I32Clz => (Clz, I32), W::I64Clz => (Clz, I64),
        W::I32Ctz => (Ctz, I32), W::I64Ctz => (Ctz, I64),
        W::I32Popcnt => (Popcnt, I32), W::I64Popcnt => (Popcnt, I64),
        W::I32Add => (Add, I32), W::I64Add => (Add, I64),
        W::I32Sub => (Sub, I32), W::I64Sub => (Sub, I64),
        W::I32Mul => (Mul, I32), W::I64Mul => (Mul, I64),
        W::I32DivS => (Sdiv, I32), W::I64DivS => (Sdiv, I64),
        W::I32DivU => (Udiv, I32), W::I64DivU => (Udiv, I64),
        W::I32RemS => (Srem, I32), W::I64RemS => (Srem, I64),
        W::I32RemU => (Urem, I32), W::I64RemU => (Urem, I64),
        W::I32And => (And, I32), W::I64And => (And, I64),
        W::I32Or => (Or, I32), W::I64Or => (Or, I64),
        W::I32Xor => (Xor, I32), W::I64Xor => (Xor, I64),
        W::I32Shl => (Shl, I32), W::I64Shl => (Shl, I64),
        W::I32ShrS => (Sshr, I32), W::I64ShrS => (Sshr, I64),
        W::I32ShrU => (Ushr, I32), W::I64ShrU => (Ushr, I64),
        W::I32Rotl => (Rotl, I32), W::I64Rotl => (Rotl, I64),
        W::I32Rotr => (Rotr, I32), W::I64Rotr => (Rotr, I64),
        W::F32Abs => (Fabs, F32), W::F64Abs => (Fabs, F64),
        W::F32Neg => (Fneg, F32), W::F64Neg => (Fneg, F64),
        W::F32Ceil => (Fceil, F32), W::F64Ceil => (Fceil, F64),
        W::F32Floor => (Ffloor, F32), W::F64Floor => (Ffloor, F64),
        W::F32Trunc => (Ftrunc, F32), W::F64Trunc => (Ftrunc, F64),
        W::F32Nearest => (Fnearest, F32), W::F64Nearest => (Fnearest, F64),
        W::F32Sqrt => (Fsqrt, F32), W::F64Sqrt => (Fsqrt, F64),
        W::F32Add => (Fadd, F32), W::F64Add => (Fadd, F64),
        W::F32Sub => (Fsub, F32), W::F64Sub => (Fsub, F64),
        W::F32Mul => (Fmul, F32), W::F64Mul => (Fmul, F64),
        W::F32Div => (Fdiv, F32), W::F64Div => (Fdiv, F64),
        W::F32Min => (Fmin, F32), W::F64Min => (Fmin, F64),
        W::F32Max => (Fmax, F32), W::F64Max => (Fmax, F64),
        W::F32Copysign => (Fcopysign, F32), W::F64Copysign => (Fcopysign, F64),
        W::I32WrapI64 => (Wrap, I32),
        W::I64ExtendI32S => (Sextend, I64), W::I64ExtendI32U => (Uextend, I64),
        W::I32TruncF32S | W::I32TruncF64S => (SintFromFloat, I32),
        W::I32TruncF32U | W::I32TruncF64U => (UintFromFloat, I32),
        W::I64TruncF32S | W::I64TruncF64S => (SintFromFloat, I64),
        W::I64TruncF32U | W::I64TruncF64U => (UintFromFloat, I64),
        W::I32TruncSatF32S | W::I32TruncSatF64S => (SintFromFloatSat, I32),
        W::I32TruncSatF32U | W::I32TruncSatF64U => (UintFromFloatSat, I32),
        W::I64TruncSatF32S | W::I64TruncSatF64S => (SintFromFloatSat, I64),
        W::I64TruncSatF32U | W::I64TruncSatF64U => (UintFromFloatSat, I64),
        W::F32ConvertI32S | W::F32ConvertI64S => (FloatFromSint, F32),
        W::F32ConvertI32U | W::F32ConvertI64U => (FloatFromUint, F32),
        W::F64ConvertI32S | W::F64ConvertI64S => (FloatFromSint, F64),
        W::F64ConvertI32U | W::F64ConvertI64U => (FloatFromUint, F64),
        W::F32DemoteF64 => (Fdemote, F32), W::F64PromoteF32 => (Fpromote, F64),
        W::I32ReinterpretF32 => (Bitcast, I32), W::I64ReinterpretF64 => (Bitcast, I64),
        W::F32ReinterpretI32 => (Bitcast, F32), W::F64ReinterpretI64 => (Bitcast, F64),
        W::I32Extend8S => (Sext8, I32), W::I32Extend16S => (Sext16, I32),
        W::I64Extend8S => (Sext8, I64), W::I64Extend16S => (Sext16, I64),
        W::I64Extend32S => (Sext32, I64),
        _ => return None,
    })
}

/// The IR operation of a load or store, with the type of the value, the index of the memory, and
/// the offset.
#[rustfmt::skip] // a table
pub(crate) fn memory_access(operator: &Operator<'_>) -> Option<(Opcode, Type, u32, u64)> {
    use Operator as W;
    use Opcode::*;
    use Type::*;
    let (opcode, ty, place) = match operator {
        W::I32Load { memarg } => (Load, I32, memarg), W::I64Load { memarg } => (Load, I64, memarg),
        W::F32Load { memarg } => (Load, F32, memarg), W::F64Load { memarg } => (Load, F64, memarg),
        W::I32Load8S { memarg } => (Sload8, I32, memarg),
        W::I64Load8S { memarg } => (Sload8, I64, memarg),
        W::I32Load8U { memarg } => (Uload8, I32, memarg),
        W::I64Load8U { memarg } => (Uload8, I64, memarg),
        W::I32Load16S { memarg } => (Sload16, I32, memarg),
        W::I64Load16S { memarg } => (Sload16, I64, memarg),
        W::I32Load16U { memarg } => (Uload16, I32, memarg),
        W::I64Load16U { memarg } => (Uload16, I64, memarg),
        W::I64Load32S { memarg } => (Sload32, I64, memarg),
        W::I64Load32U { memarg } => (Uload32, I64, memarg),
        W::I32Store { memarg } => (Store, I32, memarg),
        W::I64Store { memarg } => (Store, I64, memarg),
        W::F32Store { memarg } => (Store, F32, memarg),
        W::F64Store { memarg } => (Store, F64, memarg),
        W::I32Store8 { memarg } => (Store8, I32, memarg),
        W::I64Store8 { memarg } => (Store8, I64, memarg),
        W::I32Store16 { memarg } => (Store16, I32, memarg),
        W::I64Store16 { memarg } => (Store16, I64, memarg),
        W::I64Store32 { memarg } => (Store32, I64, memarg),
        _ => return None,
    };
    let MemArg { target: MemArgTarget::Memory(memory), offset, .. } = *place else { return None };
    Some((opcode, ty, memory, offset))
}

/// The type and the bits of a constant operator.
pub(crate) fn constant(operator: &Operator<'_>) -> Option<(Type, u64)> {
    Some(match operator {
        Operator::I32Const { value } => (Type::I32, u64::from(*value as u32)),
        Operator::I64Const { value } => (Type::I64, *value as u64),
        Operator::F32Const { value } => (Type::F32, u64::from(value.bits())),
        Operator::F64Const { value } => (Type::F64, value.bits()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
