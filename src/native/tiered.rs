//! A tiering policy: a run starts in the interpreter and enters native code where it is hot.

use super::speculating::Speculations;
use super::{Calls, CodeMode, Compiled, CompiledKind, Observer, install};
use crate::driver::{
    self, Derived, Recipe, Retry, SecuredPoint, Step, Vigilance, certify_at, derive,
    derive_certified_at,
};
use crate::speculate::{Assumption, Pins, SuggestOptions};
use check::{Checked, CheckedEntry};
use ir::{Func, Function, Module, Point};
use jit::{AfterFailure, Continuation, FailedPoint, HotLoop, RunError, Tier, Tiering, Version};
use osr::{Level, VersionPair};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::mapping::Mapping;
use transition::{Pair, Side, VersionKey};

/// Forwards steps of the driver to an observer of this module.
struct Steps<'o, O>(&'o mut O);

impl<O: Observer> driver::Observer for Steps<'_, O> {
    fn begin(&mut self, step: Option<Step>) {
        self.0.step(step);
    }
}

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
    /// nothing. So a function pays for two certificates at most, however many hot loops it has. No
    /// entry leaves the optimized version, so answers to several questions fit together.
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
        let asked = |pair: &VersionPair<'_>| {
            let mut points = BTreeSet::from([at]);
            if !is_first {
                points.extend(pair.loop_headers(Side::Before));
            }
            Pair::new(points, BTreeSet::new())
        };
        let made = certify_at(module, base, &self.derived, Level::Avail, asked, observer);
        self.dropped.extend(made.entries.forward.rejected.iter().map(|(point, _)| *point));
        let mapping = Arc::new(made.entries.forward.mapping);
        if !is_first {
            self.headers = Some(Arc::clone(&mapping));
        }
        mapping
    }
}

/// By function, source point and target version.
type MadeContinuations = BTreeMap<(Func, Point, VersionKey), Arc<Continuation>>;

/// Starts in the interpreter. A function or loop that runs as often as the threshold says is
/// optimized and compiled. The next call enters the function; a loop is entered in the middle,
/// through an entry that the checker accepted.
#[derive(Debug)]
pub struct Tiered<O> {
    threshold: u32,
    pipeline: Pipeline,
    observer: O,
    optimized: BTreeMap<Func, OptimizedVersion>,
    speculations: Speculations,
    /// By source point and target version: the continuations made. A loop may ask again after a run
    /// has left native code.
    continuations: MadeContinuations,
}

impl<O: Observer> Tiered<O> {
    /// Creates the policy. A function is hot after `threshold` calls (at least 1), a loop after as
    /// many visits of its header. `pipeline` optimizes hot functions.
    pub fn new(threshold: u32, pipeline: Pipeline, observer: O) -> Tiered<O> {
        let (threshold, optimized) = (threshold.max(1), BTreeMap::new());
        let speculations = Speculations::default();
        let continuations = BTreeMap::new();
        Tiered { threshold, pipeline, observer, optimized, speculations, continuations }
    }

    /// Makes the first versions of these functions assume, as the list says for each. An assumption
    /// that fails [`super::MAX_FAILURES`] times is given up; the last of [`super::MAX_VERSIONS`]
    /// versions assumes nothing. A list that does not fit its function is refused
    /// as a whole ([`Observer::refused`]).
    pub fn speculating(self, assume: BTreeMap<Func, Vec<Assumption>>) -> Tiered<O> {
        Tiered { speculations: Speculations::listed(assume), ..self }
    }

    /// Which values assumptions keep as operands. Those that exits lack, without this choice.
    pub fn pinning(mut self, pins: Pins) -> Tiered<O> {
        self.speculations.pin(pins);
        self
    }

    /// As [`Tiered::speculating`], with the assumptions that the run so far suggests when a
    /// function becomes hot. The machine has to count ([`interp::Machine::count`]); otherwise none
    /// are made.
    pub fn profiling(self, options: SuggestOptions) -> Tiered<O> {
        Tiered { speculations: Speculations::counted(options), ..self }
    }

    /// Optimizes and compiles a function, once. `calls` says whether its calls run the version.
    ///
    /// # Errors
    /// If the version cannot be compiled or linked.
    fn optimize(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
        (base, calls): (&Function, Calls),
    ) -> Result<(), RunError> {
        if !self.optimized.contains_key(&func) {
            let module = Arc::clone(tier.module());
            // The program waits for this code, so passes are not verified here. `hot` still lets
            // the checker judge every entry before a run uses one.
            let derived = derive(
                &module,
                base,
                &self.pipeline,
                Vigilance::Off,
                &mut Steps(&mut self.observer),
            );
            let code = (&derived.function, calls, CodeMode::Plain);
            let version = install(tier, func, code, &mut self.observer)?;
            self.optimized.insert(func, OptimizedVersion::new(derived, version));
        } else if calls == Calls::Run {
            let version = &self.optimized[&func].version;
            tier.install(version, Vec::new()).map_err(RunError::Link)?;
        }
        Ok(())
    }

