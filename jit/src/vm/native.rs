//! Entry into native code, and the end of runs that end in it.

use super::entrance::Ascent;
use super::entrance::{EnteredResults, KnownEntrance};
use super::state::VmState;
use super::state::{HostedRun, RunAccess, RunEnding};
use super::stop::{RunError, RunStop};
use crate::abi;
use crate::code::MachineCode;
use crate::context::offset;
use crate::error::CompileError;
use crate::lower::LEAF_FRAME;
use crate::stubs::Stub;
use crate::sys::enter::{self, NativeStop, Trampoline};
use crate::sys::stack;
use crate::sys::traps::CaughtTrap;
use crate::traps::{Cause, cause};
use cranelift_entity::EntityRef;
use interp::{EarlyEnd, Outcome, Site};
use ir::{Func, OsrPoint};
use std::io;
use std::sync::Arc;

/// The bytes of stack reserved for Rust functions that native code calls. A compiler may run there.
const HELPER_STACK: usize = 512 << 10;

/// The bytes of stack below the limit that native code itself may use. They hold the frames between
/// [`enter`] and the trampoline, the stack arguments of the trampoline and of a stub for calls in
/// cold blocks, the registers that the stub saves, and the frame of a leaf without a check.
const LEAF_STACK: usize = LEAF_FRAME as usize + 16 * abi::MOST_ARGUMENTS + (15 << 10);

/// Code to enter, without a reference: the table keeps it until the jump, since no safe point comes
/// in between ([`super::reclaim`]). A count up and down for each run would take as long as a call.
#[derive(Clone, Copy)]
pub(super) struct EnteredCode {
    entry: *const u8,
    func: Func,
    checks_stack: bool,
}

impl EnteredCode {
    pub(super) fn of(code: &MachineCode) -> EnteredCode {
        EnteredCode { entry: code.entry(), func: code.func(), checks_stack: code.checks_stack }
    }
}

impl VmState {
    /// The end of a run that has returned values.
    #[inline]
    pub(super) fn returned(&mut self, values: Vec<u64>) -> Outcome {
        if self.machine.is_tracing() {
            self.machine.trace_return(&values);
        }
        Outcome::Returned(values)
    }

    /// Begins a run and ends it.
    ///
    /// # Safety
    /// As for [`VmState::invoke`].
    pub(super) unsafe fn hosted<R>(
        &mut self,
        run: HostedRun,
        body: impl FnOnce(&mut RunAccess<'_>) -> Result<R, RunStop>,
    ) -> Result<R, RunStop> {
        // SAFETY: passed on to the caller; the run ends below.
        let current = unsafe { self.begin(run) }.map_err(|stop| *stop)?;
        let result = body(&mut RunAccess::start(current.state));
        current.end();
        result
    }

    /// Begins a run. Inlined, and with a short result, like [`call_again`].
    ///
    /// # Safety
    /// The borrow with which `run` was made outlasts the value returned.
    #[inline(always)]
    pub(super) unsafe fn begin(&mut self, run: HostedRun) -> Result<InProgress<'_>, Box<RunStop>> {
        let allowed = stack::allowed(HELPER_STACK + LEAF_STACK).map_err(no_stack)?;
        self.modules.require_own(&self.machine).map_err(refused)?;
        let context = self.view.context();
        context.stack_limit.set(allowed.start as u64);
        context.stack_room.set((allowed.end - allowed.start) as u64);
        let current = InProgress { state: self, has_ended: false };
        let machine = &current.state.machine;
        // A collector of the machine's own finds no native frames.
        let stops = run.has_embedder()
            || current.state.table.has_direct()
            || machine.has_stress_collector();
        current.state.machine.stop_at_imports(stops);
        // `current` drops the value at the end of the run, also if a panic unwinds it. There is no
        // run before: forgetting it spares a run the code that would drop it.
        std::mem::forget(current.state.run.replace(run));
        Ok(current)
    }

    /// Asks the tiering for code of a function without code (see [`super::Vm::demand`]).
    pub(super) fn demand(&mut self, func: Func) -> Result<(), RunError> {
        if self.table.installed(func).is_some() || self.modules.current.body(func).is_none() {
            return Ok(());
        }
        match self.ask(|tiering, tier| tiering.called(tier, func)) {
            Ok(()) => Ok(()),
            Err(RunStop::Failed(error)) => Err(error),
            Err(RunStop::Outcome(_)) => Err(RunError::Lost),
        }
    }

