//! Makes mappings, runs the checker on every entry, and keeps the entries that it accepts. The
//! driver drops and counts the others.

use super::{Derived, MissingPoints, Observer, Step};
use certify::Certifier;
use check::verdict::{Options, Verdict};
use check::{Accepted, Checked, UnprovedAnchor, relate};
use ir::{Function, Module, Point};
use osr::{Level, Obstacle, Synthesis, VersionPair, synthesize_at, synthesize_levels};
use std::collections::{BTreeMap, BTreeSet};
use transition::certificate::{Certificate, MappingFacts};
use transition::mapping::Mapping;
use transition::{Pair, Side};

/// The mapping in one direction with accepted entries only, and the points without an entry.
#[derive(Clone, Debug)]
pub struct ProvedMapping {
    /// The accepted entries.
    pub mapping: Checked<Mapping>,
    /// The facts of the accepted entries, in the order of the entries.
    pub facts: MappingFacts,
    /// The number of points of the source version, or of requested points ([`prove_at`]),
    /// unreachable points included.
    pub points: usize,
    /// The number of unreachable points: points in code that synthesis or the checker has proved
    /// never to run.
    pub unreachable: usize,
    /// The reachable points without an accepted entry.
    pub missing: MissingPoints,
}

impl ProvedMapping {
    /// Counts of the verdicts on all entries, dropped ones included.
    pub fn checked(&self) -> CheckCounts {
        let mut checked = CheckCounts {
            points: (self.points - self.unreachable) as u64,
            held: self.mapping.len() as u64,
            ..CheckCounts::default()
        };
        self.missing.rejected().for_each(|(_, verdict)| checked.count(&verdict));
        checked
    }
}

/// Counts of verdicts on entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CheckCounts {
    /// The number of points of the source versions. [`ProvedMapping::checked`] excludes
    /// unreachable points; `osier::exchange::recheck` cannot identify them, and counts all points.
    pub points: u64,
    /// The number of accepted entries.
    pub held: u64,
    /// The number of dropped entries, by the name of the failed check.
    pub dropped: BTreeMap<String, u64>,
    /// The number of dropped entries that the checker refuted. The other dropped entries are
    /// undecided.
    pub refuted: u64,
}

impl CheckCounts {
    /// Counts one verdict.
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict.finding() {
            None => self.held += 1,
            Some(finding) => *self.dropped.entry(finding.check.name().to_owned()).or_default() += 1,
        }
        self.refuted += u64::from(verdict.is_refuted());
    }

    /// The number of dropped entries.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Adds the counts of other entries.
    pub fn merge(&mut self, other: &CheckCounts) {
        self.points += other.points;
        self.held += other.held;
        self.refuted += other.refuted;
        for (reason, count) in &other.dropped {
            *self.dropped.entry(reason.clone()).or_default() += count;
        }
    }
}

/// The mappings between two versions at several levels, and the certificate that they share.
#[derive(Clone, Debug)]
pub struct Proved {
    /// The certificate.
    pub certificate: Certificate,
    /// The requested levels, lowest first. The forward mapping leaves the version before.
    pub levels: Vec<(Level, Pair<ProvedMapping>)>,
    /// The anchors at which the versions are not proved alike. The checker drops the entries at
    /// points from which, or to which, a run passes such an anchor. `explain::unproved` describes
    /// the anchors.
    pub unproved: Vec<UnprovedAnchor>,
}

impl Proved {
    /// Counts of the verdicts on all entries of all levels, dropped ones included.
    pub fn checked(&self) -> CheckCounts {
        let mut checked = CheckCounts::default();
        let mappings = self.levels.iter().flat_map(|(_, made)| made.iter());
        mappings.for_each(|made| checked.merge(&made.checked()));
        checked
    }

    /// The mappings at a level. `None` if the level was not requested.
    pub fn at(&self, level: Level) -> Option<&Pair<ProvedMapping>> {
        self.levels.iter().find(|(of, _)| *of == level).map(|(_, made)| made)
    }

    /// The mappings at the highest level.
    ///
    /// # Panics
    /// If no level was requested.
    pub fn highest(&self) -> &Pair<ProvedMapping> {
        &self.levels.last().expect("a level was requested").1
    }

    /// As [`Proved::highest`], by value.
    ///
    /// # Panics
    /// If no level was requested.
    pub fn into_highest(mut self) -> Pair<ProvedMapping> {
        self.levels.pop().expect("a level was requested").1
    }
}

