//! Sessions: many calls of functions by the owner of a machine, with one beginning and one end.
//!
//! [`super::Vm::run`] looks up the stack of the thread and writes the addresses of memories, tables
//! and globals to the context for each call. A session does so once. A call in it is a jump into
//! the typed trampoline of its entry ([`super::typed`]).
//!
//! Between two calls, the context has the fuel and the first globals, and the machine is out of
//! date; [`Session::with_machine`] brings both together. The record of the session's entry into
//! native code ([`super::native_stack`]) stays for the whole session.

use super::native;
use super::state::{HostedRun, RunAccess};
use super::stop::{RunError, RunStop};
use super::typed::{EntryArgs, EntryError, EntryResult, TypedEntry, sealed};
use super::{Embedder, Vm};
use crate::sys::enter::{self, NativeStop, SharedActivation};
use crate::sys::trampoline::{NO_ROOM, RAISED, RETURNED};
use cranelift_entity::EntityRef;
use interp::{Machine, Outcome};
use ir::Func;
use std::fmt;
use std::mem;
use std::ptr;
use std::sync::Arc;

/// Calls of functions of a machine, in the closure of [`super::Vm::session`].
pub struct Session<'s> {
    access: RunAccess<'s>,
    activation: &'s SharedActivation<'s>,
    context: *mut u8,
    /// The identity of the machine while the context has fuel and globals of it. Otherwise null,
    /// and no call may enter native code.
    owner: *const (),
    /// The reason why no call may.
    closed: Option<RunError>,
    traces: bool,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("closed", &self.closed).finish_non_exhaustive()
    }
}

impl Vm {
    /// Makes a handle for calls of a function in sessions: `vm.entry::<(u64, u64), u64>(func)`.
    /// Arguments and result have the types of the signature: 32 or 64 bits, with either signedness.
    /// The first handle of a signature costs a small compilation.
    ///
    /// # Errors
    /// If the program does not define the function, the signature differs from the types, or the
    /// code cannot be compiled.
    pub fn entry<P: EntryArgs, R: EntryResult>(
        &mut self,
        func: Func,
    ) -> Result<TypedEntry<P, R>, EntryError> {
        self.state.typed_entry(func)
    }

    /// Begins a session: `body` calls functions of the program, any number of times, at the cost of
    /// a few nanoseconds beside the function.
    ///
    /// ```
    /// # use interp::{Limits, NoHost, Options};
    /// # use osier_jit::{Config, Embedder, Engine, Vm};
    /// # use std::sync::Arc;
    /// # struct Nobody;
    /// # impl Embedder for Nobody {}
    /// # let text = "func @next(%x: i64) -> i64 {\nentry:\n  %one = const.i64 1\n  \
    /// #             %y = add.i64 %x, %one\n  return %y\n}\n";
    /// # let module = Arc::new(ir::text::parse_module(text).unwrap());
    /// # let Ok(engine) = Engine::new(Config::default()) else { return Ok(()) };
    /// # let mut vm = Vm::new(&engine, &module, Limits::default(), Options::default())?;
    /// # let func = module.func_named("next").ok_or("the text has it")?;
    /// # let mut embedder = Nobody;
    /// let next = vm.entry::<(u64,), u64>(func)?;
    /// let sum = vm.session(&mut embedder, |session| {
    ///     (0..1000).try_fold(0, |sum, x| session.call(&next, (x,)).map(|next| sum + next))
    /// })??;
    /// assert_eq!(sum, 500_500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Each call is a run like [`Vm::run`], with these differences:
    ///
    /// - The calls of a session share their embedder. An [`super::Interrupt`] ends the call in
    ///   progress. A request that comes between two calls ends the next call that polls, unless a
    ///   call that polls nowhere ends by itself with an error: then the request is dropped.
    /// - The code that a call replaces is freed at a safe point of a later call, or at the end of
    ///   the session.
    /// - The calls of a session run on the stack of the thread: a call on another one, such as a
    ///   coroutine's, ends with [`RunError::NoStack`].
    ///
    /// The cost of beginning and ending a session is that of a run. Each call of a function without
    /// code asks [`super::Tiering::demanded`], which may compile.
    ///
    /// # Errors
    /// If the stack has unknown bounds, or the machine or its memories were exchanged.
    ///
    /// # Panics
    /// If `body` panics.
    pub fn session<T>(
        &mut self,
        embedder: &mut dyn Embedder,
        body: impl FnOnce(&mut Session<'_>) -> T,
    ) -> Result<T, RunError> {
        // SAFETY: the run ends in `hosted`, while this function borrows the embedder.
        let run = unsafe { HostedRun::of_embedder(embedder) };
        // SAFETY: `embedder`, with which the run was made, is borrowed until this function returns.
        match unsafe { self.state.hosted(run, |access| begin(access, body)) } {
            Ok(result) => Ok(result),
            Err(RunStop::Failed(error)) => Err(error),
            Err(RunStop::Outcome(_)) => Err(RunError::Lost),
        }
    }
}

/// The reason why a call of a session did not return.
#[derive(Clone, PartialEq, Debug)]
pub enum SessionEnd {
    /// The program ended the call: a trap, an exit, a stack overflow, no fuel.
    Outcome(Outcome),
    /// The errors of [`super::Vm::run`].
    Failed(RunError),
    /// The entry belongs to another machine.
    OtherMachine,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionEnd::Outcome(outcome) => write!(f, "{outcome}"),
            SessionEnd::Failed(error) => write!(f, "{error}"),
            SessionEnd::OtherMachine => f.write_str("the entry belongs to another machine"),
        }
    }
}