    /// Takes the reason that a helper has left.
    fn take_ending(&mut self) -> Option<RunEnding> {
        self.run.as_mut().and_then(|run| run.ending.take()).map(|ending| *ending)
    }

    /// The end of a run that has trapped: finds the cause and the site of the trap.
    fn trapped(&mut self, trap: CaughtTrap) -> RunStop {
        let context = self.view.context();
        let (number, count) = (context.trap_number.get(), context.pending.get() as usize);
        let code = self.table.code_at(trap.pc).cloned();
        let user = code.as_ref().and_then(|code| code.number_at(trap.pc));
        let Some(cause) = cause(trap.code.as_raw().get(), user.unwrap_or_default()) else {
            return RunStop::Failed(RunError::Lost);
        };
        if let Some(address) = trap.address.filter(|address| !self.view.is_guarded(*address)) {
            return RunStop::Failed(RunError::WildAccess { address });
        }
        let place = code.map(|code| code.trap_site_at(trap.pc));
        let (func, inst) = place.unwrap_or((Func::from_u32(0), None));
        let site = self.machine.site(func, inst);
        let end = match cause {
            Cause::Trap(kind) => EarlyEnd::Trap { kind, operand: None },
            Cause::TrapWith(kind) => EarlyEnd::Trap { kind, operand: Some(number) },
            Cause::Stack => EarlyEnd::StackOverflow,
            Cause::Fuel => {
                self.machine.set_fuel(0);
                EarlyEnd::OutOfFuel
            }
            Cause::Left => {
                let values = self.view.buffer[..count].to_vec();
                EarlyEnd::Left(OsrPoint::from_u32(number as u32), values)
            }
            Cause::Failed => EarlyEnd::Failed(number as u32),
            Cause::Interrupt => return RunStop::Failed(RunError::Interrupted),
            Cause::Helper => return self.ended_by_helper(site, trap.back),
        };
        RunStop::Outcome(self.machine.end_in_native(end, site))
    }

    /// The end that a helper has left. An end without an instruction gets the call of the helper as
    /// its site.
    fn ended_by_helper(&mut self, site: Site, back: Option<usize>) -> RunStop {
        let end = match self.take_ending() {
            Some(RunEnding::AtHelper(end)) => end,
            Some(RunEnding::Known(stop)) => return stop,
            None => return RunStop::Failed(RunError::Lost),
        };
        // Native code calls a host function in a table through a stub, so the trap lies in the
        // stub. The site is the caller of the stub (`hosts_that_end_runs`).
        let site = if site.inst.is_none() { self.caller(back).unwrap_or(site) } else { site };
        RunStop::Outcome(self.machine.end_in_native(end, site))
    }

    /// The last byte of the call that returns to an address; of the call of the program if the
    /// stub of calls in cold blocks made this one.
    pub(super) fn call_before(&self, returns_to: usize) -> usize {
        let call = returns_to - 1;
        let cold = self.view.context().cold_caller.get() as usize;
        if self.table.code_at(call).is_none() && cold != 0 { cold - 1 } else { call }
    }

    /// The site of the call that returns to an address.
    fn caller(&self, back: Option<usize>) -> Option<Site> {
        let pc = self.call_before(back?);
        let code = self.table.code_at(pc)?;
        let (func, inst) = code.site_at(pc);
        Some(self.machine.site(func, Some(inst?)))
    }
}

/// A run in progress. Resets the state at its end, also when a panic of the host passes through.
pub(super) struct InProgress<'s> {
    pub(super) state: &'s mut VmState,
    has_ended: bool,
}

impl<'s> InProgress<'s> {
    /// Ends the run, after which the owner has the state again.
    #[inline(always)]
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for InProgress<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.state.run = None;
        // Runs that the owner starts on the machine itself have a host
        // (`the_machine_itself_calls_its_host_after_a_run_with_an_embedder`).
        self.state.machine.stop_at_imports(false);
        self.state.native.clear();
        self.state.view.context().vm.set(std::ptr::null_mut());
        if !self.has_ended {
            self.state.machine.give_up();
            return;
        }
        self.state.sweep();
        // A request that came too late for this run must not end the next run.
        self.state.view.forget_interrupts();
        self.state.machine.refresh_digests();
    }
}

/// Asks the tiering for code of a called function without code. Returns the code, if the function
/// has some now.
pub(super) fn demand(
    access: &mut RunAccess<'_>,
    func: Func,
) -> Result<Option<Arc<MachineCode>>, RunStop> {
    let state = access.state();
    state.ask(|tiering, tier| tiering.demanded(tier, func))?;
    Ok(state.table.installed(func).map(|version| Arc::clone(&version.code)))
}

