//! The certificates oracle: the checker judges every entry of every built mapping, without a run.
//!
//! Composed entries are not judged here. A composed entry is correct if its parts are correct, and
//! composition itself checks the provided values. A certificate between the two ends does not cover
//! the versions in between.
//!
//! An entry that the checker leaves undecided is counted as dropped, and the later oracles judge it
//! all the same. An entry that it refutes is a finding. A refuted *relation* between the versions,
//! or a refuted anchor, is no finding: it shows that the certificate is wrong, and the maker of
//! certificates is not trusted. The entries that it costs count as dropped, and the lockstep oracle
//! judges whether the versions agree.
//!
//! If a program has entries and the checker accepts no entry, the driver makes the versions again
//! without the rewrites to blame. If the checker still accepts no entry, the other oracles have
//! judged only entries that no user can fire. This is a finding ([`some_accepted`]), but ranks
//! behind the more precise findings of all other oracles.

use super::case::Case;
use super::figures::CertificateFigures;
use super::oracle::{FuzzFinding, FuzzOracle};
use super::versions::Mapped;
use certify::Certifier;
use check::relate;
use check::verdict::{self, Check, Finding, Verdict};
use ir::Function;
use osier::driver::{NoObserver, Recipe, derive_proved};
use osr::{Edge, Version, VersionPair};
use passes::Pipeline;
use std::collections::BTreeSet;
use transition::Side;
use transition::mapping::Mapping;

