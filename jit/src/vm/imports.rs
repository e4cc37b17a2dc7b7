//! Calls of imported functions, by native code, by the interpreter and by the embedder itself.

use super::direct;
use super::embedder::{Callback, CallbackCause, CallbackEnd};
use super::state::VmState;
use super::state::{RunAccess, RunEnding};
use super::stop::{RunError, RunStop};
use interp::{EarlyEnd, HostError, Site};
use ir::{DeclaredEffect, Func};
use smallvec::SmallVec;

/// Arguments or results. Few take no allocation, which costs as much as the rest of a call.
pub(super) type Words = SmallVec<[u64; 8]>;

/// Calls an imported function, and writes its results to an empty list: moving lists of words from
/// frame to frame took 12 of 80 ns of a call. The call is recorded in the trace.
///
/// # Errors
/// The end of the run. If the function itself ends the run, the end has no site yet.
pub(super) fn call(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
    results: &mut Words,
) -> Result<(), RunEnding> {
    debug_assert!(results.is_empty(), "jit: the results of one call");
    let state = access.state();
    if let Some(bound) = state.table.direct(func).cloned() {
        let called = direct::call(access, func, &bound, args).map_err(RunEnding::Known)?;
        results.extend_from_slice(&called);
        return Ok(());
    }
    results.resize(state.modules.current.signature(func).results.len(), 0);
    let run = state.run.as_mut().expect("jit: a run has a host");
    if let Some(host) = run.host() {
        let called = state.machine.call_imported(func, args, host, results);
        called.map_err(|error| RunEnding::AtHelper(EarlyEnd::Host(error)))?;
        state.stress_at(func);
        return Ok(());
    }
    state.machine.enter_imported(func, args);
    let watch = EffectWatch::begin(access, func);
    let called = ask(access, func, watch.effect, args, results)?;
    if let Some(what) = watch.breach(access, &called) {
        return Err(RunStop::Failed(RunError::Effect { func, promised: watch.effect, what }).into());
    }
    match called {
        Ok(()) => {
            let state = access.state();
            state.machine.leave_imported(func, results);
            state.stress_at(func);
            Ok(())
        }
        Err(end) => Err(match end.into_cause() {
            CallbackCause::Stop(stop) => stop.into(),
            CallbackCause::Host(error) => RunEnding::AtHelper(EarlyEnd::Host(error)),
        }),
    }
}

/// Asks the embedder for the results of an imported function.
fn ask(
    access: &mut RunAccess<'_>,
    func: Func,
    effect: DeclaredEffect,
    args: &[u64],
    results: &mut [u64],
) -> Result<Result<(), CallbackEnd>, RunEnding> {
    let called = access.ask_embedder(|embedder, access| {
        let mut back = Callback::of_import(access, func, effect);
        embedder.call(&mut back, func, args, results)
    });
    // The embedder may have ignored the end of a nested run.
    match access.run().ended.clone() {
        Some(stop) => Err((*stop).into()),
        None => Ok(called.expect("jit: each nested run has an embedder")),
    }
}

/// Compares a call by the embedder with the declared effect of the function.
struct EffectWatch {
    effect: DeclaredEffect,
    /// The memories before the call, in a checked machine.
    memory: Option<u64>,
}

impl EffectWatch {
    /// Cost: in a checked machine, the size of the memories if the function has a declared effect.
    fn begin(access: &RunAccess<'_>, func: Func) -> EffectWatch {
        let state = access.shared();
        let effect = state.modules.current.funcs[func].effect;
        let checked = state.modules.engine.config().checked && effect.is_bounded();
        EffectWatch { effect, memory: checked.then(|| state.machine.computed_memory_digest()) }
    }

    /// The effect of the call that the function's declaration does not allow.
    fn breach(&self, access: &RunAccess<'_>, called: &Result<(), CallbackEnd>) -> Option<String> {
        match called.as_ref().err().map(CallbackEnd::cause) {
            Some(CallbackCause::Host(HostError::Trap(kind))) if self.effect.is_none() => {
                return Some(format!("it traps: {kind}"));
            }
            Some(CallbackCause::Host(HostError::Exit(_))) if self.effect.is_none() => {
                return Some("it exits".to_owned());
            }
            _ => {}
        }
        let before = self.memory?;
        (access.shared().machine.computed_memory_digest() != before)
            .then(|| "it wrote memory".to_owned())
    }
}

impl VmState {
    /// Moves all references at the call of an imported function, if the machine is to be stressed.
    /// A function with a declared effect moves none.
    fn stress_at(&mut self, func: Func) {
        if self.modules.current.funcs[func].effect.is_bounded() {
            return;
        }
        if let Some(moved) = self.machine.next_stress() {
            self.visit_roots(&mut |word| moved.apply(word));
        }
    }
}

/// Like [`call`]. If the function itself ends the run, the end gets `site`: the site of the call,
/// or the function without an instruction if no code calls it.
pub(super) fn call_at(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
    site: Site,
) -> Result<Vec<u64>, RunStop> {
    let mut results = Words::new();
    match call(access, func, args, &mut results) {
        Ok(()) => Ok(results.into_vec()),
        Err(RunEnding::Known(stop)) => Err(stop),
        Err(RunEnding::AtHelper(end)) => {
            Err(RunStop::Outcome(access.state().machine.end_in_native(end, site)))
        }
    }
}
