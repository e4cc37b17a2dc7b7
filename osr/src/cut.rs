//! The smallest set of nodes that cuts wanted nodes off from all leaves: a minimum vertex cut, by
//! augmenting paths (Ford and Fulkerson, "Maximal flow through a network", 1956).
//!
//! Each node has two ends, joined by an edge with the capacity of the node: 1 if it can be kept,
//! else without bound. An edge cut between the ends is a vertex cut. The search walks the graph
//! depth first and requests a node when it gets there. In a long block, where a node is computed
//! from hundreds of others, each unit of flow then looks at one path to a leaf alone.

use crate::keep::{KeepGraph, Operands};
use smallvec::SmallVec;

/// The flow through one node.
#[derive(Clone, Debug, Default)]
struct NodeFlow {
    /// The operands, once known; `None` for a leaf.
    operands: Option<Option<Operands>>,
    /// The flow to each operand.
    onward: SmallVec<[u32; 3]>,
    /// The users of the node that have been looked at, each with the index of the operand.
    users: SmallVec<[(u32, u32); 2]>,
    through: u32,
    /// The last searches that reached each end.
    near: u32,
    far: u32,
}

/// An end of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The end where flow enters the node.
    Near(u32),
    /// The end where flow leaves the node.
    Far(u32),
}

/// A step of a search: the end reached, the index of the step before, and the edge between two
/// nodes that it takes, by user and operand.
#[derive(Clone, Copy, Debug)]
struct Reached {
    end: End,
    from: Option<usize>,
    edge: Option<(u32, u32)>,
}

/// The flow from the wanted nodes to the leaves.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    nodes: Vec<NodeFlow>,
    /// The number of the search at hand.
    search: u32,
    reached: Vec<Reached>,
    work: Vec<usize>,
}

impl Flow {
    /// The nodes of the smallest cut, if it has fewer than `most`. Of several smallest cuts, it is
    /// the cut nearest to the wanted nodes.
    pub(crate) fn cut(
        mut self,
        graph: &mut KeepGraph<'_, '_, '_>,
        roots: &[u32],
        most: usize,
    ) -> Option<Vec<u32>> {
        for _ in 0..most {
            match self.augmenting(graph, roots) {
                Some(last) => self.augment(last),
                // The cut of a maximum flow: nodes whose near end the residual network reaches and
                // whose far end it does not.
                None => {
                    let is_cut = |n: &&NodeFlow| n.near == self.search && n.far != self.search;
                    let nodes = (0..).zip(&self.nodes);
                    return Some(nodes.filter(|(_, n)| is_cut(n)).map(|(i, _)| i).collect());
                }
            }
        }
        None
    }

    /// The last step of a path to a leaf in the residual network.
    fn augmenting(&mut self, graph: &mut KeepGraph<'_, '_, '_>, roots: &[u32]) -> Option<usize> {
        self.search += 1;
        self.reached.clear();
        self.work.clear();
        roots.iter().rev().for_each(|root| self.reach(End::Near(*root), None, None));
        while let Some(at) = self.work.pop() {
            match self.reached[at].end {
                End::Near(node) => self.leave_near(graph, node, at),
                End::Far(node) => {
                    if self.leave_far(node, at) {
                        return Some(at);
                    }
                }
            }
        }
        None
    }

    fn reach(&mut self, end: End, from: Option<usize>, edge: Option<(u32, u32)>) {
        let (End::Near(node) | End::Far(node)) = end;
        if self.nodes.len() <= node as usize {
            self.nodes.resize_with(node as usize + 1, NodeFlow::default);
        }
        let flow = &mut self.nodes[node as usize];
        let last = if matches!(end, End::Near(_)) { &mut flow.near } else { &mut flow.far };
        if std::mem::replace(last, self.search) != self.search {
            self.work.push(self.reached.len());
            self.reached.push(Reached { end, from, edge });
        }
    }

    /// Continues the search from the near end of a node: back to a user that flow comes from, or
    /// through the node.
    fn leave_near(&mut self, graph: &mut KeepGraph<'_, '_, '_>, node: u32, at: usize) {
        for (user, operand) in self.nodes[node as usize].users.clone() {
            if self.nodes[user as usize].onward[operand as usize] > 0 {
                self.reach(End::Far(user), Some(at), Some((user, operand)));
            }
        }
        let flow = &mut self.nodes[node as usize];
        // Requests the node. Before, nothing was known of this node, not even whether it can be
        // kept.
        if flow.operands.is_none() {
            let operands = graph.operands(node);
            flow.onward = operands.iter().flatten().map(|_| 0).collect();
            let flow_to = operands.clone().unwrap_or_default();
            flow.operands = Some(operands);
            self.nodes.resize_with(graph.len().max(self.nodes.len()), NodeFlow::default);
            for (index, operand) in (0..).zip(flow_to) {
                self.nodes[operand as usize].users.push((node, index));
            }
        }
        if graph.cut(node).is_none() || self.nodes[node as usize].through == 0 {
            self.reach(End::Far(node), Some(at), None);
        }
    }

    /// Continues the search from the far end of a node: back through the node, or to its operands.
    /// Returns whether it is a leaf.
    fn leave_far(&mut self, node: u32, at: usize) -> bool {
        let Some(operands) = self.nodes[node as usize].operands.clone().flatten() else {
            return true;
        };
        if self.nodes[node as usize].through > 0 {
            self.reach(End::Near(node), Some(at), None);
        }
        for (index, operand) in (0..).zip(operands) {
            self.reach(End::Near(operand), Some(at), Some((node, index)));
        }
        false
    }

    /// Sends a unit of flow along the path to this step.
    fn augment(&mut self, last: usize) {
        let mut at = Some(last);
        while let Some(index) = at {
            let Reached { end, from, edge } = self.reached[index];
            match (end, edge) {
                (End::Near(_), Some((user, operand))) => {
                    self.nodes[user as usize].onward[operand as usize] += 1;
                }
                (End::Far(_), Some((user, operand))) => {
                    self.nodes[user as usize].onward[operand as usize] -= 1;
                }
                (End::Far(node), None) => self.nodes[node as usize].through += 1,
                // Back through a node, or from a wanted value.
                (End::Near(node), None) => {
                    self.nodes[node as usize].through -= u32::from(from.is_some());
                }
            }
            at = from;
        }
    }
}
