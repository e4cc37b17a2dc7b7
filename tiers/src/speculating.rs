//! Speculation in a tiering policy: versions that assume, and their replacements when assumptions
//! fail.

use super::contexts::calls_in_context;
use super::handing::{HandedStates, HandedWays};
use super::tables::{LandingExit, is_out_of_memory};
use super::{Compiled, CompiledKind, Observer};
use derive::speculate::{
    Assumption, Exit, Pins, Plan, SpeculateError, Speculative, SuggestOptions, Suggester, speculate,
};
use ir::eval::is_nan;
use ir::{FrameStates, Func, Function, Inst, reference};
use jit::{Action, FailedPoint, Nans, RunError, Tier, Version, VersionSpec};
use osr::{Version as VersionId, VersionTree};
use passes::Pipeline;
use profile::{FunctionProfile, Profile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often an assumption may fail before a version without it takes over.
pub const MAX_FAILURES: u64 = 16;

/// The most speculative versions of one function. Each version makes fewer assumptions than the
/// previous one; the last makes no assumption.
pub const MAX_VERSIONS: usize = 4;

/// A native version that assumes.
#[derive(Debug)]
pub(super) struct SpeculativeVersion {
    pub(super) made: Speculative,
    pub(super) version: Arc<Version>,
    /// The number of versions of the function so far, this version included.
    count: usize,
    /// Whether a version without one of its assumptions has taken over.
    is_replaced: bool,
}

/// Asks the embedder for the profile of a function.
pub(super) struct ProfileSource(Box<dyn Fn(Func) -> Option<FunctionProfile> + Send>);

impl ProfileSource {
    pub(super) fn new(source: impl Fn(Func) -> Option<FunctionProfile> + Send + 'static) -> Self {
        ProfileSource(Box::new(source))
    }
}

/// The assumptions of a function whose body comes late ([`super::Tiered::asking`]).
#[derive(Clone, Debug, Default)]
pub struct AskedFunction {
    /// The assumptions, in terms of the base.
    pub assume: Vec<Assumption>,
    /// The frame states of the base, if assumptions that fail lead to an interpreter of the
    /// embedder's own.
    pub states: Option<Arc<FrameStates>>,
}

/// Asks the embedder for the assumptions of a function.
pub(super) struct AssumptionSource(Box<dyn Fn(Func) -> Option<AskedFunction> + Send>);

impl AssumptionSource {
    pub(super) fn new(source: impl Fn(Func) -> Option<AskedFunction> + Send + 'static) -> Self {
        AssumptionSource(Box::new(source))
    }
}

impl std::fmt::Debug for AssumptionSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AssumptionSource")
    }
}

impl std::fmt::Debug for ProfileSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProfileSource")
    }
}

/// The assumptions to make, by function, and the versions made.
#[derive(Debug, Default)]
pub(super) struct Speculations {
    assume: BTreeMap<Func, Vec<Assumption>>,
    /// The options to choose assumptions from the counters of the machine; `None` to choose none.
    options: Option<SuggestOptions>,
    pins: Pins,
    /// The work of each search; `None` for the default work.
    work: Option<u64>,
    /// Profiles of the embedder; `None` for those of the machine.
    source: Option<ProfileSource>,
    /// Gives the assumptions of each function; `None` if they come from a list or a profile.
    asks: Option<AssumptionSource>,
    /// The functions that leave to the embedder's interpreter where an assumption fails.
    states: HandedStates,
    /// The ways to the embedder's interpreter, once the assumptions of a function are known.
    ways: BTreeMap<Func, HandedWays>,
    /// The functions whose assumptions were chosen.
    asked: BTreeSet<Func>,
    versions: BTreeMap<Func, SpeculativeVersion>,
    /// Whether calls with constant arguments may lead to rows.
    pub(super) dispatches: bool,
}

impl Speculations {
    /// Makes the assumptions of a list.
    pub(super) fn list(&mut self, assume: BTreeMap<Func, Vec<Assumption>>) {
        (self.assume, self.options) = (assume, None);
    }

    /// Makes the assumptions that the counters of the machine suggest.
    pub(super) fn count(&mut self, options: SuggestOptions) {
        (self.assume, self.options) = (BTreeMap::new(), Some(options));
    }

    /// Makes the assumptions that profiles of the embedder suggest.
    pub(super) fn count_by(&mut self, options: SuggestOptions, source: ProfileSource) {
        self.count(options);
        self.source = Some(source);
    }

