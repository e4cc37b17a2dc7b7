//! The composition oracle: compares three mappings between the first and the last version.
//!
//! The *composed* mapping is composed entry by entry along the chain of versions. The *rebuilt* one
//! is built from the concatenated logs, together with the mappings between all versions. The
//! *direct* one is built from the same log for the two ends only. The state oracle has judged the
//! rebuilt mapping before; here it judges the composed one. Where two of the mappings land at the
//! same point, they must provide equal values.

use super::case::Case;
use super::figures::{CompositionFigures, Figures};
use super::oracle::{FuzzFinding, FuzzOracle};
use super::states::compare_states;
use super::versions::Mapped;
use ir::{Func, Function};
use osr::{VersionPair, VersionTree, synthesize};
use transition::mapping::Mapping;
use verify::agreement::Agreement;
use verify::state_oracle::FunctionPair;

/// Judges the composed mappings of every function that has them, and compares the three kinds.
///
/// # Errors
/// A transition to a wrong state, or a disagreement between mappings.
pub(super) fn run(
    case: &Case,
    mapped: &[Mapped<'_>],
    figures: &mut Figures,
) -> Result<(), Vec<FuzzFinding>> {
    let versions = [0, case.steps.len()];
    let composed: Vec<FunctionPair<'_>> = mapped.iter().filter_map(Mapped::composed).collect();
    let as_composition = |mut findings: Vec<FuzzFinding>| {
        findings.iter_mut().for_each(|f| f.oracle = FuzzOracle::Composition);
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
            .expect("the log of a chain was replayed")
            .in_module(&case.module);
        let direct = synthesize(&pair, case.level);
        let forward = [composed.forward, rebuilt.forward, &direct.forward.mapping];
        let backward = [composed.backward, rebuilt.backward, &direct.backward.mapping];
        agree(case, composed.func, composed.before, &forward, &mut figures.composition)?;
        agree(case, composed.func, composed.after, &backward, &mut figures.composition)?;
    }
    Ok(())
}

/// Runs the case and compares mappings from the same source version to the same target version.
fn agree(
    case: &Case,
    func: Func,
    source: &Function,
    mappings: &[&Mapping],
    figures: &mut CompositionFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let finding = |message: String| {
        vec![FuzzFinding {
            oracle: FuzzOracle::Composition,
            versions: [0, case.steps.len()],
            message,
        }]
    };
    let agreement = Agreement::new(&case.module, func, source, mappings, case.limits());
    let mut agreement = agreement.map_err(|e| finding(e.to_string()))?;
    for args in &case.arguments {
        agreement.run(case.entry, args, &case.world);
    }
    let report = agreement.report();
    figures.same_point += report.same_point;
    figures.other_point += report.other_point;
    match report.disagreements.first() {
        Some(disagreement) => Err(finding(format!("@{}, {disagreement}", source.name()))),
        None => Ok(()),
    }
}
