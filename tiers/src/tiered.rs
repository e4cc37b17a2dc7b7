//! A tiering policy: a run starts in the interpreter and enters native code where it is hot.

mod asking;
mod contexts;
mod entering;
mod rows;

use super::compiler::{CodeTier, Compiler, Goal, Made};
use super::contexts::{ContextRows, ContextUse};
use super::costs::Costs;
use super::events::{OrderEnd, TierEvent, TierListener};
use super::limits::TableUse;
use super::savings::{Savings, is_small_leaf, worth};
use super::speculating::Speculations;
use super::tables::{LandingTables, is_out_of_memory};
use super::worker::{TierGoal, Worker, wanted};
use super::{NoObserver, Observer, SharedObserver};
use derive::speculate::{Assumption, SuggestOptions};
use ir::{Func, Inst, Module, Value};
use jit::{
    CallsFrom, Continuation, CountedPlace, FailedPoint, HotLoop, Onward, RunError, Tier, Tiering,
    Version, Wake,
};
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where code is made.
#[derive(Debug)]
enum Workplace<O> {
    /// In the thread of the run, which waits.
    Here(Compiler<O>),
    /// In another thread.
    Beside(Worker),
}

/// The rule for hot places, and the code that they request.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// After this number of calls or visits, the optimized version.
    After(u32),
    /// When the costs say that code pays: first the base, then the optimized version.
    Costs(Costs),
}

/// A place first requests code after this fraction of the visits that make it hot alone.
const PLACES: u32 = 4;

/// The first instruction of the loop of a goal.
fn header(goal: Goal) -> Option<Inst> {
    goal.point().map(|at| at.inst())
}

/// The visits of a loop after which an activation in the interpreter enters an existing
/// continuation. A loop that ends earlier would gain less than the transition costs.
const AGAIN: u32 = 256;

/// Half of a number of visits, at least 1.
fn half(visits: u64) -> u32 {
    u32::try_from(visits / 2).unwrap_or(u32::MAX).max(1)
}

/// Starts in the interpreter. A function or loop that is hot is compiled. The next call enters the
/// function; a loop is entered in the middle, through an entry that the checker accepted.
///
/// The run waits for the compiler ([`Tiered::new`], [`Tiered::by_costs`]), or continues and uses
/// the code from the next function entry or loop header on ([`Tiered::in_background`]).
pub struct Tiered<O> {
    rule: Rule,
    pipeline: Pipeline,
    observer: SharedObserver<O>,
    workplace: Workplace<O>,
    /// The continuations of finished goals. `None` for a loop without an entry. Unused if the run
    /// waits for code after a number of visits ([`Rule::After`]): the compiler then keeps all code.
    loops: BTreeMap<Goal, Option<Arc<Continuation>>>,
    /// The loops that the run has entered.
    entered: BTreeSet<Goal>,
    savings: Savings,
    speculations: Speculations,
    tables: LandingTables,
    table_use: TableUse,
    contexts: ContextRows,
    /// The bytes of code that may still be made.
    room: usize,
    listener: Option<TierListener>,
}

impl<O> std::fmt::Debug for Tiered<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tiered").field("rule", &self.rule).finish_non_exhaustive()
    }
}

impl Tiered<NoObserver> {
    /// Creates the policy. A function is hot after `threshold` calls (at least 1), a loop after as
    /// many visits of its header. `pipeline` optimizes hot functions. The run waits for the code,
    /// so compilation depends on the program alone, not on times.
    pub fn new(threshold: u32, pipeline: Pipeline) -> Tiered<NoObserver> {
        Tiered::new_observed(threshold, pipeline, NoObserver)
    }

    /// Creates the policy. A function or loop is hot when native code would have saved a share of
    /// its price by now ([`Costs::SHARE_HERE`], or [`Costs::SHARE_BESIDE`] in the background). Code
    /// of the base comes first. In the background, optimized code follows if the costs say that it
    /// is faster. Unless in the background, the run waits for the code, so compilation depends on
    /// the program alone, not on times.
    pub fn by_costs(costs: Costs, pipeline: Pipeline) -> Tiered<NoObserver> {
        Tiered::by_costs_observed(costs, pipeline, NoObserver)
    }
}

