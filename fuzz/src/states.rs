//! The state oracle, on pairs of versions of every function.

use super::case::Case;
use super::figures::Figures;
use super::oracle::{FuzzFinding, FuzzOracle, MAX_FINDINGS};
use ir::Module;
use verify::hops::{FunctionGraph, HopOptions, HopReport, Hopper};
use verify::state_oracle::{Divergence, FunctionPair, Oracle, OracleOptions};

/// Runs the state oracle on pairs of versions. It compares lockstep traces, the state at each
/// transition, and the ends of sampled runs that continue in the other version.
pub(super) fn compare_states(
    case: &Case,
    module: &Module,
    versions: [usize; 2],
    pairs: &[FunctionPair<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    if pairs.is_empty() {
        return Ok(());
    }
    let options =
        OracleOptions { policy: case.policy, limits: case.limits(), ..OracleOptions::default() };
    let oracle = oracle_of(case, module, pairs, options, &|message| FuzzFinding {
        oracle: FuzzOracle::State,
        versions,
        message,
    })?;
    let mut report = oracle.report().clone();
    let (fired, all) = oracle.coverage();
    figures.entries_fired += fired as u64;
    figures.entries_armed += all as u64;
    let found = std::mem::take(&mut report.divergences);
    figures.state.add(&report);
    let finding = |d: &Divergence| FuzzFinding {
        oracle: FuzzOracle::of(d),
        versions,
        message: d.to_string(),
    };
    let mut findings: Vec<FuzzFinding> = found.iter().map(finding).collect();
    // The first finding names the oracle of the case, so put the earliest oracle first.
    findings.sort_by_key(|f| f.oracle);
    none_of(findings)
}

/// Makes a finding of a message.
pub(super) type ToFinding<'a> = &'a dyn Fn(String) -> FuzzFinding;

/// The state oracle after the runs of a case on all its inputs.
///
/// # Errors
/// A finding, if the oracle rejects the pairs.
pub(super) fn oracle_of<'a>(
    case: &Case,
    module: &'a Module,
    pairs: &[FunctionPair<'a>],
    options: OracleOptions,
    finding: ToFinding<'_>,
) -> Result<Oracle<'a>, Vec<FuzzFinding>> {
    let options = OracleOptions {
        going_on: case.options.going_on,
        divergences: MAX_FINDINGS,
        seed: case.seed,
        ..options
    };
    let oracle = Oracle::new(module, pairs, options);
    let mut oracle = oracle.map_err(|error| vec![finding(error.to_string())])?;
    for args in &case.arguments {
        oracle.run(case.entry, args, &case.world);
    }
    Ok(oracle)
}

/// Runs random chains of transitions between the versions of functions, and adds their counts.
///
/// # Errors
/// The findings.
pub(super) fn run_chains(
    case: &Case,
    graphs: &[FunctionGraph<'_>],
    counts: &mut HopReport,
    finding: ToFinding<'_>,
) -> Result<(), Vec<FuzzFinding>> {
    let options = HopOptions {
        seed: case.seed,
        chains: case.options.chains,
        limits: case.hop_limits(),
        divergences: MAX_FINDINGS,
        ..HopOptions::default()
    };
    let hopper = Hopper::new(&case.module, graphs, options);
    let mut hopper = hopper.map_err(|error| vec![finding(error.to_string())])?;
    for args in &case.arguments {
        hopper.run(case.entry, args, &case.world);
    }
    let mut report = hopper.report().clone();
    let found = std::mem::take(&mut report.divergences);
    counts.add(&report);
    none_of(found.iter().map(|divergence| finding(divergence.to_string())).collect())
}

/// Turns findings into an error.
///
/// # Errors
/// The findings, if there are any.
pub(super) fn none_of(found: Vec<FuzzFinding>) -> Result<(), Vec<FuzzFinding>> {
    if found.is_empty() { Ok(()) } else { Err(found) }
}
