//! Join points of a variable's definitions: the dominator tree and iterated dominance frontiers.
//!
//! SSA construction requests one frontier per variable, and a function may have thousands of
//! variables and blocks. Two simple methods are therefore too slow. One walks all blocks per
//! variable. The other stores a frontier per block, which is quadratic in nested loops.
//!
//! An edge `p -> j` puts `j` into the frontier of the dominators of `p` that lie below the
//! immediate dominator of `j` in the tree. This module keeps the edges in the order of a preorder
//! walk of the dominator tree, so the edges of a subtree form a range. A segment tree over the
//! edges finds, in a range, the edge whose target has the shallowest immediate dominator. The
//! search takes each edge at most once per variable.

use super::dominators::{AdjacencyLists, Dominators, NONE};
use crate::entity::Block;
use crate::function::Function;
use cranelift_entity::EntityRef;

/// The dominator tree of the reachable blocks. The *place* of a block is its position in a preorder
/// walk of the tree; the entry has place 0.
#[derive(Debug)]
pub(super) struct Tree {
    /// By block index: the place, or [`NONE`] for unreachable blocks.
    place: Vec<u32>,
    /// By place: the block.
    pub(super) block: Vec<Block>,
    /// By place: the first place after the subtree.
    pub(super) end: Vec<u32>,
    /// By place: the place of the immediate dominator. The entry is its own immediate dominator.
    pub(super) idom: Vec<u32>,
    /// By place: the depth in the tree.
    depth: Vec<u32>,
}

impl Tree {
    /// The dominator tree of a function. Every block must have a terminator. Cost: near-linear in
    /// the number of blocks and edges.
    pub(super) fn new(function: &Function) -> Tree {
        let blocks: Vec<Block> = function.blocks().collect();
        let mut node = vec![NONE; function.block_bound()];
        for (n, block) in blocks.iter().enumerate() {
            node[block.index()] = n as u32;
        }
        let node = &node;
        let edges = blocks.iter().enumerate().flat_map(|(n, block)| {
            function.successors(*block).iter().map(move |t| (n as u32, node[t.block.index()]))
        });
        let dominators = Dominators::new(&AdjacencyLists::new(blocks.len(), edges));
        Tree::numbered(&dominators, &blocks, function.block_bound())
    }

    /// Converts depth-first numbers into places.
    fn numbered(dominators: &Dominators, blocks: &[Block], bound: usize) -> Tree {
        let (order, idom) = (&dominators.order, &dominators.idom);
        let count = order.len();
        let mut size = vec![1u32; count];
        for n in (1..count).rev() {
            size[idom[n] as usize] += size[n];
        }
        // A dominator has a smaller number than the blocks that it dominates, so this loop visits
        // parents first.
        let mut place_of = vec![0u32; count];
        let mut next_place = vec![1u32; count];
        let mut tree = Tree {
            place: vec![NONE; bound],
            block: vec![Block::new(0); count],
            end: vec![0; count],
            idom: vec![0; count],
            depth: vec![0; count],
        };
        for n in 0..count {
            let above = idom[n] as usize;
            if n > 0 {
                place_of[n] = next_place[above];
                next_place[above] += size[n];
                next_place[n] = place_of[n] + 1;
            }
            let (place, block) = (place_of[n] as usize, blocks[order[n] as usize]);
            tree.place[block.index()] = place as u32;
            tree.block[place] = block;
            tree.end[place] = place as u32 + size[n];
            tree.idom[place] = place_of[above];
            tree.depth[place] = if n > 0 { tree.depth[place_of[above] as usize] + 1 } else { 0 };
        }
        tree
    }

    /// The place of a block; `None` if the block is unreachable.
    pub(super) fn place(&self, block: Block) -> Option<u32> {
        Some(self.place[block.index()]).filter(|p| *p != NONE)
    }
}

/// The edges `p -> j` in which `p` is not the immediate dominator of `j`. Only they can put a block
/// into a frontier. See the module documentation.
#[derive(Debug)]
pub(super) struct JoinEdges {
    /// By place: the first edge with this or a later source place.
    first: Vec<u32>,
    /// By edge: the place of the target.
    target: Vec<u32>,
    /// By edge: the depth of the target's immediate dominator.
    depth: Vec<u32>,
    /// A segment tree over the pairs (depth of the target's immediate dominator, edge). The leaves
    /// start at `target.len()`. An edge that this variable has already taken is `GONE`.
    minimum: Vec<u64>,
    taken: Vec<u32>,
    /// The number of edges taken since construction, a measure of the cost so far.
    pub(super) work: u64,
}

