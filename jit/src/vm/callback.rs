//! The operations of the embedder on a machine while its run waits for the embedder.

use super::call;
use super::embedder::{Callback, CallbackEnd, Embedder};
use super::native;
use super::osr_entry::{self, Contents};
use super::state::RunAccess;
use super::stop::{RunError, RunStop};
use super::tiering::{HotLoop, Tier};
use crate::sys::stack;
use interp::{Machine, Memories};
use ir::{Func, Function, Module, SupplyError};
use std::sync::Arc;

impl Callback<'_> {
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
        self.nested(embedder, func, |access| call::run_called(access, func, args))
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
        self.nested(embedder, place.func, |access| osr_entry::enter(access, place, contents))
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
        // Native code compares the stack with its limit; the interpreter does not. Neither sees
        // that the embedder has moved to another stack.
        let context = state.view.context();
        let (limit, room) = (context.stack_limit.get(), context.stack_room.get());
        if stack::is_outside(limit as usize, room as usize) {
            return Err(native::no_room(state, func));
        }
        self.access.with_embedder(embedder, body)
    }
}
