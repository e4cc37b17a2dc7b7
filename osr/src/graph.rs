//! Version graphs: several versions of a function, and mappings between them that fit together.
//!
//! A version graph has the versions of a [`VersionTree`] as nodes and mappings as edges. *Built*
//! edges join a version and one derived from it, over any number of steps. *Composed* edges follow
//! existing edges, and so join any two versions, siblings included. *Inserted* edges come from
//! elsewhere.
//!
//! One property makes every chain of hops through the graph defined: **every entry of every edge
//! provides live+ where it lands**. Live+ of a version counts the values required by all edges that
//! leave it, wherever they lead, and by the frame states that the tree has armed in it
//! ([`VersionTree::arm_states`]).
//!
//! - Built edges have the property by their common fixpoint. [`synthesize`](fn@crate::synthesize)
//!   is the fixpoint of one pair.
//! - Composition keeps it. A composed entry requires only values that its first entry requires at
//!   the same point. It provides the same values as its second entry, at the same landing point.
//! - An inserted mapping has no such history. Insertion drops entries that break the property, of
//!   any edge, until none does.
//!
//! For the same reason, edges of a graph compose wherever the second edge has an entry: the values
//! that this entry requires are live+, and the first edge provides them.

use crate::copies::{CopyLink, LinkedUses, name_tables, places};
use crate::level::Level;
use crate::live::{ExtraUses, LiveTable, add_required};
use crate::pair::{Analyzed, VersionPair};
use crate::reason::{Missing, Obstacle};
use crate::synthesize::{Arrow, OuterUses, PlainLiveness, SynthesizedMapping, make};
use crate::tree::{Version, VersionTree, required};
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::edit::ReplayError;
use ir::{FrameStates, Function, Inst, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::mapping::{Entry, Mapping};
use transition::{Correspondence, Demand, Pair, Refusal, Side, VersionKey, compose};

/// The origin of an edge's entries.
#[derive(Clone, Debug)]
pub enum EdgeOrigin {
    /// Synthesis made them from the log between the versions.
    Built {
        /// All points of the source version, or only the points that entries may leave
        /// ([`VersionTree::leave_at`]), unreachable points included.
        points: usize,
        /// Points of these in code proved never to run.
        unreachable: usize,
        /// The reachable points of these without an entry, ascending.
        missing: Vec<Missing<Obstacle>>,
    },
    /// They are composed of other edges.
    Composed {
        /// The versions on the path, both ends included.
        path: Vec<Version>,
        /// The points at which the first edge of the path has an entry and this edge lacks one,
        /// ascending.
        refused: Vec<(Point, Refusal)>,
    },
    /// They were made elsewhere.
    Inserted,
}

/// A mapping between two versions of a graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The source version.
    pub from: Version,
    /// The target version.
    pub to: Version,
    /// The entries.
    pub mapping: Mapping,
    /// The bounding anchors that both versions execute alike ([`VersionPair::bounding_anchors`]).
    /// For a composed edge: the anchors that every two neighbors on its path share.
    pub anchors: BTreeSet<Inst>,
    /// The origin of the entries.
    pub origin: EdgeOrigin,
}

/// Why a graph cannot have an edge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EdgeError {
    /// The second version was not derived from the first, so no log leads from one to the other.
    NotDerived {
        /// The first version.
        before: Version,
        /// The second.
        after: Version,
    },
    /// The graph has no edge between two neighbors on the path.
    NoEdge {
        /// The source version of the missing edge.
        from: Version,
        /// Its target version.
        to: Version,
    },
    /// The path has fewer than three versions, so there is nothing to compose.
    ShortPath,
    /// The mapping leads between other versions than the given versions.
    OtherVersions,
    /// The log does not replay.
    Replay(ReplayError),
}

impl fmt::Display for EdgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EdgeError::NotDerived { before, after } => {
                write!(f, "{after} was not derived from {before}")
            }
            EdgeError::NoEdge { from, to } => write!(f, "no edge leads from {from} to {to}"),
            EdgeError::ShortPath => f.write_str("a path to compose needs at least three versions"),
            EdgeError::OtherVersions => f.write_str("the mapping is one between other versions"),
            EdgeError::Replay(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for EdgeError {}

/// Mappings between the versions of a tree. See the module documentation.
#[derive(Clone, Debug)]
pub struct VersionGraph<'v> {
    tree: &'v VersionTree,
    demand: Demand,
    edges: Vec<Edge>,
    /// By the versions of a pair with built edges.
    correspondences: BTreeMap<(Version, Version), Arc<Correspondence<'v>>>,
}

