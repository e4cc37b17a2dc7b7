//! Kept values: which values an entry reads although they are not live.
//!
//! The smallest set of kept values is a minimum vertex cut in a graph. Its nodes are the values
//! that cannot be derived without keeping; its edges lead from a value to the operands it is
//! computed from. The cut separates the wanted values from the leaves that cannot be computed.
//! Cutting a value that is available at the source point costs 1; other values cannot be cut.
//!
//! The cut is exact while every node has one alternative. Where a node has several, the search
//! takes the first that works, and the result is an upper bound (`docs/osr.md`, *Rules for
//! values*).

use crate::derive::{Alternative, Deriver, SearchNode};
use crate::source::SourcePoint;
use ir::Value;
use petgraph::algo::ford_fulkerson;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of the graph of one entry. Nodes beyond count as leaves, so the result is an upper bound.
const MAX_NODES: usize = 256;

/// Nodes looked at from one source point, over all its landing points, before the search gives up
/// its entry.
pub(crate) const MAX_SHALLOW_NODES: usize = 512;

/// A capacity that no cut can afford: more than [`MAX_NODES`] values that each cost 1.
const UNCUTTABLE: u32 = 1 << 20;

#[derive(Debug, Default)]
struct Part {
    /// The value to keep to have this node, if it is available at the source point.
    cut: Option<Value>,
    /// For each alternative to compute the node, the operands that are not derivable as they are.
    alternatives: Vec<SmallVec<[usize; 3]>>,
    /// Whether the node can be computed from others.
    computable: bool,
    derivable: bool,
}

/// The graph of the nodes that cannot be derived without keeping a value.
struct KeepGraph {
    nodes: Vec<SearchNode>,
    parts: Vec<Part>,
    index: BTreeMap<SearchNode, usize>,
}

/// A small set of values to keep so that all of `wanted` become derivable. Without it, none of them
/// is. `None` when one of them stays lost for any set.
pub(crate) fn kept_values(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    wanted: &[Value],
) -> Option<BTreeSet<Value>> {
    if wanted.iter().any(|value| deriver.is_given_up(*value)) {
        return None;
    }
    // Shallow first: a node that can be kept is not expanded. At most points one value is kept, and
    // the whole graph above it need not be built.
    let shallow = KeepGraph::explore(deriver, here, wanted, false);
    shallow.give_up_lost(deriver);
    deriver.watch(&shallow.nodes);
    let greedy = shallow.topmost(wanted)?;
    // A single value cannot be improved on. Neither can values that have no operands to cut
    // instead.
    let is_least =
        |deriver: &mut Deriver<'_, '_>| greedy.len() == forced_values(deriver, here, wanted).len();
    if greedy.len() < 2
        || !shallow.parts.iter().any(|p| p.cut.is_some() && p.computable)
        || is_least(deriver)
    {
        return Some(greedy);
    }
    // The flow is exact only for the alternatives chosen, so the greedy set may be the smaller one.
    // Where the budget ended the deep exploration, the greedy set is the only one.
    let deep = KeepGraph::explore(deriver, here, wanted, true);
    deriver.watch(&deep.nodes);
    match deep.minimum_cut(wanted) {
        Some(cut) if cut.len() < greedy.len() => Some(cut),
        _ => Some(greedy),
    }
}

/// The values that each set of kept values holds which gives these lost values.
pub(crate) fn forced_values(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    lost: &[Value],
) -> SmallVec<[Value; 8]> {
    let mut forced: SmallVec<[Value; 8]> =
        lost.iter().filter_map(|value| deriver.forced(here, *value)).collect();
    forced.sort_unstable();
    forced.dedup();
    forced
}

impl Deriver<'_, '_> {
    /// The nodes left in the budget of the search for kept values.
    pub(crate) fn nodes_left(&self) -> usize {
        self.nodes_left
    }

