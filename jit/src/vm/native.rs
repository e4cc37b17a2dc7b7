//! Entry into native code, and the end of runs that end in it.

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

/// The bytes of stack reserved for Rust functions that native code calls. A compiler may run there.
const HELPER_STACK: usize = 512 << 10;

/// The two kinds of entry.
pub(super) enum Entrance<'a> {
    /// The call of a function with these arguments.
    Call(&'a [u64]),
    /// The entry into code that reads its inputs from the buffer.
    Resume,
}

impl State {
    /// Runs a function to its end (see [`super::Vm::invoke`]).
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
        // SAFETY: this state owns the block of the context. `self` is borrowed exclusively outside
        // of a run, so no native code reads it.
        unsafe { (*self.context()).stack_limit = limit as u64 };
        self.host = Some(host_pointer(host));
        let vm = std::ptr::from_mut(self);
        let reset = Reset(vm);
        // SAFETY: `vm` comes from `self`, which is live, has a host and is not used again until the
        // call returns. Helpers reach the state through the context, whose `vm` has the same
        // address.
        let result = unsafe { run_called(vm, func, args) };
        // The run ended without a panic: `reset` must not give up the machine's state.
        std::mem::forget(reset);
        self.host = None;
        self.sweep();
        // A request that came too late for this run must not end the next one.
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

    /// Asks the tiering for code if a function has none (see [`super::Vm::demand`]).
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

    /// The end of a run that has trapped: finds the cause and the site of the trap.
    fn trapped(&mut self, trap: Trap) -> Stop {
        // SAFETY: this state owns the block of the context. Native code has stopped, so nothing
        // writes these words.
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

    /// The end that a helper has left. An end without an instruction gets the call of the helper as
    /// its site.
    fn located(&mut self, site: Site, back: Option<usize>) -> Stop {
        let Some(end) = self.early.take() else { return self.take_stop() };
        // Native code calls a host function in a table through a stub, so the trap lies in the
        // stub. The site is the caller of the stub (`hosts_that_end_runs`).
        let site = if site.inst.is_none() { self.caller(back).unwrap_or(site) } else { site };
        Stop::Outcome(self.machine.end_in_native(end, site))
    }

    /// The site of the call that returns to an address.
    fn caller(&self, back: Option<usize>) -> Option<Site> {
        let pc = back? - 1;
        let code = self.code_at(pc)?;
        Some(self.machine.site(code.func(), Some(code.inst_at(pc)?)))
    }
}

/// Resets the state when a panic of the host passes through a run.
struct Reset(*mut State);

impl Drop for Reset {
    fn drop(&mut self) {
        // SAFETY: `invoke` made this value from its `&mut self`, which outlives it. `drop` runs
        // only while a panic unwinds `invoke`, and the panic has already ended every reference made
        // below.
        let state = unsafe { &mut *self.0 };
        state.depth = 0;
        state.host = None;
        (state.stop, state.early) = (None, None);
        state.machine.give_up();
    }
}

fn host_pointer(host: &mut dyn Host) -> NonNull<dyn Host> {
    let pointer: NonNull<dyn Host + '_> = NonNull::from(host);
    // SAFETY: the two types differ in the lifetime bound alone. `invoke` stores the pointer in the
    // state, and clears it before the borrow of the host ends; `Reset` clears it if a panic passes.
    unsafe { std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host>>(pointer) }
}

/// Runs a function natively if it has code, and otherwise in the interpreter. Returns its results.
///
/// # Safety
/// `vm` points to a live state with a host, to which no reference exists. The run alone accesses
/// the state until this function returns. `args` has one word for each parameter of `func`.
pub(super) unsafe fn run(vm: *mut State, func: Func, args: &[u64]) -> Result<Vec<u64>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. This reference ends with
    // the statement, before native code runs.
    let code = unsafe { &*vm }.installed.get(&func).map(|version| Arc::clone(&version.code));
    match code {
        // SAFETY: the reference above has ended, so the caller's guarantee for `vm` holds. The
        // installed code is that of a version of `func`, and the caller guarantees the number of
        // arguments.
        Some(code) => unsafe { call(vm, &code, func, args) },
        // SAFETY: the reference above has ended, so the caller's guarantee for `vm` holds for the
        // interpreter.
        None => unsafe { super::interpret::invoke(vm, func, args) },
    }
}

