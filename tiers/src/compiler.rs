//! Makes the code that a tiering policy requests: optimized versions of functions, and
//! continuations of their hot loops.
//!
//! A compiler does not depend on a machine. So it can work in the thread of the run, which then
//! waits, or in another thread.

use super::worker::TierGoal;
use super::{CodeMode, Compiled, CompiledKind, Observer, SharedObserver, compile};
use check::{Checked, CheckedEntry};
use derive::driver::{
    self, Derived, Recipe, Retry, Secured, Step, Vigilance, derive, derive_proved_at, prove_at,
};
use ir::edit::ActionLog;
use ir::{Func, Function, Module, Point, Value};
use jit::{Continuation, Engine, HotLoop, RunError, Version};
use osr::{Level, VersionPair};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;
use transition::{Pair, Side, VersionKey};

/// The kind of version to compile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CodeTier {
    /// The unchanged base, which compiles soonest.
    Base,
    /// The version that the pipeline makes.
    Optimized,
}

/// Code that a policy requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Goal {
    /// A version of a function.
    Version(Func),
    /// A continuation of a loop of the base.
    Loop(Func, Point),
}

impl Goal {
    pub(super) fn func(self) -> Func {
        match self {
            Goal::Version(func) | Goal::Loop(func, _) => func,
        }
    }

    /// The point of the loop.
    pub(super) fn point(self) -> Option<Point> {
        match self {
            Goal::Version(_) => None,
            Goal::Loop(_, at) => Some(at),
        }
    }
}

impl From<HotLoop> for Goal {
    fn from(at: HotLoop) -> Goal {
        Goal::Loop(at.func, at.at)
    }
}

/// The code that a compiler has made for a goal.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// The version that calls of the function run from now on. `None` if the goal was a loop, and
    /// the compiler made the continuation alone.
    pub(super) version: Option<Arc<Version>>,
    /// The continuation of the loop. `None` without an accepted entry, and for calls.
    pub(super) entry: Option<Arc<Continuation>>,
}

/// The most loop headers of a function that are mapped at once.
const MOST_HEADERS: usize = 32;

impl Made {
    /// The bytes of machine code.
    pub(super) fn code_size(&self) -> usize {
        let version = self.version.as_ref().map_or(0, |version| version.code_size());
        version + self.entry.as_ref().map_or(0, |entry| entry.code_size())
    }
}

/// A version of a function, and its entries from the base.
#[derive(Debug)]
struct TierVersion {
    derived: Derived,
    /// The code. `None` for a base of which only continuations were compiled.
    version: Option<Arc<Version>>,
    /// Whether a run has entered a loop in the middle.
    is_entered: bool,
    /// The accepted entries at the loop headers of the base. `None` until a run enters a second
    /// loop in the middle, since many functions have one hot loop.
    headers: Option<Arc<Checked<Mapping>>>,
    /// The points whose entry the checker dropped.
    dropped: BTreeSet<Point>,
    /// Whether [`Compiler::retry`] has already searched a version with a dropped entry.
    is_retried: bool,
}

impl TierVersion {
    fn new(derived: Derived) -> TierVersion {
        TierVersion {
            derived,
            version: None,
            is_entered: false,
            headers: None,
            dropped: BTreeSet::new(),
            is_retried: false,
        }
    }

    /// A mapping that contains the accepted entry at the header of a loop, if the loop has one.
    ///
    /// If the passes have not changed the code, entries are identities ([`check::stay`]). Otherwise
    /// the first loop makes its own entry, the second makes the entries of all loops, and later
    /// loops find theirs. So a function costs at most two certificates, however many hot loops it
    /// has. In a function with more than [`MOST_HEADERS`] loops, each hot loop makes only its own
    /// entry, since the run waits for it. No entry leaves the version, so a run may use the results
    /// of several calls.
    fn entries(
        &mut self,
        module: &Module,
        base: &Function,
        at: Point,
        observer: &mut dyn driver::Observer,
    ) -> Arc<Checked<Mapping>> {
        if let Some(known) = &self.headers {
            return Arc::clone(known);
        }
        if self.derived.log.is_empty() {
            observer.begin(Some(Step::Check));
            let entry = check::stay(module, base, &BTreeSet::from([at]));
            observer.begin(None);
            return Arc::new(entry);
        }
        let is_first = !std::mem::replace(&mut self.is_entered, true);
        let mut is_whole = false;
        let asked = |pair: &VersionPair<'_>| {
            let mut points = BTreeSet::from([at]);
            if !is_first {
                let headers = pair.loop_headers(Side::Before);
                is_whole = headers.len() <= MOST_HEADERS;
                points.extend(headers.into_iter().filter(|_| is_whole));
            }
            Pair::new(points, BTreeSet::new())
        };
        let made = prove_at(module, base, &self.derived, Level::Avail, asked, observer);
        let entries = made.into_highest().before;
        self.dropped.extend(entries.missing.rejected().map(|(point, _)| point));
        let mapping = Arc::new(entries.mapping);
        if is_whole {
            self.headers = Some(Arc::clone(&mapping));
        }
        mapping
    }
}

