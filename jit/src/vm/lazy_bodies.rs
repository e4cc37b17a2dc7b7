//! Bodies that come later: supplied by the embedder ahead of a call, or when the call comes.
//!
//! Example: a virtual machine has a library of 10,000 functions, and a program calls 40 of them. It
//! declares all with [`Module::define_later`], and translates a function when the run asks for it
//! ([`super::Embedder::supply`]). This reallocates nothing: the module, the program of the
//! interpreter and the context of native code have room for the function since its declaration.

use super::embedder::{Callback, CallbackCause};
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use interp::{EarlyEnd, Site};
use ir::{Func, Function, SupplyError};
use std::sync::Arc;

impl VmState {
    /// Supplies the body of a function that awaits it (see [`super::Vm::supply`]).
    pub(super) fn supply(&mut self, func: Func, body: Arc<Function>) -> Result<(), SupplyError> {
        self.modules.current.supply(func, body)?;
        self.take_up(func);
        Ok(())
    }

    /// Takes up the body of a function, which the module has now. Logarithmic cost.
    fn take_up(&mut self, func: Func) {
        self.machine.take_up(&self.modules.current, func);
        if let Some(base) = self.machine.current(func) {
            self.modules.add_base(func, base);
        }
    }
}

/// Provides the body of a function that is called. Does nothing if the function has one.
///
/// # Errors
/// If the embedder ends the run, the body does not fit, or the run has no embedder. The site of the
/// end is `site`.
pub(super) fn provide(access: &mut RunAccess<'_>, func: Func, site: &Site) -> Result<(), RunStop> {
    let state = access.state();
    if !state.machine.awaits_body(func) {
        return Ok(());
    }
    // Another machine with the same module may have supplied it.
    if state.modules.current.body(func).is_some() {
        state.take_up(func);
        return Ok(());
    }
    let ended = |access: &mut RunAccess<'_>, error| {
        RunStop::Outcome(access.state().machine.end_in_native(EarlyEnd::Host(error), site.clone()))
    };
    let asked =
        access.ask_embedder(|embedder, access| embedder.supply(&mut Callback::new(access), func));
    // The embedder may have ignored the end of a nested run.
    if let Some(stop) = access.run().ended.clone() {
        return Err(*stop);
    }
    let body = match asked {
        Some(Ok(body)) => body,
        Some(Err(end)) => {
            return Err(match end.into_cause() {
                CallbackCause::Stop(stop) => stop,
                CallbackCause::Host(error) => ended(access, error),
            });
        }
        None => {
            let missing = access.state().machine.body_missing(func);
            return Err(ended(access, missing));
        }
    };
    // A nested run may have supplied the same function meanwhile.
    if !access.state().machine.awaits_body(func) {
        return Ok(());
    }
    let state = access.state();
    match state.supply(func, body) {
        // Another machine with the module has supplied it meanwhile
        // (`a_body_may_come_from_elsewhere_meanwhile`).
        Err(SupplyError::NotAwaited { .. }) if state.modules.current.body(func).is_some() => {
            state.take_up(func);
            Ok(())
        }
        supplied => supplied.map_err(|error| RunStop::Failed(RunError::Supply { func, error })),
    }
}
