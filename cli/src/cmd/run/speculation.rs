//! `osier run --speculate`: the assumptions of hot functions, and figures about them.

use super::{Args, HOT, TableOption};
use crate::cmd::failure::CommandFailure;
use crate::cmd::suggestions::read_profile;
use ir::{Func, Inst, Module, Point};
use jit::{FailedPoint, Vm};
use osier::landing::LandingRow;
use osier::listing;
use osier::schema::{FailingAssumption, RunRow, RunSpeculation, RunTable};
use osier::speculate::{Assumption, Observed, Speculative, SuggestOptions, Suggester};
use osier::tiers::{Observer, TableUse, Tiered};
use osier::transition::VersionKey;
use std::collections::BTreeMap;

/// The policy with the assumptions that the options select.
///
/// # Errors
/// If the profile cannot be read, or belongs to another module.
pub(super) fn speculating<O: Observer>(
    args: &Args,
    module: &Module,
    vm: &mut Vm,
    tiered: Tiered<O>,
) -> Result<Tiered<O>, CommandFailure> {
    let Some(source) = &args.speculate else { return Ok(tiered) };
    let options = args.suggestions.options();
    let tiered = tiered.pinning(args.suggestions.pins().0);
    let tiered = tiered.entering(args.tables.map_or_else(TableUse::default, TableOption::places));
    let Some(path) = source else {
        // A function that becomes hot has few visits so far.
        let visits = options.visits.min(u64::from(args.hot.unwrap_or(HOT) / 2)).max(1);
        vm.machine_mut().count();
        return Ok(tiered.profiling(SuggestOptions { visits, ..options }));
    };
    let profile = read_profile(path, module)?;
    let suggester = Suggester::new(module, &profile, options);
    let of = |func: Func| -> Vec<Assumption> {
        suggester.of(func).into_iter().map(|suggestion| suggestion.assumption).collect()
    };
    let assume: BTreeMap<Func, Vec<Assumption>> =
        module.defined().map(|(func, _)| (func, of(func))).collect();
    Ok(tiered.speculating(assume.into_iter().filter(|(_, list)| !list.is_empty()).collect()))
}

/// The assumptions of a run, and their fates.
#[derive(Default)]
pub(super) struct AssumptionRecord {
    /// By version that assumes, and its instruction: the assumption.
    made: BTreeMap<(VersionKey, Inst), Assumption>,
    /// By function and assumption: the index of its figures.
    failed: BTreeMap<(Func, Assumption), usize>,
    /// By function and point: the index of the table.
    tables: BTreeMap<(Func, Point), usize>,
    pub(super) figures: RunSpeculation,
}

impl AssumptionRecord {
    pub(super) fn speculated(&mut self, made: &Speculative) {
        let RunSpeculation { versions, assumptions, pinned, settled, dropped, .. } =
            &mut self.figures;
        *versions += u64::from(!made.exits.is_empty());
        *assumptions += made.exits.len() as u64;
        *pinned += made.exits.iter().filter(|exit| !exit.pins.is_empty()).count() as u64;
        *settled += made.settled.len() as u64;
        *dropped += made.dropped.len() as u64;
        let key = made.forward.target();
        let exits = made.exits.iter().filter_map(|e| Some(((key, e.inst), e.assumption?)));
        self.made.extend(exits);
    }

    pub(super) fn row(&mut self, module: &Module, func: Func, at: Point, made: &LandingRow) {
        let base = module.body(func).expect("a function with a table has a body");
        let tables = &mut self.figures.tables;
        let index = *self.tables.entry((func, at)).or_insert_with(|| {
            let function = module.funcs[func].name.clone();
            let at = listing::place(module, base, at);
            tables.push(RunTable { function, at, rows: Vec::new() });
            tables.len() - 1
        });
        let of = |is_context| {
            let exits = made.exits.iter().filter(move |exit| exit.is_context == is_context);
            exits.map(|exit| listing::assumption(module, base, &exit.of)).collect()
        };
        let (context, assumptions) = (of(true), of(false));
        self.figures.tables[index].rows.push(RunRow { context, assumptions, exits: 0 });
        let key = made.enter.target();
        self.made.extend(made.exits.iter().map(|exit| ((key, exit.inst), exit.of)));
    }

    pub(super) fn linked(&mut self, func: Func, at: Point, row: usize) {
        let table = self.tables.get(&(func, at)).map(|index| &mut self.figures.tables[*index]);
        let row = table.and_then(|table| table.rows.get_mut(row));
        row.into_iter().for_each(|row| row.exits += 1);
    }

    pub(super) fn failed(&mut self, module: &Module, at: FailedPoint<'_>) {
        self.figures.failures += 1;
        let func = at.version.func();
        let inst = at.version.points()[at.number].at.inst();
        if let Some(assumption) = self.made.get(&(at.version.key(), inst)).copied() {
            self.failing(module, func, &assumption).failures += 1;
        }
    }

    pub(super) fn abandoned(&mut self, module: &Module, func: Func, assumption: &Assumption) {
        self.failing(module, func, assumption).given_up = true;
    }

    /// The figures of an assumption that has failed.
    fn failing(
        &mut self,
        module: &Module,
        func: Func,
        assumption: &Assumption,
    ) -> &mut FailingAssumption {
        let failed = &mut self.figures.failed;
        let index = *self.failed.entry((func, *assumption)).or_insert_with(|| {
            let base = module.body(func).expect("a function with a version has a body");
            failed.push(FailingAssumption {
                function: module.funcs[func].name.clone(),
                assumption: listing::assumption(module, base, assumption),
                // Suggestions have the index of their observation as the reason.
                observed: Observed::KINDS.get(assumption.reason as usize).copied().unwrap_or(""),
                failures: 0,
                given_up: false,
            });
            failed.len() - 1
        });
        &mut failed[index]
    }
}
