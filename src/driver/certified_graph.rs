//! Reduces a version graph to the entries that the checker accepts.

use super::{CheckCounts, Observer, Step};
use certify::Certifier;
use check::relate;
use check::verdict::{Options, Verdict};
use ir::{Module, Point};
use osr::{Edge, Origin, Version, VersionGraph, VersionPair};
use std::collections::{BTreeMap, BTreeSet};
use transition::Side;
use transition::certificate::MappingFacts;
use transition::mapping::Mapping;

/// The reason under which entries are dropped if neither version was derived from the other.
/// Without a log between the versions there is no certificate. Edges composed of accepted entries
/// need none.
pub const NO_LOG: &str = "no-log";

/// The points of accepted entries, by index of the edge. Two edges may join the same versions, so
/// versions are no key (`an_edge_is_not_vouched_for_by_another_between_its_versions`).
type Held = BTreeMap<usize, BTreeSet<Point>>;

/// Drops the entries of a graph that the checker does not accept, then composes the composed edges
/// again from the accepted entries. A composed entry is correct if its parts are, and if the second
/// part requires no more than the first provides. Cost: one certificate per pair of versions with
/// an edge, and one verdict per entry.
///
/// # Panics
/// If a log of the graph's tree does not replay. Trees built by their own functions satisfy this.
pub fn certify_graph(
    module: &Module,
    graph: &mut VersionGraph<'_>,
    observer: &mut dyn Observer,
) -> CheckCounts {
    let mut checked = CheckCounts::default();
    let mut held = Held::new();
    let is_own = |e: &&Edge| !matches!(e.origin, Origin::Composed { .. });
    let ends: BTreeSet<(Version, Version)> =
        graph.edges().iter().filter(is_own).map(|e| (e.from.min(e.to), e.from.max(e.to))).collect();
    for ends in ends {
        judge_pair(module, graph, ends, &mut held, &mut checked, observer);
    }
    graph.retain(|(index, _), point, _| {
        held.get(&index).is_some_and(|points| points.contains(&point))
    });
    observer.begin(None);
    checked
}

/// Judges the built and inserted edges between two versions, in both directions. `before` is the
/// older version.
fn judge_pair(
    module: &Module,
    graph: &VersionGraph<'_>,
    (before, after): (Version, Version),
    held: &mut Held,
    checked: &mut CheckCounts,
    observer: &mut dyn Observer,
) {
    observer.begin(Some(Step::Map));
    let tree = graph.tree();
    let versions = [tree.function(before), tree.function(after)];
    let ways = [(Side::Before, (before, after)), (Side::After, (after, before))];
    // An edge from a version to itself exists in one direction only. Both directions would judge it
    // twice.
    let ways = if before == after { &ways[..1] } else { &ways[..] };
    let own = |ends: (Version, Version)| {
        let edges = graph.edges().iter().enumerate().filter(move |(_, e)| (e.from, e.to) == ends);
        edges.filter(|(_, e)| !matches!(e.origin, Origin::Composed { .. }))
    };
    let Some(log) = tree.log(before, after) else {
        let entries = ways
            .iter()
            .flat_map(|(_, ends)| own(*ends))
            .map(|(_, e)| e.mapping.len() as u64)
            .sum::<u64>();
        if entries > 0 {
            checked.points += entries;
            *checked.dropped.entry(NO_LOG.to_owned()).or_default() += entries;
        }
        return;
    };
    let pair =
        VersionPair::new(versions[0], versions[1], &log).expect("the tree has replayed its logs");
    let common = pair.correspondence();
    let mut certifier = Certifier::new(&common);
    let mut made: Vec<(Side, (usize, &Edge), MappingFacts)> = Vec::new();
    for &(side, ends) in ways {
        made.extend(own(ends).map(|edge| (side, edge, certifier.facts(side, &edge.1.mapping))));
    }
    let certificate = certifier.into_certificate();
    observer.begin(Some(Step::Check));
    let relation = relate(module, versions, &certificate, Options::default());
    for (side, (index, edge), facts) in &made {
        // The next transition of a run may use any edge from the target version, so the entry must
        // provide live+ with respect to all of them.
        let armed: Vec<&Mapping> =
            graph.edges().iter().filter(|e| e.from == edge.to).map(|e| &e.mapping).collect();
        let verdicts = match &relation {
            Ok(relation) => relation.judge(*side, &edge.mapping, facts, &armed),
            Err(verdict) => vec![*verdict; edge.mapping.len()],
        };
        checked.points += edge.mapping.len() as u64;
        verdicts.iter().for_each(|verdict| checked.count(verdict));
        let points = edge.mapping.entries().map(|(point, _)| point).zip(&verdicts);
        let points = points.filter(|(_, verdict)| Verdict::holds(verdict)).map(|(point, _)| point);
        held.entry(*index).or_default().extend(points);
    }
}
