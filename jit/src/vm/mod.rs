//! Running programs natively: a machine of the interpreter, and code that works on its state.
//!
//! A [`Vm`] owns a [`Machine`], whose memories, tables and globals both engines share. Functions
//! that have code run natively, the others in the interpreter; a run goes to and fro between the
//! two as calls and transitions ask.
//!
//! # What differs from the interpreter
//! A run ends as it does in the interpreter, with the same effects in the same order, the same
//! memories, tables and globals, and the same site. But:
//!
//! - The stack is that of the thread, not [`Limits::call_depth`] and [`Limits::stack_values`], so
//!   recursion gets less or more deep. The site of [`Outcome::StackOverflow`] is the function that
//!   found no room for its frame, without an instruction, and not the call.
//! - Fuel is counted with [`crate::Interruption::Fuel`] alone. A block is paid for before it is
//!   executed, so a run is out of fuel at the beginning of a block, up to a block (of each
//!   activation) earlier. A run that returns has used what it uses in the interpreter.
//! - The compiler leaves out accesses that others make superfluous. The site of an access out of
//!   bounds may so be that of another access of the function; kind, function and effects agree.
//! - What [`Options`] has for the interpreter's frames, poison, does nothing.
//!
//! # Several modules
//! A machine may take up further modules between runs ([`Vm::extend`]), which share what they
//! import. Code for the modules before stays.
//!
//! # Threads
//! One thread at a time runs a `Vm`; between runs it may be moved to another. Code may be compiled
//! on any thread ([`Engine`] is `Send + Sync`), and installed between runs or by the [`Tiering`]
//! that a run asks. An [`Interrupt`] may be used from any thread.
//!
//! # Lifetime of code
//! A `Vm` holds a count of all code that it may execute. Code that is replaced or let go while a
//! run is under way is put aside, and let go when the run has ended, since a frame may be in it.

mod block;
mod deopt;
mod extend;
mod helpers;
mod interpret;
mod leave;
mod link;
mod native;
mod region;
mod state;
mod stop;
mod tiering;

pub use deopt::{DeoptFrame, Handler, HandlerEnd, Slot, SlotLayout};
pub use link::{Action, LinkError, Transition, TransitionKind};
pub use stop::RunError;
pub use tiering::{HotLoop, OpenPoint, Quiet, Tier, Tiering};

use crate::context::SIGNAL_INTERRUPT;
use crate::engine::Engine;
use crate::error::CompileError;
use crate::version::Version;
use block::Current;
use extend::Provided;
use interp::{Host, InstantiateError, Limits, Machine, Options, Outcome, Program};
use ir::{Func, Module};
use state::State;
use std::fmt;
use std::sync::Arc;

/// A program and its state, run natively. See the module documentation.
#[derive(Debug)]
pub struct Vm {
    /// In a place of its own: native code has its address.
    state: Box<State>,
}

// SAFETY: what keeps `State` from being `Send` are pointers into memory that it owns itself, and
// the host of a run, which is gone when the run has ended. A run borrows the `Vm` exclusively, so
// it moves between runs only (`a_machine_moves_between_threads_between_runs`).
unsafe impl Send for Vm {}

/// Why a program could not be made ready to run natively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VmError {
    /// It cannot be instantiated.
    Instantiate(InstantiateError),
    /// There is no address space for a guarded memory: use [`crate::Bounds::Checked`].
    NoAddressSpace {
        /// The name of the memory.
        memory: String,
    },
    /// A stub cannot be made.
    Compile(CompileError),
    /// A module does not begin like the one the machine has.
    OtherBeginning {
        /// The first thing that is another one, or missing.
        what: String,
    },
    /// The machine was exchanged for another, or extended past the [`Vm`].
    Exchanged,
}

impl fmt::Display for VmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VmError::Instantiate(error) => write!(f, "{error}"),
            VmError::NoAddressSpace { memory } => {
                write!(
                    f,
                    "there is no address space to guard memory {memory}: compile with checked bounds"
                )
            }
            VmError::Compile(error) => write!(f, "{error}"),
            VmError::OtherBeginning { what } => {
                write!(
                    f,
                    "the module does not begin like the machine's: {what} is another one or missing"
                )
            }
            VmError::Exchanged => {
                f.write_str("the machine or its memories were exchanged for others")
            }
        }
    }
}

impl std::error::Error for VmError {}

/// Ends a run from outside, from any thread. Works where code is compiled with
/// [`crate::Interruption::Signal`].
#[derive(Clone, Debug)]
pub struct Interrupt {
    current: Current,
}

impl Interrupt {
    /// Asks the run that is under way, or else the next one, to end. Cost: constant; takes a lock,
    /// so not from the handler of a signal.
    pub fn ask(&self) {
        self.current.signal(SIGNAL_INTERRUPT);
    }
}

impl Vm {
    /// An instance of a verified module. Does not run the start function. Every function runs in
    /// the interpreter until it has code.
    ///
    /// # Errors
    /// When it cannot be instantiated, or no address space is left for guarded memories.
    ///
    /// # Panics
    /// As [`Program::new`].
    pub fn new(
        engine: &Engine,
        module: &Arc<Module>,
        limits: Limits,
        options: Options,
    ) -> Result<Vm, VmError> {
        let program = Program::new(module);
        let mut provided = Provided::new(engine, module, 0)?;
        let machine = Machine::with_regions(&program, limits, options, &mut |_| provided.next());
        let machine = machine.map_err(VmError::Instantiate)?;
        let state =
            State::new(engine, module, machine, provided.addresses).map_err(VmError::Compile)?;
        Ok(Vm { state })
    }

