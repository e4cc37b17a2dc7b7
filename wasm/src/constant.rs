//! Imports constant expressions.

use crate::error::ImportError;
use crate::function::check_supported;
use crate::index::Index;
use crate::operators;
use crate::unsupported::Placeholders;
use ir::init::{InitExpr, InitOp};
use ir::{Imm, Module, Type, reference};
use wasmparser::{ConstExpr, Operator};

type Result<T> = std::result::Result<T, ImportError>;

/// Rejects operators of unsupported proposals by name, before the validator reports them less
/// clearly.
pub(crate) fn check(expr: &ConstExpr<'_>) -> Result<()> {
    let mut operators = expr.get_operators_reader();
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        check_supported(&operator, offset)?;
    }
    Ok(())
}

/// A constant expression that the validator has accepted. Its bits are known unless it reads an
/// imported global, whose value only the embedder knows.
/// Also returns its offset.
///
/// # Errors
/// If an operator is not supported, or the expression reads a global with a placeholder.
pub(crate) fn value(
    expr: &ConstExpr<'_>,
    module: &Module,
    index: &Index,
    placeholders: Option<&Placeholders>,
) -> Result<(InitExpr, u64)> {
    let mut ops: Vec<InitOp> = Vec::new();
    let mut ty = None;
    let mut operators = expr.get_operators_reader();
    let start = operators.original_position();
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        check_supported(&operator, offset)?;
        if let Some((_, bits)) = operators::constant(&operator) {
            ops.push(InitOp::Bits(bits));
            continue;
        }
        match operator {
            Operator::GlobalGet { global_index } => {
                let global = index.global(global_index);
                // A placeholder has no value (`a_placeholder_is_no_initial_value`).
                let feature = placeholders.and_then(|all| all.of(Imm::Global(global), module));
                if let Some(feature) = feature {
                    return Err(ImportError::of_feature(feature, offset));
                }
                let decl = &module.globals[global];
                match &decl.init {
                    InitExpr::Bits(bits) if decl.import.is_none() => ops.push(InitOp::Bits(*bits)),
                    _ => ops.push(InitOp::Global(global)),
                }
            }
            Operator::RefNull { .. } => ops.push(InitOp::Bits(reference::NULL)),
            Operator::RefFunc { function_index } => {
                let func = Some(index.func(function_index));
                ops.push(InitOp::Bits(reference::of_func(func)));
            }
            Operator::End => {}
            ref other => {
                let (opcode, of) =
                    operators::plain(other).expect("the validator allows sums and products only");
                ty = Some(of);
                ops.push(InitOp::of(opcode).expect("the validator allows sums and products only"));
            }
        }
    }
    let reads = ops.iter().any(|op| matches!(op, InitOp::Global(_)));
    let computed = InitExpr::Computed(ops.into());
    let value = match reads {
        true => computed,
        // A constant alone has no operation, whose type would matter.
        false => {
            computed.evaluate(ty.unwrap_or(Type::I64), |_| unreachable!("it reads none")).into()
        }
    };
    Ok((value, start))
}
