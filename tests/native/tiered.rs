//! Generated programs that start in the interpreter and continue natively where they become hot.

use crate::both::{Twins, on_a_large_stack, settings};
use interp::{Limits, Machine, NoHost, Options, TraceLevel};
use ir::Func;
use jit::{Continuation, HotLoop, RunError, Tier, Tiering, TransitionKind, Vm};
use osier::driver::Step;
use osier::tiers::{Compiled, CompiledKind, Costs, Observer, TierEvent, TierListener, Tiered};
use osier::{Format, load};
use passes::Pipeline;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use verify::generate::{Weights, generate};
use verify::prng::Prng;

/// The number of programs compared at each threshold.
const PROGRAMS: u64 = 40;

/// The work done to make code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Work {
    versions: u64,
    continuations: u64,
    rows: u64,
    /// By kind of step, in the order of [`Step::ALL`].
    steps: [u64; Step::ALL.len()],
    /// The loops that the policy let runs enter.
    entered: u64,
    /// The pauses that have begun and not ended.
    paused: u64,
}

/// Counts the work.
#[derive(Clone, Debug, Default)]
struct Count {
    all: Arc<Mutex<Work>>,
    /// Whether a step is under way, for one policy: the thread of an earlier policy may still
    /// compile.
    optimizes: Arc<AtomicBool>,
}

impl Count {
    fn work(&self) -> Work {
        *self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Count {
    fn listener(&self) -> TierListener {
        let count = self.clone();
        Arc::new(move |event| {
            count.change(|work| match event {
                TierEvent::Paused => work.paused += 1,
                TierEvent::Resumed => work.paused -= 1,
                TierEvent::Entered(_) => work.entered += 1,
                _ => {}
            });
        })
    }
}

impl Observer for Count {
    fn step(&mut self, step: Option<Step>) {
        self.change(|work| step.into_iter().for_each(|step| work.steps[step as usize] += 1));
        self.optimizes.store(step.is_some(), Ordering::Relaxed);
    }

    fn begin(&mut self) {
        let optimizes = self.optimizes.load(Ordering::Relaxed);
        assert!(!optimizes, "the time of compiling is not that of a step");
    }

    fn compiled(&mut self, made: Compiled) {
        self.change(|work| match made.kind {
            CompiledKind::Version => work.versions += 1,
            CompiledKind::Continuation => work.continuations += 1,
            CompiledKind::Row => work.rows += 1,
        });
    }
}

/// When code is made, and when the run takes it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// At once.
    OnTheSpot,
    /// Made at once. A loop takes it up some visits later.
    Delayed,
    /// In another thread.
    InBackground,
    /// At once, where costs say so: code of the base.
    ByCosts,
    /// As the costs say, in another thread: code of the base, then optimized code.
    ByCostsInBackground,
}

/// Costs by which a place is hot after few visits: a function with n instructions after its
/// `threshold`th call, if all instructions are outside of loops.
fn cheap(threshold: u32) -> Costs {
    let compiled = u64::from(threshold) * 10;
    Costs { interpreted: 11, native: 1, optimized: 0, compiled, mapped: 0 }
}

impl Mode {
    fn policy(self, threshold: u32, seed: u64, count: &Count) -> Box<dyn Tiering + Send> {
        let count = &Count { optimizes: Arc::default(), ..count.clone() };
        let policy = Tiered::new_observed(threshold, Pipeline::default(), count.clone());
        match self {
            Mode::OnTheSpot => Box::new(policy),
            Mode::Delayed => Box::new(Delaying { policy, prng: Prng::new(seed), held: Vec::new() }),
            Mode::InBackground => Box::new(policy.in_background()),
            Mode::ByCosts | Mode::ByCostsInBackground => {
                let costs = cheap(threshold);
                let policy = Tiered::by_costs_observed(costs, Pipeline::default(), count.clone())
                    .listening(count.listener());
                match self {
                    Mode::ByCosts => Box::new(policy),
                    _ => Box::new(policy.in_background()),
                }
            }
        }
    }
}

/// A policy that holds continuations back for a random number of visits.
struct Delaying {
    policy: Tiered<Count>,
    prng: Prng,
    /// The loops, each with the visits left and the continuation.
    held: Vec<(HotLoop, u32, Arc<Continuation>)>,
}

impl Tiering for Delaying {
    fn threshold(&self) -> Option<u32> {
        self.policy.threshold()
    }

    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        self.policy.called(tier, func)
    }

