//! The control-flow graph of a version, and its dominators. The checker has its own, so that a bug
//! in the graph of the compiler cannot hide a wrong entry.
//!
//! Dominators come from the SEMI-NCA algorithm: semidominators with path compression, then nearest
//! common ancestors (Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems",
//! 2005, chapter 2). `tests.rs` compares them with the dominators of the IR.

use ir::{Block, Edge, Function, Inst, Value, ValueDef};

const NONE: u32 = u32::MAX;

/// The blocks reachable over some edges, and their dominator tree.
pub(crate) struct BlockGraph {
    /// By block index: the number of the block in depth-first preorder.
    number: Vec<u32>,
    /// By number: the block.
    blocks: Vec<Block>,
    /// By number: the index in a preorder of the dominator tree, and the size of the subtree.
    place: Vec<(u32, u32)>,
    /// By number: the number of the immediate dominator. The entry is its own.
    idom: Vec<u32>,
}

impl BlockGraph {
    /// The graph of the edges for which `is_live` is true. Cost: near linear in blocks and edges.
    pub(crate) fn new(f: &Function, is_live: impl Fn(Edge) -> bool) -> BlockGraph {
        let mut graph = BlockGraph {
            number: vec![NONE; f.block_bound()],
            blocks: Vec::new(),
            place: Vec::new(),
            idom: Vec::new(),
        };
        let parents = graph.walk(f, &is_live);
        graph.idom = graph.immediate_dominators(f, &is_live, &parents);
        graph.number_tree();
        graph
    }

    /// Numbers the reachable blocks in depth-first preorder. Returns the number of each block's
    /// parent in the depth-first tree.
    fn walk(&mut self, f: &Function, is_live: &impl Fn(Edge) -> bool) -> Vec<u32> {
        let mut parents = vec![0];
        self.number[f.entry().as_u32() as usize] = 0;
        self.blocks.push(f.entry());
        // A stack of terminators with the index of the next target: recursion would overflow on
        // deep graphs (`dominators_of_deep_trees_are_found`).
        let mut stack = vec![(f.terminator(f.entry()), 0u32)];
        while let Some((inst, index)) = stack.last_mut() {
            let edge = Edge { inst: *inst, index: *index };
            let Some(target) = f.inst(*inst).targets.get(*index as usize) else {
                stack.pop();
                continue;
            };
            *index += 1;
            let slot = &mut self.number[target.block.as_u32() as usize];
            // `is_live` last: it is called once for each edge to a block that is not numbered yet.
            if *slot == NONE && is_live(edge) {
                *slot = self.blocks.len() as u32;
                self.blocks.push(target.block);
                parents.push(self.number[f.inst_block(edge.inst).as_u32() as usize]);
                stack.push((f.terminator(target.block), 0));
            }
        }
        parents
    }

    /// By number: the number of the immediate dominator.
    fn immediate_dominators(
        &self,
        f: &Function,
        is_live: &impl Fn(Edge) -> bool,
        parents: &[u32],
    ) -> Vec<u32> {
        let count = self.blocks.len() as u32;
        // A vertex is its own label, and carries the least semidominator on the compressed path
        // above it.
        let mut semi: Vec<u32> = (0..count).collect();
        let mut label = semi.clone();
        let mut ancestor = parents.to_vec();
        let mut path = Vec::new();
        // In descending order: `evaluate` of a predecessor needs the semidominators of all vertices
        // numbered higher.
        for v in (1..count).rev() {
            let mut least = parents[v as usize];
            for edge in f.predecessors(self.blocks[v as usize]).iter().filter(|e| is_live(**e)) {
                let u = self.number[f.inst_block(edge.inst).as_u32() as usize];
                // An unreachable predecessor has no paths to it, so it does not weaken dominance.
                if u != NONE {
                    let best = evaluate(u, v + 1, &semi, &mut label, &mut ancestor, &mut path);
                    least = least.min(semi[best as usize]);
                }
            }
            semi[v as usize] = least;
        }
        nearest_above(parents, &semi)
    }

    /// Numbers the dominator tree in preorder, so that `dominates` is two comparisons.
    fn number_tree(&mut self) {
        let idom = &self.idom;
        let count = self.blocks.len();
        let mut sizes = vec![1u32; count];
        // An immediate dominator has a smaller number, so descending order sums up children first.
        for v in (1..count).rev() {
            sizes[idom[v] as usize] += sizes[v];
        }
        let mut next = vec![1u32; count];
        self.place = vec![(0, count as u32); count];
        // Ascending, so each vertex takes the next free range within the range of its dominator.
        for v in 1..count {
            let above = idom[v] as usize;
            self.place[v] = (next[above], sizes[v]);
            next[above] += sizes[v];
            next[v] = self.place[v].0 + 1;
        }
    }

