//! Reduces a version graph to the entries that the checker accepts, and seals its mappings.

use super::{CheckCounts, Missing, MissingPoints, Observer, ProvedMapping, Step, Why};
use certify::Certifier;
use check::verdict::Options;
use check::{Accepted, Checked, LivePoints, accept_armed, compose, relate};
use ir::{Module, Point};
use osr::{Edge, EdgeOrigin, Version, VersionGraph, VersionPair};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::certificate::MappingFacts;
use transition::mapping::Mapping;
use transition::{Pair, Refusal, Side};

/// The reason for dropped entries between versions of which neither was derived from the other.
/// Without a log between the versions, they have no certificate. Composed edges need no
/// certificate.
pub const NO_LOG: &str = "no-log";

/// The mappings of a version graph under seal.
#[derive(Clone, Debug, Default)]
pub struct ProvedGraph {
    /// Counts of the verdicts on the entries of built and inserted edges.
    pub counts: CheckCounts,
    /// By index of the edge in [`VersionGraph::edges`]: its accepted entries, the only entries that
    /// the edge keeps, and the points without an entry. Each mapping was accepted with all mappings
    /// of the graph armed, so a run may take these edges one after the other ([`Checked`]). A
    /// composed mapping has no facts. Its points lack an entry because the first edge of the path
    /// lacks one, or because the entries do not compose.
    pub mappings: Vec<ProvedMapping>,
    /// By version: the points that the checker has proved unreachable. Missing entries there are
    /// not counted, since no run needs them.
    pub unreachable: VersionPoints,
    /// By version: the live values at the requested points of [`prove_graph_at`], with all
    /// mappings of the graph armed. A version without a proved pair is absent.
    pub live: BTreeMap<Version, Checked<LivePoints>>,
}

/// Points of versions.
pub type VersionPoints = BTreeMap<Version, BTreeSet<Point>>;

/// Drops the entries of a graph that the checker does not accept, then composes the composed edges
/// again from the accepted entries. A composed entry is correct if both parts are correct and the
/// first part provides all values that the second requires ([`check::compose`]). Cost: one
/// certificate per pair of versions with an edge, and one verdict per entry.
///
/// # Panics
/// If a log of the graph's tree does not replay. Trees built by their own functions satisfy this.
pub fn prove_graph(
    module: &Module,
    graph: &mut VersionGraph<'_>,
    observer: &mut dyn Observer,
) -> ProvedGraph {
    prove_graph_at(module, graph, &VersionPoints::new(), observer)
}

/// Like [`prove_graph`], and finds the live values at some points: the values that frames need
/// which land there ([`check::leave_copy`]).
///
/// # Panics
/// As [`prove_graph`].
pub fn prove_graph_at(
    module: &Module,
    graph: &mut VersionGraph<'_>,
    asked: &VersionPoints,
    observer: &mut dyn Observer,
) -> ProvedGraph {
    let mut proved = ProvedGraph::default();
    // By index of the edge. Two edges may join the same versions, so a pair of versions is no key
    // (`an_edge_is_not_vouched_for_by_another_between_its_versions`).
    let mut own: BTreeMap<usize, ProvedMapping> = BTreeMap::new();
    let is_own = |e: &&Edge| !matches!(e.origin, EdgeOrigin::Composed { .. });
    let ends: BTreeSet<(Version, Version)> =
        graph.edges().iter().filter(is_own).map(|e| (e.from.min(e.to), e.from.max(e.to))).collect();
    for (before, after) in ends {
        own.extend(judge_pair(module, graph, [before, after], asked, &mut proved, observer));
    }
    graph.retain(|(index, _), point, _| {
        own.get(&index).is_some_and(|made| made.mapping.entry(point).is_some())
    });
    for (index, edge) in graph.edges().iter().enumerate() {
        let sealed = match &edge.origin {
            EdgeOrigin::Composed { path, refused } => along(graph, &proved.mappings, path, refused),
            EdgeOrigin::Built { .. } | EdgeOrigin::Inserted => own.remove(&index),
        };
        // An edge without a log has no accepted entries.
        let nothing = || ProvedMapping {
            mapping: Checked::nothing(edge.mapping.source(), edge.mapping.target()),
            facts: MappingFacts::default(),
            points: 0,
            unreachable: 0,
            missing: MissingPoints::default(),
        };
        proved.mappings.push(sealed.unwrap_or_else(nothing));
    }
    observer.begin(None);
    proved
}

/// The mapping of the first edge between two versions.
pub(crate) fn mapping_between<'p>(
    graph: &VersionGraph<'_>,
    proved: &'p [ProvedMapping],
    ends: &[Version],
) -> Option<&'p ProvedMapping> {
    proved.get(graph.edges().iter().position(|edge| [edge.from, edge.to] == ends)?)
}

