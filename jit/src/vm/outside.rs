//! Calls of imported functions, by native code, by the interpreter and by the embedder itself.

use super::access::{RunAccess, RunEnding};
use super::direct;
use super::embedder::{Callback, CallbackCause, CallbackEnd};
use super::state::VmState;
use super::stop::RunStop;
use interp::{EarlyEnd, Site};
use ir::Func;

/// Calls an imported function. Returns its results. The call is recorded in the trace.
///
/// # Errors
/// The end of the run. That of the function itself has no site yet.
pub(super) fn call(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, RunEnding> {
    let state = access.state();
    if let Some(bound) = state.table.direct(func).cloned() {
        return direct::call(access, func, &bound, args).map_err(RunEnding::Known);
    }
    let mut results = vec![0; state.modules.current.signature(func).results.len()];
    let run = state.run.as_mut().expect("jit: a run has a host");
    if let Some(host) = run.host() {
        let called = state.machine.call_imported(func, args, host, &mut results);
        called.map_err(|error| RunEnding::AtHelper(EarlyEnd::Host(error)))?;
        state.stress();
        return Ok(results);
    }
    state.machine.enter_imported(func, args);
    let called = access.ask_embedder(|embedder, access| {
        embedder.call(&mut Callback::new(access), func, args, &mut results)
    });
    // The embedder may have ignored the end of a nested run.
    if let Some(stop) = access.run().ended.clone() {
        return Err(stop.into());
    }
    match called.expect("jit: each nested run has an embedder") {
        Ok(()) => {
            access.state().machine.leave_imported(func, &mut results);
            access.state().stress();
            Ok(results)
        }
        Err(CallbackEnd(CallbackCause::Stop(stop))) => Err(stop.into()),
        Err(CallbackEnd(CallbackCause::Host(error))) => {
            Err(RunEnding::AtHelper(EarlyEnd::Host(error)))
        }
    }
}

impl VmState {
    /// Moves all references, if the machine is to be stressed.
    fn stress(&mut self) {
        if let Some(moved) = self.machine.next_stress() {
            self.visit_roots(&mut |word| moved.apply(word));
        }
    }
}

/// As [`call`]. An end of the function itself gets this site: that of the call, or of the function
/// without an instruction if no code calls it.
pub(super) fn call_at(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
    site: Site,
) -> Result<Vec<u64>, RunStop> {
    call(access, func, args).map_err(|ending| match ending {
        RunEnding::Known(stop) => stop,
        RunEnding::AtHelper(end) => {
            RunStop::Outcome(access.state().machine.end_in_native(end, site))
        }
    })
}
