//! Who decides what is compiled, and when: the embedder, who is asked here.

use super::block::Block;
use super::link::{Action, LinkError};
use super::state::State;
use super::stop::{RunError, Stop};
use crate::code::Code;
use crate::context::SIGNAL_INTERRUPT;
use crate::engine::Engine;
use crate::error::ContinueError;
use crate::version::{Continuation, Version};
use cranelift_entity::EntityRef;
use interp::{Control, Machine, Observer, Scope, View};
use ir::cfg::Cfg;
use ir::loops::LoopForest;
use ir::{Func, Function, Inst, Module, Point, Value};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use transition::VersionKey;

/// A loop header that the interpreter has passed so often that the loop is hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotLoop {
    /// The function.
    pub func: Func,
    /// The first instruction of the header, before which the run has paused.
    pub at: Point,
}

/// An OSR point that fires and does not know where to.
#[derive(Clone, Copy, Debug)]
pub struct OpenPoint<'a> {
    /// The version that is left.
    pub version: &'a Arc<Version>,
    /// The number of the point.
    pub number: usize,
    /// The contents of the point's values, in their order.
    pub values: &'a [u64],
}

impl OpenPoint<'_> {
    /// The contents of a value of the version, if the point has it.
    pub fn value(&self, value: Value) -> Option<u64> {
        let at = self.version.points()[self.number].values.iter().position(|v| *v == value)?;
        self.values.get(at).copied()
    }
}

/// What decides. A run asks; nothing is compiled but what it says. Whoever does not answer a
/// question has the answer that changes nothing.
pub trait Tiering {
    /// How many visits of a loop header, or calls, of the interpreter make a loop or function hot.
    /// `None`: it does not count.
    fn threshold(&self) -> Option<u32> {
        None
    }

    /// A function that has no code is called by native code, or has been called as often as the
    /// threshold says by the interpreter. It may be given code ([`Tier::install`]); otherwise it is
    /// interpreted.
    ///
    /// # Errors
    /// When the run is to end.
    fn called(&mut self, _tier: &mut Tier<'_>, _func: Func) -> Result<(), RunError> {
        Ok(())
    }

    /// A loop of the interpreter is hot: where to go on natively, or `None` to go on as before.
    /// Asked once for each loop.
    ///
    /// # Errors
    /// When the run is to end.
    fn hot(
        &mut self,
        _tier: &mut Tier<'_>,
        _at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        Ok(None)
    }

    /// An open OSR point fires: where to go on.
    ///
    /// # Errors
    /// When the run is to end, as it does when nobody knows.
    fn open(
        &mut self,
        _tier: &mut Tier<'_>,
        at: OpenPoint<'_>,
    ) -> Result<Arc<Continuation>, RunError> {
        Err(RunError::Stuck { func: at.version.func(), point: at.number })
    }
}

/// Compiles nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Tiering for Quiet {}

/// What those who decide may do while a run waits for them.
#[derive(Debug)]
pub struct Tier<'a> {
    state: &'a mut State,
}

impl Tier<'_> {
    /// Compiles.
    pub fn engine(&self) -> &Engine {
        &self.state.engine
    }

    /// The program.
    pub fn module(&self) -> &Arc<Module> {
        &self.state.module
    }

    /// The state of the program. The run that waits is part of it.
    pub fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// As [`super::Vm::install`].
    ///
    /// # Errors
    /// As there.
    pub fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        self.state.install(version, actions)
    }

    /// As [`super::Vm::adopt`].
    ///
    /// # Errors
    /// As there.
    pub fn adopt(&mut self, version: &Arc<Version>, actions: Vec<Action>) -> Result<(), LinkError> {
        self.state.adopt(version, actions)
    }

    /// As [`super::Vm::relink`].
    ///
    /// # Errors
    /// As there.
    pub fn relink(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        action: Action,
    ) -> Result<(), LinkError> {
        self.state.relink(version, number, action)
    }

    /// As [`super::Vm::arm`]. A run that is under way sees it at its next visit of the point.
    ///
    /// # Panics
    /// As there.
    pub fn arm(&mut self, version: &Arc<Version>, number: usize) {
        version.set_armed(number, true);
    }

    /// As [`super::Vm::disarm`].
    ///
    /// # Panics
    /// As there.
    pub fn disarm(&mut self, version: &Arc<Version>, number: usize) {
        version.set_armed(number, false);
    }

    /// As [`super::Vm::release`].
    pub fn release(&mut self, version: &Arc<Version>) {
        self.state.release(version);
    }

    /// The version of a function that is installed.
    pub fn installed(&self, func: Func) -> Option<&Arc<Version>> {
        self.state.installed.get(&func)
    }
}

