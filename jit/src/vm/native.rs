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

/// The two kinds of entry.
enum Entrance<'a> {
    /// The call of a function with these arguments.
    Call(&'a [u64]),
    /// The entry into code that reads its inputs from the buffer.
    Resume,
}

impl VmState {
    /// The end of a run that has returned values.
    pub(super) fn returned(&mut self, values: Vec<u64>) -> Outcome {
        self.machine.trace_return(&values);
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
        let limit = stack::limit(HELPER_STACK + LEAF_STACK)
            .map_err(|error| RunStop::Failed(RunError::NoStack { what: error.to_string() }))?;
        self.modules.require_own(&self.machine).map_err(RunStop::Failed)?;
        self.view.context().stack_limit.set(limit as u64);
        let mut current = InProgress { state: self, has_ended: false };
        let machine = &current.state.machine;
        // A collector of the machine's own finds no native frames.
        let stops = run.has_embedder()
            || current.state.table.has_direct()
            || machine.has_stress_collector();
        current.state.machine.stop_at_imports(stops);
        // `current` drops the value at the end of this function, also if a panic unwinds it.
        current.state.run = Some(run);
        let result = body(&mut RunAccess::start(current.state));
        current.has_ended = true;
        drop(current);
        self.sweep();
        // A request that came too late for this run must not end the next run.
        self.view.forget_interrupts();
        self.machine.refresh_digests();
        result
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
        let place = code.map(|code| code.site_at(trap.pc));
        let (func, inst) = place.unwrap_or((Func::from_u32(0), None));
        let site = self.machine.site(func, inst);
        let end = match cause {
            Cause::Trap(kind) => EarlyEnd::Trap(kind),
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
struct InProgress<'s> {
    state: &'s mut VmState,
    has_ended: bool,
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.state.run = None;
        // Runs that the owner starts on the machine itself have a host
        // (`the_machine_itself_calls_its_host_after_a_run_with_an_embedder`).
        self.state.machine.stop_at_imports(false);
        self.state.native.clear();
        self.state.view.context().vm.set(std::ptr::null_mut());
        if !self.has_ended {
            self.state.machine.give_up();
        }
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
    let state = access.state();
    let (trampoline, results) = state.way_in(func).map_err(failed)?;
    // SAFETY: the trampoline was built for the signature of `func`. The code belongs to the version
    // installed for `func`, and every version has this signature (`engine::check`); or it is the
    // shim of `func`, whose signature `bind` has compared. `run_called` has compared the numbers of
    // arguments and parameters; `direct::call` gets its arguments from a call in the program, or
    // from `run_called`.
    unsafe { enter(access, trampoline, code, Entrance::Call(args), results) }
}

/// Enters the continuation of a hot loop. Returns the results of its function.
pub(super) fn resume(access: &mut RunAccess<'_>, ascent: &Ascent) -> Result<Vec<u64>, RunStop> {
    let state = access.state();
    let results = state.modules.current.signature(ascent.func()).results.to_vec();
    let entered = EnteredResults::of(&results);
    let trampoline = state.modules.engine.stub(Stub::Resume(results)).map_err(failed)?;
    let trampoline = state.table.pin(&trampoline);
    let code = EnteredCode::of(ascent.code());
    // SAFETY: `VmState::ascend` alone makes an `Ascent`, of a continuation into a version of this
    // function. Continuations take no arguments, and return the results of their function.
    unsafe { enter(access, trampoline, code, Entrance::Resume, entered) }
}

impl VmState {
    /// The way into native code of a function. Made once, since the interpreter calls native code
    /// often.
    fn way_in(&mut self, func: Func) -> Result<(*const u8, EnteredResults), CompileError> {
        let index = func.index();
        if let Some(Some(known)) = self.entrances.get(index) {
            return Ok((known.trampoline.entry(), known.results));
        }
        let signature = self.modules.current.signature(func).clone();
        let results = EnteredResults::of(&signature.results);
        let trampoline = self.modules.engine.stub(Stub::Enter(signature))?;
        let entry = self.table.pin(&trampoline);
        self.entrances.resize_with(self.entrances.len().max(index + 1), || None);
        self.entrances[index] = Some(KnownEntrance { trampoline, results });
        Ok((entry, results))
    }
}

fn failed(error: CompileError) -> RunStop {
    RunStop::Failed(RunError::Compile(error))
}

/// Enters native code through a trampoline. Returns the results of its function.
///
/// # Safety
/// `code` belongs to a function with these results and with a parameter for each argument; for
/// [`Entrance::Resume`], its inputs are in the buffer. `trampoline` was built for that signature,
/// and the table has pinned it.
unsafe fn enter(
    access: &mut RunAccess<'_>,
    trampoline: *const u8,
    code: EnteredCode,
    entrance: Entrance<'_>,
    results: EnteredResults,
) -> Result<Vec<u64>, RunStop> {
    let given = match entrance {
        Entrance::Call(args) => args,
        Entrance::Resume => &[],
    };
    // The one allocation of a run, which the results keep.
    let mut values = Vec::with_capacity(given.len().max(results.count));
    values.extend_from_slice(given);
    values.resize(given.len().max(results.count), 0);
    let state = access.state();
    if !code.checks_stack && stack::is_below(state.view.context().stack_limit.get() as usize) {
        let site = state.machine.site(code.func, None);
        let end = state.machine.end_in_native(EarlyEnd::StackOverflow, site);
        return Err(RunStop::Outcome(end));
    }
    state.point_at_fresh_stubs();
    state.view.share(&mut state.machine, &state.modules).map_err(RunStop::Failed)?;
    let context = state.view.address();
    state.native.enter();
    // SAFETY: `trampoline::build` gives every trampoline this signature. The table keeps pinned
    // code for good.
    let trampoline: Trampoline =
        unsafe { std::mem::transmute::<*const u8, Trampoline>(trampoline) };
    // SAFETY: the context begins with the entry state (asserted below) and lives as long as the
    // state, and its fields are cells. The last use of `state` comes before, so helpers alone have
    // the state. The caller guarantees that code and trampoline have one signature. The table keeps
    // all code that may be reached or returned to (`super::reclaim`); the engine keeps all stubs.
    // The code is installed, or the table has kept it since the last safe point (`ascend`).
    // `values` has a word for each parameter, and a word for each result. Helpers run inside
    // `guard`, so they never unwind.
    let left = unsafe { enter::enter(trampoline, context.cast(), code.entry, &mut values) };
    let state = access.state();
    state.native.leave();
    state.view.take_back(&mut state.machine);
    match left {
        Ok(()) => {
            values.truncate(results.count);
            if !results.in_registers {
                values.copy_from_slice(&state.view.buffer[..results.count]);
            }
            Ok(values)
        }
        Err(NativeStop::Trap(trap)) => Err(state.trapped(trap)),
        Err(NativeStop::Helper) => match state.take_ending() {
            Some(RunEnding::Known(stop)) => Err(stop),
            Some(RunEnding::AtHelper(_)) | None => Err(RunStop::Failed(RunError::Lost)),
        },
        Err(NativeStop::Panic(payload)) => std::panic::resume_unwind(payload),
    }
}

const _: () = assert!(offset!(entry) == 0, "the trampoline writes the entry state there");
