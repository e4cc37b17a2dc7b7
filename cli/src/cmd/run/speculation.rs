//! `osier run --speculate`: the assumptions of hot functions, and figures about them.

use super::{Args, HOT, TableOption};
use crate::cmd::failure::CommandFailure;
use crate::cmd::suggestions::read_profile;
use ir::{Func, Inst, Module, Point};
use jit::{FailedPoint, Vm};
use osier::landing::LandingRow;
use osier::listing;
use osier::schema::{FailingAssumption, RunContext, RunRow, RunSpeculation, RunTable, TakenOver};
use osier::speculate::{Assumption, Observed, Speculative, SuggestOptions, Suggester};
use osier::tiers::{ContextUse, Observer, TableUse, Tiered};
use osier::transition::VersionKey;
use std::collections::{BTreeMap, BTreeSet};

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
    let tiered = tiered.in_contexts(args.contexts.map_or_else(ContextUse::default, Into::into));
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
    /// By row or version: the bytes of its machine code.
    bytes: BTreeMap<VersionKey, u64>,
    /// When an assumption failed last, in seconds after the start of the run.
    failed_at: f64,
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
        self.note_exits(made, |_| true);
    }

    /// Notes where these assumptions of a version may fail.
    fn note_exits(&mut self, made: &Speculative, may_fail: impl Fn(&Assumption) -> bool) {
        let key = made.forward.target();
        let exits = made.exits.iter().filter_map(|e| Some(((key, e.inst), e.assumption?)));
        self.made.extend(exits.filter(|(_, of)| may_fail(of)));
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
        let key = made.enter.target();
        let bytes = self.bytes.get(&key).copied().unwrap_or(0);
        self.figures.tables[index].rows.push(RunRow { context, assumptions, exits: 0, bytes });
        self.made.extend(made.exits.iter().map(|exit| ((key, exit.inst), exit.of)));
    }

    /// Notes that an exit leads to a row from now on, by a time in seconds after the start of the
    /// run. Returns the assumption and the row, in words.
    pub(super) fn linked(
        &mut self,
        module: &Module,
        exit: FailedPoint<'_>,
        at: Point,
        row: usize,
        now: f64,
    ) -> Option<String> {
        let func = exit.version.func();
        let table = self.tables.get(&(func, at)).map(|index| &mut self.figures.tables[*index])?;
        let place = table.at.clone();
        table.rows.get_mut(row)?.exits += 1;
        let microseconds = ((now - self.failed_at) * 1e6) as u64;
        let assumption = self.assumption(exit)?;
        let failing = self.failing(module, func, &assumption);
        failing.taken_over.push(TakenOver { at: place.clone(), row, microseconds });
        Some(format!("{}, row {row} at {}", failing.assumption, short(&place)))
    }

    /// Notes that an assumption has failed. Returns it in words.
    pub(super) fn failed(
        &mut self,
        module: &Module,
        at: FailedPoint<'_>,
        now: f64,
    ) -> Option<String> {
        self.figures.failures += 1;
        self.failed_at = now;
        let assumption = self.assumption(at)?;
        let failing = self.failing(module, at.version.func(), &assumption);
        failing.failures += 1;
        Some(format!("{}, failure {}", failing.assumption, failing.failures))
    }

    /// The assumption of an exit.
    fn assumption(&self, at: FailedPoint<'_>) -> Option<Assumption> {
        let inst = at.version.points()[at.number].at.inst();
        self.made.get(&(at.version.key(), inst)).copied()
    }

    /// Notes the machine code of a version or row, which may assume.
    pub(super) fn compiled(&mut self, version: VersionKey, bytes: usize) {
        self.bytes.insert(version, bytes as u64);
    }

    /// Notes a row for calls with these arguments. Its other assumptions may fail.
    pub(super) fn in_context(
        &mut self,
        module: &Module,
        func: Func,
        facts: &[Assumption],
        made: &Speculative,
    ) {
        self.note_exits(made, |of| !facts.contains(of));
        let base = module.body(func).expect("a function with a row has a body");
        let facts = facts.iter().map(|of| listing::assumption(module, base, of)).collect();
        let function = module.funcs[func].name.clone();
        self.figures.contexts.push(RunContext { function, facts, is_gone: false });
    }

    pub(super) fn out_of_context(&mut self, module: &Module, func: Func, facts: &[Assumption]) {
        let base = module.body(func).expect("a function with a row has a body");
        let facts: Vec<String> =
            facts.iter().map(|of| listing::assumption(module, base, of)).collect();
        let name = &module.funcs[func].name;
        let is_it = |one: &&mut RunContext| one.function == *name && one.facts == facts;
        self.figures.contexts.iter_mut().filter(is_it).for_each(|one| one.is_gone = true);
    }

    /// The figures of the run, which took so many exits to an interpreter and to rows in so many
    /// seconds.
    pub(super) fn finish(&mut self, exits: u64, to_rows: u64, seconds: f64) -> RunSpeculation {
        let made: BTreeSet<VersionKey> = self.made.keys().map(|(key, _)| *key).collect();
        let bytes = self.bytes.iter().filter(|(key, _)| made.contains(*key));
        self.figures.bytes = bytes.map(|(_, bytes)| bytes).sum();
        (self.figures.exits, self.figures.exits_to_rows) = (exits, to_rows);
        self.figures.exits_per_second =
            if seconds > 0.0 { (exits as f64 / seconds) as u64 } else { 0 };
        std::mem::take(&mut self.figures)
    }

    /// Notes that an assumption is given up. Returns it in words.
    pub(super) fn abandoned(
        &mut self,
        module: &Module,
        func: Func,
        assumption: &Assumption,
    ) -> String {
        let failing = self.failing(module, func, assumption);
        failing.given_up = true;
        failing.assumption.clone()
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
                taken_over: Vec::new(),
            });
            failed.len() - 1
        });
        &mut failed[index]
    }
}

/// A place without its instruction, for which a line has no room.
fn short(place: &str) -> &str {
    place.split(": ").next().unwrap_or(place)
}