impl<O: Observer> Tiered<O> {
    /// The policy of [`Tiered::new`], with an observer of compilation.
    pub fn new_observed(threshold: u32, pipeline: Pipeline, observer: O) -> Tiered<O> {
        Tiered::with_rule(Rule::After(threshold.max(1)), pipeline, observer)
    }

    /// The policy of [`Tiered::by_costs`], with an observer of compilation.
    pub fn by_costs_observed(costs: Costs, pipeline: Pipeline, observer: O) -> Tiered<O> {
        Tiered::with_rule(Rule::Costs(costs), pipeline, observer)
    }

    fn with_rule(rule: Rule, pipeline: Pipeline, observer: O) -> Tiered<O> {
        let observer = SharedObserver::new(observer);
        let compiler = Compiler::new(pipeline.clone(), observer.clone());
        let (workplace, speculations) = (Workplace::Here(compiler), Speculations::default());
        let made = Tiered {
            rule,
            pipeline,
            observer,
            workplace,
            loops: BTreeMap::new(),
            entered: BTreeSet::new(),
            savings: Savings::default(),
            speculations,
            tables: LandingTables::default(),
            table_use: TableUse::default(),
            contexts: ContextRows::default(),
            room: usize::MAX,
            listener: None,
        };
        made.in_contexts(ContextUse::default())
    }

    /// Orders no more code once the code has reached this number of bytes. Code already ordered may
    /// exceed the limit. The limit of the engine applies as well ([`jit::Config::code_bytes`]). At
    /// either limit, the run continues without further code.
    pub fn with_code_limit(self, bytes: usize) -> Tiered<O> {
        Tiered { room: bytes, ..self }
    }

    /// Reports each step to a listener. Call this before [`Tiered::in_background`], whose thread
    /// reports to the listener set by then.
    pub fn listening(self, listener: TierListener) -> Tiered<O> {
        Tiered { listener: Some(listener), ..self }
    }