/// The accepted mapping along a path of versions. Like [`VersionGraph::add_composed`], it takes the
/// first edge between consecutive versions. `sealed` are the mappings of the edges so far: a
/// composed edge comes after the edges of its path. `refused` are the points at which the first
/// edge has an entry and the path has none.
fn along(
    graph: &VersionGraph<'_>,
    sealed: &[ProvedMapping],
    path: &[Version],
    refused: &[(Point, Refusal)],
) -> Option<ProvedMapping> {
    let leg = |ends: &[Version]| mapping_between(graph, sealed, ends);
    let first = leg(path.get(..2)?)?;
    let mut mapping = first.mapping.clone();
    for ends in path[1..].windows(2) {
        mapping = compose(&mapping, &leg(ends)?.mapping).ok()?.mapping;
    }
    let refused =
        refused.iter().map(|(point, why)| Missing { point: *point, why: Why::Refused(*why) });
    let missing = first.missing.iter().copied().chain(refused).collect();
    let ProvedMapping { points, unreachable, .. } = *first;
    Some(ProvedMapping { mapping, facts: MappingFacts::default(), points, unreachable, missing })
}

/// Judges the built and inserted edges between two versions, in both directions. `before` is the
/// older version. Returns their accepted mappings, by index of the edge.
fn judge_pair(
    module: &Module,
    graph: &VersionGraph<'_>,
    [before, after]: [Version; 2],
    asked: &VersionPoints,
    judged: &mut ProvedGraph,
    observer: &mut dyn Observer,
) -> Vec<(usize, ProvedMapping)> {
    observer.begin(Some(Step::Map));
    let tree = graph.tree();
    let versions = Pair::new(tree.function(before), tree.function(after));
    let ways = [(Side::Before, (before, after)), (Side::After, (after, before))];
    // An edge from a version to itself exists in one direction only. Both directions would judge it
    // twice.
    let ways = if before == after { &ways[..1] } else { &ways[..] };
    let own = |ends: (Version, Version)| {
        let edges = graph.edges().iter().enumerate().filter(move |(_, e)| (e.from, e.to) == ends);
        edges.filter(|(_, e)| !matches!(e.origin, EdgeOrigin::Composed { .. }))
    };
    if !tree.is_derived(before, after) {
        let entries = ways
            .iter()
            .flat_map(|(_, ends)| own(*ends))
            .map(|(_, e)| e.mapping.len() as u64)
            .sum::<u64>();
        let checked = &mut judged.counts;
        if entries > 0 {
            checked.points += entries;
            *checked.dropped.entry(NO_LOG.to_owned()).or_default() += entries;
        }
        return Vec::new();
    }
    // Synthesis has read the log of a built edge.
    let common = graph.correspondence(before, after).unwrap_or_else(|| {
        let log = tree.log(before, after).expect("one version was derived from the other");
        let pair = VersionPair::new(versions.before, versions.after, &log);
        Arc::new(pair.expect("the tree has replayed its logs").correspondence())
    });
    let mut certifier = Certifier::new(&common);
    let mut made: Vec<(Side, (usize, &Edge), MappingFacts)> = Vec::new();
    for &(side, ends) in ways {
        made.extend(own(ends).map(|edge| (side, edge, certifier.facts(side, &edge.1.mapping))));
    }
    let certificate = certifier.into_certificate();
    observer.begin(Some(Step::Check));
    let relation = relate(module, versions, &certificate, Options::default());
    let armed_in = |version: Version| -> Vec<&Mapping> {
        let edges = graph.edges().iter().filter(|e| e.from == version).map(|e| &e.mapping);
        edges.chain(tree.armed(version)).collect()
    };
    for (side, version) in [(Side::Before, before), (Side::After, after)] {
        if let (Some(points), Ok(relation)) = (asked.get(&version), &relation)
            && let Ok(live) = relation.live_at(side, points.iter().copied(), &armed_in(version))
        {
            judged.live.insert(version, live);
        }
    }
    if let Ok(relation) = &relation {
        for (side, version) in [(Side::Before, before), (Side::After, after)] {
            let points = tree.function(version).all_insts().map(Point::before);
            let dead = points.filter(|point| relation.is_unreachable(side, *point));
            judged.unreachable.entry(version).or_default().extend(dead);
        }
    }
    let judge = |(side, (index, edge), facts): (Side, (usize, &Edge), MappingFacts)| {
        // The next transition of a run may use any edge from the target version, so the entry must
        // provide live+ with respect to all of them.
        let armed = armed_in(edge.to);
        let Accepted { mapping, facts, mut rejected } =
            accept_armed(&relation, side, edge.mapping.clone(), facts, &armed);
        let dead = judged.unreachable.get(&edge.from);
        rejected.retain(|(point, _)| dead.is_none_or(|dead| !dead.contains(point)));
        let checked = &mut judged.counts;
        checked.points += (mapping.len() + rejected.len()) as u64;
        checked.held += mapping.len() as u64;
        rejected.iter().for_each(|(_, verdict): &(Point, _)| checked.count(verdict));
        let (points, unreachable, obstacles) = match &edge.origin {
            EdgeOrigin::Built { points, unreachable, missing } => {
                (*points, *unreachable, &missing[..])
            }
            _ => (mapping.len() + rejected.len(), 0, &[][..]),
        };
        let missing = MissingPoints::new(obstacles.iter().copied(), rejected);
        (index, ProvedMapping { mapping, facts, points, unreachable, missing })
    };
    made.into_iter().map(judge).collect()
}
