//! Tiering while other threads work: the run starts in the interpreter, a thread compiles hot code,
//! and the run installs it later. Each run must end like the interpreter's.
//!
//! With [`Beside::Delays`], the seed decides the delay in visits, so findings are reproducible
//! ([`delayed`](super::delayed)). With [`Beside::Flags`], the threads run freely, and a further
//! thread makes versions and sets flags of their points ([`flagged`](super::flagged)).

use super::bases::BaseTwins;
use super::clock::Clock;
use super::delayed::{DelayGate, DelayedTiers, Delays};
use super::flagged::{EndsWork, FlagThread};
use super::plan::config;
use super::trial::Trial;
use crate::case::Case;
use crate::figures::Figures;
use crate::oracle::FuzzFinding;
use ir::Func;
use jit::{Config, TransitionKind, Version, Vm};
use osier::tiers::{Costs, NoObserver, Tiered};
use passes::Pipeline;
use std::sync::{Arc, PoisonError};
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// The number of passes over the inputs. Code comes late, so later runs use it more.
const ROUNDS: usize = 3;
/// The most visits after which a place is hot, at thresholds.
const MOST_VISITS: u32 = 4;
/// The most visits after which a function is hot by costs, before the share that savings must
/// reach.
const MOST_CHEAP: u64 = 200;
/// The delays that a message lists.
const LISTED: usize = 40;

/// The work of other threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// A thread compiles, with delays that the seed decides.
    Delays,
    /// A thread compiles, and another sets flags.
    Flags,
}

impl Beside {
    /// The judgement of a program; `None` for one program in four.
    fn draw(seed: u64) -> Option<Beside> {
        match Prng::new(seed).fork(0x7469_6572).below(4) {
            0 => None,
            1 => Some(Beside::Flags),
            _ => Some(Beside::Delays),
        }
    }

    fn what(self) -> &'static str {
        match self {
            Beside::Delays => "code that comes late",
            Beside::Flags => "code whose flags another thread sets",
        }
    }
}

/// Judges runs of the bases of a program under policies that compile in other threads. `pairs`
/// lead from the bases to the last versions.
///
/// # Errors
/// A difference between native code and the interpreter, or a mistake in the queue.
pub(super) fn judge(
    case: &Case,
    clock: &Clock,
    pairs: &[FunctionPair<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let Some(beside) = Beside::draw(case.seed) else { return Ok(()) };
    let all = Trial::new(case, [0, case.steps.len()], clock);
    let mut trial = Trial { tag: 0x7469_6572 + beside as u64, ..all };
    let ended = run(&mut trial, pairs, beside);
    trial.finish(ended, figures)
}

fn run(trial: &mut Trial<'_>, pairs: &[FunctionPair<'_>], beside: Beside) -> Result<(), String> {
    let mut prng = Prng::new(trial.case.seed).fork(trial.tag);
    let module = Arc::new(trial.case.module.clone());
    // Without a trace, the fast loop of the interpreter counts visits.
    let trace = prng.chance(50);
    let config = Config { trace, ..config(trial.case.options.nans, &mut prng) };
    let mut vm = trial.instance(&module, config)?;
    let tiered = policy(&mut prng);
    trial.figures.tiered += 1;
    let ended = match beside {
        Beside::Delays => with_delays(trial, &mut vm, tiered, &mut prng),
        Beside::Flags => with_flags(trial, &mut vm, tiered, pairs, &mut prng),
    };
    let ups = vm.transitions().into_iter().filter(|made| made.kind == TransitionKind::Up);
    trial.figures.entered += ups.map(|made| made.count).sum::<u64>();
    ended
}

/// A policy under which a place is hot soon.
fn policy(prng: &mut Prng) -> Tiered<NoObserver> {
    if prng.chance(50) {
        return Tiered::new(1 + prng.below(MOST_VISITS), Pipeline::default());
    }
    let visits = 1 + u64::from(prng.below(MOST_CHEAP as u32));
    let costs =
        Costs { interpreted: 11, native: 1, optimized: 0, compiled: visits * 10, mapped: 0 };
    Tiered::by_costs(costs, Pipeline::default())
}

fn with_delays(
    trial: &mut Trial<'_>,
    vm: &mut Vm,
    tiered: Tiered<NoObserver>,
    prng: &mut Prng,
) -> Result<(), String> {
    let (gate, delays) = (DelayGate::new(), Delays::default());
    vm.set_tiering(Box::new(DelayedTiers::new(tiered, &gate, prng.fork(1), &delays)));
    let what = Beside::Delays.what();
    let mut nothing = |_: &mut Vm, _: Func, _: usize| Ok(());
    let ended = BaseTwins::new(trial, vm, what)?.runs(trial, ROUNDS, &mut nothing);
    let delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
    trial.figures.late += delays.len() as u64;
    trial.figures.delays += delays.iter().map(|delay| u64::from(*delay)).sum::<u64>();
    let ended = ended.and_then(|()| right(gate.wrong()));
    ended.map_err(|text| {
        let (seed, first) = (trial.case.seed, &delays[..delays.len().min(LISTED)]);
        format!("{text}\n  seed {seed}; code came so many visits late: {first:?}")
    })
}

fn with_flags(
    trial: &mut Trial<'_>,
    vm: &mut Vm,
    tiered: Tiered<NoObserver>,
    pairs: &[FunctionPair<'_>],
    prng: &mut Prng,
) -> Result<(), String> {
    let mut thread = FlagThread::new(pairs, prng);
    let tiered = if prng.chance(70) { tiered.in_background() } else { tiered };
    vm.set_tiering(Box::new(thread.policy(tiered)));
    let (engine, module) = (vm.engine().clone(), Arc::clone(vm.module()));
    let mut own = prng.fork(2);
    let thread = &thread;
    let (ended, versions) = std::thread::scope(|scope| {
        let beside = scope.spawn(move || thread.work(&engine, &module, &mut own));
        let ends = EndsWork(thread);
        // In the first round, code may come in the middle of any run.
        let mut ready = |_: &mut Vm, _: Func, round: usize| {
            if round > 0 {
                thread.wait(|| beside.is_finished());
            }
            Ok(())
        };
        let twins = BaseTwins::new(trial, vm, Beside::Flags.what());
        let ended = twins.and_then(|mut twins| twins.runs(trial, ROUNDS, &mut ready));
        drop(ends);
        (ended, beside.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload)))
    });
    trial.figures.compiled_functions += versions.len() as u64;
    trial.figures.flagged += fired(vm, &versions);
    let seed = trial.case.seed;
    let ended = ended.and_then(|()| right(thread.wrong()));
    ended.map_err(|text| {
        format!("{text}\n  seed {seed}; other threads set flags, so it may take several runs")
    })
}

/// The mistake that a thread has recorded, as a finding.
fn right(wrong: Option<String>) -> Result<(), String> {
    wrong.map_or(Ok(()), |wrong| Err(format!("  {wrong}")))
}

/// How often the run has left one of these versions at a flag.
fn fired(vm: &mut Vm, versions: &[Arc<Version>]) -> u64 {
    let is_of = |one: &jit::Transition| {
        let of = |version: &Arc<Version>| one.func == version.func() && one.from == version.key();
        one.kind == TransitionKind::Down && versions.iter().any(of)
    };
    vm.transitions().into_iter().filter(is_of).map(|one| one.count).sum()
}
