//! The data of a bound import: its shim, and the reasons why an import cannot be bound.

use crate::code::MachineCode;
use crate::direct::DirectFunction;
use crate::error::CompileError;
use ir::{DeclaredEffect, Func, Type};
use std::fmt;
use std::sync::Arc;

/// The shim of an imported function, and the function, which it calls.
#[derive(Clone)]
pub(super) struct Direct {
    pub(super) code: Arc<MachineCode>,
    /// Keeps its data.
    pub(super) function: DirectFunction,
}

/// The reason why an imported function cannot be bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BindError {
    /// The machine has no imported function of this number.
    NotImported(Func),
    /// The function has another signature than the import.
    OtherSignature(Func),
    /// A function of the C convention cannot take or return values of this type, or returns more
    /// than one value (`None`).
    Unfit(Func, Option<Type>),
    /// The function takes the first memory, but promises to be pure, or there is no memory.
    Memory(Func),
    /// The import is declared with the first effect, but the function has the second, larger
    /// effect.
    Effect(Func, DeclaredEffect, DeclaredEffect),
    /// Code of this machine calls the function that is bound, at its address
    /// ([`crate::VersionSpec::calling`]). Uninstall or release the code before.
    InUse(Func),
    /// The shim cannot be compiled.
    Compile(CompileError),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::NotImported(func) => write!(f, "{func} is no imported function"),
            BindError::OtherSignature(func) => {
                write!(f, "the function for {func} has another signature than the import")
            }
            BindError::Unfit(func, Some(ty)) => {
                write!(f, "{func} takes or returns {ty}, which a direct function cannot")
            }
            BindError::Unfit(func, None) => {
                write!(f, "{func} has several results, and a direct function at most one")
            }
            BindError::Memory(func) => write!(
                f,
                "the function for {func} takes the first memory, but it is declared pure or the \
                 program has none"
            ),
            BindError::Effect(func, declared, effect) => {
                write!(f, "{func} is declared `{declared}`, and the function for it is `{effect}`")
            }
            BindError::InUse(func) => {
                write!(f, "code of the machine calls the function for {func} at its address")
            }
            BindError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for BindError {}
