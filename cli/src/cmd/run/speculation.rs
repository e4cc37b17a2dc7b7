//! `osier run --speculate`: the assumptions of hot functions, and figures about them.

use super::{Args, HOT};
use crate::cmd::failure::CommandFailure;
use crate::cmd::suggestions::read_profile;
use ir::{Func, Inst, Module};
use jit::{FailedPoint, Vm};
use osier::listing;
use osier::schema::{FailingAssumption, RunSpeculation};
use osier::speculate::{Assumption, Observed, Speculative, SuggestOptions, Suggester};
use osier::tiers::{Observer, Tiered};
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
    /// By function and instruction of the last version that assumes: the assumption.
    made: BTreeMap<(Func, Inst), Assumption>,
    /// By function and assumption: the index of its figures.
    failed: BTreeMap<(Func, Assumption), usize>,
    pub(super) figures: RunSpeculation,
}

impl AssumptionRecord {
    pub(super) fn speculated(&mut self, func: Func, made: &Speculative) {
        let RunSpeculation { versions, assumptions, pinned, settled, dropped, .. } =
            &mut self.figures;
        *versions += u64::from(!made.exits.is_empty());
        *assumptions += made.exits.len() as u64;
        *pinned += made.exits.iter().filter(|exit| !exit.pins.is_empty()).count() as u64;
        *settled += made.settled.len() as u64;
        *dropped += made.dropped.len() as u64;
        let exits = made.exits.iter().filter_map(|e| Some(((func, e.inst), e.assumption?)));
        self.made.extend(exits);
    }

    pub(super) fn failed(&mut self, module: &Module, at: FailedPoint<'_>) {
        self.figures.failures += 1;
        let func = at.version.func();
        let inst = at.version.points()[at.number].at.inst();
        if let Some(assumption) = self.made.get(&(func, inst)).copied() {
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
