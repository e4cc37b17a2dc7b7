//! The state of a machine that runs natively, and the access of a run to it.
//!
//! Rust enters native code, which calls helpers, which enter native code again or run the
//! interpreter. A helper finds the state through the context. [`RunAccess`] keeps the accesses of
//! all these frames apart: a frame borrows the state through its own [`RunAccess`], and a frame
//! that enters native code holds no such borrow meanwhile, since [`super::native`] needs the whole
//! [`RunAccess`].

use super::embedder::Embedder;
use super::entrance::KnownEntrance;
use super::ledger::TransitionCounts;
use super::linear::Addresses;
use super::modules::ModuleChain;
use super::native_stack::NativeStack;
use super::stop::RunStop;
use super::table::CodeTable;
use super::tiering::TieringPolicy;
use super::view::NativeView;
use crate::context::{Context, Helpers};
use crate::engine::Engine;
use interp::{EarlyEnd, Host, Machine};
use ir::{Func, Module};
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

/// The state behind a [`super::Vm`], by owner.
///
/// While native code runs, helpers reach the state through the pointer in the context, one at a
/// time ([`RunAccess`]).
pub(super) struct VmState {
    pub(super) modules: ModuleChain,
    pub(super) machine: Machine,
    /// All state that native code reads and writes.
    pub(super) view: NativeView,
    pub(super) table: CodeTable,
    /// The identity of the machine, which its typed entries have.
    pub(super) identity: Arc<()>,
    /// How calls from outside enter native code, by function.
    pub(super) entrances: Vec<Option<KnownEntrance>>,
    /// The native frames of the run in progress.
    pub(super) native: NativeStack,
    pub(super) counts: TransitionCounts,
    pub(super) policy: TieringPolicy,
    /// The run in progress.
    pub(super) run: Option<HostedRun>,
    /// Whether the embedder has given the promises of [`super::Vm::with_host_memory`].
    pub(super) has_host_memory: bool,
}

impl std::fmt::Debug for VmState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let installed: Vec<Func> = self.table.functions().collect();
        f.debug_struct("VmState").field("installed", &installed).finish_non_exhaustive()
    }
}

impl VmState {
    pub(super) fn new(
        engine: &Engine,
        module: &Arc<Module>,
        machine: Machine,
        guarded: Addresses,
        helpers: Helpers,
    ) -> Box<VmState> {
        let view = NativeView::new(module, guarded, engine.config().interruption, helpers);
        let mut state = Box::new(VmState {
            modules: ModuleChain::new(engine, module, machine.program()),
            machine,
            policy: TieringPolicy::new(view.heeded()),
            view,
            table: CodeTable::default(),
            identity: Arc::default(),
            entrances: Vec::new(),
            native: NativeStack::default(),
            counts: TransitionCounts::default(),
            has_host_memory: false,
            run: None,
        });
        state.lay_out(0);
        state.count_visits();
        state
    }

    /// Allocates the views for all declarations of the module, and points the calls of new
    /// functions to their code or their stub: of all but the first `known`. Linear in the memories,
    /// tables and new functions.
    pub(super) fn lay_out(&mut self, known: usize) {
        let module = Arc::clone(&self.modules.current);
        self.view.lay_out(&module);
        for (func, _) in module.funcs.iter_from(known) {
            if let Some(base) = self.machine.current(func) {
                self.modules.add_base(func, base);
            }
            self.point_at_current(func);
        }
    }

    /// Makes calls of a function run its installed version, or else its stub, which asks for code.
    /// No code calls a function that has neither.
    pub(super) fn point_at_current(&mut self, func: Func) {
        let code = self.current_code(func);
        self.view.point_at(func, code);
        self.table.lead_calls(func, code);
    }

    /// The code that calls of a function run: the installed version, or else the stub. Null without
    /// either.
    pub(super) fn current_code(&self, func: Func) -> *const u8 {
        let stub = || self.table.stub(self.modules.current.signature(func));
        let code = self.table.installed(func).map(|version| &version.code);
        match code.or_else(|| self.direct_code(func)) {
            Some(code) => code.entry(),
            None => stub().map_or(std::ptr::null(), |stub| stub.entry()),
        }
    }

    /// Points calls of functions without code to their stubs, for signatures that are new in code
    /// of the table. Runs before each entry into native code, and before native code continues
    /// behind a helper (`a_call_of_a_function_without_code_finds_a_stub`). Linear in the functions
    /// for each such signature.
    #[inline]
    pub(super) fn point_at_fresh_stubs(&mut self) {
        if self.table.has_fresh() {
            self.point_at_fresh();
        }
    }

