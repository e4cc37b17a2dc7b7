//! Several versions of a function, and mappings between them that were made together.
//!
//! A version graph has the versions of a [`VersionTree`] as nodes and mappings as edges. *Built*
//! edges join a version and one derived from it, over any number of steps; *composed* ones follow
//! edges that are there, and so join any two versions, siblings too. *Inserted* ones come from
//! elsewhere.
//!
//! One property makes any sequence of hops through the graph defined: **every entry of every edge
//! provides live+ where it lands**, and live+ at a version counts what all edges that leave it
//! require, wherever they lead. Built edges have it by their common fixpoint ([`crate::synthesize`]
//! is that of one pair). Composing keeps it: a composed entry requires no value that the first
//! entry does not require at the same point already, and provides what the second does at the same
//! landing point. For the same reason edges of a graph compose wherever the second has an entry:
//! what it requires is live+, and provided. What is inserted has no such history; entries that
//! would break the property, its own or those of other edges, are dropped for good, until none
//! does.

use crate::level::Level;
use crate::live::{ExtraUses, LiveTable, add_required};
use crate::pair::{Analyzed, VersionPair};
use crate::reason::Unmapped;
use crate::synthesize::{Arrow, Plain, SynthesizedMapping, make};
use crate::tree::{Version, VersionTree};
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::edit::ReplayError;
use ir::{Inst, Point};
use std::collections::BTreeSet;
use std::fmt;
use transition::Demand;
use transition::mapping::{Entry, Mapping};
use transition::{Refusal, VersionKey, compose};

/// Where an edge has its entries from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Made from the log between its versions.
    Built {
        /// All points of the source version, unreachable ones included.
        points: usize,
        /// Points in code proved never to run.
        unreachable: usize,
        /// The reachable points without an entry, ascending.
        unmapped: Vec<Unmapped>,
    },
    /// Composed of other edges.
    Composed {
        /// The versions it leads through, both ends included.
        path: Vec<Version>,
        /// The points at which the first edge of the path has an entry and this one does not,
        /// ascending.
        refused: Vec<(Point, Refusal)>,
    },
    /// Made elsewhere.
    Inserted,
}

/// A mapping between two versions of a graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The version it leaves.
    pub from: Version,
    /// The version it leads to.
    pub to: Version,
    /// The entries.
    pub mapping: Mapping,
    /// The bounding anchors of its versions: of a composed edge, those that every two neighbors on
    /// its path share.
    pub anchors: BTreeSet<Inst>,
    /// Where the entries are from.
    pub origin: Origin,
}

/// Why a graph cannot have an edge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EdgeError {
    /// The second version was not derived from the first, so that no log leads from one to the
    /// other.
    NotDerived {
        /// The first version.
        before: Version,
        /// The second.
        after: Version,
    },
    /// There is no edge to compose with.
    NoEdge {
        /// The version it would leave.
        from: Version,
        /// The version it would lead to.
        to: Version,
    },
    /// A path of fewer than three versions: there is nothing to compose.
    ShortPath,
    /// A mapping is not one between the versions it is given with.
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
            EdgeError::ShortPath => {
                f.write_str("a path of fewer than three versions composes nothing")
            }
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
}

