//! Entering native code, and what becomes of a run that ends in it.

use super::state::State;
use super::stop::{RunError, Stop};
use crate::abi;
use crate::code::Code;
use crate::context::{SIGNAL_INTERRUPT, offset};
use crate::stubs::Stub;
use crate::sys::enter::{self, Exit, Trampoline};
use crate::sys::stack;
use crate::sys::traps::Trap;
use crate::traps::{Cause, cause};
use interp::{EarlyEnd, Host, Outcome, Site};
use ir::{Func, OsrPoint, Type};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of stack that are left for Rust functions called by native code, a compiler among them.
const HELPER_STACK: usize = 512 << 10;

/// What is entered.
pub(super) enum Entrance<'a> {
    /// A function with these arguments.
    Call(&'a [u64]),
    /// Code that finds what it needs in the buffer.
    Resume,
}

impl State {
    /// Runs a function to its end.
    pub(super) fn invoke(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
    ) -> Result<Outcome, RunError> {
        let limit = stack::limit(HELPER_STACK)
            .map_err(|error| RunError::NoStack { what: error.to_string() })?;
        if !self.machine.program().is(&self.program) {
            return Err(RunError::Exchanged);
        }
        // SAFETY: the block is ours, and no native code runs.
        unsafe { (*self.context()).stack_limit = limit as u64 };
        self.host = Some(host_pointer(host));
        let vm = std::ptr::from_mut(self);
        let reset = Reset(vm);
        // SAFETY: `self` is not used until the run has ended; helpers reach the state through the
        // context.
        let result = unsafe { run_called(vm, func, args) };
        std::mem::forget(reset);
        self.host = None;
        self.sweep();
        self.block.clear(SIGNAL_INTERRUPT);
        self.machine.refresh_digests();
        match result {
            Ok(values) => {
                self.machine.trace_return(&values);
                Ok(Outcome::Returned(values))
            }
            Err(Stop::Outcome(outcome)) => Ok(outcome),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    /// Has a function given code if it has none.
    pub(super) fn demand(&mut self, func: Func) -> Result<(), RunError> {
        if self.installed.contains_key(&func) || self.module.body(func).is_none() {
            return Ok(());
        }
        match self.ask(|tiering, tier| tiering.called(tier, func)) {
            Ok(()) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Outcome(_)) => Err(RunError::Lost),
        }
    }

    /// How a run ended that trapped.
    fn trapped(&mut self, trap: Trap) -> Stop {
        // SAFETY: the block is ours, and native code has been left.
        let (number, count) =
            unsafe { ((*self.context()).trap_number, (*self.context()).pending as usize) };
        let Some(cause) = cause(trap.code.as_raw().get(), number as u16) else {
            return Stop::Failed(RunError::Lost);
        };
        if let Some(address) =
            trap.address.filter(|address| !self.guarded.iter().any(|range| range.contains(address)))
        {
            return Stop::Failed(RunError::WildAccess { address });
        }
        let code = self.code_at(trap.pc).cloned();
        let func = code.as_ref().map_or(Func::from_u32(0), |code| code.func());
        let inst = code.and_then(|code| code.inst_at(trap.pc));
        let site = self.machine.site(func, inst);
        let end = match cause {
            Cause::Trap(kind) => EarlyEnd::Trap(kind),
            Cause::Stack => EarlyEnd::StackOverflow,
            Cause::Fuel => {
                self.machine.set_fuel(0);
                EarlyEnd::OutOfFuel
            }
            Cause::Left => {
                EarlyEnd::Left(OsrPoint::from_u32(number as u32), self.buffer[..count].to_vec())
            }
            Cause::Interrupt => return Stop::Failed(RunError::Interrupted),
            Cause::Helper => return self.located(site, trap.back),
        };
        Stop::Outcome(self.machine.end_in_native(end, site))
    }

    /// What a helper left, with the place that called it where it has none.
    fn located(&mut self, site: Site, back: Option<usize>) -> Stop {
        let Some(end) = self.early.take() else { return self.take_stop() };
        // A host function in a table is called through a stub, whose caller is the place
        // (`hosts_that_end_runs`).
        let site = if site.inst.is_none() { self.caller(back).unwrap_or(site) } else { site };
        Stop::Outcome(self.machine.end_in_native(end, site))
    }

    /// The call that returns to an address.
    fn caller(&self, back: Option<usize>) -> Option<Site> {
        let pc = back? - 1;
        let code = self.code_at(pc)?;
        Some(self.machine.site(code.func(), Some(code.inst_at(pc)?)))
    }
}

/// Puts the state in order when a panic of the host passes through a run.
struct Reset(*mut State);

impl Drop for Reset {
    fn drop(&mut self) {
        // SAFETY: the state outlives the call of `invoke` that has made this, and the panic has
        // passed whoever used it.
        let state = unsafe { &mut *self.0 };
        state.depth = 0;
        state.host = None;
        (state.stop, state.early) = (None, None);
        state.machine.give_up();
    }
}

fn host_pointer(host: &mut dyn Host) -> NonNull<dyn Host> {
    let pointer: NonNull<dyn Host + '_> = NonNull::from(host);
    // SAFETY: only the lifetime changes. The pointer is taken back before the borrow ends, when the
    // run has ended.
    unsafe { std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host>>(pointer) }
}

/// Runs a function, natively if it has code.
///
/// # Safety
/// The pointer is to a whole state with a host, and nobody else has a reference to it.
pub(super) unsafe fn run(vm: *mut State, func: Func, args: &[u64]) -> Result<Vec<u64>, Stop> {
    // SAFETY: nobody else has a reference, and this one ends before native code runs.
    let code = unsafe { &*vm }.installed.get(&func).map(|version| Arc::clone(&version.code));
    match code {
        // SAFETY: the same.
        Some(code) => unsafe { call(vm, &code, func, args) },
        // SAFETY: the same.
        None => unsafe { super::interpret::invoke(vm, func, args) },
    }
}

/// Calls a function that a run calls: of the host, natively, or in the interpreter.
///
/// # Safety
/// As [`run`].
pub(super) unsafe fn run_called(
    vm: *mut State,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, Stop> {
    // SAFETY: nobody else has a reference, and this one ends before anything else runs.
    let state = unsafe { &mut *vm };
    // The trampoline reads as many (`too_few_arguments_are_a_panic`).
    let params = state.module.signature(func).params.len();
    assert_eq!(args.len(), params, "jit: arguments of {func}, and its parameters");
    if state.module.funcs[func].import.is_none() {
        // SAFETY: `state` is not used any more.
        return unsafe { run(vm, func, args) };
    }
    state.buffer[..args.len()].copy_from_slice(args);
    match state.call_host(func) {
        Ok(()) => Ok(state.buffer[..state.module.signature(func).results.len()].to_vec()),
        Err(()) => Err(state.early_stop(func)),
    }
}

/// The code of a function that is called and has none, if it gets some now.
///
/// # Safety
/// As [`run`].
pub(super) unsafe fn demand(vm: *mut State, func: Func) -> Result<Option<Arc<Code>>, Stop> {
    // SAFETY: nobody else has a reference. Whoever is asked runs nothing.
    let state = unsafe { &mut *vm };
    state.ask(|tiering, tier| tiering.called(tier, func))?;
    Ok(state.installed.get(&func).map(|version| Arc::clone(&version.code)))
}

/// Calls the code of a function; its results.
///
/// # Safety
/// As [`run`]; the code is that of a version of the function.
pub(super) unsafe fn call(
    vm: *mut State,
    code: &Arc<Code>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, Stop> {
    let (trampoline, results) = {
        // SAFETY: nobody else has a reference, and this one ends before native code runs.
        let state = unsafe { &mut *vm };
        let signature = state.module.signature(func).clone();
        let results = signature.results.to_vec();
        (state.engine.stub(Stub::Enter(signature)).map_err(failed)?, results)
    };
    // SAFETY: the trampoline is one for the signature of the function.
    unsafe { enter(vm, &trampoline, code, Entrance::Call(args), &results) }
}

/// Goes on in code that finds what it needs in the buffer; its results.
///
/// # Safety
/// As [`run`]; the code is a continuation of a function with these results, and what it needs is in
/// the buffer.
pub(super) unsafe fn resume(
    vm: *mut State,
    code: &Arc<Code>,
    results: &[Type],
) -> Result<Vec<u64>, Stop> {
    // SAFETY: nobody else has a reference, and this one ends before native code runs.
    let trampoline = unsafe { &*vm }.engine.stub(Stub::Resume(results.to_vec())).map_err(failed)?;
    // SAFETY: the trampoline is one for the results.
    unsafe { enter(vm, &trampoline, code, Entrance::Resume, results) }
}

fn failed(error: crate::error::CompileError) -> Stop {
    Stop::Failed(RunError::Compile(error))
}

/// Enters native code.
///
/// # Safety
/// As [`call`]; the trampoline is one for what is entered.
unsafe fn enter(
    vm: *mut State,
    trampoline: &Arc<Code>,
    code: &Arc<Code>,
    entrance: Entrance<'_>,
    results: &[Type],
) -> Result<Vec<u64>, Stop> {
    let given = match entrance {
        Entrance::Call(args) => args,
        Entrance::Resume => &[],
    };
    let mut values = given.to_vec();
    values.resize(given.len().max(results.len()), 0);
    let context = {
        // SAFETY: nobody else has a reference, and this one ends before native code runs.
        let state = unsafe { &mut *vm };
        state.keep(trampoline);
        state.keep(code);
        state.share().map_err(Stop::Failed)?;
        state.depth += 1;
        state.context()
    };
    // SAFETY: a trampoline has this type; its code is held by the engine.
    let trampoline: Trampoline =
        unsafe { std::mem::transmute::<*const u8, Trampoline>(trampoline.entry()) };
    // SAFETY: the context begins with the entry state and lives as long as the state; the code has
    // the signature of the trampoline and is kept by the state until it has been left; there are as
    // many words as parameters and results; helpers never unwind.
    let left = unsafe { enter::enter(trampoline, context.cast(), code.entry(), &mut values) };
    // SAFETY: native code has been left.
    let state = unsafe { &mut *vm };
    state.depth -= 1;
    state.take_back();
    match left {
        Ok(()) if abi::in_registers(results) => {
            values.truncate(results.len());
            Ok(values)
        }
        Ok(()) => Ok(state.buffer[..results.len()].to_vec()),
        Err(Exit::Trap(trap)) => Err(state.trapped(trap)),
        Err(Exit::Helper) => Err(state.take_stop()),
        Err(Exit::Panic(payload)) => std::panic::resume_unwind(payload),
    }
}

const _: () = assert!(offset!(entry) == 0, "the trampoline writes the entry state there");