    fn tell(&self, event: TierEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Makes the first versions of these functions assume, as the list says for each. An assumption
    /// that fails [`super::MAX_FAILURES`] times is given up; the last of [`super::MAX_VERSIONS`]
    /// versions assumes nothing. A list that does not fit its function is rejected as a whole
    /// ([`Observer::refused`]).
    pub fn speculating(self, assume: BTreeMap<Func, Vec<Assumption>>) -> Tiered<O> {
        let mut tiered = self.here();
        tiered.speculations.list(assume);
        tiered
    }

    /// Like [`Tiered::speculating`], with the assumptions that the run so far suggests when a
    /// function becomes hot. The machine has to count ([`interp::Machine::count`]); otherwise
    /// versions assume nothing.
    pub fn profiling(self, options: SuggestOptions) -> Tiered<O> {
        let mut tiered = self.here();
        tiered.speculations.count(options);
        tiered
    }

    /// Lets the run wait for code.
    fn here(self) -> Tiered<O> {
        let compiler = Compiler::new(self.pipeline.clone(), self.observer.clone());
        let contexts = if self.contexts.is_on { ContextUse::On } else { ContextUse::Off };
        Tiered { workplace: Workplace::Here(compiler), ..self }.in_contexts(contexts)
    }

    /// Installs a version for calls of the function; if a speculative version runs them, for
    /// transitions only. Returns whether calls newly run the version.
    fn install(&self, tier: &mut Tier<'_>, version: &Arc<Version>) -> Result<bool, RunError> {
        if self.speculations.assumes(version.func()) {
            return tier.adopt(version, Vec::new()).map_err(RunError::Link).map(|()| false);
        }
        let is_there = |has: &Arc<Version>| Arc::ptr_eq(has, version);
        if tier.installed(version.func()).is_some_and(is_there) {
            return Ok(false);
        }
        let calls = match self.rule {
            Rule::Costs(_) if is_small_leaf(tier, version.func()) => CallsFrom::NativeCode,
            _ => CallsFrom::Anywhere,
        };
        tier.install_for(calls, version, Vec::new()).map_err(RunError::Link).map(|()| true)
    }

    /// The tier that comes first.
    fn first_tier(&self) -> CodeTier {
        match self.rule {
            Rule::After(_) => CodeTier::Optimized,
            Rule::Costs(_) => CodeTier::Base,
        }
    }

    /// Requests code, and installs the code that is ready.
    fn want(
        &mut self,
        tier: &mut Tier<'_>,
        goal: Goal,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        self.collect(tier)?;
        let key = TierGoal { tier: self.first_tier(), goal };
        if let Some(known) = self.known(tier, goal) {
            let known = Self::given(tier, goal, known);
            if known.is_some() {
                self.enter(goal);
            }
            return Ok(known);
        }
        if self.is_early(tier, goal) {
            return Ok(None);
        }
        let visits = tier.visits(goal.func(), header(goal));
        if self.room == 0 {
            self.tell(TierEvent::Dropped(wanted(key), OrderEnd::CodeFull));
            return Ok(None);
        }
        if self.order(tier, key, visits) {
            return Ok(None);
        }
        let made = self.make_here(tier, key, visits)?;
        let entry = Self::given(tier, goal, made);
        if entry.is_some() {
            self.enter(goal);
        }
        Ok(entry)
    }

    /// Whether native code would not have saved enough yet, summed over all places of the function.
    /// If so, schedules the next request.
    fn is_early(&self, tier: &mut Tier<'_>, goal: Goal) -> bool {
        if self.pays(tier, goal) {
            return false;
        }
        // The next request comes after half as many visits again, so requests are few.
        let visits = tier.visits(goal.func(), header(goal));
        tier.ask_after(goal.func(), header(goal), half(visits));
        true
    }

    /// Whether native code would have saved its share of the price by now.
    fn pays(&self, tier: &mut Tier<'_>, goal: Goal) -> bool {
        let Rule::Costs(costs) = self.rule else { return true };
        self.savings.pay(tier, &costs, goal, self.share())
    }

    /// Reports the first entry of the run into a loop in the middle.
    fn enter(&mut self, goal: Goal) {
        if self.entered.insert(goal) {
            self.tell(TierEvent::Entered(wanted(TierGoal { tier: self.first_tier(), goal })));
        }
    }

    /// The share of its price, in percent, that code would have saved when the run requests it.
    fn share(&self) -> u64 {
        match self.workplace {
            Workplace::Here(_) => Costs::SHARE_HERE,
            Workplace::Beside(_) => Costs::SHARE_BESIDE,
        }
    }

    /// The earlier result of a goal: the continuation, or `Some(None)` if no more code will come.
    /// `None` for a new goal.
    fn known(&mut self, tier: &mut Tier<'_>, goal: Goal) -> Option<Option<Arc<Continuation>>> {
        let again = match (&self.workplace, self.rule) {
            (Workplace::Here(_), Rule::After(_)) => return None,
            (Workplace::Beside(_), Rule::After(_)) => 1,
            (_, Rule::Costs(_)) => AGAIN,
        };
        match (goal, self.loops.get(&goal)) {
            (Goal::Loop(..), Some(entry)) => {
                if entry.is_some() {
                    // The interpreter may have, or get, another activation of the function.
                    tier.ask_after(goal.func(), header(goal), again);
                }
                Some(entry.clone())
            }
            (Goal::Version(func), _) if tier.installed(func).is_some() => Some(None),
            _ => None,
        }
    }

    /// Orders code in the background. Returns false if the run makes code itself.
    fn order(&mut self, tier: &mut Tier<'_>, key: TierGoal, visits: u64) -> bool {
        let module = Arc::clone(tier.module());
        let worth = worth(tier, key.goal.func());
        let Workplace::Beside(worker) = &mut self.workplace else { return false };
        worker.order(tier.engine(), &module, key, worth, visits);
        // The run asks again when it has come as far once more, so the queue learns which code is
        // hot.
        let again = u32::try_from(visits).unwrap_or(u32::MAX);
        tier.ask_after(key.goal.func(), header(key.goal), again.max(1));
        true
    }

    /// Makes code while the run waits, and installs it.
    fn make_here(
        &mut self,
        tier: &mut Tier<'_>,
        key: TierGoal,
        visits: u64,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let module = Arc::clone(tier.module());
        self.tell(TierEvent::Asked(wanted(key), visits));
        self.tell(TierEvent::Begun(wanted(key)));
        let Workplace::Here(compiler) = &mut self.workplace else { return Ok(None) };
        let gives = |values: &[Value]| tier.gives(key.goal.func(), values);
        let made = compiler.make(tier.engine(), &module, key, &gives);
        let made = self.within_room(key, made)?;
        let is_entry = made.as_ref().is_some_and(|made| made.entry.is_some());
        self.tell(TierEvent::Made { wanted: wanted(key), is_entry });
        let Some(Made { version, entry }) = made else { return Ok(None) };
        self.take_up(tier, key, version)?;
        if let (Rule::Costs(_), Goal::Loop(..)) = (self.rule, key.goal) {
            self.loops.insert(key.goal, entry.clone());
            tier.ask_after(key.goal.func(), header(key.goal), AGAIN);
        }
        Ok(entry)
    }

    /// Counts the bytes of new code. If the engine has no room for the code, the run continues
    /// without it.
    fn within_room(
        &mut self,
        key: TierGoal,
        made: Result<Option<Made>, RunError>,
    ) -> Result<Option<Made>, RunError> {
        match made {
            Err(error) if is_out_of_memory(&error) => {
                self.room = 0;
                self.tell(TierEvent::Dropped(wanted(key), OrderEnd::CodeFull));
                Ok(None)
            }
            Ok(Some(made)) => {
                self.room = self.room.saturating_sub(made.code_size());
                Ok(Some(made))
            }
            other => other,
        }
    }

    /// Installs a version that was made, if any.
    fn take_up(
        &mut self,
        tier: &mut Tier<'_>,
        key: TierGoal,
        version: Option<Arc<Version>>,
    ) -> Result<(), RunError> {
        let Some(version) = version else { return Ok(()) };
        // A loop of the base comes with the base, which optimized code may have replaced by now
        // (the delays of `fuzz --engine jit` find it).
        let (of_base, func) = (
            matches!(key, TierGoal { tier: CodeTier::Base, goal: Goal::Loop(..) }),
            version.func(),
        );
        if of_base && tier.installed(func).is_some() && !self.speculations.assumes(func) {
            return Ok(());
        }
        if self.install(tier, &version)? {
            self.savings.settle(tier, version.func());
            self.tell(TierEvent::Installed(wanted(key)));
        }
        Ok(())
    }

    /// Installs the code that the worker has made. Schedules requests of loops again, since the run
    /// may be in one of them.
    fn collect(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        let Workplace::Beside(worker) = &self.workplace else { return Ok(()) };
        for (key, made) in worker.collect() {
            let Some(Made { version, entry }) = self.within_room(key, made)? else { continue };
            self.take_up(tier, key, version)?;
            if let Goal::Loop(func, at) = key.goal {
                if entry.is_some() {
                    tier.ask_again(HotLoop { func, at });
                }
                self.loops.insert(key.goal, entry);
            }
            self.follow_up(tier, key);
        }
        Ok(())
    }

    /// Orders the optimized version of a function whose base is there, if that pays.
    fn follow_up(&mut self, tier: &mut Tier<'_>, made: TierGoal) {
        let Rule::Costs(costs) = self.rule else { return };
        let Workplace::Beside(worker) = &mut self.workplace else { return };
        let is_base = matches!(made, TierGoal { tier: CodeTier::Base, goal: Goal::Version(_) });
        if is_base && costs.optimizing_pays() && self.room > 0 {
            let goal = Goal::Version(made.goal.func());
            let key = TierGoal { tier: CodeTier::Optimized, goal };
            let module = Arc::clone(tier.module());
            worker.order(tier.engine(), &module, key, 0, 0);
        }
    }
}

impl<O: Observer> Tiered<O> {
    /// Handles a call of a hot function, or a call that native code makes.
    fn on_call(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let Tiered { speculations, pipeline, observer, .. } = self;
        if speculations.version(tier, func, pipeline, observer)?.is_some() {
            return Ok(());
        }
        self.want(tier, Goal::Version(func)).map(|_| ())
    }

