//! Two policies for [`jit::Vm`] that decide which code to compile, and when.
//!
//! [`Eager`] compiles every function at its first call from native code. [`Tiered`] starts in the
//! interpreter. It compiles functions that are called often and functions with a hot loop; a run
//! enters such a loop in the middle. The run waits for the compiler, or continues while another
//! thread compiles. [`Costs`] decides which functions and loops are hot.

mod compiler;
mod contexts;
mod costs;
mod counted;
mod events;
mod facts;
mod handing;
mod limits;
mod plain;
mod savings;
mod speculating;
mod tables;
mod tiered;
mod worker;

pub use contexts::{
    ALIKE, CONTEXT_BYTES, CONTEXT_PAUSE, CONTEXT_ROWS, CONTEXT_SIZE, CONTEXT_TRIES, ContextUse,
    MIN_WORTH,
};
pub use costs::Costs;
pub use counted::native_profile;
pub use events::{CodeTier, OrderEnd, TierEvent, TierListener, Wanted};
pub use handing::install_handing;
pub use limits::{FUNCTION_BYTES, TABLE_BYTES, TABLE_ROWS, TableLimits, TableUse};
pub use speculating::{AskedFunction, MAX_FAILURES, MAX_VERSIONS};
pub use tables::{ROW_AFTER, RowError};
pub use tiered::Tiered;

use check::KnownCallFault;
use derive::driver::{self, GivenUp, Step};
use derive::inlining::ModuleSites;
use derive::landing::LandingRow;
use derive::speculate::{Assumption, SpeculateError, Speculative};
use interp::{Host, Outcome};
use ir::{Func, Function, Inst, Module, Point};
use jit::{Engine, FailedPoint, RunError, Tier, Tiering, VersionSpec, Vm};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transition::VersionKey;
use transition::copy::InlinedSites;

/// A compiled piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The function.
    pub func: Func,
    /// The key of the version. For a continuation this is the target version.
    pub version: VersionKey,
    /// The kind of code.
    pub kind: CompiledKind,
    /// The number of instructions of the compiled function.
    pub instructions: usize,
    /// The size of the machine code in bytes.
    pub bytes: usize,
}

/// The kind of a compiled piece of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompiledKind {
    /// A version, which calls enter.
    Version,
    /// A continuation, which a transition enters.
    Continuation,
    /// A row of a landing table, which transitions enter at its start.
    Row,
}

/// Observes the work of making code, so that an embedder can measure times. The library reads no
/// clock.
pub trait Observer {
    /// A step of optimizing begins, and the step in progress ends. `None` only ends the step in
    /// progress. Compiling is not such a step.
    fn step(&mut self, step: Option<Step>);

    /// Compiling a piece of code begins.
    fn begin(&mut self);

    /// The next version of a function lacks these rewrites, so that a run can enter it in the
    /// middle.
    fn given_up(&mut self, func: Func, rewrites: &[GivenUp]) {
        let _ = (func, rewrites);
    }

    /// A version of a function that assumes was made.
    fn speculated(&mut self, func: Func, made: &Speculative) {
        let _ = (func, made);
    }

    /// The list of assumptions of a function was rejected, so its versions assume nothing.
    fn refused(&mut self, func: Func, error: &SpeculateError) {
        let _ = (func, error);
    }

    /// A row of the landing table at a point of the base of a function was made.
    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        let _ = (func, at, made);
    }

    /// A row of the landing table at a point, or the way there, was not made: the interpreter
    /// continues.
    fn without_row(&mut self, func: Func, at: Point, error: &RowError) {
        let _ = (func, at, error);
    }

    /// An exit leads to this row of the landing table at a point from now on, and tells no more of
    /// failures ([`Observer::failed`]).
    fn linked(&mut self, exit: FailedPoint<'_>, at: Point, row: usize) {
        let _ = (exit, at, row);
    }

    /// A row of a function was made for calls with these arguments. Of the assumptions that it
    /// makes, its code does not test those about the arguments.
    fn in_context(&mut self, func: Func, facts: &[Assumption], made: &Speculative) {
        let _ = (func, facts, made);
    }

    /// A call with known arguments, in a version of this function, does not lead to the row for
    /// these arguments: the checker refuses it. A bug of ours.
    fn without_link(&mut self, func: Func, call: Inst, fault: KnownCallFault) {
        let _ = (func, call, fault);
    }

    /// A row of a function for calls with known arguments has gone, since others are executed more
    /// often, or since an assumption of it has failed too often.
    fn out_of_context(&mut self, func: Func, facts: &[Assumption]) {
        let _ = (func, facts);
    }

    /// An assumption has failed.
    fn failed(&mut self, at: FailedPoint<'_>) {
        let _ = at;
    }

    /// An assumption has failed too often. Later versions of the function omit it.
    fn abandoned(&mut self, func: Func, assumption: &Assumption) {
        let _ = (func, assumption);
    }

    /// Compiling the piece of code has ended.
    fn compiled(&mut self, made: Compiled);
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn compiled(&mut self, _made: Compiled) {}
}

/// An observer that several threads share; one thread calls it at a time.
#[derive(Debug)]
struct SharedObserver<O>(Arc<Mutex<O>>);

impl<O> Clone for SharedObserver<O> {
    fn clone(&self) -> Self {
        SharedObserver(Arc::clone(&self.0))
    }
}