/// By function, source point and target version.
type MadeContinuations = BTreeMap<(Func, Point, VersionKey), Arc<Continuation>>;

/// By function and point of the base.
type LoneContinuations = BTreeMap<(Func, Point), Arc<Continuation>>;

/// Optimizes functions, maps and certifies the loops that runs enter, and compiles.
#[derive(Debug)]
pub(super) struct Compiler<O> {
    pub(super) pipeline: Pipeline,
    pub(super) observer: SharedObserver<O>,
    versions: BTreeMap<(Func, CodeTier), TierVersion>,
    /// By source point and target version: the continuations made. A run that has left native code
    /// may request a loop again.
    continuations: MadeContinuations,
    /// Continuations in the base, compiled without the rest of the base.
    lone: LoneContinuations,
    /// Whether calls with constant arguments get cells.
    pub(super) dispatches: bool,
}

impl<O: Observer> Compiler<O> {
    pub(super) fn new(pipeline: Pipeline, observer: SharedObserver<O>) -> Compiler<O> {
        let (versions, continuations, lone) = Default::default();
        let dispatches = false;
        Compiler { pipeline, observer, versions, continuations, lone, dispatches }
    }

    /// Makes the code of a goal, once. `None` if the function has no body. `gives` tells whether
    /// the run gives values of the base that are dead at the loop of the goal.
    ///
    /// # Errors
    /// If code cannot be compiled.
    pub(super) fn make(
        &mut self,
        engine: &Engine,
        module: &Arc<Module>,
        TierGoal { tier, goal }: TierGoal,
        gives: &dyn Fn(&[Value]) -> bool,
    ) -> Result<Option<Made>, RunError> {
        let Some(base) = module.body(goal.func()) else { return Ok(None) };
        let place = Place { engine, module, func: goal.func(), base, tier };
        self.optimize(place);
        let entry = match (tier, goal) {
            (_, Goal::Version(_)) => {
                self.compile(place)?;
                None
            }
            (CodeTier::Base, Goal::Loop(_, at)) => self.enter_base(place, at)?,
            (CodeTier::Optimized, Goal::Loop(_, at)) => {
                self.compile(place)?;
                self.enter(place, at, gives)?
            }
        };
        Ok(Some(Made { version: self.versions[&place.key()].version.clone(), entry }))
    }

    /// Optimizes a function, once.
    fn optimize(&mut self, place: Place<'_>) {
        if self.versions.contains_key(&place.key()) {
            return;
        }
        if place.tier == CodeTier::Base {
            let log = ActionLog::empty_for(place.base);
            let derived = Derived { function: place.base.clone(), log };
            self.versions.insert(place.key(), TierVersion::new(derived));
            return;
        }
        // The program waits for this code, so do not verify the passes here. The checker still
        // judges every entry before a run uses it.
        let Place { module, base, .. } = place;
        let derived =
            derive(module, base, &self.pipeline, Vigilance::Off, &mut self.observer.steps());
        self.versions.insert(place.key(), TierVersion::new(derived));
    }

    /// Compiles a version, once.
    fn compile(&mut self, place: Place<'_>) -> Result<Arc<Version>, RunError> {
        let Place { engine, module, func, .. } = place;
        let base = self.versions.get(&(func, CodeTier::Base)).and_then(|base| base.version.clone());
        let of_tier = self.versions.get_mut(&place.key()).expect("the function is optimized");
        let version = match (&of_tier.version, base) {
            (Some(version), _) => return Ok(Arc::clone(version)),
            // The passes have changed nothing.
            (None, Some(base)) if of_tier.derived.log.is_empty() => base,
            (None, _) => {
                let function = &of_tier.derived.function;
                let mode = match place.tier {
                    CodeTier::Optimized if self.dispatches => CodeMode::Dispatching,
                    _ => CodeMode::Plain,
                };
                compile(engine, module, func, function, mode, &mut self.observer)?
            }
        };
        of_tier.version = Some(Arc::clone(&version));
        Ok(version)
    }