/// Makes the mappings between a base and its derived version at the given levels, and keeps the
/// entries that the checker accepts. Cost: one synthesis per level, one certificate, and one
/// verdict per entry.
///
/// # Panics
/// If the log does not lead from `base` to the derived version. The results of [`super::derive()`]
/// satisfy this.
pub fn prove(
    module: &Module,
    base: &Function,
    derived: &Derived,
    levels: &[Level],
    observer: &mut dyn Observer,
) -> Proved {
    observer.begin(Some(Step::Map));
    let pair = VersionPair::new(base, &derived.function, &derived.log)
        .expect("the log leads to the version derived")
        .in_module(module);
    let made = synthesize_levels(&pair, levels);
    judged(module, &pair, made, observer)
}

/// Like [`prove()`], for the entries at some points alone, at one level. `asked` returns the
/// points: of the base under [`Side::Before`], of the derived version under [`Side::After`] (see
/// [`synthesize_at`]).
///
/// Only the returned entries are armed for each other: live+ counts their required values alone. An
/// entry provides no values for entries of another call. If `asked` names no points of the derived
/// version, no entry leaves the version, and the results of several such calls may be used in one
/// run.
///
/// Cost: one certificate, and one pass of the checker over both versions; then, in proportion to
/// the entries.
///
/// # Panics
/// Like [`prove()`].
pub fn prove_at(
    module: &Module,
    base: &Function,
    derived: &Derived,
    level: Level,
    asked: impl FnOnce(&VersionPair<'_>) -> Pair<BTreeSet<Point>>,
    observer: &mut dyn Observer,
) -> Proved {
    observer.begin(Some(Step::Map));
    let pair = VersionPair::new(base, &derived.function, &derived.log)
        .expect("the log leads to the version derived")
        .in_module(module);
    let made = synthesize_at(&pair, level, &asked(&pair));
    judged(module, &pair, vec![(level, made)], observer)
}

/// Makes the certificate of a pair without mappings, and judges the pair as a whole.
///
/// # Errors
/// The verdict on the pair, if it is not proved.
///
/// # Panics
/// Like [`prove()`].
pub(super) fn prove_pair(
    module: &Module,
    base: &Function,
    derived: &Derived,
) -> Result<(), Verdict> {
    let pair = VersionPair::new(base, &derived.function, &derived.log)
        .expect("the log leads to the version derived");
    let common = pair.correspondence();
    let certificate = Certifier::new(&common).into_certificate();
    let relation = relate(module, common.versions, &certificate, Options::default())?;
    relation.unproved().first().map_or(Ok(()), |first| Err(Verdict::Undecided(first.finding)))
}

/// Judges the mappings of a pair, and keeps the entries that hold.
fn judged(
    module: &Module,
    pair: &VersionPair<'_>,
    made: Vec<(Level, Synthesis)>,
    observer: &mut dyn Observer,
) -> Proved {
    // All mappings contribute facts to one certifier, so relate the versions only after the last
    // one.
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
    let relation = relate(module, common.versions, &certificate, Options::default());
    let levels = made.into_iter().zip(facts).map(|((level, made), facts)| {
        let mut made = Pair::new(made.forward, made.backward);
        let obstacles = made.as_mut().map(|made| std::mem::take(&mut made.missing));
        let points = made.as_ref().map(|made| (made.points, made.unreachable));
        let accepted = check::accept(&relation, made.map(|made| made.mapping), facts);
        let ways = Pair::from(Side::BOTH).zip(accepted).zip(points.zip(obstacles));
        let proved = ways.map(|((side, accepted), ((points, unreachable), obstacles))| {
            let relation = relation.as_ref();
            let is_dead =
                |point| relation.is_ok_and(|relation| relation.is_unreachable(side, point));
            proved(accepted, points, unreachable, obstacles, is_dead)
        });
        (level, proved)
    });
    let levels = levels.collect();
    let unproved = relation.map_or_else(|_| Vec::new(), |relation| relation.unproved().to_vec());
    observer.begin(None);
    Proved { certificate, levels, unproved }
}

/// An accepted mapping with its points without an entry. `is_dead` says whether the checker has
/// proved a point unreachable: no entry is lost there, even if synthesis found one.
fn proved(
    Accepted { mapping, facts, mut rejected }: Accepted,
    points: usize,
    unreachable: usize,
    mut obstacles: Vec<osr::Missing<Obstacle>>,
    is_dead: impl Fn(Point) -> bool,
) -> ProvedMapping {
    let found = rejected.len() + obstacles.len();
    rejected.retain(|(point, _)| !is_dead(*point));
    obstacles.retain(|missing| !is_dead(missing.point));
    let unreachable = unreachable + found - rejected.len() - obstacles.len();
    let missing = MissingPoints::new(obstacles, rejected);
    ProvedMapping { mapping, facts, points, unreachable, missing }
}