impl<'v> VersionGraph<'v> {
    /// Builds the edges of pairs of versions, both ways, all together. In each pair the second
    /// version was derived from the first. Cost: that of each pair, as many times as the fixpoint
    /// takes.
    ///
    /// # Errors
    /// See [`EdgeError`].
    pub fn build(
        tree: &'v VersionTree,
        pairs: &[(Version, Version)],
        level: Level,
        demand: Demand,
    ) -> Result<VersionGraph<'v>, EdgeError> {
        let mut prepared = Vec::new();
        for &(before, after) in pairs {
            let log = tree.log(before, after).ok_or(EdgeError::NotDerived { before, after })?;
            let pair = VersionPair::new(tree.function(before), tree.function(after), &log);
            prepared.push(pair.map_err(EdgeError::Replay)?.providing(demand));
        }
        // Versions of no pair have no edges, and no place in the list.
        let mut versions: Vec<Version> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
        versions.sort_unstable();
        versions.dedup();
        let place = |v: Version| versions.binary_search(&v).expect("a version of a pair");
        let mut sides: Vec<Option<&Analyzed<'_>>> = vec![None; versions.len()];
        let mut arrows = Vec::new();
        for ((before, after), pair) in pairs.iter().zip(&prepared) {
            let places = [place(*before), place(*after)];
            (sides[places[0]], sides[places[1]]) =
                (Some(&pair.sides.before), Some(&pair.sides.after));
            arrows.extend(Arrow::both_ways(pair, places));
        }
        let sides: Vec<&Analyzed<'_>> =
            sides.into_iter().map(|s| s.expect("every version listed is of a pair")).collect();
        let plain = Plain::of_all(&sides, demand);
        let made = make(&sides, &arrows, &plain, (demand, level), None);
        let edges = arrows.iter().zip(made).map(|(arrow, made)| {
            let (from, to) = (versions[arrow.from], versions[arrow.to]);
            built(from, to, arrow.pair, made.direction)
        });
        Ok(VersionGraph { tree, demand, edges: edges.collect() })
    }

    /// The versions.
    pub fn tree(&self) -> &'v VersionTree {
        self.tree
    }

    /// Every edge: built ones first, in the order of the pairs, forward before backward; then the
    /// others as they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The first edge between two versions.
    pub fn edge(&self, from: Version, to: Version) -> Option<&Edge> {
        self.edges.iter().find(|e| (e.from, e.to) == (from, to))
    }

    /// Adds the edge that leads along a path, over the first edge between each two versions, and
    /// returns it. See [`VersionTree::path`] for one along derivations. Cost: as [`compose`], for
    /// each step.
    ///
    /// # Errors
    /// When the path is short or an edge is missing.
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
        for ends in path[1..].windows(2) {
            let next = leg(ends)?;
            let composed = compose(&mapping, &next.mapping).expect("edges that follow each other");
            mapping = composed.mapping;
            refused.extend(composed.refused);
            anchors.retain(|inst| next.anchors.contains(inst));
        }
        refused.sort_unstable();
        let origin = Origin::Composed { path: path.to_vec(), refused };
        Ok(Edge { from, to, mapping, anchors, origin })
    }

    /// Keeps the entries of built and inserted edges that are to be kept, those a judge has proved,
    /// say, and composes the others again from what is left. `keep` is told the edge, of which
    /// there may be several between two versions, with its place in [`VersionGraph::edges`]. No
    /// entry comes to lack anything: what is dropped asks for nothing. Cost: the entries.
    pub fn retain(&mut self, mut keep: impl FnMut((usize, &Edge), Point, &Entry) -> bool) {
        for index in 0..self.edges.len() {
            let edge = &self.edges[index];
            if let Origin::Composed { path, .. } = &edge.origin {
                self.edges[index] = self.along(path).expect("the edges of the path are there");
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

    /// Adds a mapping made elsewhere, with the bounding anchors of its versions, and drops entries,
    /// from any edge, until every one left provides live+ where it lands. Entries that name a point
    /// or require a value that is not to be had there, or that land in unreachable code, are
    /// dropped first. Returns those dropped: the index of their edge, and their point. Cost: that
    /// of [`VersionGraph::lacking`], as many times as entries are dropped in turn.
    ///
    /// # Errors
    /// When the mapping is not one between the two versions.
    pub fn insert(
        &mut self,
        (from, to): (Version, Version),
        mapping: Mapping,
        anchors: BTreeSet<Inst>,
    ) -> Result<Vec<(usize, Point)>, EdgeError> {
        let keys = [from, to].map(|v| VersionKey::of(self.tree.function(v)));
        if [mapping.source(), mapping.target()] != keys {
            return Err(EdgeError::OtherVersions);
        }
        self.edges.push(Edge { from, to, mapping, anchors, origin: Origin::Inserted });
        let last = self.edges.len() - 1;
        let mut dropped: Vec<(usize, Point)> =
            self.misplaced(last).into_iter().map(|point| (last, point)).collect();
        for (_, point) in &dropped {
            self.edges[last].mapping.remove(*point);
        }
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

    /// The points of an edge whose entries name what its versions do not have there.
    fn misplaced(&self, edge: usize) -> Vec<Point> {
        let Edge { from, to, mapping, .. } = &self.edges[edge];
        let (source, target) = (self.tree.function(*from), self.tree.function(*to));
        let dom = DomTree::new(source, &Cfg::new(source));
        let decided = Decided::new(target);
        let arrived = decided.cfg();
        // Nothing is live in code that is not reached: `lacking` would let any entry land there
        // (`a_mapping_made_elsewhere_lands_in_no_unreachable_code`).
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

    /// The entries that do not provide live+ where they land, by the index of their edge and their
    /// point; none, unless this module is wrong. Those of a version with too many live values all
    /// count. Cost: liveness of every version, and the entries.
    pub fn lacking(&self) -> Vec<(usize, Point)> {
        let mut lacking = Vec::new();
        for version in self.tree.versions() {
            let mut uses = ExtraUses::new();
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

fn built(
    from: Version,
    to: Version,
    pair: &VersionPair<'_>,
    direction: SynthesizedMapping,
) -> Edge {
    let SynthesizedMapping { mapping, points, unreachable, unmapped } = direction;
    let anchors = pair.common_anchors().collect();
    Edge { from, to, mapping, anchors, origin: Origin::Built { points, unreachable, unmapped } }
}