    /// The continuation of a loop in the base, compiled without the rest of the base. `None`
    /// without an accepted entry.
    fn enter_base(
        &mut self,
        place: Place<'_>,
        at: Point,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let Place { engine, module, func, base, .. } = place;
        if let Some(made) = self.lone.get(&(func, at)) {
            return Ok(Some(Arc::clone(made)));
        }
        let of_tier = self.versions.get_mut(&place.key()).expect("the base is known");
        let entries = of_tier.entries(module, base, at, &mut self.observer.steps());
        // Native code of the base reads no dead values, so the entry keeps no values.
        let entry = entries.checked_entry(at).filter(|entry| entry.entry().kept.is_empty());
        let Some(entry) = entry else { return Ok(None) };
        self.observer.begin();
        let made = engine.lone_continuation(module, func, base, entry, &[base]);
        let made = made.map_err(RunError::Continue)?;
        self.tell_of(&made);
        self.lone.insert((func, at), Arc::clone(&made));
        Ok(Some(made))
    }

    fn tell_of(&mut self, made: &Continuation) {
        self.observer.compiled(Compiled {
            func: made.target().func(),
            version: made.target().key(),
            kind: CompiledKind::Continuation,
            instructions: made.instructions(),
            bytes: made.code_size(),
        });
    }

    /// The continuation of a loop in the optimized version. Without an accepted entry the loop
    /// stays in the interpreter, and the next call of the function runs native code.
    fn enter(
        &mut self,
        place: Place<'_>,
        at: Point,
        gives: &dyn Fn(&[Value]) -> bool,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let of_tier = self.versions.get_mut(&place.key()).expect("the function is optimized");
        let Place { module, base, .. } = place;
        let mut entries = of_tier.entries(module, base, at, &mut self.observer.steps());
        if let Some(won) = self.retry(place, at)? {
            entries = won;
        }
        let Some(entry) = entries.checked_entry(at) else { return Ok(None) };
        // The fast loop of the interpreter has no dead values. An interpreter of the embedder's own
        // has those that it names (`a_loop_is_entered_with_a_dead_value_that_the_embedder_names`).
        let kept = &entry.entry().kept;
        if !kept.is_empty() && !gives(kept) {
            return Ok(None);
        }
        let version = self.compile(place)?;
        self.continuation(place.engine, base, entry, &version).map(Some)
    }

    /// Looks for a version with an entry at a point whose entry the checker has dropped, once for
    /// each function. The search is brief, because the program waits.
    fn retry(
        &mut self,
        place: Place<'_>,
        at: Point,
    ) -> Result<Option<Arc<Checked<Mapping>>>, RunError> {
        let of_tier = self.versions.get_mut(&place.key()).expect("the function is optimized");
        if !of_tier.dropped.contains(&at) || of_tier.is_retried {
            return Ok(None);
        }
        of_tier.is_retried = true;
        let (vigilance, levels, retry) = (Vigilance::Off, &[Level::Avail], Retry::BRIEF);
        let recipe = Recipe { pipeline: &self.pipeline, vigilance, levels, retry };
        let steps = &mut self.observer.steps();
        let secured = derive_proved_at(place.module, place.base, &recipe, at, steps);
        let Some(Secured { derived, proved, retried }) = secured else { return Ok(None) };
        self.observer.given_up(place.func, &retried.given_up);
        let better =
            TierVersion { is_entered: true, is_retried: true, ..TierVersion::new(derived) };
        self.versions.insert(place.key(), better);
        self.compile(place)?;
        Ok(Some(Arc::new(proved.into_highest().before.mapping)))
    }

    /// The continuation of an entry, compiled at the first request.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub(super) fn continuation(
        &mut self,
        engine: &Engine,
        base: &Function,
        entry: CheckedEntry<'_>,
        version: &Arc<Version>,
    ) -> Result<Arc<Continuation>, RunError> {
        let key = (version.func(), entry.point(), version.key());
        // After assumptions have failed, a new version may have the same key.
        let known = self.continuations.get(&key);
        if let Some(made) = known.filter(|made| Arc::ptr_eq(made.target(), version)) {
            return Ok(Arc::clone(made));
        }
        self.observer.begin();
        let made = engine.continuation(base, entry, version).map_err(RunError::Continue)?;
        self.tell_of(&made);
        self.continuations.insert(key, Arc::clone(&made));
        Ok(made)
    }
}

/// A function to compile.
#[derive(Clone, Copy)]
struct Place<'a> {
    engine: &'a Engine,
    module: &'a Arc<Module>,
    func: Func,
    base: &'a Function,
    tier: CodeTier,
}

impl Place<'_> {
    fn key(&self) -> (Func, CodeTier) {
        (self.func, self.tier)
    }
}
