//! Makes the code that a tiering policy wants: optimized versions of functions, and continuations
//! of hot loops in them.
//!
//! A compiler knows no machine. So it can work in the thread of the run, which waits for it, or in
//! another.

use super::{CodeMode, Compiled, CompiledKind, Observer, SharedObserver, compile};
use crate::driver::{
    self, Derived, Recipe, Retry, SecuredPoint, Vigilance, certify_at, derive, derive_certified_at,
};
use check::{Checked, CheckedEntry};
use ir::edit::ActionLog;
use ir::{Func, Function, Module, Point};
use jit::{Continuation, Engine, HotLoop, RunError, Version};
use osr::{Level, VersionPair};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;
use transition::{Pair, Side, VersionKey};

/// Which version of a function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CodeTier {
    /// The base, as it is: compiled soon.
    Base,
    /// The version that the passes make.
    Optimized,
}

/// What a policy wants.
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

/// What a compiler has made for a goal.
#[derive(Clone, Debug)]
pub(super) struct Made {
    /// The version that calls of the function run from now on.
    pub(super) version: Arc<Version>,
    /// The continuation of the loop. `None` if no entry was accepted, or for calls.
    pub(super) entry: Option<Arc<Continuation>>,
}

/// The most loop headers of a function that are mapped at once.
const MOST_HEADERS: usize = 32;

/// The optimized version of a function, and the entries to it.
#[derive(Debug)]
struct OptimizedVersion {
    derived: Derived,
    version: Arc<Version>,
    /// Whether a run has entered a loop in the middle.
    is_entered: bool,
    /// The accepted entries at the loop headers of the base. `None` until a run enters a second
    /// loop in the middle, since many functions have one hot loop.
    headers: Option<Arc<Checked<Mapping>>>,
    /// The points of which the checker dropped the entry.
    dropped: BTreeSet<Point>,
    /// Whether a search has looked for a version with an entry that was dropped.
    is_retried: bool,
}

impl OptimizedVersion {
    fn new(derived: Derived, version: Arc<Version>) -> OptimizedVersion {
        OptimizedVersion {
            derived,
            version,
            is_entered: false,
            headers: None,
            dropped: BTreeSet::new(),
            is_retried: false,
        }
    }

    /// The accepted entry at the header of a loop, if there is one, in a mapping with others.
    ///
    /// The first loop pays for its own entry, the second for those of all loops, and later ones for
    /// nothing. So a function pays for two certificates at most, however many hot loops it has. In a
    /// function with more than [`MOST_HEADERS`] loops, each hot loop pays for its own entry alone,
    /// since the run waits for that one. No entry leaves the optimized version, so answers to
    /// several questions fit together.
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
        let made = certify_at(module, base, &self.derived, Level::Avail, asked, observer);
        self.dropped.extend(made.entries.forward.rejected.iter().map(|(point, _)| *point));
        let mapping = Arc::new(made.entries.forward.mapping);
        if is_whole {
            self.headers = Some(Arc::clone(&mapping));
        }
        mapping
    }
}

/// By function, source point and target version.
type MadeContinuations = BTreeMap<(Func, Point, VersionKey), Arc<Continuation>>;

/// Optimizes functions, maps and certifies the loops that runs enter, and compiles.
#[derive(Debug)]
pub(super) struct Compiler<O> {
    pub(super) pipeline: Pipeline,
    pub(super) observer: SharedObserver<O>,
    optimized: BTreeMap<(Func, CodeTier), OptimizedVersion>,
    /// By source point and target version: the continuations made. A loop may ask again after a run
    /// has left native code.
    continuations: MadeContinuations,
}

impl<O: Observer> Compiler<O> {
    pub(super) fn new(pipeline: Pipeline, observer: SharedObserver<O>) -> Compiler<O> {
        let (optimized, continuations) = (BTreeMap::new(), BTreeMap::new());
        Compiler { pipeline, observer, optimized, continuations }
    }

    /// Makes what a goal asks for. `None` if the function has no body. What was made before is made
    /// once.
    ///
    /// # Errors
    /// If code cannot be compiled.
    pub(super) fn make(
        &mut self,
        engine: &Engine,
        module: &Arc<Module>,
        (tier, goal): (CodeTier, Goal),
    ) -> Result<Option<Made>, RunError> {
        let Some(base) = module.body(goal.func()) else { return Ok(None) };
        let place = Place { engine, module, func: goal.func(), base, tier };
        self.optimize(place)?;
        let entry = match goal {
            Goal::Version(_) => None,
            Goal::Loop(_, at) => self.enter(place, at)?,
        };
        let version = Arc::clone(&self.optimized[&place.key()].version);
        Ok(Some(Made { version, entry }))
    }

