//! Imported functions that are bound to functions of the embedder.
//!
//! The word of such a function in the context leads to its shim ([`crate::direct`]), so native code
//! calls it without a helper. The interpreter, the embedder and native code whose calls are
//! recorded or checked use [`call`], which enters the shim like a version.

use super::bound::{BindError, Direct};
use super::native;
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use crate::code::MachineCode;
use crate::direct::{BoundFunctions, DirectFunction};
use crate::version::Version;
use ir::{DeclaredEffect, Func};
use std::sync::Arc;

impl VmState {
    /// Binds an imported function (see [`super::Vm::bind`]).
    pub(super) fn bind(&mut self, func: Func, function: &DirectFunction) -> Result<(), BindError> {
        // A run that panicked has left retired code, which calls nothing any more
        // (`code_of_a_run_that_panicked_keeps_no_function`).
        self.sweep();
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
        self.require_unused(func)?;
        let code = self.modules.engine.direct(func, &decl.name, function);
        let code = Arc::new(code.map_err(BindError::Compile)?);
        self.table.bind(func, Some(Direct { code, function: function.clone() }));
        self.point_at_current(func);
        self.sweep();
        Ok(())
    }

    /// Undoes [`VmState::bind`].
    pub(super) fn unbind(&mut self, func: Func) -> Result<(), BindError> {
        if self.table.direct(func).is_some() {
            // As in `bind`.
            self.sweep();
            self.require_unused(func)?;
            self.table.bind(func, None);
            self.point_at_current(func);
            self.sweep();
        }
        Ok(())
    }

    /// Checks that no code calls the function for an import at its address. Linear in the pieces of
    /// code.
    fn require_unused(&self, func: Func) -> Result<(), BindError> {
        if self.table.calls_directly(func) { Err(BindError::InUse(func)) } else { Ok(()) }
    }

    /// The functions that this machine has bound.
    pub(super) fn bound(&self) -> BoundFunctions {
        let bound = self.table.bound();
        BoundFunctions(Arc::new(bound.map(|(func, d)| (func, d.function.clone())).collect()))
    }

    /// The first import whose function a version calls at its address, but this machine may not.
    pub(super) fn not_bound(&self, version: &Version) -> Option<Func> {
        let mut called = version.bound.0.iter();
        let is_bound = |func: Func, direct: &DirectFunction| {
            // Code cannot record the calls (`a_traced_machine_refuses_calls_at_addresses`).
            !self.machine.is_tracing()
                && self.table.direct(func).is_some_and(|bound| bound.function.is(direct))
        };
        called.find(|(func, direct)| !is_bound(**func, direct)).map(|(func, _)| *func)
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
    let promised = direct.function.effect;
    let too_small =
        |what: &str| RunStop::Failed(RunError::Effect { func, promised, what: what.to_owned() });
    let before = access.shared().machine.computed_memory_digest();
    let results = native::call(access, native::EnteredCode::of(&direct.code), func, args)?;
    let after = access.shared().machine.computed_memory_digest();
    if promised.is_bounded() && before != after {
        return Err(too_small("it wrote memory"));
    }
    if promised.is_none()
        && native::call(access, native::EnteredCode::of(&direct.code), func, args)? != results
    {
        return Err(too_small("two calls with equal arguments gave different results"));
    }
    Ok(results)
}
