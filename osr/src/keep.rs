//! Kept values: which values to read although they are not live.
//!
//! The smallest set of kept values that makes an entry derivable is a minimum vertex cut between
//! the values needed and the leaves that cannot be computed, in the graph of what is computed from
//! what: a value available at the source point costs 1 to cut, any other cannot be cut
//! (`mappings.md`, section 4). That is exact while every node has one way to be computed; where one
//! has several, the first that works is taken and the result is an upper bound.

use crate::derive::{Deriver, Node, Way};
use crate::source::SourcePoint;
use ir::Value;
use petgraph::algo::ford_fulkerson;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of the graph of one entry. What lies beyond is taken as a leaf, so that the result is an
/// upper bound.
const MAX_NODES: usize = 256;

/// Nodes looked at from one source point, for all landing points together, after which its entry is
/// given up.
pub(crate) const MAX_SHALLOW_NODES: usize = 512;

/// A capacity no cut can afford.
const UNCUTTABLE: u32 = 1 << 20;

#[derive(Debug, Default)]
struct Part {
    /// The value whose keeping gives this node.
    cut: Option<Value>,
    /// For each way to compute it, the nodes needed that cannot be had as they are.
    ways: Vec<SmallVec<[usize; 3]>>,
    /// Whether it could be computed from others as well as kept.
    computable: bool,
    derivable: bool,
}

/// The graph of what cannot be derived without keeping something.
struct Graph {
    nodes: Vec<Node>,
    parts: Vec<Part>,
    index: BTreeMap<Node, usize>,
}

/// A smallest set of values to keep so that all of `wanted`, none of which can be derived from what
/// may be read, can be. `None` when one of them cannot be derived whatever is kept.
pub(crate) fn kept_values(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    wanted: &[Value],
) -> Option<BTreeSet<Value>> {
    if wanted.iter().any(|value| deriver.is_hopeless(*value)) {
        return None;
    }
    let shallow = Graph::explore(deriver, here, wanted, false);
    shallow.remember_hopeless(deriver);
    let greedy = shallow.topmost(wanted)?;
    // One value, or none that could be computed from others, cannot be improved on.
    if greedy.len() < 2 || !shallow.parts.iter().any(|p| p.cut.is_some() && p.computable) {
        return Some(greedy);
    }
    let cut = Graph::explore(deriver, here, wanted, true).minimum_cut(wanted)?;
    Some(if cut.len() < greedy.len() { cut } else { greedy })
}

impl Graph {
    fn explore(
        deriver: &mut Deriver<'_, '_>,
        here: &SourcePoint,
        wanted: &[Value],
        deep: bool,
    ) -> Graph {
        let mut graph = Graph { nodes: Vec::new(), parts: Vec::new(), index: BTreeMap::new() };
        for value in wanted {
            graph.enter(Node::Wanted(*value));
        }
        let mut at = 0;
        while at < graph.nodes.len() && deriver.spend() {
            let part = graph.expand(deriver, here, graph.nodes[at], deep);
            graph.parts.push(part);
            at += 1;
        }
        // What was not looked at is not derivable.
        graph.parts.resize_with(graph.nodes.len(), Part::default);
        graph.settle();
        graph
    }

    /// What could not be had whatever is kept will not be from the next landing point either: it
    /// depends on what the source version has.
    fn remember_hopeless(&self, deriver: &mut Deriver<'_, '_>) {
        for (node, part) in self.nodes.iter().zip(&self.parts) {
            if let (Node::Wanted(value), false) = (node, part.derivable) {
                deriver.give_up(*value);
            }
        }
    }

