//! The interpreter's part of a run: until it ends, or goes on natively.

use super::native;
use super::state::State;
use super::stop::{RunError, Stop};
use super::tiering::Ascent;
use crate::code::Code;
use crate::error::ContinueError;
use check::CheckedEntry;
use interp::{EarlyEnd, FireError, Nested, Outcome, Resumed, Run, TransferError};
use ir::{Func, Value};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use transition::mapping::Entry;

/// How a nested run of the interpreter went on.
pub(super) enum Ended {
    /// Its function returned these values.
    Returned(Vec<u64>),
    /// Its function goes on in native code; what that needs is in the buffer. The interpreter has
    /// no frame of it any more.
    Ascends(Ascent),
}

/// Interprets a function to its end.
///
/// # Safety
/// As [`native::run`].
pub(super) unsafe fn invoke(vm: *mut State, func: Func, args: &[u64]) -> Result<Vec<u64>, Stop> {
    // SAFETY: nobody else has a reference, and this one ends before anything runs.
    let nested = unsafe { &mut *vm }.machine.begin_nested(func, args);
    let Ok(nested) = nested else {
        // SAFETY: as above.
        let machine = unsafe { &mut (*vm).machine };
        let site = machine.site(func, None);
        return Err(Stop::Outcome(machine.end_in_native(EarlyEnd::StackOverflow, site)));
    };
    // SAFETY: as above.
    match unsafe { go_on(vm, nested) }? {
        Ended::Returned(values) => Ok(values),
        Ended::Ascends(ascent) => {
            // SAFETY: nobody has a reference; what the continuation needs is in the buffer.
            let results = unsafe { &*vm }.module.signature(func).results.to_vec();
            // SAFETY: as above.
            unsafe { native::resume(vm, &ascent.code, &results) }
        }
    }
}

/// Goes on with a nested run until its function ends, or goes on natively.
///
/// # Safety
/// As [`native::run`].
pub(super) unsafe fn go_on(vm: *mut State, nested: Nested) -> Result<Ended, Stop> {
    let outermost = {
        // SAFETY: nobody else has a reference; this one ends before anything runs.
        let state = unsafe { &mut *vm };
        state.depth += 1;
        state.machine.view().map_or(0, |view| view.depth())
    };
    // A panic of the host passes, and a handler may be in its way that goes on
    // (`a_panic_below_a_handler_leaves_nothing_behind`). SAFETY: nobody has a reference.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { until_end(vm, outermost) }));
    // SAFETY: the run has ended.
    let state = unsafe { &mut *vm };
    state.depth -= 1;
    if !matches!(ended, Ok(Ok(_))) {
        state.machine.abandon();
    }
    state.machine.end_nested(nested);
    ended.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs until the activation at a depth has ended.
///
/// # Safety
/// As [`native::run`].
unsafe fn until_end(vm: *mut State, outermost: usize) -> Result<Ended, Stop> {
    loop {
        // SAFETY: nobody else has a reference. The interpreter calls the host, which has none to
        // the state.
        match unsafe { &mut *vm }.run_interpreter() {
            Run::Done(Outcome::Returned(values)) => return Ok(Ended::Returned(values)),
            Run::Done(outcome) => return Err(Stop::Outcome(outcome)),
            Run::Called { func, args } => {
                // SAFETY: the reference of above has ended.
                let results = unsafe { native::run_called(vm, func, &args) }?;
                // SAFETY: the call has ended.
                if let Resumed::Ended(values) =
                    unsafe { &mut *vm }.machine.return_from_call(&results)
                {
                    return Ok(Ended::Returned(values));
                }
            }
            Run::Paused => {
                // SAFETY: as above.
                if let Some(ended) = unsafe { ascend(vm, outermost) }? {
                    return Ok(ended);
                }
            }
        }
    }
}

/// A loop turned hot: goes on in native code if there is some. `None` when the interpreter goes on.
///
/// # Safety
/// As [`native::run`].
unsafe fn ascend(vm: *mut State, outermost: usize) -> Result<Option<Ended>, Stop> {
    // SAFETY: nobody else has a reference, and this one ends before native code runs.
    let state = unsafe { &mut *vm };
    let Some(ascent) = state.ascent()? else { return Ok(None) };
    let depth = state.machine.view().map_or(0, |view| view.depth());
    state.machine.leave_activation();
    if depth == outermost {
        return Ok(Some(Ended::Ascends(ascent)));
    }
    let results = state.module.signature(ascent.func).results.to_vec();
    // SAFETY: `state` is not used any more; what the continuation needs is in the buffer.
    let values = unsafe { native::resume(vm, &ascent.code, &results) }?;
    // SAFETY: native code has been left.
    match unsafe { &mut *vm }.machine.return_from_call(&values) {
        Resumed::Ended(values) => Ok(Some(Ended::Returned(values))),
        Resumed::InCaller => Ok(None),
    }
}

impl State {
    fn run_interpreter(&mut self) -> Run {
        let mut host = self.host.expect("jit: a run has a host");
        // SAFETY: the host of the run is borrowed until the run has ended, and nobody else uses it
        // now.
        let host = unsafe { host.as_mut() };
        if self.profile.watches() {
            self.machine.run(host, &mut self.profile)
        } else {
            self.machine.run(host, &mut interp::NoObserver)
        }
    }

    /// Runs the compensation code of an entry to the base: what it assigns. Its stores are
    /// executed.
    pub(super) fn compensate(
        &mut self,
        func: Func,
        entry: &Entry,
        read: impl Fn(Value) -> u64,
    ) -> Result<Vec<(Value, u64)>, Stop> {
        let mut assigned = Vec::new();
        let writes = entry.run(read, |value, bits| assigned.push((value, bits)));
        let writes = writes.map_err(|fault| self.refused(func, fault.to_string()))?;
        for write in &writes {
            let store = RunError::Store { func, target: entry.target.inst() };
            self.machine.write(write).map_err(|_| Stop::Failed(store))?;
        }
        Ok(assigned)
    }

    /// Starts the base of a function at the landing point of an entry.
    pub(super) fn descend(
        &mut self,
        func: Func,
        entry: CheckedEntry<'_>,
        read: impl Fn(Value) -> u64,
    ) -> Result<Nested, Stop> {
        let base = self
            .bases
            .get(&func)
            .copied()
            .ok_or_else(|| self.refused(func, "it is imported".to_owned()))?;
        let nested = self.machine.begin_nested_at(base, entry, read);
        nested.map_err(|error| match error {
            FireError::Transfer(TransferError::StackOverflow) => {
                Stop::Failed(RunError::StackOverflow { func })
            }
            FireError::Store(_) => {
                Stop::Failed(RunError::Store { func, target: entry.entry().target.inst() })
            }
            error => self.refused(func, error.to_string()),
        })
    }

    fn refused(&self, func: Func, what: String) -> Stop {
        let function = self.module.funcs[func].name.clone();
        Stop::Failed(RunError::Continue(ContinueError::NotBuilt { function, what }))
    }

    /// The address of code that is kept as long as it may be executed.
    pub(super) fn kept(&mut self, code: &Arc<Code>) -> *const u8 {
        self.keep(code);
        code.entry()
    }
}
