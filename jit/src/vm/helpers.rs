//! The Rust helpers that native code calls.
//!
//! Each helper reaches the state through the context, does one thing, and then updates the context
//! with the current addresses of memories, tables and globals. If a helper returns a status other
//! than 0, the native code traps. The trap unwinds the run to the innermost entry, over native
//! frames alone.

use super::native;
use super::state::VmState;
use super::state::{RunAccess, RunEnding};
use super::stop::RunStop;
use super::{imports, interpret, lazy_bodies, osr_exit};
use crate::context::{Context, Helpers, LAZY_DONE};
use crate::sys::enter::{HelperStatus, guard};
use crate::sys::frames::NativeFrames;
use crate::sys::{ExitFrame, exit};
use interp::{EarlyEnd, Site};
use ir::{Func, InstData};
use std::sync::Arc;

/// The helpers as the context lists them.
pub(super) const TABLE: Helpers =
    Helpers { perform, call_lazy, trace_call, trace_return, exit, describe, leave: leave_through };

/// The fuel and the globals of a machine while a helper may use them. Writes them back to the
/// context at the end, also if the helper ends the run or panics: the entry into native code reads
/// them there (`fuel_used_below_a_helper_stays_used`, `globals_set_below_a_helper_stay_set`).
struct StateInRust<'a, 'r>(&'a mut RunAccess<'r>);

impl Drop for StateInRust<'_, '_> {
    fn drop(&mut self) {
        let state = self.0.state();
        state.view.give(&state.machine);
    }
}

