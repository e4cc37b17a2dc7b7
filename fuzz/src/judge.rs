//! Judges one case by all oracles in order.

use super::case::Case;
use super::certificates;
use super::composition;
use super::figures::Figures;
use super::inlining;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::speculation;
use super::stress;
use super::versions::{EdgeDamage, FunctionVersions, Mapped, derive, map};
use interp::Limits;
use ir::Module;
use std::panic::{AssertUnwindSafe, catch_unwind};
use verify::hops::{self, FunctionGraph, HopOptions, Hopper};
use verify::state_oracle::{self, FunctionPair, OracleOptions};

/// The figures and findings of one case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// The figures. If something panicked, they count only the program and the finding.
    pub figures: Figures,
    /// The findings of the first oracle that found something, at most [`MAX_FINDINGS`].
    pub findings: Vec<FuzzFinding>,
}

impl Judged {
    /// The oracle of the findings.
    pub fn oracle(&self) -> Option<FuzzOracle> {
        self.findings.first().map(|f| f.oracle)
    }
}

/// The most findings that a case keeps.
pub const MAX_FINDINGS: usize = 4;

/// The factor on the fuel of a run with transitions. An entry may land before instructions that
/// were already executed, so such a run executes more.
const HOP_FUEL: u64 = 4;

/// Judges a case by all oracles in order, until one finds something. A panic is a finding.
pub fn judge(case: &Case) -> Judged {
    judge_with(case, None)
}

/// Like [`judge()`], with damaged mappings, to test the oracles themselves.
pub fn judge_with(case: &Case, damage: Option<EdgeDamage>) -> Judged {
    judged_by(case, |figures| run_oracles(case, damage, figures))
}

/// Runs `judge` on a case and turns a panic into a finding.
pub(super) fn judged_by(
    case: &Case,
    judge: impl FnOnce(&mut Figures) -> Result<(), Vec<FuzzFinding>>,
) -> Judged {
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let mut figures = Figures { programs: 1, ..Figures::default() };
        *figures.versions.entry(case.versions()).or_default() += 1;
        let findings = judge(&mut figures).err().unwrap_or_default();
        (figures, findings)
    }));
    let (mut figures, findings) = judged.unwrap_or_else(|panic| {
        let finding = FuzzFinding {
            oracle: FuzzOracle::Panic,
            versions: (0, case.steps.len()),
            message: panic_text(&*panic),
        };
        (Figures { programs: 1, ..Figures::default() }, vec![finding])
    });
    if let Some(first) = findings.first() {
        *figures.findings.entry(first.oracle).or_default() += 1;
    }
    Judged { figures, findings }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// Runs the oracles in the order of [`FuzzOracle::ALL`], except the native one.
fn run_oracles(
    case: &Case,
    damage: Option<EdgeDamage>,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    if !case.only_speculation && !case.only_inlining {
        judge_versions(case, damage, figures)?;
    }
    if case.inlining && !case.only_speculation {
        inlining::run(case, &mut figures.inlining)?;
    }
    match case.assumptions {
        0 => Ok(()),
        _ if case.only_inlining => Ok(()),
        _ => speculation::run(case, &mut figures.speculation),
    }
}

/// Runs the oracles of versions that assume nothing.
fn judge_versions(
    case: &Case,
    damage: Option<EdgeDamage>,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let families = derive(case, figures).map_err(|finding| vec![finding])?;
    let mapped = map(&families, case.level, damage, figures).map_err(|finding| vec![finding])?;
    if mapped.is_empty() {
        return Ok(());
    }
    if case.certificates {
        certificates::run(case, &mapped, figures)?;
    }
    for versions in pairs_of(case.versions()) {
        let pairs: Vec<FunctionPair<'_>> = mapped.iter().filter_map(|m| m.pair(versions)).collect();
        compare_states(
            case,
            &module_of(&case.module, &families, versions.0),
            versions,
            &pairs,
            figures,
        )?;
    }
    run_chains(case, &mapped, figures)?;
    if case.stress.is_on() {
        for versions in pairs_of(case.versions()) {
            let pairs: Vec<FunctionPair<'_>> =
                mapped.iter().filter_map(|m| m.pair(versions)).collect();
            stress::run(
                case,
                &module_of(&case.module, &families, versions.0),
                versions,
                &pairs,
                figures,
            )?;
        }
    }
    composition::run(case, &mapped, figures)?;
    match case.certificates {
        true => certificates::some_accepted(case, figures),
        false => Ok(()),
    }
}