    #[cold]
    fn point_at_fresh(&mut self) {
        let fresh = self.table.take_fresh();
        let module = Arc::clone(&self.modules.current);
        for signature in fresh {
            let called = module.funcs.keys().filter(|func| *module.signature(*func) == signature);
            called.for_each(|func| self.point_at_current(func));
        }
    }

    /// Frees retired code. Does nothing during a run, which may have frames in such code: safe
    /// points ([`super::reclaim`]) and the end of the run free it.
    #[inline]
    pub(super) fn sweep(&mut self) {
        if self.run.is_none() && self.table.retired() > 0 {
            self.table.free_retired(&BTreeSet::new());
        }
    }
}

/// The exclusive access of a run to the state of its machine.
///
/// While native code runs, the innermost helper has the only access that is used. The accesses of
/// all frames further out wait for the native code that they have entered.
pub(super) struct RunAccess<'r> {
    state: NonNull<VmState>,
    /// The access stands for this borrow.
    borrow: PhantomData<&'r mut VmState>,
}

impl std::fmt::Debug for RunAccess<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunAccess")
    }
}

impl<'r> RunAccess<'r> {
    /// The access of a run that starts now. Helpers of the run find the state through the context,
    /// by the pointer that this access uses itself.
    pub(super) fn start(state: &'r mut VmState) -> RunAccess<'r> {
        let mut access = RunAccess { state: NonNull::from(state), borrow: PhantomData };
        let vm = access.state.as_ptr().cast();
        access.state().view.context().vm.set(vm);
        access
    }

    /// The access of a helper, until it returns to native code.
    ///
    /// # Safety
    /// Native code passes `context` to the calling helper, and was entered with it. The helper uses
    /// one such access alone.
    pub(super) unsafe fn of_helper(context: *mut Context) -> RunAccess<'r> {
        // SAFETY: the caller guarantees the context of a run, which lives as long as the run.
        // `start` has set `vm` to the state of the run before native code was entered.
        let state = unsafe { NonNull::new_unchecked((*context).vm.get().cast()) };
        RunAccess { state, borrow: PhantomData }
    }

    /// The same access, for a shorter time.
    pub(super) fn reborrow(&mut self) -> RunAccess<'_> {
        RunAccess { state: self.state, borrow: PhantomData }
    }

    /// The state.
    pub(super) fn state(&mut self) -> &mut VmState {
        // SAFETY: the state is live as long as the run, and this access is exclusive. The reference
        // borrows the access, so the frame of this access cannot enter native code while it lives.
        // All frames further out wait for native code, and hold no reference to the state either.
        unsafe { self.state.as_mut() }
    }

    /// The state, for reading.
    pub(super) fn shared(&self) -> &VmState {
        // SAFETY: the state is live as long as the run. The reference borrows the access, so
        // neither `state` nor an entry into native code can change the state while it lives.
        unsafe { self.state.as_ref() }
    }
}

/// The host or embedder of a run in progress, and the reason why the run ends. A machine has
/// neither between runs.
pub(super) struct HostedRun {
    outside: Outside,
    /// The calls of the embedder that are in progress.
    callbacks: usize,
    /// The reason why native code stops. A helper leaves it, and the entry into native code takes
    /// it.
    ///
    /// Both ends are boxed, since every run moves this value.
    pub(super) ending: Option<Box<RunEnding>>,
    /// The end of a nested run that also ends the whole run, because the frames that wait for the
    /// nested run are gone or cannot continue.
    pub(super) ended: Option<Box<RunStop>>,
}

/// The executor of imported functions.
enum Outside {
    /// A host, which knows memories alone.
    Host(NonNull<dyn Host>),
    /// An embedder, which may call functions of the program.
    Embedder(NonNull<dyn Embedder>),
    /// The embedder is executing an imported function. Its borrow is in use until it returns, or
    /// lends itself to a nested run ([`RunAccess::with_embedder`]).
    Lent,
}

// SAFETY: a machine has this value only while a run borrows it mutably, on one thread. The machine
// cannot move to another thread meanwhile. A `Tier` may, for the time of a call of the embedder;
// none of its methods reaches the pointer.
unsafe impl Send for HostedRun {}

impl HostedRun {
    /// A run with this host.
    ///
    /// # Safety
    /// The value is dropped before the borrow of the host ends.
    #[inline(always)]
    pub(super) unsafe fn of_host(host: &mut dyn Host) -> HostedRun {
        let pointer: NonNull<dyn Host + '_> = NonNull::from(host);
        // SAFETY: the two types differ in the lifetime bound alone. The caller guarantees that the
        // pointer is not used after the borrow of the host has ended.
        let host = unsafe {
            std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host + 'static>>(pointer)
        };
        HostedRun { outside: Outside::Host(host), callbacks: 0, ending: None, ended: None }
    }

