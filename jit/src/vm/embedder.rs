//! The requests of a run to its embedder, and the operations that the embedder may use meanwhile.
//!
//! Example: a program calls the imported function `map`, which shall apply a function of the
//! program to each element of an array. The embedder's [`Embedder::call`] calls that function
//! through [`Callback::call`], and passes itself along. The function may leave native code for the
//! embedder's interpreter, which may call further functions. So runs and the embedder nest, until
//! the stack ends.

use super::state::RunAccess;
use super::stop::{RunError, RunStop};
use interp::HostError;
use ir::{DeclaredEffect, Func, Function, Point, Type};
use std::error::Error;
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
        Err(HostError::failed(what).into())
    }

    /// Returns the body of a function that awaits it ([`ir::Module::define_later`]) and is called.
    /// The run verifies it. The default ends the run with the name of the function.
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
pub struct CallbackEnd(Box<CallbackCause>);

#[derive(Debug)]
pub(super) enum CallbackCause {
    Stop(RunStop),
    Host(HostError),
}

impl CallbackEnd {
    /// Ends the run with an error of a host: the program traps or exits, or the embedder cannot
    /// continue. [`HostError::failed`] takes any error of the embedder's, and
    /// [`interp::Outcome::HostFailed`] hands it back. The site of the end is the call of the
    /// imported function, or the landing point.
    pub fn new(error: HostError) -> CallbackEnd {
        CallbackEnd(Box::new(CallbackCause::Host(error)))
    }

    pub(super) fn cause(&self) -> &CallbackCause {
        &self.0
    }

    pub(super) fn into_cause(self) -> CallbackCause {
        *self.0
    }
}

impl From<Box<dyn Error + Send + Sync>> for CallbackEnd {
    /// Ends the run with an error of the embedder's: [`interp::Outcome::HostFailed`] has it.
    fn from(error: Box<dyn Error + Send + Sync>) -> CallbackEnd {
        CallbackEnd::new(HostError::failed(error))
    }
}

impl From<HostError> for CallbackEnd {
    fn from(error: HostError) -> CallbackEnd {
        CallbackEnd::new(error)
    }
}

impl From<RunStop> for CallbackEnd {
    fn from(stop: RunStop) -> CallbackEnd {
        CallbackEnd(Box::new(CallbackCause::Stop(stop)))
    }
}

/// The machine while its run waits for the embedder.
#[derive(Debug)]
pub struct Callback<'a> {
    pub(super) access: RunAccess<'a>,
    /// The function that the embedder executes, if it is declared not to call the program.
    pub(super) silent: Option<(Func, DeclaredEffect)>,
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
        let silent = effect.is_bounded().then_some((func, effect));
        Callback { access, silent }
    }
}

/// The end of a run without an embedder, at a point that needs one.
pub(super) fn stuck(func: Func, point: usize) -> RunStop {
    RunStop::Failed(RunError::Stuck { func, point })
}

/// A value with its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The type.
    pub ty: Type,
    /// The bits; those above the type's width are zero.
    pub bits: u64,
}

/// The activations in which the embedder resumes a function ([`super::Embedder::resume`]).
#[derive(Debug)]
pub struct DeoptFrame<'a> {
    /// The activations, by the frame states of the landing point, the innermost first; at least
    /// one. The embedder runs the first activation to its end, then each outer activation with the
    /// results of the previous one, and returns the results of the last.
    pub activations: &'a [HandedActivation],
    /// The function that has left native code, and the number of its point.
    pub(super) left: (Func, usize),
    pub(super) access: RunAccess<'a>,
}

/// An activation of the embedder's interpreter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandedActivation {
    /// The function in whose base the run landed.
    pub func: Func,
    /// The point of its base that has the frame state: the landing point, or the point behind the
    /// call within which the activation waits.
    pub at: Point,
    /// The function of the frame state.
    pub function: u32,
    /// The program counter of the frame state.
    pub pc: u32,
    /// The locals, in the order of the frame state.
    pub locals: Vec<HandedLocal>,
}

/// A local of an activation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandedLocal {
    /// The slot.
    pub slot: u32,
    /// The contents.
    pub content: HandedContent,
    /// The representation, as the frame state has it.
    pub representation: u32,
}

/// The contents of a local.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandedContent {
    /// Bits of a type.
    Bits(Slot),
    /// The result with this index of the previous activation, which has not returned yet.
    Result(u32),
}

impl HandedActivation {
    /// The contents of a slot. `None` if the frame state does not name the slot, or names a result
    /// that is still to come. Cost: linear in the locals.
    pub fn slot(&self, slot: u32) -> Option<Slot> {
        match self.locals.iter().find(|local| local.slot == slot)?.content {
            HandedContent::Bits(bits) => Some(bits),
            HandedContent::Result(_) => None,
        }
    }
}

impl DeoptFrame<'_> {
    /// The machine, for calls of functions of the program.
    pub fn back(&mut self) -> Callback<'_> {
        Callback::new(self.access.reborrow())
    }

    /// The end of the run for an embedder that has no interpreter.
    pub(super) fn stuck(&self) -> CallbackEnd {
        let (func, point) = self.left;
        stuck(func, point).into()
    }
}