/// Every pair of versions, the earlier version first. Oracles judge both directions of each pair.
pub(super) fn pairs_of(versions: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..versions).flat_map(move |first| (first + 1..versions).map(move |last| (first, last)))
}

/// The program with every function in the version with this number.
pub(super) fn module_of(module: &Module, families: &[FunctionVersions], number: usize) -> Module {
    let mut module = module.clone();
    if number > 0 {
        for family in families {
            module.define(family.func, family.function(number).clone());
        }
    }
    module
}

/// The limits of a machine that makes transitions.
pub(super) fn hop_limits(case: &Case) -> Limits {
    Limits { fuel: case.fuel.saturating_mul(HOP_FUEL), ..Limits::default() }
}

/// Runs the state oracle on pairs of versions. It compares lockstep traces, the state at each
/// transition, and the ends of sampled runs that continue in the other version.
pub(super) fn compare_states(
    case: &Case,
    module: &Module,
    versions: (usize, usize),
    pairs: &[FunctionPair<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    if pairs.is_empty() {
        return Ok(());
    }
    let options = OracleOptions {
        policy: case.policy,
        limits: Limits { fuel: case.fuel, ..Limits::default() },
        going_on: case.going_on,
        divergences: MAX_FINDINGS,
        seed: case.seed,
        ..OracleOptions::default()
    };
    let mut oracle = state_oracle::Oracle::new(module, pairs, options).map_err(|e| {
        vec![FuzzFinding { oracle: FuzzOracle::State, versions, message: e.to_string() }]
    })?;
    for args in &case.arguments {
        oracle.run(case.entry, args, &case.world);
    }
    let mut report = oracle.report().clone();
    let (fired, all) = oracle.coverage();
    figures.fired += fired as u64;
    figures.armed += all as u64;
    let found = std::mem::take(&mut report.divergences);
    figures.state.add(&report);
    let finding = |d: &state_oracle::Divergence| FuzzFinding {
        oracle: FuzzOracle::of(d),
        versions,
        message: d.to_string(),
    };
    let mut findings: Vec<FuzzFinding> = found.iter().map(finding).collect();
    // The first finding names the oracle of the case, so put the earliest oracle first.
    findings.sort_by_key(|f| f.oracle);
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Runs random chains of transitions among all versions.
fn run_chains(
    case: &Case,
    mapped: &[Mapped<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let versions = (0, case.steps.len());
    let finding = |message: String| FuzzFinding { oracle: FuzzOracle::Hops, versions, message };
    if case.chains == 0 {
        return Ok(());
    }
    let parts: Vec<_> = mapped.iter().map(graph_parts).collect();
    let graphs = mapped.iter().zip(&parts);
    let graphs: Vec<FunctionGraph<'_>> = graphs
        .map(|(m, (versions, edges))| FunctionGraph { func: m.family.func, versions, edges })
        .collect();
    let options = HopOptions {
        seed: case.seed,
        chains: case.chains,
        limits: hop_limits(case),
        divergences: MAX_FINDINGS,
        ..HopOptions::default()
    };
    let hopper = Hopper::new(&case.module, &graphs, options);
    let mut hopper = hopper.map_err(|e| vec![finding(e.to_string())])?;
    for args in &case.arguments {
        hopper.run(case.entry, args, &case.world);
    }
    let mut report = hopper.report().clone();
    let found = std::mem::take(&mut report.divergences);
    figures.hops.add(&report);
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.iter().map(|d| finding(d.to_string())).collect())
    }
}

/// The versions and edges of a function, in the form that the chain runner takes.
fn graph_parts<'m>(mapped: &'m Mapped<'_>) -> (Vec<&'m ir::Function>, Vec<hops::Edge<'m>>) {
    let tree = &mapped.family.tree;
    let place = |version: osr::Version| version.as_u32() as usize;
    let edges = mapped.edges().iter();
    let edges =
        edges.map(|e| hops::Edge { from: place(e.from), to: place(e.to), mapping: &e.mapping });
    (tree.versions().map(|v| tree.function(v)).collect(), edges.collect())
}