impl<O: Observer> SharedObserver<O> {
    fn new(observer: O) -> SharedObserver<O> {
        SharedObserver(Arc::new(Mutex::new(observer)))
    }

    fn get(&self) -> MutexGuard<'_, O> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view of this observer as an observer of the driver.
    fn steps(&self) -> Steps<O> {
        Steps(self.clone())
    }
}

impl<O: Observer> Observer for SharedObserver<O> {
    fn step(&mut self, step: Option<Step>) {
        self.get().step(step);
    }

    fn begin(&mut self) {
        self.get().begin();
    }

    fn given_up(&mut self, func: Func, rewrites: &[GivenUp]) {
        self.get().given_up(func, rewrites);
    }

    fn speculated(&mut self, func: Func, made: &Speculative) {
        self.get().speculated(func, made);
    }

    fn refused(&mut self, func: Func, error: &SpeculateError) {
        self.get().refused(func, error);
    }

    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        self.get().row(func, at, made);
    }

    fn without_row(&mut self, func: Func, at: Point, error: &RowError) {
        self.get().without_row(func, at, error);
    }

    fn linked(&mut self, exit: FailedPoint<'_>, at: Point, row: usize) {
        self.get().linked(exit, at, row);
    }

    fn in_context(&mut self, func: Func, facts: &[Assumption], made: &Speculative) {
        self.get().in_context(func, facts, made);
    }

    fn without_link(&mut self, func: Func, call: Inst, fault: KnownCallFault) {
        self.get().without_link(func, call, fault);
    }

    fn out_of_context(&mut self, func: Func, facts: &[Assumption]) {
        self.get().out_of_context(func, facts);
    }

    fn failed(&mut self, at: FailedPoint<'_>) {
        self.get().failed(at);
    }

    fn abandoned(&mut self, func: Func, assumption: &Assumption) {
        self.get().abandoned(func, assumption);
    }

    fn compiled(&mut self, made: Compiled) {
        self.get().compiled(made);
    }
}

/// Forwards steps of the driver to an observer of this module.
struct Steps<O>(SharedObserver<O>);

impl<O: Observer> driver::Observer for Steps<O> {
    fn begin(&mut self, step: Option<Step>) {
        self.0.step(step);
    }
}

/// Compiles every function without optimizing it, at its first call.
#[derive(Clone, Debug, Default)]
pub struct Eager<O> {
    observer: O,
    counts: bool,
    sites: ModuleSites,
}

impl<O: Observer> Eager<O> {
    /// Creates the policy with an observer.
    pub fn new(observer: O) -> Eager<O> {
        Eager { observer, counts: false, sites: ModuleSites::new() }
    }

    /// Compiles code that counts, for a profile ([`native_profile`]).
    pub fn counting(self) -> Eager<O> {
        Eager { counts: true, ..self }
    }

    /// Sets the origins of inlined code, so that traps name the inlined functions. Not for code
    /// that counts.
    pub fn with_sites(self, sites: ModuleSites) -> Eager<O> {
        Eager { sites, ..self }
    }
}

/// An addition to plain code.
#[derive(Clone, PartialEq, Eq, Debug)]
enum CodeMode {
    /// No addition.
    Plain,
    /// Cells of calls with constant arguments.
    Dispatching,
    /// Counters, for a profile.
    Counting,
    /// The sites of inlined code.
    Inlined(Arc<InlinedSites>),
}

/// Compiles a version without OSR points.
///
/// # Errors
/// If the version cannot be compiled.
fn compile(
    engine: &Engine,
    module: &Arc<Module>,
    func: Func,
    function: &Function,
    code: CodeMode,
    observer: &mut impl Observer,
) -> Result<Arc<jit::Version>, RunError> {
    observer.begin();
    let spec = match code {
        CodeMode::Plain => VersionSpec::default(),
        CodeMode::Dispatching => {
            VersionSpec::default().dispatching(contexts::calls_in_context(module, function))
        }
        CodeMode::Counting => VersionSpec::counting(),
        CodeMode::Inlined(sites) => VersionSpec::default().with_sites(sites),
    };
    let version = engine.version(module, func, function, spec).map_err(RunError::Compile)?;
    observer.compiled(Compiled {
        func,
        version: version.key(),
        kind: CompiledKind::Version,
        instructions: function.inst_count(),
        bytes: version.code_size(),
    });
    Ok(version)
}

impl<O: Observer> Tiering for Eager<O> {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        let Some(body) = module.body(func) else { return Ok(()) };
        let code = match self.sites.get(&func) {
            _ if self.counts => CodeMode::Counting,
            Some(sites) => CodeMode::Inlined(Arc::clone(sites)),
            None => CodeMode::Plain,
        };
        let version = compile(tier.engine(), &module, func, body, code, &mut self.observer)?;
        tier.install(&version, Vec::new()).map_err(RunError::Link)
    }
}

/// Compiles a function and runs it. [`Eager`] alone does not compile the first function of a run,
/// since native code does not call it.
///
/// # Errors
/// If the function cannot be compiled, and like [`Vm::invoke`].
pub fn invoke(
    vm: &mut Vm,
    func: Func,
    args: &[u64],
    host: &mut dyn Host,
) -> Result<Outcome, RunError> {
    vm.demand(func)?;
    vm.invoke(func, args, host)
}
