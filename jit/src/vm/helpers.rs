//! The Rust helpers that native code calls.
//!
//! Each helper reaches the state through the context, does one thing, and then updates the context
//! with the current addresses of memories, tables and globals. If a helper returns a status other
//! than 0, the native code traps. The trap unwinds the run to the innermost entry, over native
//! frames alone.

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

/// The helpers as the context lists them.
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

/// Runs the body of a helper. Reads the fuel back from the context before, and updates the context
/// afterwards. Returns `FAILED` if the run ends.
fn with_state(context: *mut Context, body: impl FnOnce(*mut State) -> Result<u64, ()>) -> u64 {
    let mut result = 0;
    let status = guard(|| {
        // SAFETY: native code passes the context that it was entered with, which is live while
        // native code runs. `State::fill_context` set `vm` to the state that owns the context.
        let vm: *mut State = unsafe { (*context).vm.cast() };
        // SAFETY: `vm` is the live state of this run. The code that entered native code keeps no
        // reference to it while native code runs (see `State`), and this one ends with the
        // statement.
        unsafe { (*vm).take_back() };
        let made = body(vm).and_then(|value| {
            // SAFETY: `body` has returned and keeps no reference to the state. Native code waits
            // for this helper, so no other reference exists until the closure ends.
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

/// The result of [`with_state`] if the run ends. No helper returns it otherwise: it is neither a
/// code address nor a status.
const FAILED: u64 = u64::MAX;

/// Runs the body of a helper that returns a status: 0 if native code continues.
fn status(context: *mut Context, body: impl FnOnce(&mut State) -> Result<(), ()>) -> u64 {
    // SAFETY: `with_state` passes the live state of the run and holds no reference to it while the
    // body runs. The reference ends with the body.
    with_state(context, |vm| body(unsafe { &mut *vm }).map(|()| 0))
}

/// Runs the body of a helper that returns a code address, or 0 if the run ends. The error `None`
/// stands for an end that [`State::early`] describes.
fn address(
    context: *mut Context,
    body: impl FnOnce(*mut State) -> Result<u64, Option<Stop>>,
) -> u64 {
    let made = with_state(context, |vm| {
        body(vm).map_err(|stop| {
            // SAFETY: the body has returned and keeps no reference to the state, which `with_state`
            // passed and which outlives the run.
            unsafe { (*vm).stop = stop };
        })
    });
    if made == FAILED { 0 } else { made }
}

extern "C" fn perform(context: *mut Context, inst: *const InstData) -> u64 {
    status(context, |state| {
        // SAFETY: the calling code passes an address of `Lowered::performed`. The code owns that
        // list, never changes it, and is kept while it runs.
        let inst = unsafe { &*inst };
        let args: Vec<u64> = state.buffer[..inst.args.len()].to_vec();
        // The block has paid for the instruction; an operation on a range costs more by its length.
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
        // SAFETY: the context and the state are live while native code runs, and `with_state` holds
        // no reference to the state. This reference ends with the block, before native code or the
        // interpreter runs.
        let (func, args) = unsafe {
            let func = Func::from_u32((*context).pending as u32);
            let state = &mut *vm;
            if state.module.funcs[func].import.is_some() {
                return state.call_host(func).map(|()| LAZY_DONE).map_err(|()| None);
            }
            let count = state.module.signature(func).params.len();
            (func, state.buffer[..count].to_vec())
        };
        // SAFETY: the reference of the block above has ended, so `vm` is the only access to the
        // live state of this run, which has a host.
        let compiled = unsafe { native::demand(vm, func) }.map_err(Some)?;
        if let Some(code) = compiled {
            return Ok(code.entry().addr() as u64);
        }
        // SAFETY: `demand` has returned and keeps no reference, so `vm` is the only access to the
        // live state of this run, which has a host.
        let results = unsafe { interpret::invoke(vm, func, &args) }.map_err(Some)?;
        // SAFETY: the interpreter has returned and keeps no reference to the state, which is live
        // as long as the native code that called.
        unsafe { (&mut *vm).buffer[..results.len()].copy_from_slice(&results) };
        Ok(LAZY_DONE)
    })
}

extern "C" fn trace_call(context: *mut Context, func: u64) -> u64 {
    status(context, |state| {
        let func = Func::from_u32(func as u32);
        // A call of a host function records itself.
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

/// Fills the buffer with the values of a described exit. It runs nothing and does not use the fuel,
/// so it neither reads the context back nor updates it.
extern "C" fn describe(context: *mut Context, frame: *const ExitFrame) -> i64 {
    let mut number = -1;
    guard(|| {
        // SAFETY: native code passes the context that it was entered with, whose `vm` is the live
        // state of the run. The code that entered keeps no reference to it, and this one ends with
        // the closure.
        let state = unsafe { &mut *(*context).vm.cast::<State>() };
        // The return address may lie behind the code, so look up the last byte of the call.
        // SAFETY: `sys::exit` passes the frame that it has just built on its stack, and waits for
        // this function.
        let call = unsafe { (*frame).returns_to } as usize - 1;
        let from = state.code_at(call).map(Arc::clone).expect("jit: code that runs is kept");
        // SAFETY: `sys::exit` made the frame and waits, so the frame is live. `from` is the code
        // that contains the return address, so the call came from it.
        let point = unsafe { from.read_exit(frame, &mut state.buffer) };
        number = i64::from(point.expect("jit: what calls is an exit of the code"));
        Status::Continue
    });
    number
}

extern "C" fn leave_through(context: *mut Context) -> u64 {
    address(context, |vm| {
        // SAFETY: native code passes the context that it was entered with, which is live while
        // native code runs.
        let cell = unsafe { (*context).pending } as usize;
        // SAFETY: `with_state` passes the live state of the run, which has a host, and holds no
        // reference to it while the body runs.
        unsafe { leave::leave(vm, cell) }.map_err(Some)
    })
}

impl State {
    /// Calls a function of the host with the arguments in the buffer, and stores the results there.
    /// On an error, `early` holds the reason.
    pub(super) fn call_host(&mut self, func: Func) -> Result<(), ()> {
        let module = Arc::clone(&self.module);
        let signature = module.signature(func);
        let args: Vec<u64> = self.buffer[..signature.params.len()].to_vec();
        let mut results = vec![0; signature.results.len()];
        let mut host = self.host.expect("jit: a run has a host");
        // SAFETY: `invoke` set the pointer from a borrow that lasts until the run ends, and clears
        // it then. The run is on one thread and calls the host here and in the interpreter, one at
        // a time, so no other reference to the host is alive.
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

    /// The end that a call of the host has left. Its site is the function, without an instruction.
    pub(super) fn early_stop(&mut self, func: Func) -> Stop {
        let site = self.machine.site(func, None);
        match self.early.take() {
            Some(end) => Stop::Outcome(self.machine.end_in_native(end, site)),
            None => self.take_stop(),
        }
    }
}