impl<'v> VersionGraph<'v> {
    /// Builds the edges between pairs of versions, in both directions, all to one fixpoint. In each
    /// pair the second version was derived from the first. Edges from and to a version with more
    /// than 2^22 live values, summed over its points, have no entries. Cost: the cost of mapping
    /// each pair, times the rounds of the fixpoint.
    ///
    /// # Errors
    /// [`EdgeError::NotDerived`] and [`EdgeError::Replay`].
    ///
    /// # Panics
    /// When the tree lacks the second version of a pair.
    pub fn build(
        tree: &'v VersionTree,
        pairs: &[(Version, Version)],
        level: Level,
        demand: Demand,
    ) -> Result<VersionGraph<'v>, EdgeError> {
        VersionGraph::build_across(tree, pairs, &[], level, demand)
    }

    /// As [`VersionGraph::build`], with copies that transitions go across. Entries provide for
    /// these steps, too. From a copy, entries to versions derived from it leave outside inlined
    /// code alone, and read no value of inlined code. The graph has no edges across copies:
    /// `check::enter_copy` and `check::leave_copy` make these steps.
    ///
    /// # Errors
    /// As for [`VersionGraph::build`].
    ///
    /// # Panics
    /// As [`VersionGraph::build`], and when no pair has a version of a link.
    pub fn build_across(
        tree: &'v VersionTree,
        pairs: &[(Version, Version)],
        copies: &[CopyLink<'_>],
        level: Level,
        demand: Demand,
    ) -> Result<VersionGraph<'v>, EdgeError> {
        let mut prepared = Vec::new();
        for &(before, after) in pairs {
            let log = tree.log(before, after).ok_or(EdgeError::NotDerived { before, after })?;
            let pair = VersionPair::new(tree.function(before), tree.function(after), &log);
            let pair = pair.map_err(EdgeError::Replay)?.providing(demand);
            let mut pair = pair.with_sizes(tree.least().clone());
            // A run that enters the copy has no value of inlined code.
            if let Some(link) = copies.iter().find(|link| link.after == before) {
                pair.versions.before.hidden.extend(inlined_values(link));
            }
            prepared.push(pair);
        }
        let departures = departures(tree, pairs);
        let outside: BTreeMap<Version, BTreeSet<Point>> = copies
            .iter()
            .map(|link| (link.after, own_points(tree, link, departures.get(&link.after))))
            .collect();
        let waiting: Vec<(&CopyLink<'_>, BTreeSet<Point>)> =
            copies.iter().map(|link| (link, inlined_calls(link))).collect();
        // Versions outside all pairs have no edges, and no index in this list.
        let mut versions: Vec<Version> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        versions.sort_unstable();
        versions.dedup();
        let place = |v: Version| versions.binary_search(&v).expect("a version of a pair");
        let mut analyzed: Vec<Option<&Analyzed<'_>>> = vec![None; versions.len()];
        let mut arrows = Vec::new();
        for ((before, after), pair) in pairs.iter().zip(&prepared) {
            let places = Pair::new(place(*before), place(*after));
            // A version of several pairs has analyses in each. Any of them will do: the fixpoint
            // uses only the function and its own analyses.
            for (side, version) in pair.versions.sides() {
                analyzed[places[side]] = Some(version);
            }
            let mut both = Arrow::both_ways(pair, places);
            both.before.asked = outside.get(before).or_else(|| departures.get(before));
            both.after.asked = departures.get(after);
            both.before.landings = tree.landings(*after);
            both.after.landings = tree.landings(*before);
            both.before.in_place = tree.lands_in_place(*after);
            both.after.in_place = tree.lands_in_place(*before);
            let waits = |link: &CopyLink<'_>| link.steps().any(|step| step == (*after, *before));
            both.after.staying =
                waiting.iter().find(|(link, _)| waits(link)).map(|(_, calls)| calls);
            arrows.extend(both);
        }
        let analyzed = analyzed.into_iter();
        let analyzed: Vec<&Analyzed<'_>> =
            analyzed.map(|a| a.expect("every version in the list belongs to a pair")).collect();
        let plain = match (&prepared[..], bounded(pairs, &departures)) {
            // A large version has too many live values to list them at all points.
            ([pair], Some(asked)) if copies.is_empty() => {
                PlainLiveness::at_points(pair, demand, &asked)
            }
            _ => PlainLiveness::of_all(&analyzed, demand),
        };
        let links = copies.iter().map(|link| linked(tree, link, place, &arrows, demand));
        let links: Vec<LinkedUses<'_>> = links.collect();
        let armed: Vec<ExtraUses> =
            versions.iter().map(|version| armed_uses(tree, *version)).collect();
        let outer = OuterUses { links: &links, armed: &armed };
        let made = make(&analyzed, &arrows, outer, &plain, demand, level);
        let edges = arrows.iter().zip(made).map(|(arrow, made)| {
            let (from, to) = (versions[arrow.source], versions[arrow.target]);
            built(from, to, arrow.pair, made.synthesized)
        });
        let edges = edges.collect();
        let correspondence = |pair: &VersionPair<'v>| Arc::new(pair.correspondence());
        let correspondences =
            pairs.iter().copied().zip(prepared.iter().map(correspondence)).collect();
        Ok(VersionGraph { tree, demand, edges, correspondences })
    }

    /// The hints of the log between two versions with built edges, for a certifier to start from.
    /// `None` for other versions. Cost: logarithmic.
    pub fn correspondence(
        &self,
        before: Version,
        after: Version,
    ) -> Option<Arc<Correspondence<'v>>> {
        self.correspondences.get(&(before, after)).map(Arc::clone)
    }

    /// The versions.
    pub fn tree(&self) -> &'v VersionTree {
        self.tree
    }

    /// Every edge. Built edges come first, in the order of the pairs, forward before backward; the
    /// others follow in the order of addition.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The first edge between two versions.
    pub fn edge(&self, from: Version, to: Version) -> Option<&Edge> {
        self.edges.iter().find(|e| (e.from, e.to) == (from, to))
    }

    /// Adds the edge composed along a path and returns it. The path takes the first edge between
    /// each two neighbors. [`VersionTree::path`] gives the path along derivations. Cost: one
    /// [`compose`](fn@compose) for each step.
    ///
    /// # Errors
    /// [`EdgeError::ShortPath`] and [`EdgeError::NoEdge`].
    pub fn add_composed(&mut self, path: &[Version]) -> Result<&Edge, EdgeError> {
        let edge = self.along(path)?;
        self.edges.push(edge);
        Ok(&self.edges[self.edges.len() - 1])
    }

    /// The edge composed along a path.
    fn along(&self, path: &[Version]) -> Result<Edge, EdgeError> {
        let (Some(&from), Some(&to), 3..) = (path.first(), path.last(), path.len()) else {
            return Err(EdgeError::ShortPath);
        };
        let leg = |ends: &[Version]| {
            let missing = EdgeError::NoEdge { from: ends[0], to: ends[1] };
            self.edge(ends[0], ends[1]).ok_or(missing)
        };
        let first = leg(path)?;
        let (mut mapping, mut anchors, mut refused) =
            (first.mapping.clone(), first.anchors.clone(), Vec::new());
        // From the left: each composition keeps the points of the first edge, so every refusal is
        // recorded at a point that the path starts from.
        for ends in path[1..].windows(2) {
            let next = leg(ends)?;
            let composed =
                compose(&mapping, &next.mapping).expect("neighbors on a path share a version");
            mapping = composed.mapping;
            refused.extend(composed.refused);
            anchors.retain(|inst| next.anchors.contains(inst));
        }
        refused.sort_unstable();
        let origin = EdgeOrigin::Composed { path: path.to_vec(), refused };
        Ok(Edge { from, to, mapping, anchors, origin })
    }

    /// Drops the entries of built and inserted edges for which `keep` returns `false`, such as
    /// entries that a judge has not proved. Composed edges are composed again from the entries that
    /// remain. `keep` receives the edge with its index in [`VersionGraph::edges`], since there may
    /// be several between two versions. No entry loses a value that it provides, and live+ only
    /// shrinks, because a dropped entry requires nothing. Cost: linear in the entries.
    pub fn retain(&mut self, mut keep: impl FnMut((usize, &Edge), Point, &Entry) -> bool) {
        // In the order of addition: a composed edge follows the edges of its path, which are thus
        // final when it is composed again.
        for index in 0..self.edges.len() {
            let edge = &self.edges[index];
            if let EdgeOrigin::Composed { path, .. } = &edge.origin {
                self.edges[index] =
                    self.along(path).expect("a composed edge comes after the edges of its path");
                continue;
            }
            let dropped =
                edge.mapping.entries().filter(|(point, entry)| !keep((index, edge), *point, entry));
            let dropped: Vec<Point> = dropped.map(|(point, _)| point).collect();
            for point in dropped {
                self.edges[index].mapping.remove(point);
            }
        }
    }

    /// Adds a mapping made elsewhere, with the bounding anchors of its versions. First it drops
    /// entries that name a point their version lacks, require a value that is not available, or
    /// land in unreachable code. Then it drops entries of any edge until every entry left provides
    /// live+ where it lands. Returns the entries dropped, by index of the edge and point. Cost: one
    /// [`VersionGraph::lacking`] for each round of drops.
    ///
    /// # Errors
    /// [`EdgeError::OtherVersions`], when the mapping is not one between the two versions. Then the
    /// graph is unchanged.
    ///
    /// # Panics
    /// When the tree lacks one of the versions.
    pub fn insert(
        &mut self,
        from: Version,
        to: Version,
        mapping: Mapping,
        anchors: BTreeSet<Inst>,
    ) -> Result<Vec<(usize, Point)>, EdgeError> {
        let keys = [from, to].map(|v| VersionKey::of(self.tree.function(v)));
        if [mapping.source(), mapping.target()] != keys {
            return Err(EdgeError::OtherVersions);
        }
        self.edges.push(Edge { from, to, mapping, anchors, origin: EdgeOrigin::Inserted });
        let last = self.edges.len() - 1;
        let mut dropped: Vec<(usize, Point)> =
            self.misplaced(last).into_iter().map(|point| (last, point)).collect();
        for (_, point) in &dropped {
            self.edges[last].mapping.remove(*point);
        }
        // Each round drops at least one entry, so the loop ends. The result need not be the largest
        // that fits: a drop shrinks live+, and an entry dropped before might provide it now.
        loop {
            let lacking = self.lacking();
            if lacking.is_empty() {
                dropped.sort_unstable();
                return Ok(dropped);
            }
            for (edge, point) in &lacking {
                self.edges[*edge].mapping.remove(*point);
            }
            dropped.extend(lacking);
        }
    }

    /// The points of an edge whose entries name a missing point, require an unavailable value or
    /// land in unreachable code.
    fn misplaced(&self, edge: usize) -> Vec<Point> {
        let Edge { from, to, mapping, .. } = &self.edges[edge];
        let (source, target) = (self.tree.function(*from), self.tree.function(*to));
        let dom = DomTree::new(source, &Cfg::new(source));
        let decided = Decided::new(target);
        let arrived = decided.cfg();
        // Nothing is live in unreachable code, so `lacking` would let any entry land there
        // (`an_inserted_entry_does_not_land_in_unreachable_code`).
        let lands = |at: Point| {
            target.has_inst(at.inst()) && arrived.is_reachable(target.inst_block(at.inst()))
        };
        let stands = |point: Point, entry: &Entry| {
            source.has_inst(point.inst())
                && lands(entry.target)
                && entry.requires.iter().all(|v| dom.available_at(source, *v, point))
        };
        mapping
            .entries()
            .filter(|(point, entry)| !stands(*point, entry))
            .map(|(point, _)| point)
            .collect()
    }

    /// The entries that provide less than live+ where they land, by index of the edge and point.
    /// Empty, unless this module is wrong. If a version has too many live values, all entries into
    /// it count. Cost: liveness of every version, plus the entries.
    pub fn lacking(&self) -> Vec<(usize, Point)> {
        let mut lacking = Vec::new();
        for version in self.tree.versions() {
            // Live+ counts every edge that leaves the version, whichever edge the run arrived over.
            let mut uses = armed_uses(self.tree, version);
            self.edges
                .iter()
                .filter(|e| e.from == version)
                .for_each(|e| add_required(&e.mapping, &mut uses));
            let function = self.tree.function(version);
            let live = LiveTable::of_run(function, &Decided::new(function), self.demand, &uses);
            for (number, edge) in self.edges.iter().enumerate().filter(|(_, e)| e.to == version) {
                match &live {
                    Some(live) => {
                        lacking.extend(live.lacking(&edge.mapping).into_iter().map(|p| (number, p)))
                    }
                    None => lacking.extend(edge.mapping.entries().map(|(p, _)| (number, p))),
                }
            }
        }
        lacking.sort_unstable();
        lacking
    }
}

