//! Evaluates constant expressions.

use crate::error::ImportError;
use crate::function::check_supported;
use crate::index::Index;
use crate::operators;
use ir::{Module, reference};
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

/// The bits of a constant expression that the validator has accepted.
///
/// # Errors
/// When the expression reads an imported global, whose value only the embedder knows.
pub(crate) fn bits(expr: &ConstExpr<'_>, module: &Module, index: &Index) -> Result<u64> {
    let mut stack: Vec<u64> = Vec::new();
    let mut operators = expr.get_operators_reader();
    while !operators.eof() {
        let (operator, offset) = operators.read_with_offset()?;
        if let Some((_, bits)) = operators::constant(&operator) {
            stack.push(bits);
            continue;
        }
        match operator {
            Operator::GlobalGet { global_index } => {
                let decl = &module.globals[index.global(global_index)];
                if let Some(import) = &decl.import {
                    let what = format!(
                        "a constant that reads the imported global {}.{}",
                        import.module, import.field
                    );
                    return Err(ImportError::unsupported(what, offset));
                }
                stack.push(decl.init);
            }
            Operator::RefNull { .. } => stack.push(reference::NULL),
            Operator::RefFunc { function_index } => {
                stack.push(reference::of_func(Some(index.func(function_index))));
            }
            Operator::End => {}
            ref other => {
                let (opcode, ty) =
                    operators::plain(other).expect("the validator allows sums and products only");
                let (y, x) = (stack.pop(), stack.pop());
                let (x, y) = x.zip(y).expect("the validator checked for two operands");
                stack.push(
                    ir::eval::int_binary(opcode, ty, x, y).expect("sums and products do not trap"),
                );
            }
        }
    }
    Ok(stack.pop().expect("the validator checked for a result"))
}
