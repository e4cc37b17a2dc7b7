//! Runs programs natively: a machine of the interpreter, and native code that works on its state.
//!
//! A [`Vm`] owns a [`Machine`]. The interpreter and native code share its memories, tables and
//! globals. Functions with code run natively, all others in the interpreter. Calls and transitions
//! take a run from one engine to the other.
//!
//! # Differences from the interpreter
//! A run ends as it does in the interpreter: with the same effects in the same order, the same
//! memories, tables and globals, and the same site. There are five exceptions.
//!
//! - Native code uses the stack of the thread. [`Limits::call_depth`] and [`Limits::stack_values`]
//!   do not apply, so recursion may get less or more deep. [`Outcome::StackOverflow`] is reported
//!   at the function that finds no room for its frame, without an instruction, and not at the call.
//! - Only [`crate::Interruption::Fuel`] counts fuel in native code. A block pays for all its
//!   instructions beforehand. A run therefore runs out of fuel at the beginning of a block, up to
//!   one block of each activation earlier. A run that returns has used the same fuel as a run of
//!   the interpreter.
//! - The compiler removes redundant accesses. An out-of-bounds trap may be attributed to another
//!   access of the function; kind, function and effects agree.
//! - With [`crate::Nans::Platform`], a NaN from arithmetic may have other bits, and so may values
//!   that the program computes from these bits.
//! - The option of [`Options`] that poisons the interpreter's frames has no effect.
//!
//! # Several modules
//! A machine may take up further modules between runs ([`Vm::extend`]), which share the
//! declarations that they import. Code for the modules before stays valid.
//!
//! # Threads
//! One thread at a time runs a `Vm`; between runs, the `Vm` may move to another thread. Any thread
//! may compile code ([`Engine`] is `Send + Sync`). The owner installs code between runs, and the
//! [`Tiering`] installs code during a run. Any thread may use an [`Interrupt`], set flags of OSR
//! points ([`Version::arm`]), and tell the [`Tiering`] of news ([`Wake`]).
//!
//! # Lifetime of code
//! A `Vm` holds a reference to all code that it may execute. A frame may be in code that is
//! replaced or released during a run. The `Vm` frees this code at the next question to the
//! [`Tiering`] at which no frame returns to it, or after the run has ended.

mod action;
pub(crate) mod block;
mod bound;
mod call;
mod callback;
mod counting;
mod deopt;
mod direct;
mod embedder;
mod entrance;
mod extend;
mod helpers;
mod host_memory;
mod imports;
mod interpret;
mod known_calls;
mod lazy_bodies;
mod ledger;
mod linear;
mod link;
mod modules;
mod native;
mod native_stack;
mod osr_entry;
mod osr_exit;
mod ranges;
mod reclaim;
mod session;
mod state;
mod stop;
mod table;
mod tiering;
mod typed;
mod view;
mod watch;

pub use action::{Action, CallsFrom, LinkError};
use block::Current;
pub use bound::BindError;
pub use embedder::{
    Callback, CallbackEnd, DeoptFrame, Embedder, HandedActivation, HandedContent, HandedLocal, Slot,
};
pub use ledger::{Transition, TransitionKind};
pub use osr_entry::{Contents, Entered};
pub use session::{Session, SessionEnd};
pub use stop::RunError;
use stop::RunStop;
pub use tiering::{FailedPoint, HotLoop, Onward, OpenPoint, Quiet, Tier, Tiering};
pub use typed::{EntryArgs, EntryError, EntryResult, TypedEntry};
pub use watch::{CountedPlace, VisitedPlace, Wake};

use crate::direct::{BoundFunctions, DirectFunction};
use crate::engine::Engine;
use crate::version::Version;
use check::KnownCall;
use extend::Provided;
use interp::{Host, InstantiateError, Limits, Machine, Options, Outcome, Program};
use ir::{Func, Function, Inst, Module, SupplyError};
use state::{HostedRun, VmState};
use std::fmt;
use std::sync::Arc;

/// A program and its state, run natively. The module documentation describes the differences from
/// the interpreter.
#[derive(Debug)]
pub struct Vm {
    /// Boxed, since the state is large and machines are moved.
    state: Box<VmState>,
}

