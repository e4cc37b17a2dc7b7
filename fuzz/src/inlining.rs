//! The inlining oracle: versions with inlined code, the ways into these versions, and the ways out
//! into several activations.
//!
//! Each function with calls that a policy selects gets a version with the code of its callees.
//! Seeds choose the pipelines before and behind the inlining. The checker has to accept the version
//! as a copy. The state oracle ([`verify::state_oracle`]) then runs the program with and without
//! inlined code. It compares every transition with the activations of the run without inlined code.

use super::case::Case;
use super::figures::InlinedFigures;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::states::{none_of, oracle_of};
use super::suggested::chosen;
use ir::Func;
use osier::driver::NoObserver;
use osier::inlining::{CalleeLandings, InlinePlan, Inlined, NotInlined, inline};
use osier::speculate::{Pins, SpeculateError};
use osr::VersionTree;
use passes::{InlinePolicy, Pipeline, parse};
use std::collections::BTreeMap;
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, OracleOptions};

/// Judges the versions with inlined code of a program.
///
/// # Errors
/// The findings.
pub(super) fn run(case: &Case, figures: &mut InlinedFigures) -> Result<(), Vec<FuzzFinding>> {
    let made = versions(case, figures)?;
    if made.is_empty() {
        return Ok(());
    }
    let pairs: Vec<FunctionPair<'_>> = made.iter().map(|(func, one)| pair(*func, one)).collect();
    let options = OracleOptions {
        limits: case.hop_limits(),
        chains: case.options.chains,
        ..OracleOptions::for_inlined_code()
    };
    let to_finding = |message: String| finding(case, message);
    let oracle = oracle_of(case, &case.module, &pairs, options, &to_finding)?;
    figures.count(oracle.report());
    let found = oracle.report().divergences.iter().map(|one| finding(case, one.to_string()));
    none_of(found.collect())
}

/// The versions and mappings of a function that the state oracle compares.
pub fn pair(func: Func, made: &Inlined) -> FunctionPair<'_> {
    FunctionPair {
        func,
        before: made.tree.function(VersionTree::BASE),
        after: made.tree.function(made.optimized),
        anchors: &made.events,
        forward: &made.up,
        backward: &made.down,
        copies: Some(&made.copies),
    }
}

/// The versions with inlined code of a program, by a plan that its seed decides.
///
/// # Errors
/// If the checker does not accept a version as a copy.
pub(super) fn versions(
    case: &Case,
    figures: &mut InlinedFigures,
) -> Result<Vec<(Func, Inlined)>, Vec<FuzzFinding>> {
    let mut prng = Prng::new(case.seed).fork(0x69_6e_6c_69);
    let policy = policy(&mut prng);
    let [first, last] = [pipeline(case, &mut prng), pipeline(case, &mut prng)];
    let plan = InlinePlan::new(first, policy, last);
    let assume = match prng.below(3) {
        _ if case.options.assumptions == 0 => BTreeMap::new(),
        0 | 1 => BTreeMap::new(),
        _ => chosen(case, prng.fork(0)).map_err(|e| vec![finding(case, e)])?,
    };
    let pins = prng.pick(&[Pins::OnDemand, Pins::OnDemand, Pins::Never, Pins::Live]);
    let plan = InlinePlan { pins, ..plan.assuming(assume) };
    let landings = CalleeLandings::new(&case.module, &plan);
    let mut all = Vec::new();
    for (func, base) in case.module.defined() {
        match inline(&case.module, func, &plan, &landings, &mut NoObserver) {
            Ok(made) => {
                figures.versions += 1;
                figures.assumptions += made.assumptions.exits.len() as u64;
                figures.dropped += made.assumptions.dropped.len() as u64;
                figures.calls += made.copies.instances().len() as u64 - 1;
                for way in 0..2 {
                    figures.points[way] += made.points[way].len() as u64;
                    figures.lost[way] += made.missing[way].len() as u64;
                }
                all.push((func, made));
            }
            Err(NotInlined::NoCall) => {}
            // An assumption made before the inlining may lose its exit for good.
            Err(NotInlined::Refused { error: SpeculateError::LosesExit { .. }, .. }) => {}
            Err(error) => return Err(vec![finding(case, format!("@{}: {error}", base.name()))]),
        }
    }
    Ok(all)
}

/// The default policy, or a policy that inlines more calls, also functions into themselves.
fn policy(prng: &mut Prng) -> InlinePolicy {
    if prng.below(4) == 0 {
        return InlinePolicy::default();
    }
    InlinePolicy {
        size: prng.pick(&[15, 60, 400, 400]),
        single_size: prng.pick(&[0, 100, 400]),
        depth: prng.pick(&[1, 2, 4, 4]),
        recursion: prng.pick(&[0, 1, 2, 3]),
        growth: 400,
        allowance: 800,
        ..InlinePolicy::default()
    }
}

/// The passes of the case, or a named pipeline.
fn pipeline(case: &Case, prng: &mut Prng) -> Pipeline {
    match prng.below(3) {
        0 => Pipeline::of(case.steps.concat()),
        _ => parse(prng.pick(&["O1", "O2", "canonical"])).expect("a pipeline of the registry"),
    }
}

fn finding(case: &Case, message: String) -> FuzzFinding {
    FuzzFinding { oracle: FuzzOracle::Inlining, versions: [0, case.steps.len()], message }
}

#[cfg(test)]
mod tests {
    use super::run;
    use crate::{CampaignOptions, InlinedFigures};

    /// Chains go in and out again, and each state is one of the bases.
    #[test]
    fn chains_leave_into_several_activations_more_than_once() {
        let options = CampaignOptions { only_inlining: true, ..CampaignOptions::default() };
        let options = CampaignOptions { size: 60, inputs: 3, ..options };
        let mut figures = InlinedFigures::default();
        for seed in 0..60 {
            if let Err(found) = run(&options.generated(seed), &mut figures) {
                panic!("seed {seed}: {}", found[0].message);
            }
        }
        let chains = &figures.chains;
        assert!(chains.chains > 80 && chains.hops() > 5 * chains.chains, "{chains:?}");
        assert!(3 * chains.several > chains.chains, "{chains:?}");
        // Behind a trap of the bases, a state to compare is missing.
        assert!(20 * chains.states > 19 * chains.hops(), "{chains:?}");
    }
}