    fn enter(&mut self, node: Node) -> usize {
        *self.index.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    fn expand(
        &mut self,
        deriver: &mut Deriver<'_, '_>,
        here: &SourcePoint,
        node: Node,
        deep: bool,
    ) -> Part {
        let mut part = Part::default();
        let ways = deriver.ways(here, node);
        part.cut = ways
            .iter()
            .find_map(|way| if let Way::Read(value) = way { Some(*value) } else { None });
        part.computable = ways.iter().any(|way| !matches!(way, Way::Read(_)));
        if part.cut.is_some() && (!deep || self.nodes.len() > MAX_NODES) {
            return part;
        }
        for way in ways {
            let needs: SmallVec<[Node; 3]> = match way {
                Way::Read(_) => continue,
                Way::Constant { .. } => SmallVec::new(),
                Way::Same(other) => SmallVec::from_iter([other]),
                Way::Execute { args, .. } => args,
            };
            let missing = needs.into_iter().filter(|n| deriver.outcome_of(here, *n).is_none());
            let missing: SmallVec<[Node; 3]> = missing.collect();
            part.ways.push(missing.into_iter().map(|n| self.enter(n)).collect());
        }
        part
    }

    /// Which nodes can be derived when everything that can be kept is.
    fn settle(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.parts.len()).rev() {
                let part = &self.parts[i];
                let works =
                    |way: &SmallVec<[usize; 3]>| way.iter().all(|n| self.parts[*n].derivable);
                if !part.derivable && (part.cut.is_some() || part.ways.iter().any(works)) {
                    self.parts[i].derivable = true;
                    changed = true;
                }
            }
        }
    }

    fn chosen_way(&self, node: usize) -> Option<&SmallVec<[usize; 3]>> {
        self.parts[node].ways.iter().find(|way| way.iter().all(|n| self.parts[*n].derivable))
    }

    fn roots(&self, wanted: &[Value]) -> Vec<usize> {
        wanted.iter().map(|v| self.index[&Node::Wanted(*v)]).collect()
    }

    /// Keeps each node that can be kept as soon as it is met.
    fn topmost(&self, wanted: &[Value]) -> Option<BTreeSet<Value>> {
        let mut kept = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut work = self.roots(wanted);
        while let Some(node) = work.pop() {
            if !seen.insert(node) {
                continue;
            }
            match self.parts[node].cut {
                Some(value) => {
                    kept.insert(value);
                }
                None => work.extend(self.chosen_way(node)?.iter().copied()),
            }
        }
        Some(kept)
    }

    /// The values of a minimum vertex cut between the wanted nodes and the leaves.
    fn minimum_cut(&self, wanted: &[Value]) -> Option<BTreeSet<Value>> {
        let mut flow: DiGraph<(), u32> = DiGraph::new();
        let (source, sink) = (flow.add_node(()), flow.add_node(()));
        let ends: Vec<(NodeIndex, NodeIndex)> =
            self.parts.iter().map(|_| (flow.add_node(()), flow.add_node(()))).collect();
        for root in self.roots(wanted) {
            flow.add_edge(source, ends[root].0, UNCUTTABLE);
        }
        for (i, part) in self.parts.iter().enumerate().filter(|(_, p)| p.derivable) {
            flow.add_edge(ends[i].0, ends[i].1, if part.cut.is_some() { 1 } else { UNCUTTABLE });
            match self.chosen_way(i) {
                Some(way) => {
                    for n in way {
                        flow.add_edge(ends[i].1, ends[*n].0, UNCUTTABLE);
                    }
                }
                None => {
                    flow.add_edge(ends[i].1, sink, UNCUTTABLE);
                }
            }
        }
        let (total, used) = ford_fulkerson(&flow, source, sink);
        if total >= UNCUTTABLE {
            return None;
        }
        let reached = residual_reach(&flow, &used, source);
        let is_cut = |i: &usize| reached.contains(&ends[*i].0) && !reached.contains(&ends[*i].1);
        Some((0..self.parts.len()).filter(is_cut).filter_map(|i| self.parts[i].cut).collect())
    }
}

/// What can still be reached from the source in the residual network.
fn residual_reach(flow: &DiGraph<(), u32>, used: &[u32], source: NodeIndex) -> BTreeSet<NodeIndex> {
    let mut reached = BTreeSet::from([source]);
    let mut work = vec![source];
    while let Some(node) = work.pop() {
        let onward =
            flow.edges(node).filter(|e| used[e.id().index()] < *e.weight()).map(|e| e.target());
        let back = flow
            .edges_directed(node, petgraph::Direction::Incoming)
            .filter(|e| used[e.id().index()] > 0);
        for next in onward.chain(back.map(|e| e.source())) {
            if reached.insert(next) {
                work.push(next);
            }
        }
    }
    reached
}
