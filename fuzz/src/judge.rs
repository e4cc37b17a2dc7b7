//! Judges one case by all oracles in order.

use super::case::Case;
use super::certificates;
use super::composition;
use super::figures::Figures;
use super::inlining;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::speculation;
use super::states::{compare_states, run_chains};
use super::stressed;
use super::versions::{EdgeDamage, Mapped, derive, map, module_of, pairs_of};
use std::panic::{AssertUnwindSafe, catch_unwind};
use verify::hops::{self, FunctionGraph};
use verify::state_oracle::FunctionPair;

/// The figures and findings of one case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Judged {
    /// The figures. If something panicked, they count only the program and the finding.
    pub figures: Figures,
    /// The findings of the first oracle that found something, at most
    /// [`MAX_FINDINGS`](super::oracle::MAX_FINDINGS).
    pub findings: Vec<FuzzFinding>,
}

impl Judged {
    /// The oracle of the findings.
    pub fn oracle(&self) -> Option<FuzzOracle> {
        self.findings.first().map(|f| f.oracle)
    }
}

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
        figures.note_run(FuzzOracle::Panic);
        let findings = judge(&mut figures).err().unwrap_or_default();
        (figures, findings)
    }));
    let (mut figures, findings) = judged.unwrap_or_else(|panic| {
        let finding = FuzzFinding {
            oracle: FuzzOracle::Panic,
            versions: [0, case.steps.len()],
            message: panic_text(&*panic),
        };
        (Figures { programs: 1, ..Figures::default() }, vec![finding])
    });
    if let Some(first) = findings.first() {
        figures.count_finding(first.oracle);
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
    if !case.options.only_speculation && !case.options.only_inlining {
        judge_versions(case, damage, figures)?;
    }
    if case.options.inlining && !case.options.only_speculation {
        figures.note_run(FuzzOracle::Inlining);
        inlining::run(case, &mut figures.inlining)?;
    }
    match case.options.assumptions {
        0 => Ok(()),
        _ if case.options.only_inlining => Ok(()),
        _ => {
            figures.note_run(FuzzOracle::Speculation);
            speculation::run(case, &mut figures.speculation)
        }
    }
}

/// The oracles that judge mappings between versions that assume nothing, in order.
const OF_MAPPINGS: [FuzzOracle; 6] = [
    FuzzOracle::Certificates,
    FuzzOracle::Lockstep,
    FuzzOracle::State,
    FuzzOracle::GoingOn,
    FuzzOracle::Hops,
    FuzzOracle::Composition,
];

/// Notes those of the oracles that the options of the case select.
fn note_runs(case: &Case, figures: &mut Figures, oracles: &[FuzzOracle]) {
    let options = &case.options;
    for oracle in oracles {
        let is_selected = match oracle {
            FuzzOracle::Certificates => options.certificates,
            FuzzOracle::GoingOn => options.going_on > 0,
            FuzzOracle::Hops => options.chains > 0 || options.stress.is_on(),
            FuzzOracle::Composition => case.versions() > 2,
            _ => true,
        };
        if is_selected {
            figures.note_run(*oracle);
        }
    }
}

/// Runs the oracles of versions that assume nothing.
fn judge_versions(
    case: &Case,
    damage: Option<EdgeDamage>,
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    figures.note_run(FuzzOracle::Ssa);
    let families = derive(case, figures).map_err(|finding| vec![finding])?;
    let mapped = map(&families, case.level, damage, figures).map_err(|finding| vec![finding])?;
    if mapped.is_empty() {
        // A program that no pass changes passes them all.
        note_runs(case, figures, &OF_MAPPINGS);
        return Ok(());
    }
    if case.options.certificates {
        figures.note_run(FuzzOracle::Certificates);
        certificates::run(case, &mapped, &mut figures.certificates)?;
    }
    note_runs(case, figures, &[FuzzOracle::Lockstep, FuzzOracle::State, FuzzOracle::GoingOn]);
    for versions in pairs_of(case.versions()) {
        let pairs: Vec<FunctionPair<'_>> = mapped.iter().filter_map(|m| m.pair(versions)).collect();
        compare_states(
            case,
            &module_of(&case.module, &families, versions[0]),
            versions,
            &pairs,
            figures,
        )?;
    }
    note_runs(case, figures, &[FuzzOracle::Hops]);
    hop(case, &mapped, figures)?;
    if case.options.stress.is_on() {
        for versions in pairs_of(case.versions()) {
            let pairs: Vec<FunctionPair<'_>> =
                mapped.iter().filter_map(|m| m.pair(versions)).collect();
            stressed::run(
                case,
                &module_of(&case.module, &families, versions[0]),
                versions,
                &pairs,
                &mut figures.stress,
            )?;
        }
    }
    note_runs(case, figures, &[FuzzOracle::Composition]);
    composition::run(case, &mapped, figures)?;
    match case.options.certificates {
        true => certificates::some_accepted(case, &figures.certificates),
        false => Ok(()),
    }
}

/// Runs random chains of transitions among all versions.
fn hop(case: &Case, mapped: &[Mapped<'_>], figures: &mut Figures) -> Result<(), Vec<FuzzFinding>> {
    if case.options.chains == 0 {
        return Ok(());
    }
    let parts: Vec<_> = mapped.iter().map(graph_parts).collect();
    let graphs = mapped.iter().zip(&parts);
    let graphs: Vec<FunctionGraph<'_>> = graphs
        .map(|(m, (versions, edges))| FunctionGraph { func: m.family.func, versions, edges })
        .collect();
    let versions = [0, case.steps.len()];
    let finding = |message: String| FuzzFinding { oracle: FuzzOracle::Hops, versions, message };
    run_chains(case, &graphs, &mut figures.hops, &finding)
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
