//! What is compiled, and when: two plain policies for [`jit::Vm`].
//!
//! [`Eager`] compiles every function when native code first calls it. [`Tiered`] begins in the
//! interpreter; a function that is called often is optimized and compiled, and so is one with a
//! loop that turns hot, which is entered in the middle.

mod tiered;

pub use tiered::Tiered;

use crate::driver::Step;
use interp::{Host, Outcome};
use ir::{Func, Function};
use jit::{RunError, Tier, Tiering, Vm};
use std::sync::Arc;
use transition::VersionKey;

/// A piece of code that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The function.
    pub func: Func,
    /// The version.
    pub version: VersionKey,
    /// What it is.
    pub kind: CompiledKind,
    /// Instructions of its function.
    pub instructions: usize,
    /// Bytes of machine code.
    pub bytes: usize,
}

/// What a piece of code is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompiledKind {
    /// A version, to be called.
    Version,
    /// What control goes on in after a transition.
    Continuation,
}

/// Told what is done to make code, so that an embedder may take times: the library reads no clock.
pub trait Observer {
    /// A step of optimizing begins, and whatever was under way has ended; `None` when nothing
    /// begins. Compiling is no such step.
    fn step(&mut self, step: Option<Step>);

    /// Compiling a piece of code begins.
    fn begin(&mut self);

    /// It is done.
    fn compiled(&mut self, made: Compiled);
}

/// An observer that does not look.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, _made: Compiled) {}
}

/// Compiles every function as it is when it is first called.
#[derive(Clone, Debug, Default)]
pub struct Eager<O> {
    observer: O,
}

impl<O: Observer> Eager<O> {
    /// With an observer.
    pub fn new(observer: O) -> Eager<O> {
        Eager { observer }
    }
}

/// Compiles a version without OSR points and makes calls run it.
fn install(
    tier: &mut Tier<'_>,
    func: Func,
    function: &Function,
    observer: &mut impl Observer,
) -> Result<Arc<jit::Version>, RunError> {
    observer.begin();
    let version =
        tier.engine().version(tier.module(), func, function, &[]).map_err(RunError::Compile)?;
    let (instructions, bytes) = (function.inst_count(), version.code_size());
    observer.compiled(Compiled {
        func,
        version: version.key(),
        kind: CompiledKind::Version,
        instructions,
        bytes,
    });
    tier.install(&version, Vec::new()).map_err(RunError::Link)?;
    Ok(version)
}

impl<O: Observer> Tiering for Eager<O> {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        let Some(body) = module.body(func) else { return Ok(()) };
        install(tier, func, body, &mut self.observer).map(|_| ())
    }
}

/// Makes a function native and runs it: what [`Eager`] does not do for the function that a run
/// begins with.
///
/// # Errors
/// When it cannot be compiled; and as [`Vm::invoke`].
pub fn invoke(
    vm: &mut Vm,
    func: Func,
    args: &[u64],
    host: &mut dyn Host,
) -> Result<Outcome, RunError> {
    vm.demand(func)?;
    vm.invoke(func, args, host)
}