/// Calls code of a function: the installed code, or the shim of a bound function. The number of
/// arguments must fit. Returns the results.
pub(super) fn call(
    access: &mut RunAccess<'_>,
    code: EnteredCode,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let known = access.state().way_in(func).map_err(failed)?;
    // SAFETY: the trampoline was built for the signature of `func`. The code belongs to the version
    // installed for `func`, and every version has this signature (`engine::check`); or it is the
    // shim of `func`, whose signature `bind` has compared. `run_called` has compared the numbers of
    // arguments and parameters; `direct::call` gets its arguments from a call in the program, or
    // from `run_called`.
    unsafe { enter(access, known.trampoline, code, args, known.results) }.map_err(|stop| *stop)
}

// `enter` and its callers are inlined into `Vm::run`, and box what ends a run: a value that crosses
// a call in memory is written word by word and read by vectors, for which the processor waits. That
// took half the time of a run.

/// Calls the installed version of a function that was called in this way before. Returns its
/// results, or `None` for another function.
///
/// # Panics
/// If the number of arguments differs from the number of the function's parameters.
#[inline(always)]
pub(super) fn call_again(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
) -> Option<Result<Vec<u64>, Box<RunStop>>> {
    let state = access.state();
    let known = state.entrances.get(func.index()).copied().flatten()?;
    let code = EnteredCode::of(&state.table.installed(func)?.code);
    // The trampoline reads one word for each parameter (`too_few_arguments_are_a_panic`).
    assert_eq!(args.len(), known.params, "jit: the number of arguments of {func}");
    // SAFETY: the trampoline was built for the signature of `func`, and so was its installed
    // version. The assertion compares arguments and parameters.
    Some(unsafe { enter(access, known.trampoline, code, args, known.results) })
}

/// Enters the continuation of a hot loop. Returns the results of its function.
pub(super) fn resume(access: &mut RunAccess<'_>, ascent: &Ascent) -> Result<Vec<u64>, RunStop> {
    let state = access.state();
    let results = state.modules.current.signature(ascent.func()).results.to_vec();
    let entered = EnteredResults::of(&results);
    let trampoline = state.modules.engine.stub(Stub::Resume(results)).map_err(failed)?;
    // SAFETY: `trampoline::build` gives the stub this type. The table keeps pinned code for good.
    let trampoline =
        unsafe { std::mem::transmute::<*const u8, Trampoline>(state.table.pin(&trampoline)) };
    let code = EnteredCode::of(ascent.code());
    // SAFETY: `VmState::ascend` alone makes an `Ascent`, of a continuation into a version of this
    // function. Continuations take no arguments, and return the results of their function.
    unsafe { enter(access, trampoline, code, &[], entered) }.map_err(|stop| *stop)
}