    /// Takes this many nodes from that budget; `false`, and takes none, unless some remain.
    pub(crate) fn spend_all(&mut self, nodes: usize) -> bool {
        let remain = self.nodes_left > nodes;
        self.nodes_left -= if remain { nodes } else { 0 };
        remain
    }

    /// Takes one node from the budget of the search for kept values; `false` when none is left.
    pub(crate) fn spend(&mut self) -> bool {
        self.nodes_left = self.nodes_left.saturating_sub(1);
        self.nodes_left > 0
    }

    /// Whether the search for kept values has used up its budget of nodes. A value that it did not
    /// find may still be derivable.
    pub(crate) fn is_out_of_nodes(&self) -> bool {
        self.nodes_left == 0
    }

    /// Whether the search for kept values has given up a value.
    pub(crate) fn is_given_up(&self, value: Value) -> bool {
        self.given_up.get(value.as_u32() as usize).is_some()
    }

    /// Whether no set of kept values gives a value from this source point.
    pub(crate) fn is_hopeless(&self, value: Value) -> bool {
        self.given_up.get(value.as_u32() as usize) == Some(true)
    }

    /// Records that the search for kept values did not find a value from this source point.
    pub(crate) fn give_up(&mut self, value: Value) {
        let is_hopeless = !self.is_out_of_nodes();
        self.all_given_up.push(value);
        self.given_up.set(value.as_u32() as usize, is_hopeless);
    }
}

impl KeepGraph {
    fn explore(
        deriver: &mut Deriver<'_, '_>,
        here: &SourcePoint,
        wanted: &[Value],
        deep: bool,
    ) -> KeepGraph {
        let mut graph = KeepGraph { nodes: Vec::new(), parts: Vec::new(), index: BTreeMap::new() };
        for value in wanted {
            graph.enter(SearchNode::Wanted(*value));
        }
        let mut at = 0;
        // `nodes` grows while the loop runs: `expand` enters the operands it finds missing.
        while at < graph.nodes.len() && deriver.spend() {
            let part = graph.expand(deriver, here, graph.nodes[at], deep);
            graph.parts.push(part);
            at += 1;
        }
        // The budget ended before these nodes: they count as not derivable. The shallow graph then
        // loses the entry, and the deep one its cut.
        graph.parts.resize_with(graph.nodes.len(), Part::default);
        graph.settle();
        graph
    }

    /// Gives up the values that are not derivable. The next landing point will not have them
    /// either: that depends on the source version alone.
    fn give_up_lost(&self, deriver: &mut Deriver<'_, '_>) {
        for (node, part) in self.nodes.iter().zip(&self.parts) {
            if let (SearchNode::Wanted(value), false) = (node, part.derivable) {
                deriver.give_up(*value);
            }
        }
    }

