//! Reachability and block order.
//!
//! [`Cfg`] numbers the reachable blocks in *reverse postorder*: every block comes before its
//! successors, except along back edges. The other analyses ([`crate::dom`], [`crate::loops`],
//! [`crate::liveness`]) work on these dense numbers. Their public interfaces use blocks.

use crate::entity::Block;
use crate::function::Function;
use crate::inst::Edge;
use cranelift_entity::EntityRef;

/// The number of an unreachable block in [`Cfg::number`]. It does not leave this module.
const UNREACHABLE: u32 = u32::MAX;

/// The reachable part of a control-flow graph, in reverse postorder.
///
/// The result is valid for one stamp of one function. Queries that take the function panic on any
/// other stamp.
#[derive(Clone, Debug)]
pub struct Cfg {
    stamp: u64,
    rpo: Vec<Block>,
    /// By block index: its position in `rpo`, or `UNREACHABLE`.
    number: Vec<u32>,
    graph: SuccessorGraph,
}

/// A graph over the numbers from 0, with the neighbors of each node in both directions. Node 0 is
/// the root.
#[derive(Clone, Debug)]
pub struct SuccessorGraph {
    succs: Adjacency,
    preds: Adjacency,
}

impl SuccessorGraph {
    /// The graph of this many nodes, at least one, with these edges. Cost: linear in both.
    ///
    /// # Panics
    /// When the graph has no node, or an end of an edge is not a node.
    pub fn new(nodes: usize, edges: &[(u32, u32)]) -> SuccessorGraph {
        assert!(nodes > 0, "a graph has a root");
        let succs = Adjacency::of_edges(nodes, edges.iter().copied());
        let preds = Adjacency::of_edges(nodes, edges.iter().map(|(from, to)| (*to, *from)));
        SuccessorGraph { succs, preds }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.succs.start.len() - 1
    }

    pub(crate) fn preds(&self, node: u32) -> &[u32] {
        self.preds.of(node)
    }
}

/// Neighbor lists by reverse-postorder number, concatenated in one vector.
#[derive(Clone, Debug, Default)]
struct Adjacency {
    /// The neighbors of `n` are `list[start[n]..start[n + 1]]`.
    start: Vec<u32>,
    list: Vec<u32>,
}

impl Adjacency {
    fn of(&self, n: u32) -> &[u32] {
        &self.list[self.start[n as usize] as usize..self.start[n as usize + 1] as usize]
    }

    /// The lists of these edges, the neighbors of a node in the order of its edges.
    fn of_edges(count: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Adjacency {
        let mut start = vec![0u32; count + 1];
        for (from, _) in edges.clone() {
            start[from as usize + 1] += 1;
        }
        for n in 0..count {
            start[n + 1] += start[n];
        }
        let mut fill = start.clone();
        let mut list = vec![0u32; start[count] as usize];
        for (from, to) in edges {
            list[fill[from as usize] as usize] = to;
            fill[from as usize] += 1;
        }
        Adjacency { start, list }
    }

    /// The lists of the reversed graph.
    fn reversed(&self) -> Adjacency {
        let count = self.start.len() - 1;
        let edges =
            (0..count as u32).flat_map(|from| self.of(from).iter().map(move |to| (*to, from)));
        Adjacency::of_edges(count, edges)
    }
}

impl Cfg {
    /// Searches the function from its entry, targets in order. Cost: linear in the number of blocks
    /// and edges.
    ///
    /// # Panics
    /// When the function has no block.
    pub fn new(function: &Function) -> Cfg {
        Cfg::of_edges(function, |_| true)
    }

    /// As [`Cfg::new`], on the graph of the edges for which `may_take` returns `true`.
    ///
    /// # Panics
    /// When the function has no block.
    pub fn of_edges(function: &Function, may_take: impl Fn(Edge) -> bool) -> Cfg {
        let mut rpo = postorder(function, &may_take);
        rpo.reverse();
        let mut number = vec![UNREACHABLE; function.block_bound()];
        for (n, block) in rpo.iter().enumerate() {
            number[block.index()] = n as u32;
        }
        let mut succs = Adjacency { start: vec![0], list: Vec::new() };
        for &block in &rpo {
            succs.list.extend(edges(function, block, &may_take).map(|to| number[to.index()]));
            succs.start.push(succs.list.len() as u32);
        }
        let graph = SuccessorGraph { preds: succs.reversed(), succs };
        Cfg { stamp: function.stamp(), rpo, number, graph }
    }

    /// The stamp of the function that the graph was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since the graph was computed.
    ///
    /// # Panics
    /// When the function has changed.
    #[inline]
    pub fn check(&self, function: &Function) {
        check_stamp("Cfg", self.stamp, function);
    }

    /// The reachable blocks in reverse postorder, the entry first.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }

    /// Whether a path leads from the entry to the block.
    #[inline]
    pub fn is_reachable(&self, block: Block) -> bool {
        self.rpo_index(block).is_some()
    }

