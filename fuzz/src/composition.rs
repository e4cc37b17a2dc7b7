//! Mappings between the first version and the last that were made in three ways.
//!
//! *Composed*, entry by entry, along the chain of versions; *rebuilt*, from the concatenated logs
//! of the steps, together with the mappings between all versions; *direct*, from the same log for
//! the two ends alone. The state oracle has judged the second by now; here it judges the first, and
//! where two of them land at the same point they must rebuild equal values.

use super::case::Case;
use super::figures::Figures;
use super::judge::compare_states;
use super::oracle::{Finding, Oracle};
use super::versions::Mapped;
use interp::Limits;
use ir::{Func, Function};
use osr::{VersionPair, VersionTree, synthesize};
use transition::mapping::Mapping;
use verify::agreement::Agreement;
use verify::state_oracle::FunctionPair;

/// Judges composed mappings of every function that has them, and compares the three.
pub(super) fn run(
    case: &Case,
    mapped: &[Mapped<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<Finding>> {
    let versions = (0, case.steps.len());
    let composed: Vec<FunctionPair<'_>> = mapped.iter().filter_map(Mapped::composed).collect();
    let as_composition = |mut findings: Vec<Finding>| {
        findings.iter_mut().for_each(|f| f.oracle = Oracle::Composition);
        findings
    };
    compare_states(case, &case.module, versions, &composed, figures).map_err(as_composition)?;
    for one in mapped {
        let (Some(composed), Some(rebuilt)) = (one.composed(), one.pair(versions)) else {
            continue;
        };
        let tree = &one.family.tree;
        let last = tree.versions().last().expect("the base is there");
        let log = tree.log(VersionTree::BASE, last).expect("versions form a chain");
        let pair = VersionPair::new(composed.before, composed.after, &log)
            .expect("the log of a chain was replayed");
        let direct = synthesize(&pair, case.level);
        let forward = [composed.forward, rebuilt.forward, &direct.forward.mapping];
        let backward = [composed.backward, rebuilt.backward, &direct.backward.mapping];
        agree(case, (composed.func, composed.before), &forward, figures)?;
        agree(case, (composed.func, composed.after), &backward, figures)?;
    }
    Ok(())
}

/// Compares mappings that leave one version for the same other one.
fn agree(
    case: &Case,
    source: (Func, &Function),
    mappings: &[&Mapping],
    figures: &mut Figures,
) -> Result<(), Vec<Finding>> {
    let finding = |message: String| {
        vec![Finding { oracle: Oracle::Composition, versions: (0, case.steps.len()), message }]
    };
    let limits = Limits { fuel: case.fuel, ..Limits::default() };
    let agreement = Agreement::new(&case.module, source, mappings, limits);
    let mut agreement = agreement.map_err(|e| finding(e.to_string()))?;
    for args in &case.arguments {
        agreement.run(case.entry, args, &case.world);
    }
    let report = agreement.report();
    figures.same_point += report.same_point;
    figures.other_point += report.other_point;
    match report.disagreements.first() {
        Some(disagreement) => Err(finding(format!("@{}, {disagreement}", source.1.name()))),
        None => Ok(()),
    }
}