    fn hot(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let index = match self.held.iter().position(|(held, ..)| *held == at) {
            Some(index) => index,
            None => {
                let Some(made) = self.policy.hot(tier, at)? else { return Ok(None) };
                self.held.push((at, self.prng.below(4), made));
                self.held.len() - 1
            }
        };
        if self.held[index].1 == 0 {
            return Ok(Some(self.held.swap_remove(index).2));
        }
        self.held[index].1 -= 1;
        tier.ask_again(at);
        Ok(None)
    }
}

/// Runs programs with this threshold for calls and iterations. Returns the work done, and the
/// number of loops entered in the middle.
fn run(threshold: u32, mode: Mode) -> (Work, u64) {
    let (count, mut entered, mut wrong) = (Count::default(), 0, Vec::new());
    on_a_large_stack(|| {
        for seed in 0..PROGRAMS {
            let made = generate(seed, 100, &Weights::default());
            let module = Arc::new(made.module);
            // Without a trace, the fast loop of the interpreter counts the visits.
            let trace = if seed % 2 == 0 { TraceLevel::Full } else { TraceLevel::Off };
            let options = Options { trace, ..Options::traced() };
            for setting in settings() {
                let (limits, policy) = (Limits::default(), mode.policy(threshold, seed, &count));
                let twins = Twins::tiered(&module, limits, options, setting, threshold, policy);
                let mut twins = twins.expect("an instance");
                // All on one instance: functions that one run makes hot are compiled in the next.
                let is_beside = matches!(mode, Mode::InBackground | Mode::ByCostsInBackground);
                let rounds = if is_beside { 4 } else { 1 };
                let arguments = (0..rounds).flat_map(|_| &made.arguments);
                let runs =
                    arguments.map(|args| twins.call(made.main, args, [&mut NoHost, &mut NoHost]));
                let ended = runs.collect::<Result<Vec<_>, _>>();
                if let Err(what) = ended.map(|_| ()).and_then(|()| twins.compare()) {
                    wrong.push(format!("program {seed}: {what}"));
                }
                entered += twins.transitions(TransitionKind::Up);
            }
        }
    });
    assert!(
        wrong.is_empty(),
        "{mode:?} from {threshold} on, {} of {PROGRAMS} programs: {wrong:#?}",
        wrong.len()
    );
    (count.work(), entered)
}

#[test]
fn generated_programs_run_alike_where_they_turn_hot() {
    for threshold in [1, 5] {
        let (work, entered) = run(threshold, Mode::OnTheSpot);
        let told = format!("from {threshold} on: {work:?}, {entered} loops entered");
        assert!(
            work.versions > PROGRAMS && work.continuations > PROGRAMS && entered > PROGRAMS,
            "{told}"
        );
        // Every version runs through passes. Mappings and checks are needed only for functions with
        // a loop that was entered.
        let steps = |step: Step| work.steps[step as usize];
        assert!(steps(Step::Optimize) > work.versions && steps(Step::Replay) == 0, "{told}");
        assert!(steps(Step::Map) > 0 && steps(Step::Map) == steps(Step::Check), "{told}");
    }
}

