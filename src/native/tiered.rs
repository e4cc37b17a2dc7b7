//! A tiering policy: a run starts in the interpreter and enters native code where it is hot.

use super::compiler::{Compiler, Goal, Made};
use super::speculating::Speculations;
use super::worker::Worker;
use super::{Observer, SharedObserver};
use crate::speculate::{Assumption, Pins, SuggestOptions};
use ir::{Func, Function};
use jit::{
    AfterFailure, Continuation, FailedPoint, HotLoop, RunError, Tier, Tiering, Version, Wake,
};
use passes::Pipeline;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where code is made.
#[derive(Debug)]
enum Workplace<O> {
    /// In the thread of the run, which waits.
    Here(Compiler<O>),
    /// In a thread beside it.
    Beside {
        worker: Worker,
        /// The continuations of loops that are done. `None` for a loop without an entry.
        loops: BTreeMap<Goal, Option<Arc<Continuation>>>,
    },
}

/// Starts in the interpreter. A function or loop that runs as often as the threshold says is
/// optimized and compiled. The next call enters the function; a loop is entered in the middle,
/// through an entry that the checker accepted.
///
/// The run waits for the compiler ([`Tiered::new`]), or goes on and takes the code up at the next
/// function entry or loop header ([`Tiered::in_background`]).
#[derive(Debug)]
pub struct Tiered<O> {
    threshold: u32,
    pipeline: Pipeline,
    observer: SharedObserver<O>,
    workplace: Workplace<O>,
    speculations: Speculations,
}

impl<O: Observer> Tiered<O> {
    /// Creates the policy. A function is hot after `threshold` calls (at least 1), a loop after as
    /// many visits of its header. `pipeline` optimizes hot functions. The run waits for the code,
    /// so what is compiled when depends on the program alone.
    pub fn new(threshold: u32, pipeline: Pipeline, observer: O) -> Tiered<O> {
        let observer = SharedObserver::new(observer);
        let compiler = Compiler::new(pipeline.clone(), observer.clone());
        let (workplace, speculations) = (Workplace::Here(compiler), Speculations::default());
        Tiered { threshold: threshold.max(1), pipeline, observer, workplace, speculations }
    }

    /// Makes the first versions of these functions assume, as the list says for each. An assumption
    /// that fails [`super::MAX_FAILURES`] times is given up; the last of [`super::MAX_VERSIONS`]
    /// versions assumes nothing. A list that does not fit its function is refused
    /// as a whole ([`Observer::refused`]).
    pub fn speculating(self, assume: BTreeMap<Func, Vec<Assumption>>) -> Tiered<O> {
        Tiered { speculations: Speculations::listed(assume), ..self.here() }
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
        Tiered { speculations: Speculations::counted(options), ..self.here() }
    }

    /// Lets the run wait for code.
    fn here(self) -> Tiered<O> {
        let compiler = Compiler::new(self.pipeline.clone(), self.observer.clone());
        Tiered { workplace: Workplace::Here(compiler), ..self }
    }

    /// Makes calls of the function run a version, or only transitions.
    fn install(&self, tier: &mut Tier<'_>, version: &Arc<Version>) -> Result<(), RunError> {
        if self.speculations.assumes(version.func()) {
            return tier.adopt(version, Vec::new()).map_err(RunError::Link);
        }
        let is_there = |has: &Arc<Version>| Arc::ptr_eq(has, version);
        if tier.installed(version.func()).is_some_and(is_there) {
            return Ok(());
        }
        tier.install(version, Vec::new()).map_err(RunError::Link)
    }

    /// Wants code, and installs what is there.
    fn want(
        &mut self,
        tier: &mut Tier<'_>,
        goal: Goal,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let module = Arc::clone(tier.module());
        self.collect(tier)?;
        let made = match &mut self.workplace {
            Workplace::Here(compiler) => compiler.make(tier.engine(), &module, goal)?,
            Workplace::Beside { worker, loops } => match (goal, loops.get(&goal)) {
                (Goal::Loop(func, at), Some(entry)) => {
                    // Another activation of the function may still be in the interpreter.
                    if entry.is_some() {
                        tier.ask_again(HotLoop { func, at });
                    }
                    return Ok(entry.clone());
                }
                (Goal::Version(func), _) if tier.installed(func).is_some() => return Ok(None),
                _ => {
                    worker.order(tier.engine(), &module, goal);
                    return Ok(None);
                }
            },
        };
        let Some(Made { version, entry }) = made else { return Ok(None) };
        self.install(tier, &version)?;
        Ok(entry)
    }

    /// Installs what the worker has made. Loops ask again, since the run may be in one of them.
    fn collect(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        let Workplace::Beside { worker, .. } = &self.workplace else { return Ok(()) };
        for (goal, made) in worker.collect()? {
            let Some(Made { version, entry }) = made else { continue };
            self.install(tier, &version)?;
            let Workplace::Beside { loops, .. } = &mut self.workplace else { continue };
            if let Goal::Loop(func, at) = goal {
                if entry.is_some() {
                    tier.ask_again(HotLoop { func, at });
                }
                loops.insert(goal, entry);
            }
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
        let Tiered { speculations, pipeline, observer, workplace, .. } = self;
        let Workplace::Here(compiler) = workplace else { return Ok(None) };
        let one = speculations.version(tier, at.func, pipeline, observer)?;
        let entry = one.and_then(|one| Some((one.made.forward.checked_entry(at.at)?, one)));
        let Some((entry, one)) = entry else { return Ok(None) };
        compiler.continuation(tier.engine(), base, (entry, &one.version)).map(Some)
    }
}

impl<O: Observer + Send + 'static> Tiered<O> {
    /// Makes code in a thread beside the run, which goes on meanwhile. Loops come first, then
    /// functions by the number of calls for each of their instructions. Results of the program do
    /// not depend on the times. Which code ran does, and thus where fuel ends.
    ///
    /// A policy that assumes compiles in the thread of the run, since it reads the counters of the
    /// machine. The thread ends by itself after the policy is dropped.
    pub fn in_background(self) -> Tiered<O> {
        if self.speculations.is_any() {
            return self;
        }
        let mut compiler = Compiler::new(self.pipeline.clone(), self.observer.clone());
        let make = move |engine: &_, module: &_, goal| compiler.make(engine, module, goal);
        let worker = Worker::new(Box::new(make));
        Tiered { workplace: Workplace::Beside { worker, loops: BTreeMap::new() }, ..self }
    }
}

impl<O: Observer> Tiering for Tiered<O> {
    fn threshold(&self) -> Option<u32> {
        Some(self.threshold)
    }

    fn wake(&self) -> Option<Wake> {
        match &self.workplace {
            Workplace::Here(_) => None,
            Workplace::Beside { worker, .. } => Some(worker.wake()),
        }
    }

    fn woken(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        self.collect(tier)
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let Tiered { speculations, pipeline, observer, .. } = self;
        if speculations.version(tier, func, pipeline, observer)?.is_none() {
            self.want(tier, Goal::Version(func))?;
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
        self.want(tier, at.into())
    }

    fn failed(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<AfterFailure, RunError> {
        let Tiered { speculations, pipeline, observer, .. } = self;
        observer.failed(at);
        if speculations.failed(tier, at, pipeline, observer)? {
            self.want(tier, Goal::Version(at.version.func()))?;
        }
        Ok(AfterFailure::Linked)
    }
}
