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
//!
//! The graph of a value in an unrolled hash is the whole hash above it, and the cut mostly lies
//! near the wanted values. So nodes are looked at when the flow reaches them ([`crate::cut`]).

use crate::cut::Flow;
use crate::derive::Deriver;
use crate::node::{Alternative, SearchNode};
use crate::scratch::Scratch;
use crate::source::SourcePoint;
use ir::Value;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of the graph of one entry. Nodes beyond count as leaves, so the result is an upper bound.
const MAX_NODES: usize = 256;

/// Nodes of the graph, by index.
pub(crate) type Operands = SmallVec<[u32; 3]>;

/// The facts known of a node so far.
#[derive(Debug, Default)]
struct Part {
    /// Whether the node has been looked at.
    is_seen: bool,
    /// Whether its alternatives have been found. Alternatives of a node that can be kept are found
    /// later: most searches do not need them.
    is_expanded: bool,
    /// The value to keep to have this node, if it is available at the source point.
    cut: Option<Value>,
    /// Whether the node can be computed from others.
    computable: bool,
    /// For each alternative to compute the node, the operands that are not derivable as they are.
    alternatives: SmallVec<[Operands; 1]>,
    /// Whether the node is derivable when every node that can be kept is kept.
    derivable: Option<bool>,
    /// The first alternative that works then.
    chosen: Option<Option<usize>>,
}

/// The graph of the nodes that cannot be derived without keeping a value.
pub(crate) struct KeepGraph<'d, 'a, 'v> {
    deriver: &'d mut Deriver<'a, 'v>,
    here: &'d SourcePoint,
    nodes: Vec<SearchNode>,
    parts: Vec<Part>,
    /// Nodes by wanted value, and the nodes without one.
    wanted: Scratch<u32>,
    others: BTreeMap<SearchNode, u32>,
}

/// A small set of values to keep so that all of `wanted` become derivable. Without kept values,
/// none of them is derivable. `None` when a wanted value stays lost for every set.
pub(crate) fn kept_values(
    deriver: &mut Deriver<'_, '_>,
    here: &SourcePoint,
    wanted: &[Value],
) -> Option<BTreeSet<Value>> {
    if wanted.iter().any(|value| deriver.is_given_up(*value)) {
        return None;
    }
    // Topmost first: a node that can be kept is not expanded. At most points one value is kept, and
    // the whole graph above it need not be built.
    let mut graph = KeepGraph::new(deriver, here);
    let roots: Operands = wanted.iter().map(|v| graph.enter(SearchNode::Wanted(*v))).collect();
    let lost = roots.iter().filter(|root| !graph.is_derivable(**root)).count();
    graph.give_up_lost();
    let greedy = (lost == 0).then(|| graph.topmost(&roots));
    // A single value cannot be improved on. Neither can values that have no operands to cut
    // instead.
    let is_least = |graph: &mut KeepGraph<'_, '_, '_>, greedy: &BTreeSet<Value>| {
        greedy.len() < 2
            || !graph.parts.iter().any(|p| p.cut.is_some() && p.computable)
            || greedy.len() == forced_values(graph.deriver, here, wanted).len()
    };
    let kept = greedy.map(|greedy| match is_least(&mut graph, &greedy) {
        true => greedy,
        // The flow is exact only for the alternatives chosen, so the topmost set may be the smaller
        // one. An equal number of units of flow shows that no cut is smaller.
        false => {
            let most = greedy.len();
            let cut = Flow::default().cut(&mut graph, &roots, most);
            cut.map_or(greedy, |cut| cut.iter().filter_map(|n| graph.cut(*n)).collect())
        }
    });
    graph.finish();
    kept
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

impl<'d, 'a, 'v> KeepGraph<'d, 'a, 'v> {
    fn new(deriver: &'d mut Deriver<'a, 'v>, here: &'d SourcePoint) -> Self {
        // A new table for each search would cost the size of the function.
        let mut wanted = std::mem::take(&mut deriver.keep_nodes);
        wanted.clear();
        let (nodes, parts, others) = (Vec::new(), Vec::new(), BTreeMap::new());
        KeepGraph { deriver, here, nodes, parts, wanted, others }
    }

    /// Notes the dependencies of the result.
    fn finish(self) {
        let KeepGraph { deriver, nodes, wanted, .. } = self;
        deriver.watch(&nodes);
        deriver.keep_nodes = wanted;
    }

    /// The number of nodes entered.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The value to keep to have a node.
    pub(crate) fn cut(&self, node: u32) -> Option<Value> {
        self.parts[node as usize].cut
    }

