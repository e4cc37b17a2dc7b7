//! Tiering: the questions that a run asks the embedder about the code to compile.

use super::action::{Action, CallsFrom, LinkError};
use super::block::ContextBlock;
use super::entrance::Ascent;
use super::osr_entry::{self, Contents};
use super::state::VmState;
use super::stop::{RunError, RunStop};
use super::watch::{CountedPlace, Wake, Watch};
use crate::direct::BoundFunctions;
use crate::engine::Engine;
use crate::error::ContinueError;
use crate::version::{Continuation, Version};
use check::KnownCall;
use interp::{Machine, VersionId};
use ir::{Func, Function, Inst, Module, Point, SupplyError, Value};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use transition::VersionKey;

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

/// A failed assumption of native code, whose point has fired.
#[derive(Clone, Copy, Debug)]
pub struct FailedPoint<'a> {
    /// The version that the run leaves.
    pub version: &'a Arc<Version>,
    /// The number of the point.
    pub number: usize,
    /// The number of firings of the point in this machine, the current one included.
    pub count: u64,
    /// The bits of the point's values, in their order.
    pub values: &'a [u64],
}

/// The way in which a run continues from a point, this time only. The link of the point does not
/// change.
#[derive(Clone, Debug)]
pub enum Onward {
    /// By the action of the point. At an open point, the run ends with [`RunError::Stuck`].
    Linked,
    /// In this continuation, which must belong to the point.
    Enter(Arc<Continuation>),
    /// By this action; the values of the point may be in any order. So an open point may say *not
    /// yet*, while another thread compiles: [`Action::Interpret`] or [`Action::Hand`].
    Take(Action),
}

impl From<Arc<Continuation>> for Onward {
    fn from(continuation: Arc<Continuation>) -> Onward {
        Onward::Enter(continuation)
    }
}

/// The policy that decides which code exists. A run asks it, and compiles nothing by itself. The
/// defaults of `called` and `hot` keep the run in the interpreter; the default of `open` ends the
/// run.
pub trait Tiering {
    /// The number of visits after which a loop header or function of the interpreter is hot. `None`
    /// turns counting off.
    fn threshold(&self) -> Option<u32> {
        None
    }

    /// The number of visits after which this place is hot, at least 1. Default:
    /// [`Tiering::threshold`]. Called at the first call of each function. No effect if
    /// [`Tiering::threshold`] turns counting off.
    fn hot_after(&mut self, _place: CountedPlace<'_>) -> u32 {
        self.threshold().unwrap_or(u32::MAX)
    }

    /// The wake through which another thread notifies the run. `None` without such a thread.
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

    /// Called when native code calls a function without code. The implementation may give the
    /// function code ([`Tier::install`]); otherwise the interpreter runs it, and counts the call.
    /// The default does as for a hot function.
    ///
    /// # Errors
    /// If the run is to end.
    fn demanded(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.called(tier, func)
    }

    /// Called when the calls of a function in the interpreter reach the threshold, and by
    /// [`super::Vm::demand`]. The implementation may give the function code ([`Tier::install`]);
    /// otherwise the interpreter runs it.
    ///
    /// # Errors
    /// If the run is to end.
    fn called(&mut self, _tier: &mut Tier<'_>, _func: Func) -> Result<(), RunError> {
        Ok(())
    }

    /// Called for each loop when it turns hot in the interpreter. Called again at the next visit
    /// after [`Tier::ask_again`], and when the loop turns hot anew after an assumption of the
    /// function's native code has failed. Returns the continuation in which the run continues, or
    /// `None` to stay in the interpreter. The run also stays there if the last transition, such as
    /// an exit of native code, did not provide a value that the continuation requires.
    ///
    /// A continuation that reads dead values ([`Continuation::keeps_values`]) ends the run with
    /// [`ContinueError::NotKept`] where the fast loop has lost them: return one only if
    /// [`Tier::gives`] tells that the run has the values.
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

