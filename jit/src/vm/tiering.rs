//! Tiering: the questions that a run asks the embedder about the code to compile.

use super::block::ContextBlock;
use super::link::{Action, LinkError};
use super::state::VmState;
use super::stop::{RunError, RunStop};
use crate::code::MachineCode;
use crate::engine::Engine;
use crate::error::ContinueError;
use crate::version::{Continuation, Version};
use cranelift_entity::EntityRef;
use interp::{Control, Machine, Observer, Scope, VersionId, View};
use ir::cfg::Cfg;
use ir::loops::LoopForest;
use ir::{Func, Function, Inst, Module, Point, Value};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A loop that has turned hot in the interpreter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotLoop {
    /// The function.
    pub func: Func,
    /// The first instruction of the loop header. The run has paused before it.
    pub at: Point,
}

/// An OSR point that fires and has no target yet.
#[derive(Clone, Copy, Debug)]
pub struct OpenPoint<'a> {
    /// The source version.
    pub version: &'a Arc<Version>,
    /// The number of the point.
    pub number: usize,
    /// The bits of the point's values, in their order.
    pub values: &'a [u64],
}

impl OpenPoint<'_> {
    /// The bits of a value of the source version. `None` if the point does not hand it over.
    pub fn value(&self, value: Value) -> Option<u64> {
        let at = self.version.points()[self.number].values.iter().position(|v| *v == value)?;
        self.values.get(at).copied()
    }
}

/// An assumption of native code that has failed: the point before it has fired.
#[derive(Clone, Copy, Debug)]
pub struct FailedPoint<'a> {
    /// The version that the run leaves.
    pub version: &'a Arc<Version>,
    /// The number of the point.
    pub number: usize,
    /// How often the point has fired in this machine, this time included.
    pub count: u64,
}

/// How a run goes on after an assumption has failed.
#[derive(Clone, Debug)]
pub enum AfterFailure {
    /// By the action that the point has.
    Linked,
    /// In this continuation, of the point.
    Enter(Arc<Continuation>),
}

/// Tells a run that its [`Tiering`] has news, from any thread: code that another thread has
/// compiled, for example. Clones tell the same run.
#[derive(Clone, Debug, Default)]
pub struct Wake {
    is_called: Arc<AtomicBool>,
}

impl Wake {
    /// A wake that nobody has called.
    pub fn new() -> Wake {
        Wake::default()
    }

    /// Asks the run for a pause at the next function entry or loop header of the interpreter, where
    /// [`Tiering::woken`] is called. Calls before that pause count as one. Constant cost; takes no
    /// lock.
    pub fn call(&self) {
        self.is_called.store(true, Ordering::Release);
    }

    fn is_called(&self) -> bool {
        self.is_called.load(Ordering::Relaxed)
    }

    /// Whether it was called since the last question.
    fn take(&self) -> bool {
        self.is_called.swap(false, Ordering::Acquire)
    }
}

/// The policy that decides which code exists. A run asks it, and compiles nothing by itself. The
/// defaults of `called` and `hot` keep the run in the interpreter; that of `open` ends the run.
pub trait Tiering {
    /// The number of visits after which a loop header or function of the interpreter is hot. `None`
    /// turns counting off.
    fn threshold(&self) -> Option<u32> {
        None
    }

    /// Where another thread tells of news. `None` if none does.
    fn wake(&self) -> Option<Wake> {
        None
    }

    /// Called after [`Wake::call`], while the run has paused in the interpreter. The implementation
    /// may install code, and may ask to be asked again about loops ([`Tier::ask_again`]).
    ///
    /// # Errors
    /// If the run is to end.
    fn woken(&mut self, _tier: &mut Tier<'_>) -> Result<(), RunError> {
        Ok(())
    }

    /// Called when native code calls a function without code, or when the interpreter has called a
    /// function as often as the threshold says. The implementation may give the function code
    /// ([`Tier::install`]); otherwise the interpreter runs it.
    ///
    /// # Errors
    /// If the run is to end.
    fn called(&mut self, _tier: &mut Tier<'_>, _func: Func) -> Result<(), RunError> {
        Ok(())
    }