    fn enter(&mut self, node: SearchNode) -> u32 {
        let new = self.nodes.len() as u32;
        let known = match node {
            SearchNode::Wanted(value) => self.wanted.get(value.as_u32() as usize),
            other => self.others.get(&other).copied(),
        };
        if let Some(known) = known {
            return known;
        }
        match node {
            SearchNode::Wanted(value) => self.wanted.set(value.as_u32() as usize, new),
            other => drop(self.others.insert(other, new)),
        }
        self.nodes.push(node);
        self.parts.push(Part::default());
        new
    }

    /// Looks at a node: whether it can be kept, and otherwise the ways to compute it. When the
    /// budget has ended, the node counts as not derivable.
    fn look_at(&mut self, node: u32) {
        let at = node as usize;
        if std::mem::replace(&mut self.parts[at].is_seen, true) {
            return;
        }
        if !self.deriver.spend() {
            self.parts[at].is_expanded = true;
            return;
        }
        let alternatives = self.deriver.alternatives(self.here, self.nodes[at]);
        let part = &mut self.parts[at];
        part.cut = alternatives.iter().find_map(|alternative| {
            if let Alternative::Read(value) = alternative { Some(*value) } else { None }
        });
        part.computable =
            alternatives.iter().any(|alternative| !matches!(alternative, Alternative::Read(_)));
        if part.cut.is_none() {
            self.expand(node, alternatives);
        }
    }

    /// Finds the alternatives of a node that can be kept. Beyond the limits it counts as a leaf, so
    /// that the graph stays bounded.
    fn look_above(&mut self, node: u32) {
        self.look_at(node);
        if self.parts[node as usize].is_expanded {
            return;
        }
        if self.nodes.len() > MAX_NODES || !self.deriver.spend() {
            self.parts[node as usize].is_expanded = true;
            return;
        }
        let alternatives = self.deriver.alternatives(self.here, self.nodes[node as usize]);
        self.expand(node, alternatives);
    }

    fn expand(&mut self, node: u32, alternatives: SmallVec<[Alternative; 4]>) {
        self.parts[node as usize].is_expanded = true;
        for alternative in alternatives {
            let needs: SmallVec<[SearchNode; 3]> = match alternative {
                Alternative::Read(_) => continue,
                Alternative::Constant { .. } => SmallVec::new(),
                Alternative::Same(other) => SmallVec::from_iter([other]),
                Alternative::Execute { args, .. } => args,
            };
            let mut missing = Operands::new();
            for need in needs {
                if self.deriver.outcome_of(self.here, need).is_none() {
                    missing.push(self.enter(need));
                }
            }
            self.parts[node as usize].alternatives.push(missing);
        }
    }

    /// Whether a node is derivable when every node that can be kept is kept. The recursion is as
    /// deep as the budget at most: each call looks at a node.
    fn is_derivable(&mut self, node: u32) -> bool {
        self.look_at(node);
        let part = &mut self.parts[node as usize];
        if let Some(known) = part.derivable {
            return known;
        }
        // Every rule leads to values defined above, so no node is met within itself.
        part.derivable = Some(part.cut.is_some());
        if part.cut.is_none() {
            let derivable = self.choose(node).is_some();
            self.parts[node as usize].derivable = Some(derivable);
        }
        self.parts[node as usize].derivable == Some(true)
    }

    /// The index of the first alternative of a node that works.
    fn choose(&mut self, node: u32) -> Option<usize> {
        self.look_above(node);
        if let Some(known) = self.parts[node as usize].chosen {
            return known;
        }
        let count = self.parts[node as usize].alternatives.len();
        let works = |graph: &mut Self, index: usize| {
            let operands = graph.parts[node as usize].alternatives[index].clone();
            operands.into_iter().all(|operand| graph.is_derivable(operand))
        };
        let chosen = (0..count).find(|index| works(self, *index));
        self.parts[node as usize].chosen = Some(chosen);
        chosen
    }

    /// The operands of the chosen alternative of a node. Without one, only keeping gives the node:
    /// it is a leaf.
    pub(crate) fn operands(&mut self, node: u32) -> Option<Operands> {
        let chosen = self.choose(node)?;
        Some(self.parts[node as usize].alternatives[chosen].clone())
    }

    /// Gives up the values that are not derivable. The next landing point will not have them
    /// either: that depends on the source version alone.
    fn give_up_lost(&mut self) {
        for (node, part) in self.nodes.iter().zip(&self.parts) {
            if let (SearchNode::Wanted(value), Some(false)) = (node, part.derivable) {
                self.deriver.give_up(*value);
            }
        }
    }

    /// Keeps each node that can be kept as soon as the walk from the wanted values meets it.
    fn topmost(&mut self, roots: &[u32]) -> BTreeSet<Value> {
        let mut kept = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut work: Operands = roots.into();
        while let Some(node) = work.pop() {
            if seen.insert(node) {
                match self.cut(node) {
                    Some(value) => drop(kept.insert(value)),
                    None => work.extend(self.operands(node).unwrap_or_default()),
                }
            }
        }
        kept
    }
}