// A `Vm` moves between runs (`a_machine_moves_between_threads_between_runs`).
const _: () = {
    const fn moves<T: Send>() {}
    moves::<Vm>();
};

/// The reason why a program cannot be run natively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VmError {
    /// The module cannot be instantiated.
    Instantiate(InstantiateError),
    /// No address space is left for a guarded memory. [`crate::Bounds::Checked`] needs none.
    NoAddressSpace {
        /// The name of the memory.
        memory: String,
    },
    /// The module does not begin like the machine's module.
    OtherBeginning {
        /// The first declaration that differs or is missing.
        what: String,
    },
    /// A host memory has its bytes in the embedder, but the machine was not made by
    /// [`Vm::with_host_memory`].
    HostMemory {
        /// The name of the memory.
        memory: String,
    },
    /// The embedder has exchanged the machine for another, or has extended it without the [`Vm`].
    Exchanged,
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VmError::Instantiate(error) => write!(f, "{error}"),
            VmError::NoAddressSpace { memory } => {
                write!(
                    f,
                    "no address space is left for guarded memory {memory}; use Bounds::Checked"
                )
            }
            VmError::OtherBeginning { what } => {
                write!(
                    f,
                    "the module does not begin like the machine's module: {what} differs or is \
                     missing"
                )
            }
            VmError::HostMemory { memory } => {
                write!(
                    f,
                    "host memory {memory} has no pages of its own; make the machine by \
                     Vm::with_host_memory"
                )
            }
            VmError::Exchanged => {
                f.write_str("the machine or its memories were exchanged for others")
            }
        }
    }
}

impl std::error::Error for VmError {}

/// Ends a run from outside, from any thread. Works for code compiled with
/// [`crate::Interruption::Signal`].
#[derive(Clone, Debug)]
pub struct Interrupt {
    current: Current,
}

impl Interrupt {
    /// Ends the current run, or else the next one. A request that arrives while a run returns may
    /// have no effect. Linear in the words that loop headers test. Takes a lock, so the handler of
    /// a signal must not call it.
    pub fn ask(&self) {
        self.current.interrupt();
    }
}

impl Vm {
    /// An instance of a verified module. The start function does not run. Every function runs in
    /// the interpreter until it has code.
    ///
    /// # Errors
    /// If the module cannot be instantiated, no address space is left for guarded memories, or the
    /// embedder has the bytes of a host memory ([`Vm::with_host_memory`]).
    ///
    /// # Panics
    /// As [`Program::on_demand`] does, in a run.
    pub fn new(
        engine: &Engine,
        module: &Arc<Module>,
        limits: Limits,
        options: Options,
    ) -> Result<Vm, VmError> {
        Vm::instantiate(engine, module, limits, options, false)
    }

    /// As [`Vm::new`], for a module with host memories whose bytes the embedder has: those declared
    /// `host` without an address. Native code and the interpreter access them at their addresses in
    /// the process, without a check. The promises hold for modules given to [`Vm::extend`], too.
    ///
    /// # Errors
    /// As [`Vm::new`].
    ///
    /// # Panics
    /// As [`Vm::new`].
    ///
    /// # Safety
    /// While a run lasts, or is paused:
    ///
    /// - A run accesses such a memory only at bytes that the process may read, and for stores also
    ///   write. At that time, no Rust reference exists that the access would invalidate, and no
    ///   other thread accesses these bytes without synchronization. The sum of address and offset
    ///   stays below 2^64. The promise covers the program before optimization: optimized code makes
    ///   no further accesses.
    /// - A byte that the run has accessed stays accessible until the run ends. The byte changes
    ///   only in calls: calls of imported functions, and calls back to the embedder.
    /// - Between two such calls, the run accesses a byte through a single memory of the module.
    ///   Such a byte never belongs to the engine, to the machine (not even to its linear memories)
    ///   or to its code.
    ///
    /// Accesses through [`Vm::machine_mut`] and the [`interp::Memories`] of host functions count as
    /// accesses of the run.
    pub unsafe fn with_host_memory(
        engine: &Engine,
        module: &Arc<Module>,
        limits: Limits,
        options: Options,
    ) -> Result<Vm, VmError> {
        Vm::instantiate(engine, module, limits, options, true)
    }