/// The run continues in the interpreter, and takes the code up later.
#[test]
fn generated_programs_run_alike_where_code_comes_later() {
    for threshold in [1, 5] {
        let (_, at_once) = run(threshold, Mode::OnTheSpot);
        let (_, later) = run(threshold, Mode::Delayed);
        assert!(later * 4 > at_once, "from {threshold} on: {later} later, {at_once} at once");
        let (work, _) = run(threshold, Mode::InBackground);
        // How much the other thread gets done before a program ends is up to the system.
        assert!(work.versions > 0, "from {threshold} on: {work:?}");
    }
}

/// Code of the base comes first. Its entries are the identity, and need no pass.
#[test]
fn generated_programs_run_alike_where_costs_decide() {
    for threshold in [1, 5] {
        let (work, entered) = run(threshold, Mode::ByCosts);
        let told = format!("from {threshold} on: {work:?}, {entered} loops entered");
        assert!(work.versions > PROGRAMS && entered > PROGRAMS, "{told}");
        assert_eq!((work.steps[Step::Optimize as usize], work.paused), (0, 0), "{told}");
        // The policy tells the first entry of each loop, and some are entered again.
        assert_eq!(work.entered, work.continuations, "{told}");
        assert!(work.entered <= entered, "{told}");
        let (work, _) = run(threshold, Mode::ByCostsInBackground);
        assert!(work.versions > 0 && work.paused == 0, "{work:?}");
    }
}

/// Three frames of one function. Each is in its first loop when it calls the next, so that each is
/// the first to make another loop hot: the innermost the first loop, its caller the second, and so
/// on.
const THREE_LOOPS: &str = "
func @sum(%n: i32, %depth: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump a(%zero, %zero)
a(%i: i32, %x: i32):
  %more = ult.i32 %i, %n
  br_if %more, body, b(%zero, %x)
body:
  %first = eq.i32 %i, %zero
  %deep = select.i32 %first, %depth, %zero
  br_if %deep, inner, next(%zero)
inner:
  %less = sub.i32 %depth, %one
  %below = call @sum(%n, %less)
  jump next(%below)
next(%add: i32):
  %y = add.i32 %x, %add
  %y1 = add.i32 %y, %i
  %j = add.i32 %i, %one
  jump a(%j, %y1)
b(%k: i32, %z: i32):
  %again = ult.i32 %k, %n
  %k1 = add.i32 %k, %one
  %z1 = add.i32 %z, %k
  br_if %again, b(%k1, %z1), c(%zero, %z)
c(%l: i32, %w: i32):
  %still = ult.i32 %l, %n
  %l1 = add.i32 %l, %one
  %w1 = xor.i32 %w, %l
  br_if %still, c(%l1, %w1), done
done:
  return %w
}
";

/// The first hot loop of a function requests its own entry, the second requests the entries of all
/// loops, and the third finds its entry among these.
#[test]
fn a_function_pays_for_two_certificates_however_many_loops_are_hot() {
    let module = Arc::new(load(Format::Oir, THREE_LOOPS.as_bytes()).expect("well-formed"));
    let sum = module.lookup("sum").expect("the text has it");
    let args = [40, 2];
    let mut machine = Machine::new(&module, Limits::default()).expect("an instance");
    let expected = machine.invoke(sum, &args, &mut NoHost, &mut interp::NoObserver);
    let engine = jit::Engine::new(jit::Config::default()).expect("native code runs here");
    let mut vm =
        Vm::new(&engine, &module, Limits::default(), Options::traced()).expect("a machine");
    let count = Count::default();
    vm.set_tiering(Box::new(Tiered::new_observed(10, Pipeline::default(), count.clone())));
    assert_eq!(vm.invoke(sum, &args, &mut NoHost).expect("it runs"), expected);
    let ups = vm.transitions().into_iter().filter(|made| made.kind == TransitionKind::Up);
    let work = count.work();
    assert_eq!((ups.count(), work.continuations, work.versions), (3, 3, 1), "{work:?}");
    assert_eq!(work.steps[Step::Map as usize], 2, "{work:?}");
}
