//! The Rust functions that native code calls.
//!
//! Each one reaches the state through the context, does one thing, and tells native code where
//! everything lies afterwards. A status other than 0 makes the native code trap, so that the run is
//! unwound to the innermost entry, native frames only.

use super::native;
use super::state::State;
use super::stop::Stop;
use super::{interpret, leave};
use crate::context::{Context, Helpers, LAZY_DONE};
use crate::sys::enter::{Status, guard};
use crate::sys::{ExitFrame, exit};
use interp::EarlyEnd;
use ir::{Func, InstData};
use std::sync::Arc;

/// The helpers, as contexts have them.
pub(super) const TABLE: Helpers = Helpers {
    perform,
    call_host,
    call_lazy,
    trace_call,
    trace_return,
    exit,
    describe,
    leave: leave_through,
};

/// Runs the body of a helper: takes back what native code changed before, and tells it afterwards
/// what has changed.
fn with_state(context: *mut Context, body: impl FnOnce(*mut State) -> Result<u64, ()>) -> u64 {
    let mut result = 0;
    let status = guard(|| {
        // SAFETY: native code passes the context it was given, whose `vm` is the state that entered
        // it; that one keeps no reference while native code runs (see `State`).
        let vm: *mut State = unsafe { (*context).vm.cast() };
        // SAFETY: as above; the reference ends with the statement.
        unsafe { (*vm).take_back() };
        let made = body(vm).and_then(|value| {
            // SAFETY: as above.
            let state = unsafe { &mut *vm };
            state.share().map(|()| value).map_err(|error| {
                state.early = None;
                state.stop = Some(Stop::Failed(error));
            })
        });
        match made {
            Ok(value) => {
                result = value;
                Status::Continue
            }
            Err(()) => Status::Raise,
        }
    });
    match status {
        Status::Continue => result,
        Status::Raise => FAILED,
    }
}

/// What [`with_state`] gives when the run ends. No helper's result otherwise.
const FAILED: u64 = u64::MAX;

/// A status: 0 when native code goes on.
fn status(context: *mut Context, body: impl FnOnce(&mut State) -> Result<(), ()>) -> u64 {
    // SAFETY: the pointer is to the state, see `with_state`, and the body keeps no reference.
    with_state(context, |vm| body(unsafe { &mut *vm }).map(|()| 0))
}

/// A code address: 0 when the run ends. `None` for an end that the state has word of
/// ([`State::early`]).
fn address(
    context: *mut Context,
    body: impl FnOnce(*mut State) -> Result<u64, Option<Stop>>,
) -> u64 {
    let made = with_state(context, |vm| {
        body(vm).map_err(|stop| {
            // SAFETY: the pointer is to the state, and the body is done with it.
            unsafe { (*vm).stop = stop };
        })
    });
    if made == FAILED { 0 } else { made }
}

extern "C" fn perform(context: *mut Context, inst: *const InstData) -> u64 {
    status(context, |state| {
        // SAFETY: the code that calls has the address of an instruction that it owns
        // (`Lowered::performed`).
        let inst = unsafe { &*inst };
        let args: Vec<u64> = state.buffer[..inst.args.len()].to_vec();
        let extra = state.machine.charge(inst, &args);
        if extra > state.machine.fuel() {
            state.early = Some(EarlyEnd::OutOfFuel);
            return Err(());
        }
        state.machine.set_fuel(state.machine.fuel() - extra);
        match state.machine.perform(inst, &args) {
            Ok(result) => {
                if let Some(bits) = result {
                    state.buffer[0] = bits;
                }
                Ok(())
            }
            Err(kind) => {
                state.early = Some(EarlyEnd::Trap(kind));
                Err(())
            }
        }
    })
}

extern "C" fn call_host(context: *mut Context, func: u64) -> u64 {
    status(context, |state| state.call_host(Func::from_u32(func as u32)))
}