impl VmState {
    /// Whether there is a way into native code of a function. The engine may have no room for one,
    /// and the interpreter then executes the function
    /// (`without_room_for_rows_the_interpreter_goes_on`).
    ///
    /// # Errors
    /// If the way cannot be compiled for another reason.
    pub(super) fn has_way_in(&mut self, func: Func) -> Result<bool, RunStop> {
        match self.way_in(func) {
            Ok(_) => Ok(true),
            Err(CompileError::OutOfMemory) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Whether there is a way into continuations of a function, as [`VmState::has_way_in`] says.
    ///
    /// # Errors
    /// If the way cannot be compiled for another reason.
    pub(super) fn has_way_up(&self, func: Func) -> Result<bool, RunStop> {
        let results = self.modules.current.signature(func).results.to_vec();
        match self.modules.engine.stub(Stub::Resume(results)) {
            Ok(_) => Ok(true),
            Err(CompileError::OutOfMemory) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// The way into native code of a function. Made once, since the interpreter calls native code
    /// often.
    fn way_in(&mut self, func: Func) -> Result<KnownEntrance, CompileError> {
        let index = func.index();
        if let Some(Some(known)) = self.entrances.get(index) {
            return Ok(*known);
        }
        let signature = self.modules.current.signature(func).clone();
        let results = EnteredResults::of(&signature.results);
        let params = signature.params.len();
        let trampoline = self.modules.engine.stub(Stub::Enter(signature))?;
        // SAFETY: as in `resume`.
        let trampoline =
            unsafe { std::mem::transmute::<*const u8, Trampoline>(self.table.pin(&trampoline)) };
        let known = KnownEntrance { trampoline, params, results };
        self.entrances.resize(self.entrances.len().max(index + 1), None);
        self.entrances[index] = Some(known);
        Ok(known)
    }
}

fn failed(error: CompileError) -> RunStop {
    RunStop::Failed(RunError::Compile(error))
}

/// Enters native code through a trampoline. Returns the results of its function.
///
/// # Safety
/// `code` belongs to a function with these results and with a parameter for each argument, or reads
/// its inputs from the buffer, where they are. `trampoline` was built for that signature, and the
/// table has pinned it.
#[inline(always)]
unsafe fn enter(
    access: &mut RunAccess<'_>,
    trampoline: Trampoline,
    code: EnteredCode,
    args: &[u64],
    results: EnteredResults,
) -> Result<Vec<u64>, Box<RunStop>> {
    // The one allocation of a run, which the results keep.
    let mut values: Vec<u64> = Vec::with_capacity(results.count);
    let state = access.state();
    if !code.checks_stack && stack::is_below(state.view.context().stack_limit.get() as usize) {
        return Err(Box::new(RunStop::Outcome(overflow(state, code.func))));
    }
    state.point_at_fresh_stubs();
    state.view.share(&mut state.machine, &state.modules, &state.table).map_err(refused)?;
    let context = state.view.address();
    state.native.enter();
    let (given, room) = (args.as_ptr(), values.as_mut_ptr());
    // SAFETY: the context begins with the entry state (asserted below) and lives as long as the
    // state, and its fields are cells. The last use of `state` comes before, so helpers alone have
    // the state. The caller guarantees that code and trampoline have one signature. The table keeps
    // all code that may be reached or returned to (`super::reclaim`); the engine keeps all stubs.
    // The code is installed, or the table has kept it since the last safe point (`ascend`). `args`
    // has a word for each parameter, and `values` has room for a word for each result. Helpers run
    // inside `guard`, so they never unwind.
    let left = unsafe { enter::enter(trampoline, context.cast(), code.entry, given, room) };
    let state = access.state();
    state.native.leave();
    state.view.take_back(&mut state.machine);
    if let Err(stop) = left {
        return Err(boxed(state, stop));
    }
    if results.in_registers {
        // SAFETY: the capacity is at least this number, and the trampoline has written a word for
        // each result.
        unsafe { values.set_len(results.count) };
    } else {
        values.extend_from_slice(&state.view.buffer[..results.count]);
    }
    Ok(values)
}

#[cold]
fn refused(error: RunError) -> Box<RunStop> {
    Box::new(RunStop::Failed(error))
}

#[cold]
fn no_stack(error: io::Error) -> Box<RunStop> {
    refused(RunError::NoStack { what: error.to_string() })
}

#[cold]
fn boxed(state: &mut VmState, stop: NativeStop) -> Box<RunStop> {
    Box::new(stopped(state, stop))
}

/// The end of a run whose native code has stopped. A panic of a helper passes.
#[cold]
pub(super) fn stopped(state: &mut VmState, stop: NativeStop) -> RunStop {
    let stop = match stop {
        NativeStop::Trap(trap) => state.trapped(trap),
        NativeStop::Helper => match state.take_ending() {
            Some(RunEnding::Known(stop)) => stop,
            Some(RunEnding::AtHelper(_)) | None => RunStop::Failed(RunError::Lost),
        },
        NativeStop::Panic(payload) => {
            state.view.context().cold_caller.set(0);
            std::panic::resume_unwind(payload)
        }
    };
    // No stub of a cold call returns any more. The whole run ends, also above a nested one.
    state.view.context().cold_caller.set(0);
    stop
}

/// The end of a call for which the stack has no room, or that is made on a foreign stack.
#[cold]
pub(super) fn no_room(state: &mut VmState, func: Func) -> RunStop {
    match stack::allowed(HELPER_STACK + LEAF_STACK) {
        Ok(_) => RunStop::Outcome(overflow(state, func)),
        Err(error) => *no_stack(error),
    }
}

/// The end of a run at a function for which the stack has no room.
fn overflow(state: &mut VmState, func: Func) -> Outcome {
    let site = state.machine.site(func, None);
    state.machine.end_in_native(EarlyEnd::StackOverflow, site)
}

const _: () = assert!(offset!(entry) == 0, "the trampoline writes the entry state there");