impl std::error::Error for SessionEnd {}

impl From<RunStop> for SessionEnd {
    fn from(stop: RunStop) -> SessionEnd {
        match stop {
            RunStop::Outcome(outcome) => SessionEnd::Outcome(outcome),
            RunStop::Failed(error) => SessionEnd::Failed(error),
        }
    }
}

impl Session<'_> {
    /// Calls a function with these arguments. Costs few nanoseconds beside the function
    /// (`cargo bench -p osier-jit --bench calls`), if it has native code; otherwise as
    /// [`super::Vm::run`].
    ///
    /// # Errors
    /// The reason why the function did not return. The session continues afterwards; effects of
    /// the call up to its end remain.
    ///
    /// # Panics
    /// If [`super::Embedder::call`] or the [`super::Tiering`] panicked.
    #[inline]
    pub fn call<P: EntryArgs, R: EntryResult>(
        &mut self,
        entry: &TypedEntry<P, R>,
        args: P,
    ) -> Result<R, Box<SessionEnd>> {
        if !ptr::eq(Arc::as_ptr(&entry.owner), self.owner) {
            return Err(self.refused());
        }
        let function = entry.func.index() as u64;
        let context = self.context;
        let returned = self.activation.within(|| {
            // SAFETY: `typed_entry` made the trampoline for these types, so `build_typed` gave it
            // this type. Calls in this closure are right: the trampoline belongs to the machine of
            // this session, whose functions keep their signatures. The activation is for the
            // context, and is now the innermost one of this thread: a session cannot be sent. The
            // word of the function in the context leads to its installed version or to a stub
            // (`VmState::point_at_current`), of the function's signature; the table keeps the code
            // as `native::enter` says. No reference to the state is alive. Helpers run inside
            // `guard`, so they never unwind.
            let code = unsafe { mem::transmute_copy::<_, P::Code<R>>(&entry.trampoline) };
            args.apply::<R>(code, context, function)
        });
        let (status, result) = <R as sealed::Result>::split(returned);
        if status != RETURNED {
            return Err(self.ended(entry.func, status));
        }
        if self.traces {
            self.note_return(&result.words());
        }
        Ok(result)
    }

    /// The state of the program, between calls. Costs as [`super::Vm::run`].
    ///
    /// # Panics
    /// If `change` panics. The session continues afterwards, without the runs that `change` has
    /// begun on the machine.
    pub fn with_machine<T>(&mut self, change: impl FnOnce(&mut Machine) -> T) -> T {
        let mut lent = LentMachine::of(self);
        let changed = change(&mut lent.session.access.state().machine);
        lent.returned = true;
        changed
    }

    /// Brings the machine up to date. A machine in an exchanged place has its own globals, which
    /// those of the context must not replace (`an_exchanged_machine_keeps_its_globals`).
    fn take_back(&mut self) {
        if !self.owner.is_null() {
            self.owner = ptr::null();
            let state = self.access.state();
            state.view.take_back(&mut state.machine);
        }
    }

    /// Updates the context after Rust has used the state. No call may enter native code if the
    /// machine was exchanged: the context then has addresses in the one before.
    fn share(&mut self) {
        let state = self.access.state();
        state.point_at_fresh_stubs();
        self.traces = state.machine.is_tracing();
        let shared = state.view.share(&mut state.machine, &state.modules, &state.table);
        self.owner = if shared.is_ok() { Arc::as_ptr(&state.identity) } else { ptr::null() };
        self.closed = shared.err();
    }

    #[cold]
    fn refused(&self) -> Box<SessionEnd> {
        Box::new(self.closed.clone().map_or(SessionEnd::OtherMachine, SessionEnd::Failed))
    }

    #[cold]
    fn note_return(&mut self, words: &[u64]) {
        self.take_back();
        self.access.state().machine.trace_return(words);
        self.share();
    }

    /// The end of a call that did not return, after which the session continues.
    #[cold]
    fn ended(&mut self, func: Func, status: u64) -> Box<SessionEnd> {
        let stop = match status {
            RAISED => Some(self.activation.stop()),
            _ => None,
        };
        debug_assert!(stop.is_some() || status == NO_ROOM, "jit: status {status}");
        let state = self.access.state();
        // The entry may have noted frames, which are gone.
        state.native.leave();
        state.native.enter();
        self.take_back();
        let state = self.access.state();
        let stop = match stop {
            Some(NativeStop::Panic(payload)) => {
                state.machine.give_up();
                state.view.context().cold_caller.set(0);
                self.access.run().forget_end();
                self.share();
                std::panic::resume_unwind(payload);
            }
            Some(stop) => native::stopped(state, stop),
            None => native::no_room(state, func),
        };
        self.access.run().forget_end();
        let state = self.access.state();
        // A request that came too late for this call must not end the next one.
        state.view.forget_interrupts();
        state.machine.refresh_digests();
        self.share();
        Box::new(stop.into())
    }
}