    /// Handles a hot loop.
    fn in_loop(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let module = Arc::clone(tier.module());
        let Some(base) = module.body(at.func) else { return Ok(None) };
        if let Some(made) = self.enter_speculative(tier, at, base)? {
            return Ok(Some(made));
        }
        match self.is_for_calls(tier, at) {
            true => self.want(tier, Goal::Version(at.func)).map(|_| None),
            false => match self.want(tier, at.into())? {
                // Before it pays, a request may still lead to an entry.
                None if self.pays(tier, at.into()) => Ok(self.enter_plain(tier, at)),
                made => Ok(made),
            },
        }
    }

    /// Whether a hot loop requests its function rather than its own continuation: the function has
    /// been called often, so most of its time is in calls to come. If so, schedules the next
    /// request.
    fn is_for_calls(&self, tier: &mut Tier<'_>, at: HotLoop) -> bool {
        let (Rule::Costs(_), func) = (self.rule, at.func) else { return false };
        let is_called = tier.visits(func, None) >= Costs::CALLS;
        // This activation may run longer than all later calls, but not in a short function.
        let is_for_calls =
            is_called && (tier.installed(func).is_none() || is_small_leaf(tier, func));
        if is_for_calls {
            let visits = tier.visits(func, Some(at.at.inst()));
            tier.ask_after(func, Some(at.at.inst()), half(visits).max(AGAIN));
        }
        is_for_calls
    }
}

impl<O: Observer + Send + 'static> Tiered<O> {
    /// Makes code in another thread while the run continues. Code of the base comes first, then the
    /// function with the most savings by its price. Results of the program do not depend on times.
    /// The executed code does, and thus the place where fuel ends.
    ///
    /// A policy with assumptions compiles in the thread of the run, since it reads the counters of
    /// the machine. The thread ends by itself after the policy is dropped.
    pub fn in_background(self) -> Tiered<O> {
        if self.speculations.is_any() {
            return self;
        }
        let mut compiler = Compiler::new(self.pipeline.clone(), self.observer.clone());
        let states = self.speculations.states();
        let make = move |engine: &_, module: &Arc<Module>, key: TierGoal| {
            let gives = |values: &[Value]| entering::names(&states, module, key.goal, values);
            compiler.make(engine, module, key, &gives)
        };
        let worker = Worker::new(Box::new(make), self.listener.clone());
        Tiered { workplace: Workplace::Beside(worker), ..self }
    }
}