    /// Called for each loop, when it turns hot in the interpreter: once, and again when it has been
    /// visited as often after an assumption of native code of the function has failed, or at its
    /// next visit after [`Tier::ask_again`]. Returns the continuation in which the run continues,
    /// or `None` to stay in the interpreter. The run also stays there if the last transition, such
    /// as an exit of native code, has left out a value that the continuation requires.
    ///
    /// # Errors
    /// If the run is to end.
    fn hot(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        Ok(None)
    }

    /// Called when an assumption of native code fails, unless native code itself knows the way on
    /// ([`Action::Continue`]). The policy may change the code for later calls, such as to install a
    /// version without the assumption. Without such a change, an assumption that always fails costs
    /// an exit at each visit.
    ///
    /// # Errors
    /// If the run is to end.
    fn failed(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: FailedPoint<'_>,
    ) -> Result<AfterFailure, RunError> {
        Ok(AfterFailure::Linked)
    }

    /// Called when an open OSR point fires. Returns the continuation in which the run continues.
    ///
    /// # Errors
    /// If the run is to end. The default has no continuation and returns [`RunError::Stuck`].
    fn open(
        &mut self,
        _tier: &mut Tier<'_>,
        at: OpenPoint<'_>,
    ) -> Result<Arc<Continuation>, RunError> {
        Err(RunError::Stuck { func: at.version.func(), point: at.number })
    }
}

/// The policy that compiles nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Tiering for Quiet {}

/// The operations on a machine that are allowed while its run waits for a [`Tiering`].
#[derive(Debug)]
pub struct Tier<'a> {
    state: &'a mut VmState,
}

impl Tier<'_> {
    /// The engine of the machine, which compiles.
    pub fn engine(&self) -> &Engine {
        &self.state.modules.engine
    }

    /// The module of the machine.
    pub fn module(&self) -> &Arc<Module> {
        &self.state.modules.current
    }

    /// The state of the program, including the run that waits.
    pub fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// Installs a version as [`super::Vm::install`] does.
    ///
    /// # Errors
    /// The errors of [`super::Vm::install`].
    pub fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        self.state.install(version, actions)
    }

    /// Adopts a version as [`super::Vm::adopt`] does.
    ///
    /// # Errors
    /// The errors of [`super::Vm::adopt`].
    pub fn adopt(&mut self, version: &Arc<Version>, actions: Vec<Action>) -> Result<(), LinkError> {
        self.state.adopt(version, actions)
    }

    /// Relinks a point as [`super::Vm::relink`] does.
    ///
    /// # Errors
    /// The errors of [`super::Vm::relink`].
    pub fn relink(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        action: Action,
    ) -> Result<(), LinkError> {
        self.state.relink(version, number, action)
    }

    /// Releases a version as [`super::Vm::release`] does.
    pub fn release(&mut self, version: &Arc<Version>) {
        self.state.release(version);
    }

    /// Calls [`Tiering::hot`] at the next visit of a loop of a base, though it has been called for
    /// this loop. No effect without a threshold, and on functions without a body. Constant cost.
    pub fn ask_again(&mut self, at: HotLoop) {
        if let Some(base) = self.state.modules.base(at.func) {
            self.state.policy.profile.rewind(base, at.at.inst());
        }
    }

    /// The installed version of a function.
    pub fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.state.table.installed(func)
    }
}

/// Counts visits in the interpreter.
#[derive(Debug)]
pub(super) struct Profile {
    threshold: Option<u32>,
    /// Where another thread tells of news.
    wake: Option<Wake>,
    /// Whether the run has paused because an instruction has reached the threshold.
    is_hot: bool,
    /// The block whose signals end the run.
    heeds: Option<Arc<ContextBlock>>,
    /// The counts by version and instruction. The lists grow on demand.
    visits: Vec<Vec<u32>>,
    /// By version: the instructions that have reached the threshold.
    asked: Vec<Vec<u32>>,
}