    /// Makes the assumptions that the embedder gives for each function.
    pub(super) fn ask(&mut self, source: AssumptionSource) {
        self.asks = Some(source);
    }

    /// The frame states of the embedder's interpreter.
    pub(super) fn states(&self) -> HandedStates {
        Arc::clone(&self.states)
    }

    /// Lets failed assumptions of these functions lead to the embedder's interpreter.
    pub(super) fn hand(&mut self, states: HandedStates) {
        self.states = states;
    }

    /// Whether any functions may assume.
    pub(super) fn is_any(&self) -> bool {
        !self.assume.is_empty() || self.options.is_some() || self.asks.is_some()
    }

    pub(super) fn pin(&mut self, pins: Pins) {
        self.pins = pins;
    }

    pub(super) fn grant(&mut self, work: u64) {
        self.work = Some(work);
    }

    /// Chooses the assumptions of a function, if the counters decide. Without counters, it chooses
    /// no assumption.
    ///
    /// # Panics
    /// If the embedder's profile does not fit the function.
    pub(super) fn choose(&mut self, tier: &Tier<'_>, func: Func) {
        if let Some(AssumptionSource(source)) = &self.asks {
            // The embedder may know the function at the next request.
            let asked = (!self.asked.contains(&func)).then(|| source(func)).flatten();
            let Some(AskedFunction { assume, states }) = asked else { return };
            self.asked.insert(func);
            if !assume.is_empty() {
                self.assume.insert(func, assume);
            }
            if let Some(states) = states {
                Arc::make_mut(&mut self.states).insert(func, states);
            }
            return;
        }
        let Some(options) = self.options.filter(|_| self.asked.insert(func)) else { return };
        let module = tier.module();
        let Some(base) = module.body(func) else { return };
        let profile = match &self.source {
            Some(ProfileSource(source)) => source(func),
            None => FunctionProfile::of(base, tier.machine(), func),
        };
        let Some(profile) = profile else {
            // The embedder may know more at the next request.
            if self.source.is_some() {
                self.asked.remove(&func);
            }
            return;
        };
        let profile = Profile { functions: BTreeMap::from([(func, profile)]) };
        let suggested = Suggester::new(module, &profile, options).of(func);
        if !suggested.is_empty() {
            let assume = suggested.into_iter().map(|suggestion| suggestion.assumption).collect();
            self.assume.insert(func, assume);
        }
    }

    /// The speculative version that calls of a function run, if there is one. Makes and installs it
    /// at the first request.
    ///
    /// # Errors
    /// If the version cannot be compiled or linked.
    pub(super) fn version(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
        pipeline: &Pipeline,
        observer: &mut impl Observer,
    ) -> Result<Option<&SpeculativeVersion>, RunError> {
        self.choose(tier, func);
        if !self.versions.contains_key(&func) && self.assume.contains_key(&func) {
            self.make(tier, func, pipeline, 1, observer)?;
        }
        Ok(self.versions.get(&func).filter(|one| !one.is_replaced))
    }

