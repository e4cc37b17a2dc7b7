//! Generated programs that start in the interpreter and continue natively where they become hot.

use crate::both::{Twins, on_a_large_stack, settings};
use interp::{Limits, NoHost, Options, TraceLevel};
use jit::TransitionKind;
use osier::driver::Step;
use osier::native::{Compiled, CompiledKind, Observer};
use std::sync::{Arc, Mutex, PoisonError};
use verify::generate::{Weights, generate};

/// The number of programs compared at each threshold.
const PROGRAMS: u64 = 40;

/// The work done to make code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Work {
    versions: u64,
    continuations: u64,
    /// By kind of step, in the order of [`Step::ALL`].
    steps: [u64; Step::ALL.len()],
    /// Whether a step is under way.
    optimizes: bool,
}

/// Counts the work.
#[derive(Clone, Debug, Default)]
struct Count(Arc<Mutex<Work>>);

impl Count {
    fn work(&self) -> Work {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Work)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Observer for Count {
    fn step(&mut self, step: Option<Step>) {
        self.change(|work| {
            step.into_iter().for_each(|step| work.steps[step as usize] += 1);
            work.optimizes = step.is_some();
        });
    }

    fn begin(&mut self) {
        assert!(!self.work().optimizes, "the time of compiling is not that of a step");
    }

    fn compiled(&mut self, made: Compiled) {
        self.change(|work| match made.kind {
            CompiledKind::Version => work.versions += 1,
            CompiledKind::Continuation => work.continuations += 1,
        });
    }
}

/// Runs programs with this threshold for calls and iterations. Returns the work done, and the
/// number of loops entered in the middle.
fn run(threshold: u32) -> (Work, u64) {
    let options = Options { trace: TraceLevel::Full, ..Options::default() };
    let pipeline = passes::parse("O2").expect("there is one");
    let (count, mut entered, mut wrong) = (Count::default(), 0, Vec::new());
    on_a_large_stack(|| {
        for seed in 0..PROGRAMS {
            let made = generate(seed, 100, &Weights::default());
            let (module, tier) = (Arc::new(made.module), (threshold, &pipeline));
            for setting in settings() {
                let limits = (Limits::default(), options);
                let mut twins = Twins::tiered(&module, limits, setting, tier, count.clone())
                    .expect("an instance");
                // All on one instance: functions that one run makes hot are compiled in the next.
                let runs = made
                    .arguments
                    .iter()
                    .map(|args| twins.call(made.main, args, [&mut NoHost, &mut NoHost]));
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
        "from {threshold} on, {} of {PROGRAMS} programs: {wrong:#?}",
        wrong.len()
    );
    (count.work(), entered)
}

#[test]
fn generated_programs_run_alike_where_they_turn_hot() {
    for threshold in [1, 5] {
        let (work, entered) = run(threshold);
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