/// Runs the body of a helper. Reads fuel and globals back from the context before, and updates the
/// context afterwards. Returns `None` if the run ends.
fn with_access<T>(
    context: *mut Context,
    body: impl FnOnce(&mut RunAccess<'_>) -> Result<T, RunEnding>,
) -> Option<T> {
    let mut result = None;
    let status = guard(|| {
        // SAFETY: native code passes the context that it was entered with. This is the one access
        // of the helper, and it ends before the helper returns.
        let mut access = unsafe { RunAccess::of_helper(context) };
        let state = access.state();
        state.view.take_back(&mut state.machine);
        let made = {
            let lent = StateInRust(&mut access);
            body(&mut *lent.0)
        };
        let made = made.and_then(|value| {
            let state = access.state();
            state.point_at_fresh_stubs();
            let shared = state.view.share(&mut state.machine, &state.modules, &state.table);
            shared.map(|()| value).map_err(|error| RunStop::Failed(error).into())
        });
        match made {
            Ok(value) => {
                result = Some(value);
                HelperStatus::Continue
            }
            Err(ending) => {
                access.state().run.as_mut().expect("jit: a run is in progress").ending =
                    Some(Box::new(ending));
                HelperStatus::Raise
            }
        }
    });
    match status {
        HelperStatus::Continue => result,
        HelperStatus::Raise => None,
    }
}

/// Runs the body of a helper that returns a status: 0 if native code continues.
fn status(context: *mut Context, body: impl FnOnce(&mut VmState) -> Result<(), RunEnding>) -> u64 {
    match with_access(context, |access| body(access.state())) {
        Some(()) => 0,
        None => 1,
    }
}

/// Runs the body of a helper for a stub that has recorded its frame. The body may ask the tiering.
/// It returns a code address, or 0 if the run ends.
fn address(
    context: *mut Context,
    body: impl FnOnce(&mut RunAccess<'_>) -> Result<u64, RunEnding>,
) -> u64 {
    let with_frames = |access: &mut RunAccess<'_>| {
        let state = access.state();
        let context = state.view.context();
        let [_, trampoline, _] = context.entry.get();
        // SAFETY: the stub has stored its frame pointer, and waits for this helper. The trampoline
        // of the innermost entry has stored its own. The record ends below; after an error or a
        // panic, control leaves the entry, which drops the record.
        let frames = unsafe { NativeFrames::new(context.frame.get(), trampoline) };
        state.native.wait(frames);
        let code = body(access)?;
        access.state().native.go_on();
        Ok(code)
    };
    with_access(context, with_frames).unwrap_or(0)
}

extern "C" fn perform(context: *mut Context, inst: *const InstData) -> u64 {
    status(context, |state| {
        // SAFETY: the calling code passes an address of `Lowered::performed`. The code owns that
        // list, never changes it, and is kept while it runs.
        let inst = unsafe { &*inst };
        let args: Vec<u64> = state.view.buffer[..inst.args.len()].to_vec();
        // The block has paid for the instruction; an operation on a range also pays for its length.
        let extra = state.machine.charge(inst, &args);
        if extra > state.machine.fuel() {
            return Err(RunEnding::AtHelper(EarlyEnd::OutOfFuel));
        }
        state.machine.set_fuel(state.machine.fuel() - extra);
        let result = state
            .machine
            .perform(inst, &args)
            .map_err(|kind| RunEnding::AtHelper(EarlyEnd::Trap { kind, operand: None }))?;
        state.view.fill_buffer(result.as_slice());
        Ok(())
    })
}

extern "C" fn call_lazy(context: *mut Context, returns_to: u64) -> u64 {
    address(context, |access| {
        let state = access.state();
        let func = state.callee(returns_to as usize);
        let count = state.modules.current.signature(func).params.len();
        // The embedder, the tiering and the interpreter may use the buffer.
        let args = imports::Words::from_slice(&state.view.buffer[..count]);
        if state.modules.is_imported(func) {
            let mut results = imports::Words::new();
            imports::call(access, func, &args, &mut results)?;
            access.state().view.fill_buffer(&results);
            return Ok(LAZY_DONE);
        }
        if state.machine.awaits_body(func) {
            let site = state.call_site(returns_to as usize, func);
            lazy_bodies::provide(access, func, &site)?;
        }
        if let Some(code) = native::demand(access, func)? {
            return Ok(code.entry().addr() as u64);
        }
        let results = interpret::invoke(access, func, &args)?;
        access.state().view.fill_buffer(&results);
        Ok(LAZY_DONE)
    })
}

extern "C" fn trace_call(context: *mut Context, func: u64) -> u64 {
    status(context, |state| {
        let func = Func::from_u32(func as u32);
        // A call of a host function records its own return.
        if !state.modules.is_imported(func) {
            let count = state.modules.current.signature(func).params.len();
            state.machine.trace_call(func, &state.view.buffer[..count]);
        }
        Ok(())
    })
}

extern "C" fn trace_return(context: *mut Context, func: u64) -> u64 {
    status(context, |state| {
        let func = Func::from_u32(func as u32);
        if !state.modules.is_imported(func) {
            let count = state.modules.current.signature(func).results.len();
            state.machine.trace_return(&state.view.buffer[..count]);
        }
        Ok(())
    })
}

/// Fills the buffer with the values of a described exit. It runs no code of the program and uses no
/// fuel, so of the context it updates only the addresses that `publish` writes.
extern "C" fn describe(context: *mut Context, frame: *const ExitFrame) -> i64 {
    let mut number = -1;
    guard(|| {
        // SAFETY: `sys::exit` passes on the context that native code was entered with. The access
        // ends with this closure, before the helper returns.
        let mut access = unsafe { RunAccess::of_helper(context) };
        let state = access.state();
        // The return address may lie behind the code, so look up the last byte of the call.
        // SAFETY: `sys::exit` passes the frame that it has just built on its stack, and waits for
        // this function.
        let call = unsafe { (*frame).returns_to } as usize - 1;
        let from = state.table.code_at(call).map(Arc::clone).expect("jit: code that runs is kept");
        // SAFETY: `sys::exit` made the frame and waits, so the frame is live. `from` is the code
        // that contains the return address, so the call came from it.
        let point = unsafe { from.read_exit(frame, &mut state.view.buffer) };
        number = i64::from(point.expect("jit: the calling code has a stack map for this exit"));
        state.view.publish();
        HelperStatus::Continue
    });
    number
}

extern "C" fn leave_through(context: *mut Context) -> u64 {
    address(context, |access| {
        let cell = access.state().view.context().pending.get() as usize;
        osr_exit::leave(access, cell).map_err(RunEnding::Known)
    })
}

impl VmState {
    /// The site of the call before an address, or the called function if no code contains it.
    fn call_site(&self, returns_to: usize, callee: Func) -> Site {
        let call = self.call_before(returns_to);
        let place = self.table.code_at(call).map(|code| code.site_at(call));
        // A typed trampoline calls for the owner, by no instruction.
        let (func, inst) = place.filter(|(_, inst)| inst.is_some()).unwrap_or((callee, None));
        self.machine.site(func, inst)
    }

    /// The function that the call before an address calls.
    fn callee(&self, returns_to: usize) -> Func {
        let direct = self.table.callee_before(returns_to);
        direct.unwrap_or_else(|| Func::from_u32(self.view.context().pending.get() as u32))
    }
}