    /// Called when an assumption of native code fails, unless the point is linked to a continuation
    /// ([`Action::Continue`]). The policy may change the code for later calls, such as to install a
    /// version without the assumption. Without such a change, an assumption that always fails costs
    /// an exit at each visit.
    ///
    /// # Errors
    /// If the run is to end.
    fn failed(&mut self, _tier: &mut Tier<'_>, _at: FailedPoint<'_>) -> Result<Onward, RunError> {
        Ok(Onward::Linked)
    }

    /// Called when an open OSR point fires. The default has no answer and ends the run with
    /// [`RunError::Stuck`].
    ///
    /// # Errors
    /// If the run is to end.
    fn open(&mut self, _tier: &mut Tier<'_>, _at: OpenPoint<'_>) -> Result<Onward, RunError> {
        Ok(Onward::Linked)
    }
}

/// The policy that compiles nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Tiering for Quiet {}

/// The operations on a machine that are allowed while its run waits for a [`Tiering`].
pub struct Tier<'a> {
    state: &'a mut VmState,
    /// The values that an interpreter of the embedder's own gives, if one asks.
    contents: Option<Contents<'a>>,
}

impl std::fmt::Debug for Tier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tier").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'a> Tier<'a> {
    pub(super) fn of(state: &'a mut VmState) -> Tier<'a> {
        Tier { state, contents: None }
    }

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

    /// Supplies the body of a function that awaits it, as [`super::Vm::supply`] does.
    ///
    /// # Errors
    /// As [`super::Vm::supply`].
    pub fn supply(
        &mut self,
        func: Func,
        body: impl Into<Arc<Function>>,
    ) -> Result<(), SupplyError> {
        self.state.supply(func, body.into())
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
        self.state.install(version, actions, CallsFrom::Anywhere)
    }

    /// As [`Tier::install`], for some calls.
    ///
    /// # Errors
    /// The errors of [`super::Vm::install`].
    pub fn install_for(
        &mut self,
        calls: CallsFrom,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        self.state.install(version, actions, calls)
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

    /// Makes a call lead to a version as [`super::Vm::link_call`] does.
    ///
    /// # Errors
    /// The errors of [`super::Vm::link_call`].
    pub fn link_call(
        &mut self,
        version: &Arc<Version>,
        call: &KnownCall,
        row: &Arc<Version>,
    ) -> Result<(), LinkError> {
        self.state.link_call(version, call, row)
    }

    /// Makes a call lead to the usual code as [`super::Vm::unlink_call`] does.
    ///
    /// # Errors
    /// The errors of [`super::Vm::unlink_call`].
    pub fn unlink_call(&mut self, version: &Arc<Version>, call: Inst) -> Result<(), LinkError> {
        self.state.unlink_call(version, call)
    }

    /// Releases a version as [`super::Vm::release`] does.
    pub fn release(&mut self, version: &Arc<Version>) {
        self.state.release(version);
    }

    /// Calls [`Tiering::hot`] at the next visit of a loop of a base, though it has been called for
    /// this loop. No effect without a threshold, and on functions without a body or without a call
    /// so far. Constant cost.
    pub fn ask_again(&mut self, at: HotLoop) {
        self.ask_after(at.func, Some(at.at.inst()), 1);
    }

    /// Calls [`Tiering::called`] again at the call of a function with this number, counted from
    /// now, or [`Tiering::hot`] at this visit of the loop with this header. Conditions and cost as
    /// [`Tier::ask_again`].
    pub fn ask_after(&mut self, func: Func, header: Option<Inst>, visits: u32) {
        if let Some((base, inst)) = self.counted(func, header) {
            self.state.machine.pause_after(base, inst, visits);
        }
    }

    /// How often the interpreter has called a function, or visited the loop with this header; 0
    /// without a threshold. Constant cost.
    pub fn visits(&mut self, func: Func, header: Option<Inst>) -> u64 {
        let counted = self.counted(func, header);
        counted.map_or(0, |(base, inst)| self.state.machine.visits(base, inst))
    }

    /// The instructions that the interpreter has executed in a function, by the visits of its
    /// places and the estimates of [`CountedPlace::instructions`]; 0 without a threshold. Linear in
    /// the loops of the function.
    pub fn interpreted(&mut self, func: Func) -> u64 {
        self.state.interpreted(func)
    }

    /// The base of a function, and the instruction whose visits count.
    fn counted(&self, func: Func, header: Option<Inst>) -> Option<(VersionId, Inst)> {
        let base = self.state.modules.base(func)?;
        let body = self.state.modules.current.body(func)?;
        Some((base, header.unwrap_or_else(|| body.first_inst(body.entry()))))
    }

    /// Whether the paused activation has its dead values ([`Continuation::keeps_values`]).
    pub fn has_dead_values(&self) -> bool {
        self.state.machine.has_dead_values()
    }

    /// Whether the run that waits gives these values of the base of a function, which may be dead
    /// where it is: what a continuation that keeps values takes ([`Continuation::keeps_values`]).
    /// An interpreter of the embedder's own gives the values that it names
    /// ([`super::Vm::enter`]) and constants; Osier's gives them all or none
    /// ([`Tier::has_dead_values`]). Cost: a call of the embedder for each value.
    pub fn gives(&self, func: Func, values: &[Value]) -> bool {
        let Some(contents) = self.contents else { return self.has_dead_values() };
        let body = self.module().body(func);
        let is_constant = |value: Value| {
            body.is_some_and(|f| f.has_value(value) && osr_entry::constant(f, value).is_some())
        };
        values.iter().all(|value| contents(*value).is_some() || is_constant(*value))
    }

    /// Whether the run that waits is in an interpreter of the embedder's own
    /// ([`super::Vm::enter`]).
    pub fn is_of_embedder(&self) -> bool {
        self.contents.is_some()
    }

    /// The contents of a value of the base that an interpreter of the embedder's own gives. `None`
    /// if no such interpreter asks. Cost: a call of the embedder.
    pub fn given(&self, value: Value) -> Option<u64> {
        self.contents.and_then(|contents| contents(value))
    }

    /// The functions that are bound, as [`super::Vm::bound`] gives them.
    pub fn bound(&self) -> BoundFunctions {
        self.state.bound()
    }

    /// The installed version of a function.
    pub fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.state.table.installed(func)
    }
}