impl Profile {
    pub(super) fn new(tiering: &dyn Tiering, heeds: Option<Arc<ContextBlock>>) -> Profile {
        Profile {
            threshold: tiering.threshold(),
            wake: tiering.wake(),
            is_hot: false,
            heeds,
            visits: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// Forgets that loops of a version were hot, so that they ask again: an assumption has failed,
    /// and the run is back in the version. Without this, it would stay in the interpreter for good
    /// (`a_loop_is_entered_again_after_an_exit`). Cost: linear in the loops that have asked.
    pub(super) fn ask_again(&mut self, version: VersionId) {
        let version = version.as_u32() as usize;
        let (Some(asked), Some(visits)) =
            (self.asked.get_mut(version), self.visits.get_mut(version))
        else {
            return;
        };
        asked.drain(..).for_each(|inst| visits[inst as usize] = 0);
    }

    /// Sets the block whose signals end runs.
    pub(super) fn heed(&mut self, heeds: Option<Arc<ContextBlock>>) {
        self.heeds = heeds;
    }

    pub(super) fn watches(&self) -> bool {
        self.threshold.is_some() || self.wake.is_some() || self.heeds.is_some()
    }

    /// Whether an interrupt was requested.
    pub(super) fn is_interrupted(&self) -> bool {
        self.heeds.as_ref().is_some_and(|block| block.is_interrupted())
    }

    /// Whether news have come since the last question.
    fn take_news(&self) -> bool {
        self.wake.as_ref().is_some_and(Wake::take)
    }

    /// Sets the count of an instruction so that its next visit reaches the threshold.
    fn rewind(&mut self, version: VersionId, inst: Inst) {
        if let Some(threshold) = self.threshold {
            *self.visits_of(version.as_u32() as usize, inst) = threshold.saturating_sub(1);
        }
    }

    fn note_asked(&mut self, version: usize, inst: Inst) {
        if self.asked.len() <= version {
            self.asked.resize_with(version + 1, Vec::new);
        }
        self.asked[version].push(inst.as_u32());
    }

    fn visits_of(&mut self, version: usize, inst: Inst) -> &mut u32 {
        let inst = inst.as_u32() as usize;
        if self.visits.len() <= version {
            self.visits.resize_with(version + 1, Vec::new);
        }
        let visits = &mut self.visits[version];
        if visits.len() <= inst {
            visits.resize(inst + 1, 0);
        }
        &mut visits[inst]
    }
}

impl Observer for Profile {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let version = view.version().as_u32() as usize;
        let visits = self.visits_of(version, inst);
        *visits = visits.saturating_add(1);
        // Equality, so that each loop asks once. The interpreter notices interrupts and news here
        // alone.
        self.is_hot = Some(*visits) == self.threshold;
        if self.is_hot {
            self.note_asked(version, inst);
        }
        let has_news = self.wake.as_ref().is_some_and(Wake::is_called);
        match self.is_hot || has_news || self.is_interrupted() {
            true => Control::Pause,
            false => Control::Continue,
        }
    }
}

/// The native code in which a function of the interpreter continues: a continuation into a version
/// of the function, whose inputs are in the buffer. [`VmState::ascent`] alone makes one.
pub(super) struct Ascent {
    func: Func,
    code: Arc<MachineCode>,
}

impl Ascent {
    /// The function.
    pub(super) fn func(&self) -> Func {
        self.func
    }

    /// The code.
    pub(super) fn code(&self) -> &Arc<MachineCode> {
        &self.code
    }
}

/// The embedder's policy, and the counts that it asks for.
pub(super) struct TieringPolicy {
    /// `None` while a question is asked, and before the embedder has set one.
    tiering: Option<Box<dyn Tiering + Send>>,
    pub(super) profile: Profile,
}

impl TieringPolicy {
    /// No policy. The interpreter looks for interrupts in a block if there is one.
    pub(super) fn new(heeds: Option<Arc<ContextBlock>>) -> TieringPolicy {
        TieringPolicy { tiering: None, profile: Profile::new(&Quiet, heeds) }
    }
}

impl VmState {
    /// Sets the tiering, and starts to count for it.
    pub(super) fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        let profile = Profile::new(&*tiering, self.view.heeded());
        self.policy = TieringPolicy { tiering: Some(tiering), profile };
        self.mark_loops(0);
    }