/// Runs a function that a run calls: a function of the host, native code, or the interpreter.
/// Returns its results.
///
/// # Panics
/// If the number of arguments is not that of the function's parameters.
///
/// # Safety
/// `vm` fulfills the contract of [`run`].
pub(super) unsafe fn run_called(
    vm: *mut State,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. The last use of this
    // reference comes before `run`; a function of the host has no access to the state.
    let state = unsafe { &mut *vm };
    // The trampoline reads one word for each parameter (`too_few_arguments_are_a_panic`).
    let params = state.module.signature(func).params.len();
    assert_eq!(args.len(), params, "jit: arguments of {func}, and its parameters");
    if state.module.funcs[func].import.is_none() {
        // SAFETY: `state` is not used any more, so the caller's guarantee for `vm` holds for `run`.
        // The assertion above checked the number of arguments.
        return unsafe { run(vm, func, args) };
    }
    state.buffer[..args.len()].copy_from_slice(args);
    match state.call_host(func) {
        Ok(()) => Ok(state.buffer[..state.module.signature(func).results.len()].to_vec()),
        Err(()) => Err(state.early_stop(func)),
    }
}

/// Asks the tiering for code of a function that is called and has none. Returns the code, if it has
/// some now.
///
/// # Safety
/// `vm` fulfills the contract of [`run`].
pub(super) unsafe fn demand(vm: *mut State, func: Func) -> Result<Option<Arc<Code>>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. The tiering gets the
    // state through this reference alone, and a `Tier` cannot start a run.
    let state = unsafe { &mut *vm };
    state.ask(|tiering, tier| tiering.called(tier, func))?;
    Ok(state.installed.get(&func).map(|version| Arc::clone(&version.code)))
}

/// Calls the code of a function. Returns its results.
///
/// # Safety
/// `vm` and `args` fulfill the contract of [`run`], and `code` is the code of a version of `func`.
pub(super) unsafe fn call(
    vm: *mut State,
    code: &Arc<Code>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, Stop> {
    let (trampoline, results) = {
        // SAFETY: the caller guarantees a live state without other references. This reference ends
        // with the block, before native code runs.
        let state = unsafe { &mut *vm };
        let signature = state.module.signature(func).clone();
        let results = signature.results.to_vec();
        (state.engine.stub(Stub::Enter(signature)).map_err(failed)?, results)
    };
    // SAFETY: the reference of the block above has ended, so the caller's guarantee for `vm` holds.
    // The trampoline was built for the signature of `func`, which every version of it has
    // (`engine::check`). The caller guarantees that `args` fits this signature.
    unsafe { enter(vm, &trampoline, code, Entrance::Call(args), &results) }
}

/// Enters code that reads its inputs from the buffer. Returns the results of its function.
///
/// # Safety
/// `vm` fulfills the contract of [`run`]. `code` is a continuation of a function with these
/// results, and its inputs are in the buffer.
pub(super) unsafe fn resume(
    vm: *mut State,
    code: &Arc<Code>,
    results: &[Type],
) -> Result<Vec<u64>, Stop> {
    // SAFETY: the caller guarantees a live state without other references. This reference ends with
    // the statement, before native code runs.
    let trampoline = unsafe { &*vm }.engine.stub(Stub::Resume(results.to_vec())).map_err(failed)?;
    // SAFETY: the reference above has ended, so the caller's guarantee for `vm` holds. The
    // trampoline was built for these results, which the caller guarantees to be those of the code.
    unsafe { enter(vm, &trampoline, code, Entrance::Resume, results) }
}

fn failed(error: crate::error::CompileError) -> Stop {
    Stop::Failed(RunError::Compile(error))
}

/// Enters native code through a trampoline. Returns the results of its function.
///
/// # Safety
/// `vm` fulfills the contract of [`run`]. `code` is the code of a function with these results, and
/// of as many parameters as there are arguments; for [`Entrance::Resume`], its inputs are in the
/// buffer. `trampoline` was built for that signature.
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
        // SAFETY: the caller guarantees a live state without other references. This reference ends
        // with the block, before native code runs.
        let state = unsafe { &mut *vm };
        state.keep(trampoline);
        state.keep(code);
        state.share().map_err(Stop::Failed)?;
        state.depth += 1;
        state.context()
    };
    // SAFETY: `trampoline::build` gives every trampoline this signature. The caller holds a
    // reference to its code until this function returns.
    let trampoline: Trampoline =
        unsafe { std::mem::transmute::<*const u8, Trampoline>(trampoline.entry()) };
    // SAFETY: the context begins with the entry state (asserted below) and lives as long as the
    // state, of which no reference is left. The caller guarantees that code and trampoline have one
    // signature. The state keeps all code that may be reached while `depth` is not zero (`sweep`);
    // its engine keeps all stubs. `values` has as many words as there are parameters, and as many
    // as there are results. Helpers run inside `guard`, so they never unwind.
    let left = unsafe { enter::enter(trampoline, context.cast(), code.entry(), &mut values) };
    // SAFETY: native code has stopped, so its helpers' references to the state have ended. The
    // caller guarantees that there is no other.
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
