//! The requests of a run to its embedder, and the operations that the embedder may use meanwhile.
//!
//! Example: a program calls the imported function `map`, which shall apply a function of the
//! program to each element of an array. The embedder's [`Embedder::call`] calls that function
//! through [`Callback::call`], and passes itself along. The function may leave native code for the
//! embedder's interpreter, which may call further functions. So runs and the embedder nest, until
//! the stack ends.

use super::access::RunAccess;
use super::deopt::{DeoptFrame, Slot};
use super::enter::{self, Contents};
use super::native;
use super::stop::{RunError, RunStop};
use super::tiering::{HotLoop, Tier};
use crate::sys::stack;
use interp::{EarlyEnd, HostError, Machine, Memories};
use ir::{DeclaredEffect, Func, Function, Module, SupplyError};
use std::sync::Arc;

/// The embedder of a machine: the functions that a program imports, and an interpreter for
/// functions that leave native code. [`super::Vm::run`] borrows it for one run.
///
/// Both functions get access to the machine. To call a function of the program, an implementation
/// passes itself: `back.call(self, func, args)`. The nested run asks it again, so all of a run
/// shares one state, without a lock.
pub trait Embedder {
    /// Calls an imported function. `results` arrives with one zero per result of the signature.
    /// Bits outside the types of the results are cleared afterwards. The default fails with the
    /// name of the function.
    ///
    /// # Errors
    /// If the call ends the run. The contents of `results` are then ignored.
    fn call(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
        args: &[u64],
        results: &mut [u64],
    ) -> Result<(), CallbackEnd> {
        let (_, _) = (args, results);
        let import = back.module().funcs[func].import.clone();
        let import = import.expect("jit: the embedder is called for imported functions");
        let what = format!("no host function {}.{}", import.module, import.field);
        Err(HostError::Failed(what).into())
    }

    /// Returns the body of a function that awaits it ([`Module::define_later`]) and is called. The
    /// run verifies it. The default ends the run with the name of the function.
    ///
    /// # Errors
    /// If the run is to end.
    fn supply(
        &mut self,
        back: &mut Callback<'_>,
        func: Func,
    ) -> Result<Arc<Function>, CallbackEnd> {
        Err(back.machine().body_missing(func).into())
    }

    /// Resumes a function at a point of its base version, after an exit with
    /// [`super::Action::Hand`], and runs it until it returns. Returns the results of the function.
    /// The default ends the run with [`RunError::Stuck`].
    ///
    /// # Errors
    /// If the run ends before.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, CallbackEnd> {
        Err(frame.stuck())
    }
}

/// The reason why the embedder ends a run.
#[derive(Debug)]
pub struct CallbackEnd(pub(super) CallbackCause);

#[derive(Debug)]
pub(super) enum CallbackCause {
    Stop(RunStop),
    Host(HostError),
}

impl CallbackEnd {
    /// Ends the run with an error of a host: the program traps or exits, or the embedder cannot
    /// continue. The site of the end is the call of the imported function, or the landing point.
    pub fn new(error: HostError) -> CallbackEnd {
        CallbackEnd(CallbackCause::Host(error))
    }
}

impl From<HostError> for CallbackEnd {
    fn from(error: HostError) -> CallbackEnd {
        CallbackEnd::new(error)
    }
}

impl From<RunStop> for CallbackEnd {
    fn from(stop: RunStop) -> CallbackEnd {
        CallbackEnd(CallbackCause::Stop(stop))
    }
}

/// The machine while its run waits for the embedder.
#[derive(Debug)]
pub struct Callback<'a> {
    access: RunAccess<'a>,
    /// The function that the embedder executes, if it is declared not to call the program.
    silent: Option<(Func, DeclaredEffect)>,
}

impl<'a> Callback<'a> {
    pub(super) fn new(access: RunAccess<'a>) -> Callback<'a> {
        Callback { access, silent: None }
    }

    /// For the execution of an imported function with this declared effect.
    pub(super) fn of_import(
        access: RunAccess<'a>,
        func: Func,
        effect: DeclaredEffect,
    ) -> Callback<'a> {
        let silent = (effect != DeclaredEffect::Any).then_some((func, effect));
        Callback { access, silent }
    }

    /// The module of the machine.
    pub fn module(&self) -> &Arc<Module> {
        &self.access.shared().modules.current
    }

    /// The state of the program.
    pub fn machine(&self) -> &Machine {
        &self.access.shared().machine
    }

    /// The memories of the program.
    pub fn memories(&mut self) -> &mut Memories {
        self.access.state().machine.memories_mut()
    }

    /// The bits of the globals, in order.
    pub fn globals(&self) -> &[u64] {
        self.machine().globals()
    }