    fn enter(&mut self, node: SearchNode) -> usize {
        *self.index.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    fn expand(
        &mut self,
        deriver: &mut Deriver<'_, '_>,
        here: &SourcePoint,
        node: SearchNode,
        deep: bool,
    ) -> Part {
        let mut part = Part::default();
        let alternatives = deriver.alternatives(here, node);
        part.cut = alternatives.iter().find_map(|alternative| {
            if let Alternative::Read(value) = alternative { Some(*value) } else { None }
        });
        part.computable =
            alternatives.iter().any(|alternative| !matches!(alternative, Alternative::Read(_)));
        // A node to be kept ends the walk, unless the flow has to see what lies above it. Beyond
        // the limit it ends there too, so that the graph stays bounded.
        if part.cut.is_some() && (!deep || self.nodes.len() > MAX_NODES) {
            return part;
        }
        for alternative in alternatives {
            let needs: SmallVec<[SearchNode; 3]> = match alternative {
                Alternative::Read(_) => continue,
                Alternative::Constant { .. } => SmallVec::new(),
                Alternative::Same(other) => SmallVec::from_iter([other]),
                Alternative::Execute { args, .. } => args,
            };
            let missing = needs.into_iter().filter(|n| deriver.outcome_of(here, *n).is_none());
            let missing: SmallVec<[SearchNode; 3]> = missing.collect();
            part.alternatives.push(missing.into_iter().map(|n| self.enter(n)).collect());
        }
        part
    }

    /// Marks the nodes that are derivable when every node that can be kept is kept.
    fn settle(&mut self) {
        // Most operands are entered after their users, so a sweep from the last node to the first
        // settles most graphs; the next one sees no change. An operand that an earlier user entered
        // takes one sweep more.
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..self.parts.len()).rev() {
                let part = &self.parts[i];
                let works = |alternative: &SmallVec<[usize; 3]>| {
                    alternative.iter().all(|n| self.parts[*n].derivable)
                };
                if !part.derivable && (part.cut.is_some() || part.alternatives.iter().any(works)) {
                    self.parts[i].derivable = true;
                    changed = true;
                }
            }
        }
    }

    fn chosen(&self, node: usize) -> Option<&SmallVec<[usize; 3]>> {
        self.parts[node]
            .alternatives
            .iter()
            .find(|alternative| alternative.iter().all(|n| self.parts[*n].derivable))
    }

    fn roots(&self, wanted: &[Value]) -> Vec<usize> {
        wanted.iter().map(|v| self.index[&SearchNode::Wanted(*v)]).collect()
    }

    /// Keeps each node that can be kept as soon as the walk from the wanted values meets it.
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
                None => work.extend(self.chosen(node)?.iter().copied()),
            }
        }
        Some(kept)
    }

    /// The values of a minimum vertex cut between the wanted nodes and the leaves. `None` unless
    /// all wanted nodes are derivable.
    fn minimum_cut(&self, wanted: &[Value]) -> Option<BTreeSet<Value>> {
        // No flow runs through a node that is not derivable, so a cut would leave it out, and the
        // values of the cut would not give it (`an_entry_survives_the_end_of_the_deep_search`).
        if self.roots(wanted).iter().any(|root| !self.parts[*root].derivable) {
            return None;
        }
        let mut flow: DiGraph<(), u32> = DiGraph::new();
        let (source, sink) = (flow.add_node(()), flow.add_node(()));
        // Each node is split into two ends, joined by an edge with the capacity of the node: an
        // edge cut between the ends is a vertex cut of the graph.
        let ends: Vec<(NodeIndex, NodeIndex)> =
            self.parts.iter().map(|_| (flow.add_node(()), flow.add_node(()))).collect();
        for root in self.roots(wanted) {
            flow.add_edge(source, ends[root].0, UNCUTTABLE);
        }
        for (i, part) in self.parts.iter().enumerate().filter(|(_, p)| p.derivable) {
            flow.add_edge(ends[i].0, ends[i].1, if part.cut.is_some() { 1 } else { UNCUTTABLE });
            match self.chosen(i) {
                Some(alternative) => {
                    for n in alternative {
                        flow.add_edge(ends[i].1, ends[*n].0, UNCUTTABLE);
                    }
                }
                // Without an alternative that works, only keeping gives the node: it is a leaf.
                None => {
                    flow.add_edge(ends[i].1, sink, UNCUTTABLE);
                }
            }
        }
        let (total, used) = ford_fulkerson(&flow, source, sink);
        // Some leaf cannot be cut off: one of the wanted values needs a node that can be neither
        // kept nor computed.
        if total >= UNCUTTABLE {
            return None;
        }
        // The cut of a maximum flow: nodes whose near end the residual network reaches and whose
        // far end it does not. Of several minimum cuts this is the one nearest to the wanted
        // values.
        let reached = residual_reach(&flow, &used, source);
        let is_cut = |i: &usize| reached.contains(&ends[*i].0) && !reached.contains(&ends[*i].1);
        Some((0..self.parts.len()).filter(is_cut).filter_map(|i| self.parts[i].cut).collect())
    }
}

/// The nodes that the residual network reaches from the source.
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