    /// The assumptions of a function, in terms of its base, that rows of landing tables may make,
    /// the plan for these, and its ways to the embedder's interpreter; `None` if it makes none.
    pub(super) fn of_rows<'a>(
        &'a mut self,
        tier: &Tier<'_>,
        func: Func,
        pipeline: &'a Pipeline,
        observer: &mut impl Observer,
    ) -> Option<(&'a [Assumption], Plan<'a>, Option<HandedWays>)> {
        self.choose(tier, func);
        let base = tier.module().body(func)?;
        if !self.make_ways(tier, func, observer) {
            return None;
        }
        let ways = self.ways.get(&func).cloned();
        let (pins, work) = (self.pins, self.work.unwrap_or(Plan::WORK));
        let assume = self.assume.get_mut(&func)?;
        assume.retain(|assumption| is_testable(tier, base, assumption));
        Some((assume, Plan { pins, work, ..Plan::new(&[], pipeline) }, ways))
    }

    /// Makes the ways of a function to the embedder's interpreter, once, for the places of its
    /// assumptions: a function without a list gets none yet
    /// (`a_function_assumes_when_its_profile_comes_late`). After a state that does not fit the
    /// base, the function assumes nothing, which the observer hears once. Returns whether the
    /// function may assume.
    fn make_ways(&mut self, tier: &Tier<'_>, func: Func, observer: &mut impl Observer) -> bool {
        let Some(assume) = self.assume.get(&func) else { return false };
        if self.ways.contains_key(&func) {
            return true;
        }
        match HandedWays::new(tier.module(), func, assume, &self.states) {
            Some(Ok(ways)) => {
                self.ways.insert(func, ways);
                true
            }
            Some(Err(error)) => {
                observer.refused(func, &SpeculateError::States(error));
                self.assume.remove(&func);
                false
            }
            // Its assumptions lead to Osier's interpreter.
            None => true,
        }
    }

    /// Whether a function leaves to the embedder's interpreter where an assumption fails.
    pub(super) fn hands(&self, func: Func) -> bool {
        self.states.contains_key(&func)
    }

    /// The exit of the version that calls of a function run, which a run takes.
    pub(super) fn exit(&self, at: FailedPoint<'_>) -> Option<LandingExit<'_>> {
        let one = self.versions.get(&at.version.func())?;
        if !Arc::ptr_eq(&one.version, at.version) {
            return None;
        }
        let inst = at.version.points()[at.number].at.inst();
        let exit = one.made.exits.iter().find(|exit| exit.inst == inst)?;
        let back = one.made.backward.get(&VersionTree::BASE)?;
        Some(LandingExit::of_version(back, exit.assumption?))
    }

    /// Whether calls of a function run a version that assumes.
    pub(super) fn assumes(&self, func: Func) -> bool {
        self.versions.get(&func).is_some_and(|one| !one.is_replaced)
    }

    /// Makes a version with the remaining assumptions, and installs the version if it makes any
    /// assumption.
    fn make(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
        pipeline: &Pipeline,
        count: usize,
        observer: &mut impl Observer,
    ) -> Result<bool, RunError> {
        let module = Arc::clone(tier.module());
        if !self.make_ways(tier, func, observer) {
            return Ok(false);
        }
        let ways = self.ways.get(&func).cloned();
        let (Some(base), Some(assume)) = (module.body(func), self.assume.get_mut(&func)) else {
            return Ok(false);
        };
        assume.retain(|assumption| is_testable(tier, base, assumption));
        if assume.is_empty() {
            return Ok(false);
        }
        let mut tree = VersionTree::new(base.clone());
        // An exit that lands where the assumption was made can lead to a row.
        tree.land_in_place(VersionTree::BASE);
        if let Some(ways) = &ways {
            tree.arm(VersionTree::BASE, Arc::new((**ways.out).clone()));
        }
        let (pins, work) = (self.pins, self.work.unwrap_or(Plan::WORK));
        let plan = Plan { pins, work, ..Plan::new(assume, pipeline) };
        // Lists come from embedders, and may not fit the function.
        let made = match speculate(&module, &mut tree, VersionTree::BASE, &plan) {
            Ok(made) => made,
            Err(error) => {
                observer.refused(func, &error);
                self.assume.remove(&func);
                return Ok(false);
            }
        };
        observer.speculated(func, &made);
        if made.exits.is_empty() {
            self.assume.remove(&func);
            return Ok(false);
        }
        let optimized = tree.function(made.optimized);
        let calls = match self.dispatches {
            true => calls_in_context(&module, optimized),
            false => BTreeSet::new(),
        };
        let ways = ways.as_ref();
        let version = match install(tier, func, optimized, &made, ways, calls, observer) {
            // The run goes on without it (`without_room_for_rows_the_interpreter_goes_on`).
            Err(error) if is_out_of_memory(&error) => {
                self.assume.remove(&func);
                return Ok(false);
            }
            version => version?,
        };
        let one = SpeculativeVersion { made, version, count, is_replaced: false };
        self.versions.insert(func, one);
        Ok(true)
    }

    /// Notes that an assumption has failed. After [`MAX_FAILURES`], the assumption is given up, and
    /// a version without it takes over. Returns whether calls of the function now lack a version.
    ///
    /// # Errors
    /// If the version cannot be compiled or linked.
    pub(super) fn failed(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
        pipeline: &Pipeline,
        observer: &mut impl Observer,
    ) -> Result<bool, RunError> {
        let func = at.version.func();
        let Some(one) = self.versions.get(&func) else { return Ok(false) };
        if !Arc::ptr_eq(&one.version, at.version) || at.count < MAX_FAILURES {
            return Ok(false);
        }
        let inst = at.version.points()[at.number].at.inst();
        let exit: Option<&Exit> = one.made.exits.iter().find(|exit| exit.inst == inst);
        let given_up = exit.and_then(|exit| exit.assumption);
        self.replace(tier, func, given_up, pipeline, observer)
    }

    /// Makes a version without an assumption take over, the last without any. Returns whether calls
    /// of the function now lack a version.
    ///
    /// # Errors
    /// If the version cannot be compiled or linked.
    pub(super) fn replace(
        &mut self,
        tier: &mut Tier<'_>,
        func: Func,
        given_up: Option<Assumption>,
        pipeline: &Pipeline,
        observer: &mut impl Observer,
    ) -> Result<bool, RunError> {
        let Some(one) = self.versions.get_mut(&func).filter(|one| !one.is_replaced) else {
            return Ok(false);
        };
        one.is_replaced = true;
        let count = one.count + 1;
        let assume = self.assume.entry(func).or_default();
        match given_up.filter(|_| count < MAX_VERSIONS) {
            Some(given_up) => assume.retain(|assumption| *assumption != given_up),
            None => assume.clear(),
        }
        if let Some(given_up) = given_up {
            observer.abandoned(func, &given_up);
        }
        Ok(assume.is_empty() || !self.make(tier, func, pipeline, count, observer)?)
    }

    /// Gives up an assumption of a row, which has failed too often.
    pub(super) fn give_up(
        &mut self,
        func: Func,
        given_up: &Assumption,
        observer: &mut impl Observer,
    ) {
        let assume = self.assume.entry(func).or_default();
        assume.retain(|assumption| assumption != given_up);
        observer.abandoned(func, given_up);
    }

    /// The assumption of the list about the same value at the same place.
    pub(super) fn listed(&self, func: Func, like: &Assumption) -> Option<Assumption> {
        let is_like = |of: &&Assumption| (of.at, of.value) == (like.at, like.value);
        self.assume.get(&func)?.iter().find(is_like).copied()
    }
}