const GONE: u64 = u64::MAX;

impl JoinEdges {
    /// The join edges of a function. Cost: near-linear in the number of edges.
    pub(super) fn new(function: &Function, tree: &Tree) -> JoinEdges {
        let (mut first, mut target, mut targets) = (vec![0], Vec::new(), Vec::new());
        for (place, block) in tree.block.iter().enumerate() {
            targets.clear();
            targets.extend(function.successors(*block).iter().filter_map(|t| tree.place(t.block)));
            targets.sort_unstable();
            targets.dedup();
            // The entry never joins definitions. It is its own immediate dominator, so the second
            // test alone would let it pass.
            target.extend(
                targets.iter().filter(|t| **t != 0 && tree.idom[**t as usize] != place as u32),
            );
            first.push(target.len() as u32);
        }
        let depth: Vec<u32> =
            target.iter().map(|to| tree.depth[tree.idom[*to as usize] as usize]).collect();
        let mut minimum = vec![GONE; target.len()];
        minimum.extend(
            depth.iter().enumerate().map(|(edge, depth)| u64::from(*depth) << 32 | edge as u64),
        );
        for node in (1..target.len()).rev() {
            minimum[node] = minimum[2 * node].min(minimum[2 * node + 1]);
        }
        JoinEdges { first, target, depth, minimum, taken: Vec::new(), work: 0 }
    }

    /// Appends the iterated dominance frontier of the blocks at `sites` to `joins`, each place
    /// once. The order of the places has no meaning. Cost: the number of sites, and of edges into
    /// the joins found, times a logarithm.
    pub(super) fn iterated_frontier(
        &mut self,
        tree: &Tree,
        sites: &[u32],
        joins: &mut Vec<u32>,
        is_join: &mut impl FnMut(u32) -> bool,
    ) {
        let mut work = sites.to_vec();
        while let Some(site) = work.pop() {
            let from = self.first[site as usize];
            let to = self.first[tree.end[site as usize] as usize];
            // An edge from the subtree of `site` whose target has an immediate dominator above
            // `site` puts that target into the frontier. No other site needs the edge after that,
            // because its target is already a join.
            while let Some(edge) = self.take_escaping(from, to, tree.depth[site as usize]) {
                let join = self.target[edge as usize];
                if !is_join(join) {
                    joins.push(join);
                    work.push(join);
                }
            }
        }
        self.put_back();
    }

    /// Takes an edge from `from` to before `to` whose target has an immediate dominator shallower
    /// than `depth`. Returns `None` if none is left.
    fn take_escaping(&mut self, from: u32, to: u32, depth: u32) -> Option<u32> {
        let least = self.least(from, to);
        if least == GONE || (least >> 32) as u32 >= depth {
            return None;
        }
        let edge = least as u32;
        self.taken.push(edge);
        self.work += 1;
        self.set(edge, GONE);
        Some(edge)
    }

    fn least(&self, from: u32, to: u32) -> u64 {
        let count = self.target.len();
        let (mut from, mut to, mut least) = (from as usize + count, to as usize + count, GONE);
        // The bottom-up query of a segment tree over the half-open range of leaves.
        while from < to {
            if from % 2 == 1 {
                least = least.min(self.minimum[from]);
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                least = least.min(self.minimum[to]);
            }
            (from, to) = (from / 2, to / 2);
        }
        least
    }

    fn set(&mut self, edge: u32, key: u64) {
        let mut node = edge as usize + self.target.len();
        self.minimum[node] = key;
        while node > 1 {
            node /= 2;
            self.minimum[node] = self.minimum[2 * node].min(self.minimum[2 * node + 1]);
        }
    }

    fn put_back(&mut self) {
        while let Some(edge) = self.taken.pop() {
            self.set(edge, u64::from(self.depth[edge as usize]) << 32 | u64::from(edge));
        }
    }
}