/// The values that frame states armed in a version name.
fn armed_uses(tree: &VersionTree, version: Version) -> ExtraUses {
    let mut uses = ExtraUses::new();
    tree.armed(version).for_each(|mapping| add_required(mapping, &mut uses));
    uses
}

/// The values of inlined code, by index.
fn inlined_values(link: &CopyLink<'_>) -> impl Iterator<Item = usize> {
    let inlined = &link.claim.instances[1..];
    inlined.iter().flat_map(|instance| instance.values.values().map(|value| value.index()))
}

/// The points before the calls of the first original within which frames wait.
fn inlined_calls(link: &CopyLink<'_>) -> BTreeSet<Point> {
    let callers = link.claim.instances.iter().filter_map(|instance| instance.caller);
    callers.filter(|(id, _)| *id == 0).map(|(_, call)| Point::before(call)).collect()
}

/// By version with restricted departures ([`VersionTree::leave_at`]): the departure points that the
/// version has.
fn departures(
    tree: &VersionTree,
    pairs: &[(Version, Version)],
) -> BTreeMap<Version, BTreeSet<Point>> {
    let versions = pairs.iter().flat_map(|(before, after)| [*before, *after]);
    let bounded = versions.filter_map(|version| Some((version, tree.departures(version)?)));
    bounded
        .map(|(version, points)| {
            let f = tree.function(version);
            (version, points.iter().copied().filter(|point| f.has_inst(point.inst())).collect())
        })
        .collect()
}