/// Counts visits in the interpreter.
#[derive(Debug)]
pub(super) struct Profile {
    threshold: Option<u32>,
    /// Tells that the run is to end.
    heeds: Option<Arc<Block>>,
    /// By version and instruction; as long as was needed.
    visits: Vec<Vec<u32>>,
}

impl Profile {
    pub(super) fn new(tiering: &dyn Tiering, heeds: Option<Arc<Block>>) -> Profile {
        Profile { threshold: tiering.threshold(), heeds, visits: Vec::new() }
    }

    /// Ends runs when this block says so.
    pub(super) fn heed(&mut self, heeds: Option<Arc<Block>>) {
        self.heeds = heeds;
    }

    pub(super) fn watches(&self) -> bool {
        self.threshold.is_some() || self.heeds.is_some()
    }

    /// Whether the run was asked to end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.heeds.as_ref().is_some_and(|block| block.is_signalled(SIGNAL_INTERRUPT))
    }

    fn count(&mut self, version: usize, inst: Inst) -> u32 {
        let inst = inst.as_u32() as usize;
        if self.visits.len() <= version {
            self.visits.resize_with(version + 1, Vec::new);
        }
        let visits = &mut self.visits[version];
        if visits.len() <= inst {
            visits.resize(inst + 1, 0);
        }
        visits[inst] = visits[inst].saturating_add(1);
        visits[inst]
    }
}

impl Observer for Profile {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let visits = self.count(view.version().as_u32() as usize, inst);
        if Some(visits) == self.threshold || self.is_interrupted() {
            Control::Pause
        } else {
            Control::Continue
        }
    }
}

/// Where a function of the interpreter goes on natively.
pub(super) struct Ascent {
    pub(super) func: Func,
    pub(super) code: Arc<Code>,
}

impl State {
    /// Asks, with the state at hand.
    pub(super) fn ask<R>(
        &mut self,
        question: impl FnOnce(&mut dyn Tiering, &mut Tier<'_>) -> Result<R, RunError>,
    ) -> Result<R, Stop> {
        let mut tiering = self.tiering.take();
        let answer = catch_unwind(AssertUnwindSafe(|| match &mut tiering {
            Some(tiering) => question(&mut **tiering, &mut Tier { state: self }),
            None => question(&mut Quiet, &mut Tier { state: self }),
        }));
        // Whoever was asked may have set another one.
        if self.tiering.is_none() {
            self.tiering = tiering;
        }
        answer.unwrap_or_else(|payload| resume_unwind(payload)).map_err(Stop::Failed)
    }

    /// Marks where visits are counted, in all functions but the first `known`: entries and loop
    /// headers. Cost: linear in these.
    pub(super) fn mark_loops(&mut self, known: usize) {
        let module = Arc::clone(&self.module);
        if !self.profile.watches() {
            return;
        }
        for (func, body) in module.defined().skip_while(|(func, _)| func.index() < known) {
            self.machine.mark(self.bases[&func], counted(body));
        }
    }

    /// The run has paused where visits are counted. Where it goes on natively; what is needed there
    /// is in the buffer.
    pub(super) fn ascent(&mut self) -> Result<Option<Ascent>, Stop> {
        if self.profile.is_interrupted() {
            return Err(Stop::Failed(RunError::Interrupted));
        }
        let view = self.machine.view().expect("jit: a paused run has an activation");
        let (func, inst) = (view.func(), view.inst());
        let module = Arc::clone(&self.module);
        let body = module.body(func).expect("jit: an activation is of a function with a body");
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
        let fits = continuation.target.func == func;
        if !fits || continuation.source() != (VersionKey::of(body), at) {
            return Err(Stop::Failed(RunError::Continue(ContinueError::OtherSource {
                function: body.name().to_owned(),
            })));
        }
        if !self.may_enter(&continuation) {
            return Err(Stop::Failed(RunError::Link(LinkError::NotAdopted)));
        }
        let view = self.machine.view().expect("jit: the run is still paused");
        for (word, value) in self.buffer.iter_mut().zip(continuation.requires()) {
            *word = view.value(*value);
        }
        self.note_ascent(func, at, &continuation);
        let code = Arc::clone(&continuation.code);
        self.keep(&code);
        Ok(Some(Ascent { func, code }))
    }
}

/// The first instruction, and that of each loop header.
fn counted(body: &Function) -> Vec<Inst> {
    let forest = LoopForest::new(body, &Cfg::new(body));
    let headers = forest.loops().map(|l| body.first_inst(forest.header(l)));
    std::iter::once(body.first_inst(body.entry())).chain(headers).collect()
}