/// Judges the built edges of every function.
///
/// # Errors
/// The refuted entries, at most [`super::oracle::MAX_FINDINGS`].
pub(super) fn run(
    case: &Case,
    mapped: &[Mapped<'_>],
    figures: &mut CertificateFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let mut findings = Vec::new();
    for one in mapped {
        for (before, after) in pairs(one.built()) {
            let dropped = figures.dropped();
            let refuted = judge_pair(case, one, before, after, figures);
            let place = |version| one.family.at.iter().position(|v| *v == version).unwrap_or(0);
            let versions = [before, after].map(place);
            if figures.dropped() > dropped {
                retry(case, one.family.tree.function(before), versions, figures);
            }
            let name = one.family.function(0).name();
            let finding = |text: String| FuzzFinding {
                oracle: FuzzOracle::Certificates,
                versions,
                message: format!("@{name}, {text}"),
            };
            findings.extend(refuted.into_iter().map(finding));
        }
    }
    findings.truncate(super::oracle::MAX_FINDINGS);
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Checks that the checker accepts some entry of the program, if it has entries: of the original
/// versions, or of the versions made again.
///
/// # Errors
/// The finding that the checker accepts no entry, with the failed checks.
pub(super) fn some_accepted(
    case: &Case,
    figures: &CertificateFigures,
) -> Result<(), Vec<FuzzFinding>> {
    let dropped = figures.dropped();
    if figures.certified + figures.held_again > 0 || dropped == 0 {
        return Ok(());
    }
    let checks: Vec<String> =
        figures.dropped.iter().map(|(check, count)| format!("{check} {count}")).collect();
    let checks = checks.join(", ");
    Err(vec![FuzzFinding {
        oracle: FuzzOracle::Certificates,
        versions: [0, case.steps.len()],
        message: format!("none of {dropped} entries of the program is accepted: {checks}"),
    }])
}

/// Makes the later version of a pair again, without the rewrites to blame for dropped entries. The
/// driver verifies each version and replays each log; a panic is a finding.
fn retry(
    case: &Case,
    base: &Function,
    [first, last]: [usize; 2],
    figures: &mut CertificateFigures,
) {
    let passes = case.steps[first..last].concat();
    let (pipeline, levels) = (Pipeline::of(passes), [case.level]);
    let recipe = Recipe::new(&pipeline, &levels);
    let made = derive_proved(&case.module, base, &recipe, &mut NoObserver);
    let checked = made.proved.checked();
    let unreached = checked.dropped.get(Check::SourceReached.name()).copied().unwrap_or(0);
    figures.retried += 1;
    figures.given_up += made.retried.refused;
    figures.still_dropped += checked.all_dropped() - unreached;
    figures.held_again += checked.held;
}

/// Every pair of versions with a built edge, the earlier version first.
fn pairs<'e>(edges: impl Iterator<Item = &'e Edge>) -> Vec<(Version, Version)> {
    let mut pairs: Vec<(Version, Version)> =
        edges.map(|e| (e.from, e.to)).filter(|(a, b)| a < b).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Judges the mappings between two versions and returns the refuted entries as text.
fn judge_pair(
    case: &Case,
    one: &Mapped<'_>,
    before: Version,
    after: Version,
    figures: &mut CertificateFigures,
) -> Vec<String> {
    let tree = &one.family.tree;
    let versions = [tree.function(before), tree.function(after)];
    let log = tree.log(before, after).expect("versions form a chain");
    let pair =
        VersionPair::new(versions[0], versions[1], &log).expect("the log of a chain was replayed");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let ways = [(Side::Before, before, after), (Side::After, after, before)];
    let mut mappings = Vec::new();
    for (side, from, to) in ways {
        for edge in one.built().filter(|e| (e.from, e.to) == (from, to)) {
            mappings.push((
                side,
                &edge.mapping,
                certifier.facts(side, &edge.mapping),
                leaving(one, to),
            ));
        }
    }
    let certificate = certifier.into_certificate();
    let related = relate(&case.module, versions.into(), &certificate, verdict::Options::default());
    let relation = match related {
        Ok(relation) => relation,
        Err(verdict) => {
            let entries: usize = mappings.iter().map(|(_, mapping, ..)| mapping.len()).sum();
            let check = verdict.finding().map_or("relation", |f| f.check.name());
            *figures.dropped.entry(check).or_default() += entries as u64;
            figures.unrelated += u64::from(verdict.is_refuted());
            return Vec::new();
        }
    };
    let mut refuted = Vec::new();
    let unproved: BTreeSet<Finding> = relation.unproved().iter().map(|u| u.finding).collect();
    // Contents of leaves that distinguish two anchors refute the versions, but no entry.
    let mut is_unrelated = false;
    for (side, mapping, facts, armed) in mappings {
        let verdicts = relation.judge(side, mapping, &facts, &armed);
        let (of_versions, of_entries): (Vec<Verdict>, Vec<Verdict>) = verdicts
            .into_iter()
            .partition(|v| v.finding().is_some_and(|finding| unproved.contains(&finding)));
        for finding in of_versions.iter().filter_map(Verdict::finding) {
            *figures.dropped.entry(finding.check.name()).or_default() += 1;
        }
        is_unrelated |= of_versions.iter().any(Verdict::is_refuted);
        refuted.extend(
            count(&of_entries, figures)
                .into_iter()
                .map(|text| format!("{}: {text}", side.direction())),
        );
    }
    figures.unrelated += u64::from(is_unrelated);
    refuted
}

/// All mappings from a version. Entries that land there must provide live+ for them.
fn leaving<'m>(one: &'m Mapped<'_>, version: Version) -> Vec<&'m Mapping> {
    one.edges().iter().filter(|e| e.from == version).map(|e| &e.mapping).collect()
}

/// Counts verdicts and returns the refuting verdicts as text.
fn count(verdicts: &[Verdict], figures: &mut CertificateFigures) -> Vec<String> {
    let mut refuted = Vec::new();
    for verdict in verdicts {
        match verdict {
            Verdict::Holds => figures.certified += 1,
            Verdict::Undecided(finding) if finding.check == Check::SourceReached => {
                figures.unreached += 1
            }
            Verdict::Undecided(finding) => {
                *figures.dropped.entry(finding.check.name()).or_default() += 1;
            }
            Verdict::Refuted(..) => refuted.push(verdict.to_string()),
        }
    }
    refuted
}
