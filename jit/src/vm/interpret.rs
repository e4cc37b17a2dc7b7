//! The interpreter's part of a run: from a call or a transition until its function ends or
//! continues in native code.

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

/// The end of a nested run of the interpreter.
pub(super) enum Ended {
    /// The function returned these values.
    Returned(Vec<u64>),
    /// The function continues in native code, whose inputs are in the buffer. The interpreter has
    /// removed its frame.
    Ascends(Ascent),
}

/// Interprets a function. If a loop of it turns hot, native code finishes it. Returns its results.
///
/// # Safety
/// `vm` fulfills the contract of [`native::run`].
pub(super) unsafe fn invoke(vm: *mut State, func: Func, args: &[u64]) -> Result<Vec<u64>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. This reference ends with
    // the statement, before any code runs.
    let nested = unsafe { &mut *vm }.machine.begin_nested(func, args);
    let Ok(nested) = nested else {
        // SAFETY: the reference above has ended, and the caller guarantees that there is no other.
        // No code runs before this one ends.
        let machine = unsafe { &mut (*vm).machine };
        let site = machine.site(func, None);
        return Err(Stop::Outcome(machine.end_in_native(EarlyEnd::StackOverflow, site)));
    };
    // SAFETY: the references above have ended, so the caller's guarantee for `vm` holds again.
    match unsafe { go_on(vm, nested) }? {
        Ended::Returned(values) => Ok(values),
        Ended::Ascends(ascent) => {
            // SAFETY: `go_on` has returned and keeps no reference. This one ends with the
            // statement.
            let results = unsafe { &*vm }.module.signature(func).results.to_vec();
            // SAFETY: no reference to the state is left. The code is a continuation of `func`,
            // which has these results, and `State::ascent` stored its inputs to the buffer.
            unsafe { native::resume(vm, &ascent.code, &results) }
        }
    }
}

/// Continues a nested run until its function ends or continues in native code.
///
/// # Safety
/// `vm` fulfills the contract of [`native::run`].
pub(super) unsafe fn go_on(vm: *mut State, nested: Nested) -> Result<Ended, Stop> {
    let outermost = {
        // SAFETY: the caller guarantees a live state without other references. This reference ends
        // with the block, before the interpreter runs.
        let state = unsafe { &mut *vm };
        state.depth += 1;
        state.machine.view().map_or(0, |view| view.depth())
    };
    // A panic of the host passes on. It must not skip the lines below, since a handler further up
    // may catch it and leave the machine in use (`a_panic_below_a_handler_leaves_nothing_behind`).
    // SAFETY: the reference above has ended, so the caller's guarantee for `vm` holds.
    let ended = catch_unwind(AssertUnwindSafe(|| unsafe { until_end(vm, outermost) }));
    // SAFETY: `until_end` has returned or panicked and keeps no reference; the caller guarantees
    // that there is no other.
    let state = unsafe { &mut *vm };
    state.depth -= 1;
    if !matches!(ended, Ok(Ok(_))) {
        state.machine.abandon();
    }
    state.machine.end_nested(nested);
    ended.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs the interpreter until the activation at depth `outermost` has ended.
///
/// # Safety
/// `vm` fulfills the contract of [`native::run`].
unsafe fn until_end(vm: *mut State, outermost: usize) -> Result<Ended, Stop> {
    loop {
        // SAFETY: the caller guarantees a live state without other references. The interpreter may
        // call the host, which has no access to the state. The reference ends when the interpreter
        // returns.
        match unsafe { &mut *vm }.run_interpreter() {
            Run::Done(Outcome::Returned(values)) => return Ok(Ended::Returned(values)),
            Run::Done(outcome) => return Err(Stop::Outcome(outcome)),
            Run::Called { func, args } => {
                // SAFETY: `run_interpreter` has returned, and its result holds no reference to the
                // state.
                let results = unsafe { native::run_called(vm, func, &args) }?;
                // SAFETY: the call has returned and keeps no reference to the state. This one ends
                // with the statement.
                if let Resumed::Ended(values) =
                    unsafe { &mut *vm }.machine.return_from_call(&results)
                {
                    return Ok(Ended::Returned(values));
                }
            }
            Run::Paused => {
                // SAFETY: `run_interpreter` has returned, so no reference to the state is left.
                if let Some(ended) = unsafe { ascend(vm, outermost) }? {
                    return Ok(ended);
                }
            }
        }
    }
}

/// Continues a hot loop in native code, if the embedder has a continuation for it. Returns `None`
/// if the interpreter continues.
///
/// # Safety
/// `vm` fulfills the contract of [`native::run`].
unsafe fn ascend(vm: *mut State, outermost: usize) -> Result<Option<Ended>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. The last use of this
    // reference comes before native code runs.
    let state = unsafe { &mut *vm };
    let Some(ascent) = state.ascent()? else { return Ok(None) };
    let depth = state.machine.view().map_or(0, |view| view.depth());
    state.machine.leave_activation();
    // The outermost activation of the nested run has no caller in the interpreter. Its native code
    // may take the place of the code that called, without another entry.
    if depth == outermost {
        return Ok(Some(Ended::Ascends(ascent)));
    }
    let results = state.module.signature(ascent.func).results.to_vec();
    // SAFETY: `state` is not used any more. The code is a continuation of the function, which has
    // these results, and `State::ascent` stored its inputs to the buffer.
    let values = unsafe { native::resume(vm, &ascent.code, &results) }?;
    // SAFETY: native code has returned, so its helpers' references to the state have ended. This
    // one ends with the statement.
    match unsafe { &mut *vm }.machine.return_from_call(&values) {
        Resumed::Ended(values) => Ok(Some(Ended::Returned(values))),
        Resumed::InCaller => Ok(None),
    }
}

impl State {
    fn run_interpreter(&mut self) -> Run {
        let mut host = self.host.expect("jit: a run has a host");
        // SAFETY: `invoke` set the pointer from a borrow that lasts until the run ends, and clears
        // it then. The run is on one thread and calls the host here and in `call_host`, one at a
        // time, so no other reference to the host is alive.
        let host = unsafe { host.as_mut() };
        if self.profile.watches() {
            self.machine.run(host, &mut self.profile)
        } else {
            self.machine.run(host, &mut interp::NoObserver)
        }
    }

    /// Runs the compensation code of an entry to the base, and executes its replayed stores.
    /// Returns the values that it assigns.
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

    /// Starts the base version of a function at the landing point of an entry.
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

    /// Keeps code as long as it may be executed, and returns its address.
    pub(super) fn kept(&mut self, code: &Arc<Code>) -> *const u8 {
        self.keep(code);
        code.entry()
    }
}