    /// Only [`Vm::with_host_memory`] may set `has_host_memory`.
    fn instantiate(
        engine: &Engine,
        module: &Arc<Module>,
        limits: Limits,
        options: Options,
        has_host_memory: bool,
    ) -> Result<Vm, VmError> {
        host_memory::require(module, has_host_memory)?;
        let program = Program::on_demand(module);
        let mut provided = Provided::new(engine, module, 0)?;
        let machine = Machine::with_regions(&program, limits, options, &mut |_| provided.next());
        let machine = machine.map_err(VmError::Instantiate)?;
        let mut state = VmState::new(engine, module, machine, provided.addresses, helpers::TABLE);
        state.has_host_memory = has_host_memory;
        state.provide_host_memory(module);
        Ok(Vm { state })
    }

    /// Takes up a verified module that begins like the machine's module and declares more. Several
    /// modules can thereby share functions, memories, tables and globals;
    /// `osier_wasm::import_linked` links such modules. The call allocates the new declarations and
    /// writes their segments, but does not run the start function. The limits given to [`Vm::new`]
    /// apply to all modules together.
    ///
    /// Existing state stays:
    /// - memories, tables and globals keep their contents;
    /// - installed versions stay, and call new functions through tables;
    /// - OSR points keep their targets and flags;
    /// - [`Interrupt`]s, the [`Tiering`] and all counts stay.
    ///
    /// Versions that were compiled for an earlier module, or are being compiled, can still be
    /// installed. New versions may be compiled for the module given here, which [`Tier::module`]
    /// returns from now on. New functions run in the interpreter until they have code. A run that
    /// is paused in [`Vm::machine_mut`] is given up.
    ///
    /// Cost: one step per 64 functions that the module shares as a clone of the machine's module,
    /// and linear in its other declarations and segments and in the functions that await their
    /// bodies. A version owns its module, so a version for each of many modules costs memory:
    /// compile several functions for one module, or declare them with [`Module::define_later`].
    ///
    /// # Errors
    /// - [`VmError::OtherBeginning`]: the module does not begin like the machine's. The same
    ///   functions must have the same bodies, as they are after a clone of the module. Names,
    ///   exports, and the initial sizes and bits of memories, tables and globals do not matter.
    /// - [`VmError::Instantiate`] with a memory that has fewer pages than the module declares for
    ///   it.
    /// - [`VmError::Instantiate`] with a segment that is out of bounds of its memory or table
    ///   ([`InstantiateError::is_of_segment`]). The machine has taken up the module then, and has
    ///   written the segments before this one.
    /// - [`VmError::Instantiate`] with another error, [`VmError::NoAddressSpace`] and
    ///   [`VmError::HostMemory`].
    /// - [`VmError::Exchanged`]: the machine is not the one made here, or was extended without the
    ///   `Vm`.
    ///
    /// Except for errors of segments, a failed call changes nothing.
    ///
    /// # Panics
    /// As [`Program::on_demand`] does, in a run.
    pub fn extend(&mut self, module: &Arc<Module>) -> Result<(), VmError> {
        self.state.extend(module)
    }

    /// Supplies the body of a function that the module declares for later
    /// ([`Module::define_later`]), before a call asks for it ([`Embedder::supply`]). All machines
    /// with the module have the body from now on. Linear in the body, logarithmic in the functions
    /// (`osr_cost embed` measures it).
    ///
    /// # Errors
    /// If the function awaits no body, or the body does not fit.
    pub fn supply(
        &mut self,
        func: Func,
        body: impl Into<Arc<Function>>,
    ) -> Result<(), SupplyError> {
        self.state.supply(func, body.into())
    }

    /// The module that was taken up last, which begins like all earlier modules. Constant cost.
    pub fn module(&self) -> &Arc<Module> {
        &self.state.modules.current
    }