/// Whether native code can test an assumption: references can only be compared with null, and the
/// bits of NaNs only if code makes them canonical
/// (`an_argument_that_native_code_cannot_compare_is_not_assumed`).
pub(super) fn is_testable(tier: &Tier<'_>, base: &Function, assumption: &Assumption) -> bool {
    let ty = base.has_value(assumption.value).then(|| base.value_type(assumption.value));
    let bits = assumption.expected.bits();
    let is_platform = tier.engine().config().nans == Nans::Platform;
    ty.is_none_or(|ty| match ty.is_ref() {
        true => bits == reference::NULL,
        false => !(is_platform && is_nan(ty, bits)),
    })
}

/// Compiles a version that assumes, and installs it for calls. Where an assumption fails, the
/// interpreter continues in the base, or with these ways the embedder.
fn install(
    tier: &mut Tier<'_>,
    func: Func,
    function: &Function,
    made: &Speculative,
    ways: Option<&HandedWays>,
    calls: BTreeSet<Inst>,
    observer: &mut impl Observer,
) -> Result<Arc<Version>, RunError> {
    let exits: BTreeMap<_, _> =
        made.backward.iter().map(|(to, mapping)| (*to, Arc::new(mapping.clone()))).collect();
    // A search of all exits for each instruction would be quadratic.
    let targets: BTreeMap<Inst, VersionId> =
        made.exits.iter().map(|exit| (exit.inst, exit.to)).collect();
    let to = |inst: Inst| targets.get(&inst).map(|to| &exits[to]);
    observer.begin();
    let module = Arc::clone(tier.module());
    let spec = VersionSpec::leaving(function, |inst| to(inst).map(|mapping| &***mapping));
    let spec = spec.map(|spec| spec.dispatching(calls));
    let version = spec.and_then(|spec| tier.engine().version(&module, func, function, spec));
    let version = version.map_err(RunError::Compile)?;
    let (instructions, bytes) = (function.inst_count(), version.code_size());
    let (kind, key) = (CompiledKind::Version, version.key());
    observer.compiled(Compiled { func, version: key, kind, instructions, bytes });
    let handed = ways.map(|ways| ways.action(&made.backward[&VersionTree::BASE]));
    let action = |inst| match &handed {
        Some(action) => action.clone(),
        None => Action::Interpret(Arc::clone(to(inst).expect("each point has an exit"))),
    };
    let actions = version.points().iter().map(|point| action(point.at.inst())).collect();
    tier.install(&version, actions).map_err(RunError::Link)?;
    Ok(version)
}