    /// Optimizes and compiles a function, once.
    fn optimize(&mut self, place: Place<'_>) -> Result<(), RunError> {
        if self.optimized.contains_key(&place.key()) {
            return Ok(());
        }
        if place.tier == CodeTier::Base {
            let log = ActionLog::empty_for(place.base);
            let derived = Derived { function: place.base.clone(), log };
            return self.publish(place, derived).map(|_| ());
        }
        // The program waits for this code, so passes are not verified here. `enter` still lets the
        // checker judge every entry before a run uses one.
        let Place { module, base, .. } = place;
        let derived =
            derive(module, base, &self.pipeline, Vigilance::Off, &mut self.observer.steps());
        self.publish(place, derived).map(|_| ())
    }

    /// Compiles a version, and makes it the one that later goals lead to.
    fn publish(
        &mut self,
        place: Place<'_>,
        derived: Derived,
    ) -> Result<&mut OptimizedVersion, RunError> {
        let Place { engine, module, func, .. } = place;
        let base = self.optimized.get(&(func, CodeTier::Base));
        let version = match base.filter(|_| derived.log.is_empty()) {
            // The passes have changed nothing.
            Some(base) => Arc::clone(&base.version),
            None => {
                let code = (&derived.function, CodeMode::Plain);
                compile(engine, module, func, code, &mut self.observer)?
            }
        };
        self.optimized.insert(place.key(), OptimizedVersion::new(derived, version));
        Ok(self.optimized.get_mut(&place.key()).expect("it was put there"))
    }

    /// The continuation of a loop in the optimized version. Without an accepted entry the loop
    /// stays in the interpreter, and the next call of the function runs native code.
    fn enter(
        &mut self,
        place: Place<'_>,
        at: Point,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let optimized = self.optimized.get_mut(&place.key()).expect("the function is optimized");
        let Place { module, base, .. } = place;
        let mut entries = optimized.entries(module, base, at, &mut self.observer.steps());
        if let Some(won) = self.retry(place, at)? {
            entries = won;
        }
        let Some(entry) = entries.checked_entry(at) else { return Ok(None) };
        // The fast loop of the interpreter has no dead values, and native code of the base reads
        // none.
        if !entry.entry().kept.is_empty() {
            return Ok(None);
        }
        let version = Arc::clone(&self.optimized[&place.key()].version);
        self.continuation(place.engine, base, (entry, &version)).map(Some)
    }

    /// Looks for a version with an entry at a point whose entry the checker has dropped, once for
    /// each function. The search is brief, because the program waits.
    fn retry(
        &mut self,
        place: Place<'_>,
        at: Point,
    ) -> Result<Option<Arc<Checked<Mapping>>>, RunError> {
        let optimized = self.optimized.get_mut(&place.key()).expect("the function is optimized");
        if !optimized.dropped.contains(&at) || optimized.is_retried {
            return Ok(None);
        }
        optimized.is_retried = true;
        let (vigilance, levels, retry) = (Vigilance::Off, &[Level::Avail], Retry::BRIEF);
        let recipe = Recipe { pipeline: &self.pipeline, vigilance, levels, retry };
        let steps = &mut self.observer.steps();
        let secured = derive_certified_at(place.module, place.base, &recipe, at, steps);
        let Some(SecuredPoint { derived, made, given_up }) = secured else { return Ok(None) };
        self.observer.given_up(place.func, &given_up);
        let better = self.publish(place, derived)?;
        (better.is_entered, better.is_retried) = (true, true);
        Ok(Some(Arc::new(made.entries.forward.mapping)))
    }

    /// The continuation of an entry, compiled at the first question.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub(super) fn continuation(
        &mut self,
        engine: &Engine,
        base: &Function,
        (entry, version): (CheckedEntry<'_>, &Arc<Version>),
    ) -> Result<Arc<Continuation>, RunError> {
        let key = (version.func(), entry.point(), version.key());
        // Another version may have the same key, made anew after assumptions had failed.
        let known = self.continuations.get(&key);
        if let Some(made) = known.filter(|made| Arc::ptr_eq(made.target(), version)) {
            return Ok(Arc::clone(made));
        }
        self.observer.begin();
        let made = engine.continuation(base, entry, version).map_err(RunError::Continue)?;
        self.observer.compiled(Compiled {
            func: version.func(),
            version: version.key(),
            kind: CompiledKind::Continuation,
            instructions: made.instructions(),
            bytes: made.code_size(),
        });
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