    /// The nearest block that strictly dominates a block; `None` for the function entry and for
    /// unreachable blocks.
    pub(crate) fn idom(&self, block: Block) -> Option<Block> {
        let number = *self.number.get(block.as_u32() as usize)?;
        let above = *self.idom.get(number as usize)?;
        (above != number).then(|| self.blocks[above as usize])
    }

    /// The reachable blocks, in depth-first preorder; the function entry is first, and every block
    /// follows its dominators.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn place(&self, block: Block) -> Option<(u32, u32)> {
        let number = *self.number.get(block.as_u32() as usize)?;
        self.place.get(number as usize).copied()
    }

    /// The index of a block in a preorder of the dominator tree; `None` if it is unreachable.
    pub(crate) fn preorder(&self, block: Block) -> Option<u32> {
        self.place(block).map(|(place, _)| place)
    }

    /// Whether a block is reachable.
    pub(crate) fn has(&self, block: Block) -> bool {
        self.place(block).is_some()
    }

    /// Whether every path from the function entry to `b` passes `a`. A block dominates itself. An
    /// unreachable block dominates nothing, and no block dominates it.
    pub(crate) fn dominates(&self, a: Block, b: Block) -> bool {
        let (Some((first, size)), Some((other, _))) = (self.place(a), self.place(b)) else {
            return false;
        };
        // The subtree of `a` is one range of the preorder.
        first <= other && other < first + size
    }

    /// Whether an instruction has executed whenever control is before `at`.
    pub(crate) fn passed(&self, f: &Function, inst: Inst, at: Inst) -> bool {
        let (home, here) = (f.inst_block(inst), f.inst_block(at));
        if home == here { f.stands_before(inst, at) } else { self.dominates(home, here) }
    }

    /// Whether a value is available before an instruction: its definition dominates that point.
    pub(crate) fn available(&self, f: &Function, value: Value, at: Inst) -> bool {
        match f.value_def(value) {
            ValueDef::Result(inst, _) => self.passed(f, inst, at),
            ValueDef::Param(block, _) => self.dominates(block, f.inst_block(at)),
        }
    }
}

/// The vertex of least semidominator on the tree path from `v` up to, but not including, the first
/// ancestor numbered below `linked`.
fn evaluate(
    v: u32,
    linked: u32,
    semi: &[u32],
    label: &mut [u32],
    ancestor: &mut [u32],
    path: &mut Vec<u32>,
) -> u32 {
    if v < linked {
        return label[v as usize];
    }
    // Collects the path, then compresses it from the top down. A loop instead of recursion, for
    // deep trees.
    let mut top = v;
    while ancestor[top as usize] >= linked {
        path.push(top);
        top = ancestor[top as usize];
    }
    let mut best = label[top as usize];
    let root = ancestor[top as usize];
    while let Some(u) = path.pop() {
        ancestor[u as usize] = root;
        // The label of a vertex is the better label of two: its own, and the label of the
        // compressed vertex above.
        if semi[best as usize] < semi[label[u as usize] as usize] {
            label[u as usize] = best;
        } else {
            best = label[u as usize];
        }
    }
    label[v as usize]
}

/// By vertex: the immediate dominator, which is its nearest ancestor in the dominator tree with a
/// number no larger than its semidominator.
///
/// Each vertex also keeps a link to a far ancestor in the dominator tree. The links make the climb
/// logarithmic in deep trees (Myers, "An applicative random-access stack", 1983).
fn nearest_above(parents: &[u32], semi: &[u32]) -> Vec<u32> {
    let mut idom = vec![0; parents.len()];
    let (mut depth, mut far) = (vec![0u32; parents.len()], vec![0; parents.len()]);
    // Ascending: the ancestors of a vertex have their links already.
    for v in 1..parents.len() {
        let mut up = parents[v] as usize;
        while up > semi[v] as usize {
            // Jump as far as the link allows without passing the semidominator; else one step up.
            up = if far[up] > semi[v] as usize { far[up] } else { idom[up] as usize };
        }
        let (next, last) = (far[up], far[far[up]]);
        // Skew-binary links: two jumps of equal length above combine to one of double length.
        far[v] = if depth[up] - depth[next] == depth[next] - depth[last] { last } else { up };
        (idom[v], depth[v]) = (up as u32, depth[up] + 1);
    }
    idom
}
