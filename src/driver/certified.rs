//! Mappings that the checker has accepted, entry by entry. What it does not accept is dropped and
//! counted.

use super::{Derived, Observer, Step};
use crate::export::Parts;
use certify::Certifier;
use check::verdict::{Options, Verdict};
use check::{Accepted, Checked, relate};
use ir::{Function, Module, Point};
use osr::{Level, Synthesis, SynthesizedMapping, Unmapped, VersionPair, synthesize_levels};
use std::collections::BTreeMap;
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};

/// The mapping in one direction: proved entries, and what became of the other points.
#[derive(Clone, Debug)]
pub struct CertifiedMapping {
    /// The entries the checker has accepted.
    pub mapping: Checked<Mapping>,
    /// The facts behind them, in their order.
    pub facts: MappingFacts,
    /// All points of the source version, unreachable ones included.
    pub points: usize,
    /// Points in code proved never to run.
    pub unreachable: usize,
    /// The reachable points for which no entry was found.
    pub unmapped: Vec<Unmapped>,
    /// The points whose entry was not accepted, ascending, with what the checker said.
    pub rejected: Vec<(Point, Verdict)>,
}

impl CertifiedMapping {
    /// What the checker said of all entries, before any was dropped.
    pub fn checked(&self) -> CheckCounts {
        let mut checked = CheckCounts {
            points: (self.points - self.unreachable) as u64,
            held: self.mapping.len() as u64,
            ..CheckCounts::default()
        };
        self.rejected.iter().for_each(|(_, verdict)| checked.count(verdict));
        checked
    }
}

/// What the checker said of entries.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct CheckCounts {
    /// The points of the source versions, those proved never to run left out where that is known.
    pub points: u64,
    /// Entries accepted.
    pub held: u64,
    /// Entries not accepted, by the check that failed.
    pub dropped: BTreeMap<String, u64>,
    /// Those of the dropped that were shown to be wrong, and not merely not proved.
    pub refuted: u64,
}

impl CheckCounts {
    /// Counts a verdict.
    pub(super) fn count(&mut self, verdict: &Verdict) {
        match verdict.finding() {
            None => self.held += 1,
            Some(finding) => *self.dropped.entry(finding.check.name().to_owned()).or_default() += 1,
        }
        self.refuted += u64::from(verdict.is_refuted());
    }

    /// Adds what was said of other entries.
    pub fn merge(&mut self, other: &CheckCounts) {
        self.points += other.points;
        self.held += other.held;
        self.refuted += other.refuted;
        for (reason, count) in &other.dropped {
            *self.dropped.entry(reason.clone()).or_default() += count;
        }
    }
}

/// The mappings both ways at one level.
#[derive(Clone, Debug)]
pub struct CertifiedLevel {
    /// The level.
    pub level: Level,
    /// From the base to the version derived.
    pub forward: CertifiedMapping,
    /// From the version derived to the base.
    pub backward: CertifiedMapping,
}

/// The mappings between two versions, with the certificate that entries of all levels share.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The certificate.
    pub certificate: Certificate,
    /// The levels asked for, lowest first.
    pub levels: Vec<CertifiedLevel>,
}

/// Makes the mappings between a version and the one derived from it, at some levels, and hands out
/// what the checker accepts. Cost: that of one synthesis for each level, and of judging what it
/// makes.
///
/// # Panics
/// When the log does not lead from `base` to the version derived: not where [`super::derive()`]
/// made it.
pub fn certify(
    module: &Module,
    base: &Function,
    derived: &Derived,
    levels: &[Level],
    observer: &mut dyn Observer,
) -> Certified {
    observer.begin(Some(Step::Map));
    let pair = VersionPair::new(base, &derived.function, &derived.log)
        .expect("the log leads to the version derived");
    let made = synthesize_levels(&pair, levels);
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let facts: Vec<Pair<MappingFacts>> = made
        .iter()
        .map(|(_, made)| {
            let forward = certifier.facts(Side::Before, &made.forward.mapping);
            Pair::new(forward, certifier.facts(Side::After, &made.backward.mapping))
        })
        .collect();
    let certificate = certifier.into_certificate();
    observer.begin(Some(Step::Check));
    let relation = relate(module, [base, &derived.function], &certificate, Options::default());
    let levels = made.into_iter().zip(facts).map(|((level, made), facts)| {
        let Synthesis { forward, backward } = made;
        let armed = Pair::new(backward.mapping.clone(), forward.mapping.clone());
        let judge = |side: Side, made: SynthesizedMapping, facts: MappingFacts| {
            let SynthesizedMapping { mapping, points, unreachable, unmapped } = made;
            let Accepted { mapping, facts, rejected } = match &relation {
                Ok(relation) => relation.accept(side, mapping, facts, &[&armed[side]]),
                Err(verdict) => Accepted::nothing(mapping, *verdict),
            };
            CertifiedMapping { mapping, facts, points, unreachable, unmapped, rejected }
        };
        CertifiedLevel {
            level,
            forward: judge(Side::Before, forward, facts.before),
            backward: judge(Side::After, backward, facts.after),
        }
    });
    let levels = levels.collect();
    observer.begin(None);
    Certified { certificate, levels }
}

/// Judges mappings both ways with their certificate, from wherever they come.
///
/// # Panics
/// Never: what is wrong with the parts is in the counts.
pub fn recheck(
    module: &Module,
    base: &Function,
    opt: &Function,
    (certificate, mappings): &Parts,
    observer: &mut dyn Observer,
) -> CheckCounts {
    observer.begin(Some(Step::Check));
    let relation = relate(module, [base, opt], certificate, Options::default());
    let mut checked = CheckCounts::default();
    for (at, side) in Side::BOTH.into_iter().enumerate() {
        let ((mapping, facts), (armed, _)) = (&mappings[at], &mappings[1 - at]);
        let verdicts = match &relation {
            Ok(relation) => relation.judge(side, mapping, facts, &[armed]),
            Err(verdict) => vec![*verdict; mapping.len()],
        };
        let source = [base, opt][at];
        checked.points += source.inst_count() as u64;
        verdicts.iter().for_each(|verdict| checked.count(verdict));
    }
    observer.begin(None);
    checked
}
