//! Another thread makes code, hands it over, and then sets and clears the flags of its points all
//! the time. At a set flag, the run leaves for the interpreter, and its policy takes it back to
//! native code.

use check::Checked;
use ir::{Func, Function, Module};
use jit::{
    Action, CallsFrom, Condition, Continuation, Engine, HotLoop, PointSpec, RunError, Tier,
    Tiering, Version, Wake,
};
use osier::tiers::{NoObserver, Tiered};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transition::mapping::Mapping;
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// The most points of a version.
const POINTS: usize = 8;
/// The thread pauses between two changes of all flags, so that it leaves the processor to others.
const PAUSE: Duration = Duration::from_micros(20);

/// A version that leads from each of its points into the interpreter.
struct FlaggedVersion {
    func: Func,
    function: Function,
    points: Vec<PointSpec>,
    mapping: Arc<Checked<Mapping>>,
    calls: CallsFrom,
}

impl FlaggedVersion {
    /// The later version of a pair, with some of the points that have a way to the base.
    fn new(pair: &FunctionPair<'_>, prng: &mut Prng) -> FlaggedVersion {
        let points = pair.backward.entries().map(|(at, entry)| PointSpec {
            at,
            condition: Condition::Flag,
            values: entry.requires.clone(),
        });
        let mut points: Vec<PointSpec> = points.collect();
        while points.len() > POINTS {
            points.remove(prng.index(points.len()));
        }
        FlaggedVersion {
            func: pair.func,
            function: pair.after.clone(),
            points,
            mapping: Arc::new(Checked::unproved(pair.backward.clone())),
            calls: if prng.chance(70) { CallsFrom::Anywhere } else { CallsFrom::NativeCode },
        }
    }
}

/// The data that both threads share.
#[derive(Default)]
struct HandOver {
    /// The versions to install, with the actions of their points.
    versions: Vec<(Arc<Version>, Vec<Action>, CallsFrom)>,
    /// The first mistake of either thread.
    wrong: Option<String>,
}

/// The work of the other thread.
pub(super) struct FlagThread {
    planned: Vec<FlaggedVersion>,
    shared: Arc<Mutex<HandOver>>,
    /// Whether all versions were handed over.
    is_ready: AtomicBool,
    is_over: AtomicBool,
    wake: Wake,
}

fn lock(shared: &Mutex<HandOver>) -> MutexGuard<'_, HandOver> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FlagThread {
    /// Plans versions of some pairs.
    pub(super) fn new(pairs: &[FunctionPair<'_>], prng: &mut Prng) -> FlagThread {
        let planned = pairs.iter().map(|pair| FlaggedVersion::new(pair, prng));
        FlagThread {
            planned: planned.filter(|version| !version.points.is_empty()).collect(),
            shared: Arc::default(),
            is_ready: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            wake: Wake::new(),
        }
    }

    /// The policy of the run: `tiered`, which also installs the versions that this thread hands
    /// over.
    pub(super) fn policy(&mut self, tiered: Tiered<NoObserver>) -> FlaggedTiers {
        if let Some(wake) = tiered.wake() {
            self.wake = wake;
        }
        let (wake, shared) = (self.wake.clone(), Arc::clone(&self.shared));
        FlaggedTiers { tiered, wake, shared }
    }

    /// The work of the thread. Returns the versions.
    pub(super) fn work(
        &self,
        engine: &Engine,
        module: &Arc<Module>,
        prng: &mut Prng,
    ) -> Vec<Arc<Version>> {
        let mut made = Vec::new();
        for planned in &self.planned {
            let FlaggedVersion { func, function, points, mapping, calls } = planned;
            match engine.version(module, *func, function, points) {
                Ok(version) => {
                    let actions = points.iter().map(|_| Action::Interpret(Arc::clone(mapping)));
                    let actions = actions.collect();
                    lock(&self.shared).versions.push((Arc::clone(&version), actions, *calls));
                    made.push(version);
                    self.wake.call();
                }
                Err(error) => _ = lock(&self.shared).wrong.get_or_insert(error.to_string()),
            }
        }
        self.is_ready.store(true, Ordering::Release);
        while !self.is_over.load(Ordering::Acquire) {
            for version in &made {
                for number in 0..version.points().len() {
                    match prng.chance(35) {
                        true => version.arm(number),
                        false => version.disarm(number),
                    }
                }
            }
            std::thread::sleep(PAUSE);
        }
        made
    }

    /// Waits until all versions were handed over, or the thread has ended.
    pub(super) fn wait(&self, has_ended: impl Fn() -> bool) {
        while !self.is_ready.load(Ordering::Acquire) && !has_ended() {
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the thread's work.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// The first mistake of either thread.
    pub(super) fn wrong(&self) -> Option<String> {
        lock(&self.shared).wrong.clone()
    }
}

/// Ends the work when the runs end, also by a panic.
pub(super) struct EndsWork<'t>(pub(super) &'t FlagThread);

impl Drop for EndsWork<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A policy that installs the versions that a [`FlagThread`] hands over.
pub(super) struct FlaggedTiers {
    tiered: Tiered<NoObserver>,
    wake: Wake,
    shared: Arc<Mutex<HandOver>>,
}

impl Tiering for FlaggedTiers {
    fn threshold(&self) -> Option<u32> {
        self.tiered.threshold()
    }

    fn hot_after(&mut self, place: jit::CountedPlace<'_>) -> u32 {
        self.tiered.hot_after(place)
    }

    fn wake(&self) -> Option<Wake> {
        Some(self.wake.clone())
    }

    fn woken(&mut self, tier: &mut Tier<'_>) -> Result<(), RunError> {
        let handed = std::mem::take(&mut lock(&self.shared).versions);
        for (version, actions, calls) in handed {
            tier.install_for(calls, &version, actions).map_err(RunError::Link)?;
            // The interpreter leaves calls to native code, or executes them itself.
            let (func, is_left) = (version.func(), calls == CallsFrom::Anywhere);
            if tier.machine().is_external(func) != is_left {
                let wrong = format!("calls of {func} by the interpreter: not {calls:?}");
                lock(&self.shared).wrong.get_or_insert(wrong);
            }
        }
        self.tiered.woken(tier)
    }

    fn demanded(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.tiered.demanded(tier, func)
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.tiered.called(tier, func)
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let made = self.tiered.hot(tier, at)?;
        // A flag may lead the run back to the loop.
        made.iter().for_each(|_| tier.ask_again(at));
        Ok(made)
    }
}