impl<O: Observer> Tiering for Tiered<O> {
    fn threshold(&self) -> Option<u32> {
        match self.rule {
            Rule::After(threshold) => Some(threshold),
            Rule::Costs(_) => Some(u32::MAX),
        }
    }

    fn hot_after(&mut self, place: CountedPlace<'_>) -> u32 {
        match self.rule {
            Rule::After(threshold) => threshold,
            // Several places of a function may be hot together.
            Rule::Costs(costs) => costs.hot_after(&place, self.share()) / PLACES,
        }
    }

    fn wake(&self) -> Option<Wake> {
        match &self.workplace {
            Workplace::Here(_) => None,
            Workplace::Beside(worker) => Some(worker.wake()),
        }
    }

    fn woken(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        self.tell(TierEvent::Paused);
        let collected = self.collect(tier);
        self.tell(TierEvent::Resumed);
        collected
    }

    fn demanded(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        match self.rule {
            Rule::After(_) => self.called(tier, func),
            // Entering the interpreter costs more than many functions do.
            Rule::Costs(_) => {
                match self.savings.demand(func) && self.pays(tier, Goal::Version(func)) {
                    true => self.called(tier, func),
                    false => Ok(()),
                }
            }
        }
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.tell(TierEvent::Paused);
        let made = self.on_call(tier, func);
        self.link_contexts(tier, func)?;
        self.tell(TierEvent::Resumed);
        made
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        self.tell(TierEvent::Paused);
        let made = self.in_loop(tier, at);
        self.link_contexts(tier, at.func)?;
        self.tell(TierEvent::Resumed);
        made
    }

    fn failed(&mut self, tier: &mut Tier<'_>, at: FailedPoint<'_>) -> Result<Onward, RunError> {
        self.observer.failed(at);
        if let Some(onward) = self.land(tier, at)? {
            self.link_contexts(tier, at.version.func())?;
            return Ok(onward);
        }
        let at = FailedPoint { count: self.lost(at), ..at };
        self.give_up_row(tier, at)?;
        self.give_up_context(tier, at)?;
        let Tiered { speculations, pipeline, observer, .. } = self;
        if speculations.failed(tier, at, pipeline, observer)? {
            self.want(tier, Goal::Version(at.version.func()))?;
        }
        self.link_contexts(tier, at.version.func())?;
        Ok(Onward::Linked)
    }
}
