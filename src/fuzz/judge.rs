//! One case, put to the oracles in order.

use super::case::Case;
use super::figures::Figures;
use super::oracle::{Finding, Oracle};
use super::stress;
use super::versions::{Mapped, Mapper, Versions, derive, map};
use ir::Module;
use ir::interp::Limits;
use std::panic::{AssertUnwindSafe, catch_unwind};
use verify::state_oracle::{self, FunctionPair, OracleOptions};

/// What was done with one case, and what was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// What was done; of a case in which something panicked, only that.
    pub figures: Figures,
    /// What was found, by the first oracle that found something; at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

impl Judged {
    /// The oracle that found something.
    pub fn oracle(&self) -> Option<Oracle> {
        self.findings.first().map(|f| f.oracle)
    }
}

/// Findings kept of one case.
pub const MAX_FINDINGS: usize = 4;

/// Puts a case to all oracles, in order, until one finds something. Mappings are those of [`osr::synthesize`].
pub fn judge(case: &Case) -> Judged {
    judge_with(case, osr::synthesize)
}

/// As [`judge()`], with mappings from elsewhere: wrong ones put the oracles on trial.
pub fn judge_with(case: &Case, mapper: Mapper) -> Judged {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let mut figures = Figures { programs: 1, ..Figures::default() };
        *figures.versions.entry(case.versions()).or_default() += 1;
        let findings = run_oracles(case, mapper, &mut figures).err().unwrap_or_default();
        (figures, findings)
    }));
    let (mut figures, findings) = judged.unwrap_or_else(|panic| {
        let finding = Finding { oracle: Oracle::Panic, versions: (0, case.steps.len()), message: panic_text(&*panic) };
        (Figures { programs: 1, ..Figures::default() }, vec![finding])
    });
    if let Some(first) = findings.first() {
        *figures.findings.entry(first.oracle).or_default() += 1;
    }
    Judged { figures, findings }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// The oracles, in the order of `Oracle::ALL`.
fn run_oracles(case: &Case, mapper: Mapper, figures: &mut Figures) -> Result<(), Vec<Finding>> {
    let all = derive(case, figures).map_err(|finding| vec![finding])?;
    for pair in pairs_of(case.versions()) {
        let mapped = map(&all, pair, case.level, mapper, figures).map_err(|finding| vec![finding])?;
        if mapped.is_empty() {
            continue;
        }
        figures.pairs += mapped.len() as u64;
        let module = module_of(&case.module, &all, pair.0);
        compare_states(case, &module, pair, &mapped, figures)?;
        stress::run(case, &module, pair, &mapped, figures)?;
    }
    Ok(())
}

/// Every pair of versions, the earlier one first. The oracles look at both directions of each.
fn pairs_of(versions: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..versions).flat_map(move |first| (first + 1..versions).map(move |last| (first, last)))
}

/// The program with every function in this version.
fn module_of(module: &Module, all: &[Versions], number: usize) -> Module {
    let mut module = module.clone();
    if number > 0 {
        for versions in all {
            module.bodies[versions.func] = Some(versions.functions[number].clone());
        }
    }
    module
}

/// Lockstep traces, the state at every transition, and going on: the state oracle does all three.
fn compare_states(
    case: &Case,
    module: &Module,
    versions: (usize, usize),
    mapped: &[Mapped<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<Finding>> {
    let pairs: Vec<FunctionPair<'_>> = mapped.iter().map(Mapped::pair).collect();
    let options = OracleOptions {
        policy: case.policy,
        limits: Limits { fuel: case.fuel, ..Limits::default() },
        going_on: case.going_on,
        divergences: MAX_FINDINGS,
        seed: case.seed,
        ..OracleOptions::default()
    };
    let mut oracle = state_oracle::Oracle::new(module, &pairs, options)
        .map_err(|e| vec![Finding { oracle: Oracle::State, versions, message: e.to_string() }])?;
    for args in &case.arguments {
        oracle.run(case.entry, args, &case.world);
    }
    let mut report = oracle.report().clone();
    figures.fired += oracle.coverage().0 as u64;
    let found = std::mem::take(&mut report.divergences);
    figures.state.add(&report);
    let finding =
        |d: &state_oracle::Divergence| Finding { oracle: Oracle::of(&d.difference), versions, message: d.to_string() };
    let mut findings: Vec<Finding> = found.iter().map(finding).collect();
    findings.sort_by_key(|f| f.oracle);
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}