/// The embedder's policy, and the counters and words that the interpreter watches for it.
pub(super) struct TieringPolicy {
    /// `None` while the tiering handles a request, and before the embedder has set a tiering.
    tiering: Option<Box<dyn Tiering + Send>>,
    pub(super) watch: Watch,
}

impl TieringPolicy {
    /// No policy. The interpreter looks for interrupts in a block if there is one.
    pub(super) fn new(heeds: Option<Arc<ContextBlock>>) -> TieringPolicy {
        TieringPolicy { tiering: None, watch: Watch::new(None, None, heeds) }
    }
}

impl VmState {
    /// Sets the tiering, and starts to count for it.
    pub(super) fn set_tiering(&mut self, tiering: Box<dyn Tiering + Send>) {
        let watch = Watch::new(tiering.threshold(), tiering.wake(), self.view.heeded());
        self.policy = TieringPolicy { tiering: Some(tiering), watch };
        self.count_visits();
    }

    /// Asks the tiering, which gets access to this state. A panic of the tiering passes, after the
    /// tiering is back in its place. Each question is a safe point: the caller holds references to
    /// the code that it needs afterwards ([`super::reclaim`]).
    pub(super) fn ask<R>(
        &mut self,
        question: impl FnOnce(&mut dyn Tiering, &mut Tier<'_>) -> Result<R, RunError>,
    ) -> Result<R, RunStop> {
        self.ask_for(None, question)
    }

    /// As [`VmState::ask`], for an interpreter of the embedder's own that gives these values.
    pub(super) fn ask_for<R>(
        &mut self,
        contents: Option<Contents<'_>>,
        question: impl FnOnce(&mut dyn Tiering, &mut Tier<'_>) -> Result<R, RunError>,
    ) -> Result<R, RunStop> {
        self.safe_point();
        let mut tiering = self.policy.tiering.take();
        let answer = catch_unwind(AssertUnwindSafe(|| match &mut tiering {
            Some(tiering) => question(&mut **tiering, &mut Tier { state: self, contents }),
            None => question(&mut Quiet, &mut Tier { state: self, contents }),
        }));
        // A `Tier` offers no way to set another tiering, so the place is still empty.
        self.policy.tiering = tiering;
        answer.unwrap_or_else(|payload| resume_unwind(payload)).map_err(RunStop::Failed)
    }

    /// Decides how a run continues that has paused at a counted place. Returns the native code
    /// whose inputs are in the buffer, or `None` to stay in the interpreter.
    pub(super) fn ascent(&mut self) -> Result<Option<Ascent>, RunStop> {
        if self.policy.watch.is_interrupted() {
            return Err(RunStop::Failed(RunError::Interrupted));
        }
        if self.policy.watch.take_news() {
            self.ask(|tiering, tier| tiering.woken(tier))?;
        }
        if !self.is_hot()? {
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
        // The tiering may look at values, too (`a_row_is_made_for_the_values_of_the_fast_loop`).
        self.machine.show_live_values();
        let Some(continuation) =
            self.ask(|tiering, tier| tiering.hot(tier, HotLoop { func, at }))?
        else {
            return Ok(None);
        };
        // The version that has paused counts, not the body of the module: an embedder may have made
        // another version current (`a_loop_of_another_version_is_refused`).
        let view = self.machine.view().expect("jit: the run is still paused");
        let paused = self.machine.code(view.version()).key();
        self.require_continuation(&continuation, func, paused, at)?;
        if !self.has_way_up(func)? {
            return Ok(None);
        }
        // As `Machine::fire` does, too (`a_loop_that_lost_dead_values_is_not_entered_with_them`).
        if continuation.keeps && !self.machine.has_dead_values() {
            return Err(RunStop::Failed(RunError::Continue(ContinueError::NotKept {
                function: body.name().to_owned(),
            })));
        }
        let view = self.machine.view().expect("jit: the run is still paused");
        // The run may have come by a mapping that was accepted separately, and lack a value. This
        // is no fault of the program (`a_loop_that_lacks_a_value_stays`).
        if continuation.requires().iter().any(|value| view.is_undefined(*value)) {
            return Ok(None);
        }
        self.view.reserve(continuation.requires().len());
        for (word, value) in self.view.buffer.iter_mut().zip(continuation.requires()) {
            *word = view.value(*value);
        }
        Ok(Some(self.ascend(at, &continuation)))
    }

    /// Checks that a continuation continues this version of a function at a point, and that this
    /// machine may enter it.
    pub(super) fn require_continuation(
        &self,
        continuation: &Continuation,
        func: Func,
        version: VersionKey,
        at: Point,
    ) -> Result<(), RunStop> {
        if continuation.target.func != func || continuation.source() != (version, at) {
            let function = self.modules.current.body(func).map_or("", Function::name).to_owned();
            let error = ContinueError::OtherSource { function };
            return Err(RunStop::Failed(RunError::Continue(error)));
        }
        let may_enter = self.may_enter(continuation);
        may_enter.map_err(|error| RunStop::Failed(RunError::Link(error)))
    }

    /// The ascent into a continuation that was required to fit. Its inputs are in the buffer.
    pub(super) fn ascend(&mut self, at: Point, continuation: &Continuation) -> Ascent {
        let func = continuation.target.func;
        self.counts.note_ascent(func, at, continuation);
        let code = Arc::clone(&continuation.code);
        self.keep_target(continuation);
        self.table.keep(&code);
        Ascent { func, code }
    }
}