/// The machine while the owner changes it. Brings the context up to date at the end, also if the
/// owner panics: the next call uses the addresses there
/// (`a_machine_changed_before_a_panic_is_used`).
struct LentMachine<'l, 's> {
    session: &'l mut Session<'s>,
    returned: bool,
}

impl<'l, 's> LentMachine<'l, 's> {
    fn of(session: &'l mut Session<'s>) -> LentMachine<'l, 's> {
        session.take_back();
        let state = session.access.state();
        state.machine.refresh_digests();
        // Runs that the owner starts on the machine itself have a host, also on a machine that is
        // taken out (`the_machine_of_a_session_calls_its_host`).
        state.machine.stop_at_imports(false);
        LentMachine { session, returned: false }
    }
}

impl Drop for LentMachine<'_, '_> {
    fn drop(&mut self) {
        let machine = &mut self.session.access.state().machine;
        if !self.returned {
            machine.give_up();
        }
        // A session has an embedder, which serves the imports (`VmState::begin`).
        machine.stop_at_imports(true);
        self.session.share();
    }
}

/// Ends a session, also if a panic unwinds it.
struct Closing<'s>(Session<'s>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.take_back();
        self.0.access.state().native.leave();
    }
}

/// Runs the closure of a session, for which `access` was made.
pub(super) fn begin<T>(
    access: &mut RunAccess<'_>,
    body: impl FnOnce(&mut Session<'_>) -> T,
) -> Result<T, RunStop> {
    let state = access.state();
    state.point_at_fresh_stubs();
    state.view.share(&mut state.machine, &state.modules, &state.table).map_err(RunStop::Failed)?;
    let (context, traces) = (state.view.address().cast::<u8>(), state.machine.is_tracing());
    let owner = Arc::as_ptr(&state.identity);
    state.native.enter();
    Ok(enter::with_shared(context, |activation| {
        let access = access.reborrow();
        let session = Session { access, activation, context, owner, closed: None, traces };
        let mut closing = Closing(session);
        body(&mut closing.0)
    }))
}

#[cfg(test)]
mod tests;