    /// Asks the tiering, which gets access to this state. A panic of the tiering passes, after the
    /// tiering is back in its place. Each question is a safe point: the caller holds references to
    /// the code that it needs afterwards ([`super::frames`]).
    pub(super) fn ask<R>(
        &mut self,
        question: impl FnOnce(&mut dyn Tiering, &mut Tier<'_>) -> Result<R, RunError>,
    ) -> Result<R, RunStop> {
        self.safe_point();
        let mut tiering = self.policy.tiering.take();
        let answer = catch_unwind(AssertUnwindSafe(|| match &mut tiering {
            Some(tiering) => question(&mut **tiering, &mut Tier { state: self }),
            None => question(&mut Quiet, &mut Tier { state: self }),
        }));
        // A `Tier` offers no way to set another tiering, so the place is still empty.
        self.policy.tiering = tiering;
        answer.unwrap_or_else(|payload| resume_unwind(payload)).map_err(RunStop::Failed)
    }

    /// Marks the instructions at which visits are counted: entries and loop headers, in all
    /// functions except the first `known`. Their loops are found at the first use of each.
    pub(super) fn mark_loops(&mut self, known: usize) {
        if !self.policy.profile.watches() {
            return;
        }
        let module = &self.modules.current;
        for (func, body) in module.defined().skip_while(|(func, _)| func.index() < known) {
            let base = self.modules.base(func).expect("jit: a function with a body has a base");
            // Most functions of a large module never run, and need no loops.
            self.machine.mark_chosen(base, body, counted);
        }
    }

    /// Decides how a run continues that has paused at a marked instruction. Returns the native code
    /// whose inputs are in the buffer, or `None` to stay in the interpreter.
    pub(super) fn ascent(&mut self) -> Result<Option<Ascent>, RunStop> {
        if self.policy.profile.is_interrupted() {
            return Err(RunStop::Failed(RunError::Interrupted));
        }
        if self.policy.profile.take_news() {
            self.ask(|tiering, tier| tiering.woken(tier))?;
        }
        if !self.policy.profile.is_hot {
            return Ok(None);
        }
        let view = self.machine.view().expect("jit: a paused run has an activation");
        let (func, inst) = (view.func(), view.inst());
        let module = Arc::clone(&self.modules.current);
        let body = module.body(func).expect("jit: the function of an activation has a body");
        if inst == body.first_inst(body.entry()) {
            self.ask(|tiering, tier| tiering.called(tier, func))?;
            return Ok(None);
        }
        let at = Point::before(inst);
        let Some(continuation) =
            self.ask(|tiering, tier| tiering.hot(tier, HotLoop { func, at }))?
        else {
            return Ok(None);
        };
        // The version that has paused counts, not the body of the module: an embedder may have made
        // another version current (`a_loop_of_another_version_is_refused`).
        let view = self.machine.view().expect("jit: the run is still paused");
        let paused = self.machine.code(view.version()).key();
        if continuation.target.func != func || continuation.source() != (paused, at) {
            return Err(RunStop::Failed(RunError::Continue(ContinueError::OtherSource {
                function: body.name().to_owned(),
            })));
        }
        if !self.may_enter(&continuation) {
            return Err(RunStop::Failed(RunError::Link(LinkError::NotAdopted)));
        }
        let view = self.machine.view().expect("jit: the run is still paused");
        // The run may have come by a mapping accepted apart from this one, and lack a value. That
        // is no fault of the program (`a_loop_that_lacks_a_value_stays`).
        if continuation.requires().iter().any(|value| view.is_undefined(*value)) {
            return Ok(None);
        }
        for (word, value) in self.view.buffer.iter_mut().zip(continuation.requires()) {
            *word = view.value(*value);
        }
        self.counts.note_ascent(func, at, &continuation);
        let code = Arc::clone(&continuation.code);
        self.table.keep(&code);
        Ok(Some(Ascent { func, code }))
    }
}

/// The first instruction of the function, and the first of each loop header.
fn counted(body: &Function) -> Vec<Inst> {
    let forest = LoopForest::new(body, &Cfg::new(body));
    let headers = forest.loops().map(|l| body.first_inst(forest.header(l)));
    std::iter::once(body.first_inst(body.entry())).chain(headers).collect()
}