    /// Takes up a verified module that begins like the one the machine has and declares more, so
    /// that several modules share functions, memories, tables and globals:
    /// `osier_wasm::import_linked` links such modules. Makes what is new, and writes its segments;
    /// does not run the start function. The limits are still those given to [`Vm::new`], for all
    /// modules together.
    ///
    /// What was there stays: memories, tables and globals as runs have left them; installed
    /// versions, which call what is new through tables; where OSR points lead and whether they are
    /// armed; [`Interrupt`]s, who tiers, and what was counted. Versions that were compiled for the
    /// module before, or are being compiled, can still be installed; new ones may be compiled for
    /// the module given here ([`Tier::module`] from now on). New functions run in the interpreter
    /// until they have code. A run that is paused in [`Vm::machine_mut`] is given up.
    ///
    /// Cost: linear in the declarations and segments of the module, and in the functions that are
    /// new.
    ///
    /// # Errors
    /// - [`VmError::OtherBeginning`]: the module does not begin like the machine's. The same
    ///   functions must have the same bodies, as they are after a clone of the module; names,
    ///   exports, and the sizes and bits that memories, tables and globals have at the start do not
    ///   matter.
    /// - [`VmError::Instantiate`], with a segment that does not lie within its memory or table
    ///   ([`InstantiateError::is_of_segment`]): the module was taken up, and the segments before
    ///   are written.
    /// - [`VmError::Instantiate`] with another error, [`VmError::NoAddressSpace`],
    ///   [`VmError::Compile`], and [`VmError::Exchanged`] when the machine is another than the one
    ///   that was made here, or was extended for itself.
    ///
    /// But for segments, nothing has changed after an error.
    ///
    /// # Panics
    /// As [`Program::new`].
    pub fn extend(&mut self, module: &Arc<Module>) -> Result<(), VmError> {
        self.state.extend(module)
    }

    /// The program: the module that was taken up last, which begins like those before. Cost:
    /// constant.
    pub fn module(&self) -> &Arc<Module> {
        &self.state.module
    }

    /// The machine: memories, globals, trace.
    pub fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// The machine, to be changed between runs. Whoever starts a run of its own there finds
    /// functions with code external.
    pub fn machine_mut(&mut self) -> &mut Machine {
        &mut self.state.machine
    }

    /// The engine that compiles for it.
    pub fn engine(&self) -> &Engine {
        &self.state.engine
    }

    /// Which transitions were made so far, ascending. Cost: the number of OSR points.
    pub fn transitions(&mut self) -> Vec<Transition> {
        let points: Vec<_> = self
            .state
            .links
            .values()
            .map(|link| (Arc::clone(&link.version), link.number))
            .collect();
        points.iter().for_each(|(version, number)| self.state.note_fired(version, *number));
        self.state
            .transitions
            .iter()
            .map(|(made, count)| Transition { count: *count, ..made.clone() })
            .collect()
    }

    /// Who is asked when a loop turns hot or an open OSR point fires.
    pub fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        self.state.set_tiering(tiering);
    }

    /// Who runs what leaves native code through [`Action::Hand`].
    pub fn set_handler(&mut self, handler: Box<dyn Handler + Send>) {
        self.state.handler = Some(handler);
    }

    /// Makes calls of its function run a version, from now on.
    ///
    /// # Errors
    /// When another machine has it, or a point has no action and needs one.
    pub fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        self.state.install(version, actions)
    }

    /// Takes up a version without making calls run it: what transitions lead to.
    ///
    /// # Errors
    /// As [`Vm::install`].
    pub fn adopt(&mut self, version: &Arc<Version>, actions: Vec<Action>) -> Result<(), LinkError> {
        self.state.adopt(version, actions)
    }

    /// Changes where an OSR point leads.
    ///
    /// # Errors
    /// When the version is not installed here, has no such point, or the action does not fit.
    pub fn relink(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        action: Action,
    ) -> Result<(), LinkError> {
        self.state.relink(version, number, action)
    }

    /// Makes calls of a function run in the interpreter again, and lets go of the version that was
    /// installed for it.
    pub fn uninstall(&mut self, func: Func) {
        self.state.uninstall(func);
    }

    /// Lets go of a version: its points lead nowhere any more, and its code is freed once no run
    /// and no handle needs it.
    pub fn release(&mut self, version: &Arc<Version>) {
        self.state.release(version);
    }

    /// Makes a point that waits for its flag fire at its next visit, and at every one until it is
    /// disarmed.
    ///
    /// # Panics
    /// When the version has no such point.
    pub fn arm(&mut self, version: &Arc<Version>, number: usize) {
        version.set_armed(number, true);
    }

    /// The opposite of [`Vm::arm`].
    ///
    /// # Panics
    /// When the version has no such point.
    pub fn disarm(&mut self, version: &Arc<Version>, number: usize) {
        version.set_armed(number, false);
    }

    /// A handle that ends runs from outside.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt { current: self.state.interrupts.clone() }
    }

    /// Has a function given code if it has none, as if native code called it. Nothing happens to an
    /// imported function.
    ///
    /// # Errors
    /// What [`Tiering::called`] says.
    pub fn demand(&mut self, func: Func) -> Result<(), RunError> {
        self.state.demand(func)
    }

    /// Runs a function to its end. An imported function is called directly.
    ///
    /// # Errors
    /// When the run was interrupted, a handler failed, or the transition an OSR point asked for
    /// cannot be made. What the run did until then stays done.
    ///
    /// # Panics
    /// When the number of arguments is not that of the function's parameters; or the host panicked.
    pub fn invoke(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
    ) -> Result<Outcome, RunError> {
        self.state.invoke(func, args, host)
    }
}