    /// The continuation of a loop of the base in the version that assumes, if an entry leads there:
    /// none lands behind an assumption.
    ///
    /// # Errors
    /// If code cannot be compiled or linked.
    fn enter_speculative(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
        base: &Function,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let Tiered { speculations, pipeline, observer, continuations, .. } = self;
        let one = speculations.version(tier, at.func, pipeline, observer)?;
        let entry = one.and_then(|one| Some((one.made.forward.checked_entry(at.at)?, one)));
        let Some((entry, one)) = entry else { return Ok(None) };
        continuation(tier, base, (entry, &one.version), (continuations, observer)).map(Some)
    }

    /// The calls that run the version of a function without assumptions.
    fn calls(&self, func: Func) -> Calls {
        if self.speculations.assumes(func) { Calls::Pass } else { Calls::Run }
    }

    /// Looks for a version with an entry at a point whose entry the checker has dropped, once for
    /// each function, and installs it. The search is brief, because the program waits. Without a
    /// better version the loop stays in the interpreter.
    ///
    /// # Errors
    /// If the version cannot be compiled or linked.
    fn retry(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
        base: &Function,
    ) -> Result<Option<Arc<Checked<Mapping>>>, RunError> {
        let optimized = self.optimized.get_mut(&at.func).expect("the function is optimized");
        let is_worth_it = optimized.dropped.contains(&at.at) && !optimized.is_retried;
        if !is_worth_it {
            return Ok(None);
        }
        optimized.is_retried = true;
        let module = Arc::clone(tier.module());
        let (vigilance, levels, retry) = (Vigilance::Off, &[Level::Avail], Retry::BRIEF);
        let recipe = Recipe { pipeline: &self.pipeline, vigilance, levels, retry };
        let steps = &mut Steps(&mut self.observer);
        let Some(secured) = derive_certified_at(&module, base, &recipe, at.at, steps) else {
            return Ok(None);
        };
        let SecuredPoint { derived, made, given_up } = secured;
        self.observer.given_up(at.func, &given_up);
        let code = (&derived.function, self.calls(at.func), CodeMode::Plain);
        let version = install(tier, at.func, code, &mut self.observer)?;
        let better = OptimizedVersion::new(derived, version);
        let better = OptimizedVersion { is_entered: true, is_retried: true, ..better };
        self.optimized.insert(at.func, better);
        Ok(Some(Arc::new(made.entries.forward.mapping)))
    }
}

impl<O: Observer> Tiering for Tiered<O> {
    fn threshold(&self) -> Option<u32> {
        Some(self.threshold)
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        let Some(base) = module.body(func) else { return Ok(()) };
        let Tiered { speculations, pipeline, observer, .. } = self;
        if speculations.version(tier, func, pipeline, observer)?.is_none() {
            self.optimize(tier, func, (base, Calls::Run))?;
        }
        Ok(())
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let module = Arc::clone(tier.module());
        let Some(base) = module.body(at.func) else { return Ok(None) };
        if let Some(made) = self.enter_speculative(tier, at, base)? {
            return Ok(Some(made));
        }
        let calls = self.calls(at.func);
        self.optimize(tier, at.func, (base, calls))?;
        let optimized = self.optimized.get_mut(&at.func).expect("it was put there");
        let mut entries = optimized.entries(&module, base, at.at, &mut Steps(&mut self.observer));
        if let Some(won) = self.retry(tier, at, base)? {
            entries = won;
        }
        // Without an accepted entry the loop stays in the interpreter. The next call of the
        // function runs native code.
        let Some(entry) = entries.checked_entry(at.at) else { return Ok(None) };
        let version = Arc::clone(&self.optimized[&at.func].version);
        let made = (&mut self.continuations, &mut self.observer);
        continuation(tier, base, (entry, &version), made).map(Some)
    }

    fn failed(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<AfterFailure, RunError> {
        let Tiered { speculations, pipeline, observer, .. } = self;
        observer.failed(at);
        if speculations.failed(tier, at, pipeline, observer)? {
            let (module, func) = (Arc::clone(tier.module()), at.version.func());
            if let Some(base) = module.body(func) {
                self.optimize(tier, func, (base, Calls::Run))?;
            }
        }
        Ok(AfterFailure::Linked)
    }
}

/// The continuation of an entry, compiled at the first question.
///
/// # Errors
/// If it cannot be compiled.
fn continuation(
    tier: &Tier<'_>,
    base: &Function,
    (entry, version): (CheckedEntry<'_>, &Arc<Version>),
    (known, observer): (&mut MadeContinuations, &mut impl Observer),
) -> Result<Arc<Continuation>, RunError> {
    let key = (version.func(), entry.point(), version.key());
    // Another version may have the same key, made anew after assumptions had failed.
    if let Some(made) = known.get(&key).filter(|made| Arc::ptr_eq(made.target(), version)) {
        return Ok(Arc::clone(made));
    }
    observer.begin();
    let made = tier.engine().continuation(base, entry, version).map_err(RunError::Continue)?;
    observer.compiled(Compiled {
        func: version.func(),
        version: version.key(),
        kind: CompiledKind::Continuation,
        instructions: made.instructions(),
        bytes: made.code_size(),
    });
    known.insert(key, Arc::clone(&made));
    Ok(made)
}
