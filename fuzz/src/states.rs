//! The state oracle, on pairs of versions of every function.

use super::case::Case;
use super::figures::Figures;
use super::oracle::{FuzzFinding, FuzzOracle, MAX_FINDINGS};
use ir::Module;
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
    let options = OracleOptions {
        policy: case.policy,
        limits: case.limits(),
        going_on: case.options.going_on,
        divergences: MAX_FINDINGS,
        seed: case.seed,
        ..OracleOptions::default()
    };
    let mut oracle = Oracle::new(module, pairs, options).map_err(|e| {
        vec![FuzzFinding { oracle: FuzzOracle::State, versions, message: e.to_string() }]
    })?;
    for args in &case.arguments {
        oracle.run(case.entry, args, &case.world);
    }
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
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}
