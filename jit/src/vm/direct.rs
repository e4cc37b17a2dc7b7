//! Imported functions that are bound to functions of the embedder.
//!
//! The word of such a function in the context leads to its shim ([`crate::direct`]), so native code
//! calls it without a helper. The interpreter, the embedder and native code whose calls are
//! recorded or checked use [`call`], which enters the shim like a version.

use super::access::RunAccess;
use super::native;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use crate::code::MachineCode;
use crate::direct::DirectFunction;
use crate::error::CompileError;
use ir::{DeclaredEffect, Func, Type};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The shim of an imported function, and the promised effect of the function.
#[derive(Clone)]
pub(super) struct Direct {
    pub(super) code: Arc<MachineCode>,
    effect: DeclaredEffect,
    /// Keeps the data of the function.
    _keeps: Option<Arc<dyn Any + Send + Sync>>,
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
            BindError::Compile(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for BindError {}

impl VmState {
    /// Binds an imported function (see [`super::Vm::bind`]).
    pub(super) fn bind(&mut self, func: Func, function: &DirectFunction) -> Result<(), BindError> {
        let module = &self.modules.current;
        let decl = module.funcs.get(func).filter(|decl| decl.import.is_some());
        let decl = decl.ok_or(BindError::NotImported(func))?;
        let signature = module.signature(func);
        if *signature != function.signature {
            return Err(BindError::OtherSignature(func));
        }
        if let Some(ty) = function.other_type() {
            return Err(BindError::Unfit(func, Some(ty)));
        }
        if signature.results.len() > 1 {
            return Err(BindError::Unfit(func, None));
        }
        if function.effect < decl.effect {
            return Err(BindError::Effect(func, decl.effect, function.effect));
        }
        let can_access = function.effect < DeclaredEffect::Pure && !module.memories.is_empty();
        if function.takes_memory && !can_access {
            return Err(BindError::Memory(func));
        }
        let code = self.modules.engine.direct(func, &decl.name, function);
        let code = Arc::new(code.map_err(BindError::Compile)?);
        let _keeps = function.keeps.clone();
        self.table.bind(func, Some(Direct { code, effect: function.effect, _keeps }));
        self.point_at_current(func);
        self.sweep();
        Ok(())
    }

    /// Undoes [`VmState::bind`].
    pub(super) fn unbind(&mut self, func: Func) {
        if self.table.direct(func).is_some() {
            self.table.bind(func, None);
            self.point_at_current(func);
            self.sweep();
        }
    }

    /// The code that native code calls for a bound function. `None` if each call must go through
    /// [`call`], which records and checks it.
    pub(super) fn direct_code(&self, func: Func) -> Option<&Arc<MachineCode>> {
        let is_watched = self.machine.is_tracing() || self.modules.engine.config().checked;
        self.table.direct(func).filter(|_| !is_watched).map(|direct| &direct.code)
    }
}

/// Calls a bound function through its shim, and records the call in the trace. Returns its results.
/// With [`crate::Config::checked`], the call costs the size of the memories, and a function that
/// promises to have no effect runs twice.
///
/// # Errors
/// [`RunError::Effect`] if a checked run observes a larger effect than the function promises.
pub(super) fn call(
    access: &mut RunAccess<'_>,
    func: Func,
    direct: &Direct,
    args: &[u64],
) -> Result<Vec<u64>, RunStop> {
    access.state().machine.enter_imported(func, args);
    let checked = access.shared().modules.engine.config().checked;
    let mut results = match checked {
        true => checked_call(access, func, direct, args)?,
        false => native::call(access, native::EnteredCode::of(&direct.code), func, args)?,
    };
    access.state().machine.leave_imported(func, &mut results);
    Ok(results)
}

/// Calls a function, and compares its effect with the promised effect.
fn checked_call(
    access: &mut RunAccess<'_>,
    func: Func,
    direct: &Direct,
    args: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let promised = direct.effect;
    let too_small =
        |what: &str| RunStop::Failed(RunError::Effect { func, promised, what: what.to_owned() });
    let before = access.shared().machine.computed_memory_digest();
    let results = native::call(access, native::EnteredCode::of(&direct.code), func, args)?;
    let after = access.shared().machine.computed_memory_digest();
    if promised > DeclaredEffect::Any && before != after {
        return Err(too_small("it wrote memory"));
    }
    if promised.is_none()
        && native::call(access, native::EnteredCode::of(&direct.code), func, args)? != results
    {
        return Err(too_small("two calls with equal arguments gave different results"));
    }
    Ok(results)
}
