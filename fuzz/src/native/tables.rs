//! Landing tables: the run starts in the interpreter, enters rows at hot loops, and continues in
//! rows where assumptions fail ([`osier::tiers::TableUse`]). Each run must end like the
//! interpreter's. In half of the programs, exits are taken by chance, too, although the assumption
//! holds ([`jit::Config::fails_one_in`]): so runs go from row to row many times.

use super::bases::BaseTwins;
use super::clock::Clock;
use super::plan::config;
use super::trial::Trial;
use crate::case::Case;
use crate::figures::Figures;
use crate::oracle::FuzzFinding;
use crate::suggested::suggested;
use check::RestFault;
use ir::{Func, Point};
use jit::{Config, FailedPoint, TransitionKind, Vm};
use osier::driver::Step;
use osier::landing::{LandingError, LandingRow};
use osier::tiers::{Compiled, CompiledKind, Observer, RowError, TableUse, Tiered};
use passes::Pipeline;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transition::VersionKey;
use verify::prng::Prng;

/// The number of passes over the inputs. Rows come late, so later runs use them more.
const ROUNDS: usize = 4;

/// The same where this judge runs alone.
const ROUNDS_ALONE: usize = 24;

/// The share of programs that it judges, in percent, beside other judges.
const SHARE: u32 = 40;

/// One test of an assumption in so many leaves by chance, in half of the programs.
const ONE_IN: [u32; 4] = [2, 5, 20, 100];

/// The most visits after which a place is hot.
const MOST_VISITS: u32 = 4;

/// The samples of this judge differ from the samples of others by this number.
const TAG: u64 = 0x7461_626c;

/// What the policy did.
#[derive(Clone, Default)]
struct TableCounts {
    rows: u64,
    /// The versions that are rows.
    keys: BTreeSet<VersionKey>,
    linked: u64,
    /// The first row that the checker has refused.
    refused: Option<RestFault>,
}

#[derive(Clone, Default)]
struct TableWatch(Arc<Mutex<TableCounts>>);

impl TableWatch {
    fn get(&self) -> MutexGuard<'_, TableCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for TableWatch {
    fn step(&mut self, _step: Option<Step>) {}

    fn begin(&mut self) {}

    fn row(&mut self, _func: Func, _at: Point, _made: &LandingRow) {
        self.get().rows += 1;
    }

    fn without_row(&mut self, _func: Func, _at: Point, error: &RowError) {
        if let RowError::Landing(LandingError::Refused(fault)) = error {
            self.get().refused.get_or_insert(*fault);
        }
    }

    fn linked(&mut self, _exit: FailedPoint<'_>, _at: Point, _row: usize) {
        self.get().linked += 1;
    }

    fn compiled(&mut self, made: Compiled) {
        if made.kind == CompiledKind::Row {
            self.get().keys.insert(made.version);
        }
    }
}

/// Judges runs of the bases of a program under a policy that enters landing tables.
///
/// # Errors
/// A difference between native code and the interpreter.
pub(super) fn judge(
    case: &Case,
    clock: &Clock,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let is_drawn = case.options.only_tables || Prng::new(case.seed).fork(TAG).chance(SHARE);
    if case.options.assumptions == 0 || !is_drawn {
        return Ok(());
    }
    let mut trial = Trial { tag: TAG, ..Trial::new(case, [0, case.steps.len()], clock) };
    let ended = run(&mut trial);
    trial.finish(ended, figures)
}

fn run(trial: &mut Trial<'_>) -> Result<(), String> {
    let mut prng = Prng::new(trial.case.seed).fork(TAG).fork(1);
    let module = Arc::new(trial.case.module.clone());
    let fails_one_in = match prng.chance(50) {
        true => NonZeroU32::new(prng.pick(&ONE_IN)),
        false => None,
    };
    let trace = prng.chance(50);
    let config = Config { trace, fails_one_in, ..config(trial.case.options.nans, &mut prng) };
    let mut vm = trial.instance(&module, config)?;
    let assume = suggested(trial.case)?;
    let places = prng.pick(&[TableUse::Everywhere, TableUse::Everywhere, TableUse::AtLoops]);
    let watch = TableWatch::default();
    let hot = 1 + prng.below(MOST_VISITS);
    let tiered = Tiered::new_observed(hot, Pipeline::default(), watch.clone());
    vm.set_tiering(Box::new(tiered.entering(places).speculating(assume)));
    trial.figures.tabled += 1;
    let mut nothing = |_: &mut Vm, _: Func, _: usize| Ok(());
    let twins = BaseTwins::new(trial, &mut vm, "code that goes on in landing tables");
    let rounds = if trial.case.options.only_tables { ROUNDS_ALONE } else { ROUNDS };
    let ended = twins.and_then(|mut twins| twins.runs(trial, rounds, &mut nothing));
    let TableCounts { rows, keys, linked, refused } = watch.get().clone();
    trial.figures.rows += rows;
    trial.figures.linked_to_rows += linked;
    for made in vm.transitions() {
        let is_row = made.to.is_some_and(|to| keys.contains(&to));
        match made.kind {
            TransitionKind::Up => trial.figures.entered_rows += made.count,
            TransitionKind::Across if is_row => trial.figures.to_rows += made.count,
            TransitionKind::Across | TransitionKind::Down | TransitionKind::Out => {}
        }
    }
    let refused = refused.map_or(Ok(()), |fault| Err(format!("  a row is refused: {fault}")));
    ended.and(refused)
}