    /// The machine: memories, globals, trace.
    pub fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// The machine, for changes between runs. In a run that is started on the machine itself,
    /// functions with code are external.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.state.machine
    }

    /// The engine whose versions this machine runs.
    pub fn engine(&self) -> &Engine {
        &self.state.modules.engine
    }

    /// The visits that the interpreter has counted, by function. The calls of a function come
    /// before the visits of its loop headers. Empty unless the [`Tiering`] counts. Linear in the
    /// functions.
    pub fn visits(&mut self) -> Vec<VisitedPlace> {
        self.state.visits()
    }

    /// The transitions made so far, in ascending order. Linear in the number of OSR points.
    pub fn transitions(&mut self) -> Vec<Transition> {
        let state = &mut *self.state;
        state.counts.list(&state.table)
    }

    /// Sets the [`Tiering`] that runs ask when a function is called without code, a loop turns hot
    /// or an open OSR point fires.
    pub fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        self.state.set_tiering(tiering);
    }

    /// Installs a version: calls of its function run it from now on. Takes one action for each
    /// point, in order.
    ///
    /// # Errors
    /// The [`LinkError`] that names the misfit. It is [`LinkError::Claimed`] if the version has
    /// points or counters and a machine has adopted it before.
    pub fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        self.state.install(version, actions, CallsFrom::Anywhere)
    }

    /// Adopts a version as the target of transitions, without making calls run it.
    ///
    /// # Errors
    /// As [`Vm::install`], except [`LinkError::NotCallable`].
    pub fn adopt(&mut self, version: &Arc<Version>, actions: Vec<Action>) -> Result<(), LinkError> {
        self.state.adopt(version, actions)
    }

    /// Changes the target of an OSR point.
    ///
    /// # Errors
    /// If this machine has not adopted the version, the version lacks the point, or the action does
    /// not fit.
    pub fn relink(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        action: Action,
    ) -> Result<(), LinkError> {
        self.state.relink(version, number, action)
    }

    /// Makes a call of a version lead to a version of its callee that leaves assumptions untested
    /// ([`crate::VersionSpec::untested`]): the checker has proved that this call makes them true.
    /// Both versions are adopted. Logarithmic, and linear in the calls of the callee.
    ///
    /// # Errors
    /// [`LinkError::NoSuchCall`], [`LinkError::OtherCall`], [`LinkError::NotAdopted`], and
    /// [`LinkError::NotBound`]. The call leads where it led before.
    pub fn link_call(
        &mut self,
        version: &Arc<Version>,
        call: &KnownCall,
        row: &Arc<Version>,
    ) -> Result<(), LinkError> {
        self.state.link_call(version, call, row)
    }

    /// Makes a call lead to the code that other calls of its function run.
    ///
    /// # Errors
    /// [`LinkError::NoSuchCall`] and [`LinkError::NotAdopted`].
    pub fn unlink_call(&mut self, version: &Arc<Version>, call: Inst) -> Result<(), LinkError> {
        self.state.unlink_call(version, call)
    }

    /// The installed version of a function.
    pub fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.state.table.installed(func)
    }

    /// Makes calls of a function run in the interpreter again, and releases the code of the version
    /// that was installed for it.
    pub fn uninstall(&mut self, func: Func) {
        self.state.uninstall(func);
    }

    /// Releases a version. Its points lead nowhere from now on, and its code is freed once no run
    /// and no handle needs it.
    pub fn release(&mut self, version: &Arc<Version>) {
        self.state.release(version);
    }

    /// A handle that ends runs from outside.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt { current: self.state.view.interrupts() }
    }

    /// Calls `visit` with the word of each reference that the machine holds between runs, as
    /// [`Callback::roots`] does within one.
    pub fn roots(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.state.visit_roots(visit);
    }

    /// Asks the [`Tiering`] for code of a function without code, as a call by native code would.
    /// Does nothing for an imported function.
    ///
    /// # Errors
    /// The error of [`Tiering::called`].
    pub fn demand(&mut self, func: Func) -> Result<(), RunError> {
        self.state.demand(func)
    }

    /// Binds an imported function to a function of the embedder, which every run calls from now on
    /// in place of [`Embedder::call`] and of a [`Host`]. Native code calls it directly. A call from
    /// the interpreter costs an entry into native code, and the interpreter stops at all imported
    /// functions of a machine with a bound one. If the machine records a trace, or the engine
    /// checks ([`crate::Config::checked`]), native code makes the calls through a helper, too.
    ///
    /// A run that is started on the machine itself ([`Vm::machine_mut`]) asks its host.
    ///
    /// Costs one small compilation, and is linear in the pieces of code.
    ///
    /// # Errors
    /// If the function is not imported, code of the machine calls the previous one at its address,
    /// its signature differs or has types that a direct function cannot take, or the code cannot be
    /// compiled.
    pub fn bind(&mut self, func: Func, function: &DirectFunction) -> Result<(), BindError> {
        self.state.bind(func, function)
    }

    /// Makes runs ask the embedder or the host for an imported function again, and frees the code
    /// that [`Vm::bind`] has made. Does nothing for other functions. Linear in the pieces of code.
    ///
    /// # Errors
    /// [`BindError::InUse`] if code of the machine calls the function at its address.
    pub fn unbind(&mut self, func: Func) -> Result<(), BindError> {
        self.state.unbind(func)
    }

    /// The functions that are bound now, for [`crate::VersionSpec::calling`]. Linear in them.
    pub fn bound(&self) -> BoundFunctions {
        self.state.bound()
    }

    /// Runs a function to its end, with an embedder. The embedder executes imported functions and
    /// continues after exits with [`Action::Hand`]; it may call functions of the program meanwhile.
    /// `args` and the values of the [`Outcome`] are one word each.
    ///
    /// The interpreter stops at each call of an imported function. A host that needs memories alone
    /// is called faster through [`Vm::invoke`].
    ///
    /// # Errors
    /// As [`Vm::invoke`].
    ///
    /// # Panics
    /// If the number of arguments differs from the number of the function's parameters, or
    /// [`Embedder::call`] or the [`Tiering`] panicked. A panic of [`Embedder::resume`] is an error
    /// ([`RunError::HandlerPanicked`]).
    pub fn run(
        &mut self,
        func: Func,
        args: &[u64],
        embedder: &mut dyn Embedder,
    ) -> Result<Outcome, RunError> {
        // SAFETY: the embedder is borrowed until this function returns.
        unsafe { self.state.invoke(func, args, HostedRun::of_embedder(embedder)) }
    }

    /// Continues a function of the embedder's interpreter in native code, at a place of its base,
    /// if [`Tiering::hot`] has a continuation for it. `contents` gives the values that the base has
    /// at the place; constants need not be given. The run continues until the function returns;
    /// after an exit with [`Action::Hand`], it continues in [`Embedder::resume`]. Within a run, use
    /// [`Callback::enter`].
    ///
    /// The embedder vouches for the contents: a run of the base has reached the place with these
    /// contents. Entries are proved for such contents alone.
    ///
    /// # Errors
    /// As [`Vm::run`]; [`RunError::NoSuchPlace`] and [`RunError::NotGiven`].
    ///
    /// # Panics
    /// As [`Vm::run`].
    pub fn enter(
        &mut self,
        place: HotLoop,
        contents: Contents<'_>,
        embedder: &mut dyn Embedder,
    ) -> Result<Entered, RunError> {
        // SAFETY: `hosted` drops the run, and this function borrows the embedder longer.
        let run = unsafe { HostedRun::of_embedder(embedder) };
        // SAFETY: the borrow with which the run was made outlasts this call of `hosted`.
        match unsafe { self.state.hosted(run, |access| osr_entry::enter(access, place, contents)) }
        {
            Ok(None) => Ok(Entered::NotYet),
            Ok(Some(values)) => Ok(Entered::Ended(self.state.returned(values))),
            Err(RunStop::Outcome(outcome)) => Ok(Entered::Ended(outcome)),
            Err(RunStop::Failed(error)) => Err(error),
        }
    }

    /// Runs a function to its end. Calls an imported function directly. `args` and the values of
    /// the [`Outcome`] are one word each.
    ///
    /// # Errors
    /// If the run was interrupted, or the transition that an OSR point requested is impossible. The
    /// effects of the run up to there remain.
    ///
    /// # Panics
    /// If the number of arguments differs from the number of the function's parameters, or the host
    /// or the [`Tiering`] panicked.
    pub fn invoke(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
    ) -> Result<Outcome, RunError> {
        // SAFETY: the host is borrowed until this function returns.
        unsafe { self.state.invoke(func, args, HostedRun::of_host(host)) }
    }
}
