//! Calls of functions by a run and by its owner, whichever engine runs the function.

use super::native::{self, EnteredCode};
use super::state::{HostedRun, RunAccess, VmState};
use super::stop::{RunError, RunStop};
use super::{imports, interpret, lazy_bodies};
use interp::Outcome;
use ir::Func;

#[cold]
#[expect(clippy::boxed_local, reason = "the caller has a box, and stays short without the move")]
fn ended(stop: Box<RunStop>) -> Result<Outcome, RunError> {
    match *stop {
        RunStop::Outcome(outcome) => Ok(outcome),
        RunStop::Failed(error) => Err(error),
    }
}

/// [`run_called`] for [`VmState::invoke`].
#[cold]
fn run_first(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, Box<RunStop>> {
    run_called(access, func, args).map_err(Box::new)
}

impl VmState {
    /// Runs a function to its end (see [`super::Vm::invoke`] and [`super::Vm::run`]).
    ///
    /// # Safety
    /// The borrow with which `run` was made outlasts the call.
    #[inline(always)]
    pub(super) unsafe fn invoke(
        &mut self,
        func: Func,
        args: &[u64],
        run: HostedRun,
    ) -> Result<Outcome, RunError> {
        // SAFETY: the caller guarantees for `run` what `begin` asks for: the run ends below.
        let current = match unsafe { self.begin(run) } {
            Ok(current) => current,
            Err(stop) => return ended(stop),
        };
        let mut access = RunAccess::start(current.state);
        let called = native::call_again(&mut access, func, args);
        let called = called.unwrap_or_else(|| run_first(&mut access, func, args));
        current.end();
        match called {
            Ok(values) => Ok(self.returned(values)),
            Err(stop) => ended(stop),
        }
    }
}

/// Runs a function that a run calls: an imported function, native code if the function has some, or
/// else the interpreter. Returns its results.
///
/// # Panics
/// If the number of arguments differs from the number of the function's parameters.
pub(super) fn run_called(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let state = access.state();
    // The trampoline reads one word for each parameter (`too_few_arguments_are_a_panic`).
    let params = state.modules.current.signature(func).params.len();
    assert_eq!(args.len(), params, "jit: the number of arguments of {func}");
    if state.modules.is_imported(func) {
        let site = state.machine.site(func, None);
        return imports::call_at(access, func, args, site);
    }
    if state.table.installed(func).is_some() && !state.has_way_in(func)? {
        state.uninstall(func);
    }
    if let Some(version) = state.table.installed(func) {
        let code = EnteredCode::of(&version.code);
        return native::call(access, code, func, args);
    }
    if state.machine.awaits_body(func) {
        let site = state.machine.site(func, None);
        lazy_bodies::provide(access, func, &site)?;
        // The embedder may have compiled it.
        if let Some(version) = access.state().table.installed(func) {
            let code = EnteredCode::of(&version.code);
            return native::call(access, code, func, args);
        }
    }
    interpret::invoke(access, func, args)
}