    /// Calls `visit` with the word of each reference of type `ref` that the run holds: in frames of
    /// native code, in activations of the interpreter, and in globals. `visit` may change the word.
    /// Each place is visited once; zero words and constants are not visited.
    ///
    /// The embedder owns all other references: the arguments of this call, the results that it is
    /// about to return, and the locals of activations that it resumes. Words that the program has
    /// read with `ref_bits` stay as they are. Linear in the frames and in the references.
    pub fn roots(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        self.access.state().visit_roots(visit);
    }

    /// The code of the machine: installs, adopts, links and releases versions. The frames of the
    /// run may be in code that is replaced.
    pub fn tier(&mut self) -> Tier<'_> {
        Tier::of(self.access.state())
    }

    /// Supplies the body of a function that awaits it, as [`super::Vm::supply`] does.
    ///
    /// # Errors
    /// As [`super::Vm::supply`].
    pub fn supply(
        &mut self,
        func: Func,
        body: impl Into<Arc<Function>>,
    ) -> Result<(), SupplyError> {
        self.access.state().supply(func, body.into())
    }

    /// The number of calls of the embedder that are in progress, this one included: at least 1.
    /// Constant cost.
    pub fn depth(&self) -> usize {
        self.access.shared().run.as_ref().map_or(0, |run| run.depth())
    }

    /// Asks the [`super::Tiering`] for code of a function without code, as [`super::Vm::demand`]
    /// does.
    ///
    /// # Errors
    /// The error of [`super::Tiering::called`], which the embedder must return.
    pub fn demand(&mut self, func: Func) -> Result<(), CallbackEnd> {
        self.access.state().demand(func).map_err(|error| RunStop::Failed(error).into())
    }

    /// Calls a function of the program, natively if it has code, or an imported one. The run asks
    /// `embedder`, which is usually the caller itself. `args` and the results are one word each.
    ///
    /// # Errors
    /// If the function did not return. The whole run ends then, whatever the embedder returns
    /// (`an_end_below_the_embedder_cannot_be_ignored`). If the stack has no room for another nested
    /// run, the run ends with a stack overflow, without an instruction
    /// (`the_embedder_recurses_until_the_stack_ends`).
    ///
    /// # Panics
    /// If the number of arguments differs from the number of the function's parameters.
    pub fn call(
        &mut self,
        embedder: &mut dyn Embedder,
        func: Func,
        args: &[u64],
    ) -> Result<Vec<u64>, CallbackEnd> {
        if let Some(stop) = &self.access.run().ended {
            return Err(RunStop::clone(stop).into());
        }
        self.nested(embedder, func, |access| native::run_called(access, func, args))
    }

    /// Continues a function of the embedder's interpreter in native code, as [`super::Vm::enter`]
    /// does, within this run. `None` without code for the place, or as long as it is missing.
    ///
    /// # Errors
    /// As [`Callback::call`]; [`RunError::NoSuchPlace`] and [`RunError::NotGiven`].
    pub fn enter(
        &mut self,
        embedder: &mut dyn Embedder,
        place: HotLoop,
        contents: Contents<'_>,
    ) -> Result<Option<Vec<u64>>, CallbackEnd> {
        if let Some(stop) = &self.access.run().ended {
            return Err(RunStop::clone(stop).into());
        }
        self.nested(embedder, place.func, |access| enter::enter(access, place, contents))
    }

    /// Continues in a function, in a run nested in this run. If the nested run ends early, the
    /// whole run ends.
    fn nested<R>(
        &mut self,
        embedder: &mut dyn Embedder,
        func: Func,
        body: impl FnOnce(&mut RunAccess<'_>) -> Result<R, RunStop>,
    ) -> Result<R, CallbackEnd> {
        let ended = match self.silent {
            Some((caller, promised)) => {
                let what = format!("it calls {func}");
                Err(RunStop::Failed(RunError::Effect { func: caller, promised, what }))
            }
            None => self.asked(embedder, func, body),
        };
        if let Err(stop) = &ended {
            self.access.run().ended = Some(Box::new(stop.clone()));
        }
        ended.map_err(CallbackEnd::from)
    }

    /// Like [`Callback::nested`].
    fn asked<R>(
        &mut self,
        embedder: &mut dyn Embedder,
        func: Func,
        body: impl FnOnce(&mut RunAccess<'_>) -> Result<R, RunStop>,
    ) -> Result<R, RunStop> {
        let state = self.access.state();
        // Native code compares the stack with its limit; the interpreter does not.
        if stack::is_below(state.view.context().stack_limit.get() as usize) {
            let site = state.machine.site(func, None);
            let end = state.machine.end_in_native(EarlyEnd::StackOverflow, site);
            return Err(RunStop::Outcome(end));
        }
        self.access.with_embedder(embedder, body)
    }
}

/// The end of a run without an embedder, at a point that needs one.
pub(super) fn stuck(func: Func, point: usize) -> RunStop {
    RunStop::Failed(RunError::Stuck { func, point })
}