    /// The position of a block in [`Cfg::rpo`]; `None` if the block is unreachable.
    #[inline]
    pub fn rpo_index(&self, block: Block) -> Option<usize> {
        self.number(block).map(|n| n as usize)
    }

    /// The index of a block in reverse postorder; `None` if it is unreachable. Cost: constant.
    #[inline]
    pub fn number(&self, block: Block) -> Option<u32> {
        self.number.get(block.index()).copied().filter(|n| *n != UNREACHABLE)
    }

    #[inline]
    pub(crate) fn block(&self, number: u32) -> Block {
        self.rpo[number as usize]
    }

    /// The number of reachable blocks.
    pub(crate) fn len(&self) -> usize {
        self.rpo.len()
    }

    /// The successors of a block, by reverse-postorder number, once for each edge, targets in
    /// order.
    pub(crate) fn succs(&self, number: u32) -> &[u32] {
        self.graph.succs.of(number)
    }

    /// The reachable predecessors of a block, by reverse-postorder number, once for each edge, in
    /// ascending order.
    pub fn preds(&self, number: u32) -> &[u32] {
        self.graph.preds(number)
    }

    /// The graph of the reverse-postorder numbers.
    pub(crate) fn graph(&self) -> &SuccessorGraph {
        &self.graph
    }
}

/// A depth-first tree of the nodes that the root leads to, in preorder. On the graph of a [`Cfg`],
/// the search equals the search of [`Cfg::new`], so an ancestor in the tree also comes first in
/// reverse postorder.
pub(crate) struct DepthFirst {
    /// By preorder number: the node.
    pub(crate) node: Vec<u32>,
    /// By node: the preorder number, or `u32::MAX` if the root does not lead to it.
    pub(crate) pre: Vec<u32>,
    /// By preorder number: the preorder number of the parent. The root is its own parent.
    pub(crate) parent: Vec<u32>,
    /// By preorder number: the largest preorder number in the subtree.
    last: Vec<u32>,
}

impl DepthFirst {
    /// Builds the tree. Cost: linear in the number of nodes and edges.
    pub(crate) fn new(graph: &SuccessorGraph) -> DepthFirst {
        let count = graph.len();
        let mut tree = DepthFirst {
            node: vec![0],
            pre: vec![u32::MAX; count],
            parent: vec![0],
            last: vec![0; count],
        };
        tree.pre[0] = 0;
        let mut path = vec![(0u32, 0usize)];
        while let Some((n, next)) = path.last_mut() {
            let pre = tree.pre[*n as usize];
            match graph.succs.of(*n).get(*next) {
                Some(&to) => {
                    *next += 1;
                    if tree.pre[to as usize] == u32::MAX {
                        tree.pre[to as usize] = tree.node.len() as u32;
                        tree.node.push(to);
                        tree.parent.push(pre);
                        path.push((to, 0));
                    }
                }
                None => {
                    tree.last[pre as usize] = tree.node.len() as u32 - 1;
                    path.pop();
                }
            }
        }
        tree
    }

    /// Whether `a` equals `b` or is an ancestor of `b`. Both are preorder numbers.
    pub(crate) fn is_ancestor(&self, a: u32, b: u32) -> bool {
        a <= b && b <= self.last[a as usize]
    }
}

/// Panics when `function` is not at the stamp that an analysis was computed at.
#[inline]
pub(crate) fn check_stamp(analysis: &str, stamp: u64, function: &Function) {
    assert!(
        stamp == function.stamp(),
        "stale {analysis}: computed on {} at stamp {stamp}, used at stamp {}",
        function.name(),
        function.stamp()
    );
}

/// The targets of the edges of a block for which `may_take` returns `true`, in order.
fn edges<'f>(
    function: &'f Function,
    block: Block,
    may_take: &'f impl Fn(Edge) -> bool,
) -> impl Iterator<Item = Block> + 'f {
    let inst = function.terminator(block);
    let targets = function.inst(inst).targets.iter().enumerate();
    targets
        .filter(move |(index, _)| may_take(Edge { inst, index: *index as u32 }))
        .map(|(_, target)| target.block)
}

/// The blocks reachable from the entry, each after its successors, except along back edges.
fn postorder(function: &Function, may_take: &impl Fn(Edge) -> bool) -> Vec<Block> {
    let mut order = Vec::new();
    let mut seen = vec![false; function.block_bound()];
    // The blocks on the current path, each with the index of its next target. An explicit stack,
    // because the input determines the depth.
    let mut path = vec![(function.entry(), 0usize)];
    seen[function.entry().index()] = true;
    while let Some((block, next)) = path.last_mut() {
        let edge = Edge { inst: function.terminator(*block), index: *next as u32 };
        match function.successors(*block).get(*next) {
            Some(target) => {
                *next += 1;
                if may_take(edge) && !std::mem::replace(&mut seen[target.block.index()], true) {
                    path.push((target.block, 0));
                }
            }
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests;