/// The points that entries between the two versions of the only pair may leave, if both versions
/// are bounded.
fn bounded(
    pairs: &[(Version, Version)],
    departures: &BTreeMap<Version, BTreeSet<Point>>,
) -> Option<Pair<BTreeSet<Point>>> {
    let [(before, after)] = pairs else { return None };
    Some(Pair::new(departures.get(before)?.clone(), departures.get(after)?.clone()))
}

/// The points of a copy outside inlined code that entries may leave.
fn own_points(
    tree: &VersionTree,
    link: &CopyLink<'_>,
    departures: Option<&BTreeSet<Point>>,
) -> BTreeSet<Point> {
    let copy = tree.function(link.after);
    let blocks = link.claim.blocks.iter().filter(|(_, (id, _))| *id == 0);
    let blocks = blocks.map(|(block, _)| *block).filter(|block| copy.has_block(*block));
    let points = blocks.flat_map(|block| copy.block_insts(block).map(Point::before));
    points.filter(|point| departures.is_none_or(|departures| departures.contains(point))).collect()
}

/// The uses of a link, with versions and arrows by index.
fn linked<'c>(
    tree: &'c VersionTree,
    link: &CopyLink<'c>,
    place: impl Fn(Version) -> usize,
    arrows: &[Arrow<'_, '_>],
    demand: Demand,
) -> LinkedUses<'c> {
    let CopyLink { before, after, lands_by, claim, objects, callees, states } = *link;
    let landing = lands_by.last().copied().unwrap_or(before);
    let versions = [before, after, landing].map(&place);
    let leads = |(from, to): (Version, Version)| {
        let ends = (place(from), place(to));
        arrows.iter().position(|arrow| (arrow.source, arrow.target) == ends)
    };
    let is_ahead =
        |arrow: &Arrow<'_, '_>| arrow.source == versions[1] && arrow.from == Side::Before;
    let originals: Vec<&Function> =
        std::iter::once(tree.function(before)).chain(callees.iter().copied()).collect();
    // Inlined functions are small.
    let in_landing = VersionKey::of(tree.function(landing));
    // One function may be inlined at many calls.
    let mut known: BTreeMap<VersionKey, Arc<LiveTable>> = BTreeMap::new();
    let live = |(f, states): (&&Function, &Option<&FrameStates>)| {
        let mut uses = ExtraUses::new();
        states.iter().for_each(|states| add_required(&required(f, states), &mut uses));
        let table = || LiveTable::of_run(f, &Decided::new(f), demand, &uses);
        let of = VersionKey::of(f);
        let is_landing = of == in_landing;
        let table = || Arc::new(table().unwrap_or_default());
        (!is_landing).then(|| Arc::clone(known.entry(of).or_insert_with(table)))
    };
    let (names, own) = name_tables(claim);
    LinkedUses {
        versions,
        on: link.steps().filter_map(leads).collect(),
        ahead: (0..arrows.len()).filter(|at| is_ahead(&arrows[*at])).collect(),
        claim,
        objects,
        names,
        own,
        places: places(tree.function(after), claim, &originals),
        lands: tree.landings(after),
        copy: tree.function(after),
        callees,
        live: callees.iter().zip(states).map(live).collect(),
        landing: tree.function(landing),
        original: tree.function(before),
        dominators: DomTree::new(tree.function(before), &Cfg::new(tree.function(before))),
    }
}

fn built(
    from: Version,
    to: Version,
    pair: &VersionPair<'_>,
    synthesized: SynthesizedMapping,
) -> Edge {
    let SynthesizedMapping { mapping, points, unreachable, missing } = synthesized;
    let anchors = pair.bounding_anchors().collect();
    Edge { from, to, mapping, anchors, origin: EdgeOrigin::Built { points, unreachable, missing } }
}