    /// A run with this embedder.
    ///
    /// # Safety
    /// As for [`HostedRun::of_host`].
    #[inline(always)]
    pub(super) unsafe fn of_embedder(embedder: &mut dyn Embedder) -> HostedRun {
        // SAFETY: passed on to the caller.
        let outside = unsafe { Outside::of(embedder) };
        HostedRun { outside, callbacks: 0, ending: None, ended: None }
    }

    /// The host. `None` if the run has an embedder, for which the interpreter stops at imports.
    pub(super) fn host(&mut self) -> Option<&mut dyn Host> {
        match &mut self.outside {
            // SAFETY: `of_host` made the pointer from a mutable borrow that outlives `self`. A run
            // is on one thread and calls the host through this reference alone, which borrows
            // `self`.
            Outside::Host(host) => Some(unsafe { host.as_mut() }),
            Outside::Embedder(_) | Outside::Lent => None,
        }
    }

    /// Whether an embedder executes imported functions.
    pub(super) fn has_embedder(&self) -> bool {
        !matches!(self.outside, Outside::Host(_))
    }

    /// Forgets the end of a call, which must not end the next call of its session
    /// (`a_panic_of_the_embedder_passes`).
    pub(super) fn forget_end(&mut self) {
        (self.ending, self.ended) = (None, None);
    }

    /// The calls of the embedder that are in progress.
    pub(super) fn depth(&self) -> usize {
        self.callbacks
    }
}

impl Outside {
    /// # Safety
    /// The value is dropped, or replaced, before the borrow of the embedder ends.
    #[inline(always)]
    unsafe fn of(embedder: &mut dyn Embedder) -> Outside {
        let pointer: NonNull<dyn Embedder + '_> = NonNull::from(embedder);
        // SAFETY: the two types differ in the lifetime bound alone. The caller guarantees that the
        // pointer is not used after the borrow of the embedder has ended.
        Outside::Embedder(unsafe {
            std::mem::transmute::<NonNull<dyn Embedder + '_>, NonNull<dyn Embedder + 'static>>(
                pointer,
            )
        })
    }
}

impl RunAccess<'_> {
    /// The host or embedder of the run.
    pub(super) fn run(&mut self) -> &mut HostedRun {
        self.state().run.as_mut().expect("jit: a run is in progress")
    }

    /// Asks the embedder, which gets the access meanwhile. `None` if the run has no embedder. A
    /// panic of the embedder passes, after the run has its embedder again.
    pub(super) fn ask_embedder<R>(
        &mut self,
        question: impl FnOnce(&mut dyn Embedder, RunAccess<'_>) -> R,
    ) -> Option<R> {
        let run = self.run();
        let Outside::Embedder(mut pointer) = run.outside else { return None };
        run.outside = Outside::Lent;
        run.callbacks += 1;
        // SAFETY: the pointer comes from a mutable borrow that outlives the value of `outside`
        // (`Outside::of`). The run does not use it again before the question is answered, since
        // `outside` is `Lent`; a nested run uses the embedder that `with_embedder` gets.
        let embedder = unsafe { pointer.as_mut() };
        let access = self.reborrow();
        let answer = catch_unwind(AssertUnwindSafe(|| question(embedder, access)));
        let run = self.run();
        run.outside = Outside::Embedder(pointer);
        run.callbacks -= 1;
        Some(answer.unwrap_or_else(|payload| resume_unwind(payload)))
    }

    /// Runs `nested`, which asks this embedder. Restores the previous embedder afterwards, also if
    /// `nested` panics; the panic passes.
    pub(super) fn with_embedder<R>(
        &mut self,
        embedder: &mut dyn Embedder,
        nested: impl FnOnce(&mut RunAccess<'_>) -> R,
    ) -> R {
        // SAFETY: the pointer is replaced below, also after a panic, and `embedder` is borrowed
        // until then.
        let outside = unsafe { Outside::of(embedder) };
        let before = std::mem::replace(&mut self.run().outside, outside);
        let answer = catch_unwind(AssertUnwindSafe(|| nested(self)));
        self.run().outside = before;
        answer.unwrap_or_else(|payload| resume_unwind(payload))
    }
}

/// The reason why a helper ends the run.
#[derive(Debug)]
pub(super) enum RunEnding {
    /// The operation of the helper ends the run. The site is the call of the helper.
    AtHelper(EarlyEnd),
    /// An end with a known site, or without a site.
    Known(RunStop),
}

impl From<RunStop> for RunEnding {
    fn from(stop: RunStop) -> RunEnding {
        RunEnding::Known(stop)
    }
}
