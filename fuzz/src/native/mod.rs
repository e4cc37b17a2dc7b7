//! The native state oracle: compares every transition that compiled code makes with the same
//! transition of the interpreter.
//!
//! Two versions of each function are compiled with OSR points and run in one [`jit::Vm`]. A machine
//! of the interpreter, the *shadow*, runs the same versions beside it. Each point that fires asks
//! the oracle ([`jit::Action::Ask`]). The shadow then advances to the next point that should fire
//! by the conditions of the points ([`shadow`]), which must be the same point. The oracle compares
//! values, memories, tables, globals and effects bit by bit, then both sides make the transition.
//!
//! Most transitions run a *probe* ([`jit::Engine::probe`]), which shows the values that the
//! compiled compensation code provides at the landing point. The oracle compares those too, and the
//! run continues from there. Other transitions run in one continuation without a stop. At the end
//! of a run, the oracle compares outcome, effects and memory with the shadow, and with a run of the
//! interpreter without transitions.
//!
//! A run must not alternate between versions within a gap forever. So points other than anchors
//! fire in only one of the two versions, chosen by seed for each function. Anchors fire in both
//! versions, since the run executes the anchor after it lands there.
//!
//! A single instance runs all inputs in sequence, and so does the shadow.
//!
//! A special policy replaces and frees code while the program runs ([`churn`]). Other policies
//! compile in other threads than the run ([`tiers`]).
//!
//! Versions that make assumptions are compared with their base ([`failing`]). Each assumption has a
//! point that fires when it fails. The run continues in the interpreter or in other native code.
//!
//! The oracle trusts the parts that the state oracle trusts, and it trusts the mappings. Both sides
//! follow a wrong mapping alike; only the comparison of the ends can reveal it.

mod bases;
mod churn;
mod clock;
mod compare;
mod counting;
mod delayed;
mod failing;
mod flagged;
mod follow;
mod inlining;
mod nans;
mod plan;
mod shadow;
mod tables;
mod tiers;
mod trial;

pub use clock::Clock;

use super::case::Case;
use super::figures::{Figures, SpeculationFigures};
use super::judge::{Judged, judged_by};
use super::oracle::{FuzzFinding, FuzzOracle};
use super::speculation;
use super::versions::{derive, map, module_of, pairs_of};
use ir::Value;
use jit::Nans;
use std::sync::Arc;
use trial::Trial;
use verify::state_oracle::FunctionPair;

/// Judges a case by the native state oracle. Wrong native code may end the process, so callers run
/// this in a child process.
pub fn judge_native(case: &Case, clock: &Clock) -> Judged {
    let case = &*nans::settled(case);
    judged_by(case, |figures| {
        figures.note_run(FuzzOracle::Native);
        if case.options.only_tables {
            return tables::judge(case, clock, figures);
        }
        if !case.options.only_speculation && !case.options.only_inlining {
            judge_versions(case, clock, figures)?;
        }
        if case.options.inlining && !case.options.only_speculation && !case.options.stress.is_on() {
            inlining::judge(case, clock, figures)?;
        }
        if case.options.only_inlining {
            return Ok(());
        }
        judge_assumptions(case, clock, figures)?;
        if case.options.only_speculation || case.options.stress.is_on() {
            return Ok(());
        }
        churn::judge(case, clock, figures)
    })
}

/// Judges each pair of versions that assume nothing.
fn judge_versions(
    case: &Case,
    clock: &Clock,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    figures.note_run(FuzzOracle::Ssa);
    let families = derive(case, figures).map_err(|finding| vec![finding])?;
    let mapped = map(&families, case.level, None, figures).map_err(|finding| vec![finding])?;
    for versions in pairs_of(case.versions()) {
        let pairs: Vec<FunctionPair<'_>> = mapped.iter().filter_map(|m| m.pair(versions)).collect();
        if !pairs.is_empty() {
            let module = module_of(&case.module, &families, versions[0]);
            Trial::new(case, versions, clock).judge(&Arc::new(module), &pairs, figures)?;
        }
    }
    if case.options.stress.is_on() {
        return Ok(());
    }
    let last = [0, case.steps.len()];
    let pairs: Vec<FunctionPair<'_>> = mapped.iter().filter_map(|m| m.pair(last)).collect();
    tiers::judge(case, clock, &pairs, figures)?;
    tables::judge(case, clock, figures)
}

/// Judges versions that make assumptions. Each is compared with the base of its function. A stress
/// switch names points of versions without assumptions, so it excludes these versions.
fn judge_assumptions(
    case: &Case,
    clock: &Clock,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    if case.options.assumptions == 0 || case.options.stress.is_on() {
        return Ok(());
    }
    // These counts are the interpreter's; native code has its own.
    let all = speculation::versions(case, &mut SpeculationFigures::default())?;
    let module = Arc::new(case.module.clone());
    for number in speculation::TO_BASE {
        let pairs: Vec<FunctionPair<'_>> = all
            .iter()
            .filter_map(|made| made.compared(number))
            .filter(|pair| can_test(case.options.nans, pair))
            .collect();
        if !pairs.is_empty() {
            let versions = [0, case.steps.len()];
            let tag = 0x6173_7375 + number as u64;
            Trial { tag, ..Trial::new(case, versions, clock) }.judge(&module, &pairs, figures)?;
        }
    }
    Ok(())
}

/// Whether native code can test all assumptions of a version: it compares references with null
/// alone, and with the NaNs of the processor it compares no NaN.
fn can_test(nans: Nans, pair: &FunctionPair<'_>) -> bool {
    let assumed = pair.after.all_insts().filter_map(|inst| pair.after.inst(inst).assumed());
    let is_other = |(value, bits): (Value, u64)| {
        let ty = pair.after.value_type(value);
        (ty.is_ref() && bits != ir::reference::NULL)
            || (nans == Nans::Platform && ir::eval::is_nan(ty, bits))
    };
    !assumed.into_iter().any(is_other)
}