extern "C" fn call_lazy(context: *mut Context) -> u64 {
    address(context, |vm| {
        // SAFETY: the pointer is to the state, and this reference ends before anything runs.
        let (func, args) = unsafe {
            let func = Func::from_u32((*context).pending as u32);
            let state = &mut *vm;
            if state.module.funcs[func].import.is_some() {
                return state.call_host(func).map(|()| LAZY_DONE).map_err(|()| None);
            }
            let count = state.module.signature(func).params.len();
            (func, state.buffer[..count].to_vec())
        };
        // SAFETY: no reference is left.
        let compiled = unsafe { native::demand(vm, func) }.map_err(Some)?;
        if let Some(code) = compiled {
            return Ok(code.entry().addr() as u64);
        }
        // SAFETY: as above.
        let results = unsafe { interpret::invoke(vm, func, &args) }.map_err(Some)?;
        // SAFETY: the run has ended.
        unsafe { (&mut *vm).buffer[..results.len()].copy_from_slice(&results) };
        Ok(LAZY_DONE)
    })
}

extern "C" fn trace_call(context: *mut Context, func: u64) -> u64 {
    status(context, |state| {
        let func = Func::from_u32(func as u32);
        // A call of the host notes itself.
        if state.module.funcs[func].import.is_none() {
            let count = state.module.signature(func).params.len();
            let args = state.buffer[..count].to_vec();
            state.machine.trace_call(func, &args);
        }
        Ok(())
    })
}

extern "C" fn trace_return(context: *mut Context, func: u64) -> u64 {
    status(context, |state| {
        let func = Func::from_u32(func as u32);
        if state.module.funcs[func].import.is_none() {
            let results = state.buffer[..state.module.signature(func).results.len()].to_vec();
            state.machine.trace_return(&results);
        }
        Ok(())
    })
}

/// Nothing runs here, and native code has changed nothing that has to be taken back before.
extern "C" fn describe(context: *mut Context, frame: *const ExitFrame) -> i64 {
    let mut number = -1;
    guard(|| {
        // SAFETY: as in `with_state`; the reference ends with the body.
        let state = unsafe { &mut *(*context).vm.cast::<State>() };
        // SAFETY: the stub that calls has just made the frame.
        let call = unsafe { (*frame).returns_to } as usize - 1;
        let from = state.code_at(call).map(Arc::clone).expect("jit: code that runs is kept");
        // SAFETY: as above.
        let point = unsafe { from.read_exit(frame, &mut state.buffer) };
        number = i64::from(point.expect("jit: what calls is an exit of the code"));
        Status::Continue
    });
    number
}

extern "C" fn leave_through(context: *mut Context) -> u64 {
    address(context, |vm| {
        // SAFETY: the context is native code's own.
        let cell = unsafe { (*context).pending } as usize;
        // SAFETY: the pointer is to the state, and nobody has a reference.
        unsafe { leave::leave(vm, cell) }.map_err(Some)
    })
}

impl State {
    /// Calls a function of the host with the arguments in the buffer; its results are there
    /// afterwards.
    pub(super) fn call_host(&mut self, func: Func) -> Result<(), ()> {
        let module = Arc::clone(&self.module);
        let signature = module.signature(func);
        let args: Vec<u64> = self.buffer[..signature.params.len()].to_vec();
        let mut results = vec![0; signature.results.len()];
        let mut host = self.host.expect("jit: a run has a host");
        // SAFETY: the host of the run is borrowed until the run has ended, and nobody else uses it
        // now.
        let host = unsafe { host.as_mut() };
        match self.machine.call_imported(func, &args, host, &mut results) {
            Ok(()) => {
                self.buffer[..results.len()].copy_from_slice(&results);
                Ok(())
            }
            Err(error) => {
                self.early = Some(EarlyEnd::Host(error));
                Err(())
            }
        }
    }

    /// The end that a call of the host has left, at a place that is not known closer.
    pub(super) fn early_stop(&mut self, func: Func) -> Stop {
        let site = self.machine.site(func, None);
        match self.early.take() {
            Some(end) => Stop::Outcome(self.machine.end_in_native(end, site)),
            None => self.take_stop(),
        }
    }
}
