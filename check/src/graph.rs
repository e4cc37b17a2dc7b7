//! The control-flow graph of a version, and its dominators: the checker's own.
//!
//! Dominators by semi-dominators with path compression, and nearest common ancestors (Georgiadis,
//! "Linear-Time Algorithms for Dominators and Related Problems", 2005, chapter 2).

use ir::{Block, Edge, Function, Inst, Value, ValueDef};

const NONE: u32 = u32::MAX;

/// The blocks that edges lead to from the entry, and which dominates which.
pub(super) struct Graph {
    /// By block index: the number in depth-first preorder.
    number: Vec<u32>,
    blocks: Vec<Block>,
    /// By number: the place in a preorder of the dominator tree, and the size of the subtree.
    place: Vec<(u32, u32)>,
}

impl Graph {
    /// The graph of the edges that `is_live` admits. Cost: near linear in blocks and edges.
    pub(super) fn new(f: &Function, is_live: impl Fn(Edge) -> bool) -> Graph {
        let mut graph =
            Graph { number: vec![NONE; f.block_bound()], blocks: Vec::new(), place: Vec::new() };
        let parents = graph.walk(f, &is_live);
        let idom = graph.immediate_dominators(f, &is_live, &parents);
        graph.number_tree(&idom);
        graph
    }

    /// Numbers the blocks; returns the parent of each in the depth-first tree.
    fn walk(&mut self, f: &Function, is_live: &impl Fn(Edge) -> bool) -> Vec<u32> {
        let mut parents = vec![0];
        self.number[f.entry().as_u32() as usize] = 0;
        self.blocks.push(f.entry());
        let mut stack = vec![(f.terminator(f.entry()), 0u32)];
        while let Some((inst, index)) = stack.last_mut() {
            let edge = Edge { inst: *inst, index: *index };
            let Some(target) = f.inst(*inst).targets.get(*index as usize) else {
                stack.pop();
                continue;
            };
            *index += 1;
            let slot = &mut self.number[target.block.as_u32() as usize];
            if *slot == NONE && is_live(edge) {
                *slot = self.blocks.len() as u32;
                self.blocks.push(target.block);
                parents.push(self.number[f.inst_block(edge.inst).as_u32() as usize]);
                stack.push((f.terminator(target.block), 0));
            }
        }
        parents
    }

    fn immediate_dominators(
        &self,
        f: &Function,
        is_live: &impl Fn(Edge) -> bool,
        parents: &[u32],
    ) -> Vec<u32> {
        let count = self.blocks.len() as u32;
        let mut semi: Vec<u32> = (0..count).collect();
        let mut label = semi.clone();
        let mut ancestor = parents.to_vec();
        let mut path = Vec::new();
        for v in (1..count).rev() {
            let mut least = parents[v as usize];
            for edge in f.predecessors(self.blocks[v as usize]).iter().filter(|e| is_live(**e)) {
                let u = self.number[f.inst_block(edge.inst).as_u32() as usize];
                if u != NONE {
                    let best = evaluate(u, v + 1, &semi, &mut label, &mut ancestor, &mut path);
                    least = least.min(semi[best as usize]);
                }
            }
            semi[v as usize] = least;
        }
        nearest_above(parents, &semi)
    }

    fn number_tree(&mut self, idom: &[u32]) {
        let count = self.blocks.len();
        let mut sizes = vec![1u32; count];
        for v in (1..count).rev() {
            sizes[idom[v] as usize] += sizes[v];
        }
        let mut next = vec![1u32; count];
        self.place = vec![(0, count as u32); count];
        for v in 1..count {
            let above = idom[v] as usize;
            self.place[v] = (next[above], sizes[v]);
            next[above] += sizes[v];
            next[v] = self.place[v].0 + 1;
        }
    }

    /// The blocks that are reached, the entry first.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn place(&self, block: Block) -> Option<(u32, u32)> {
        let number = *self.number.get(block.as_u32() as usize)?;
        self.place.get(number as usize).copied()
    }

    /// Where a block that is reached stands in a preorder of the dominator tree.
    pub(super) fn preorder(&self, block: Block) -> Option<u32> {
        self.place(block).map(|(place, _)| place)
    }

    /// Whether a block is reached.
    pub(super) fn has(&self, block: Block) -> bool {
        self.place(block).is_some()
    }

    /// Whether every path to `b` passes `a`; a block dominates itself.
    pub(super) fn dominates(&self, a: Block, b: Block) -> bool {
        let (Some((first, size)), Some((other, _))) = (self.place(a), self.place(b)) else {
            return false;
        };
        first <= other && other < first + size
    }

    /// Whether an instruction has executed whenever control is before another.
    pub(super) fn passed(&self, f: &Function, inst: Inst, at: Inst) -> bool {
        let (home, here) = (f.inst_block(inst), f.inst_block(at));
        if home == here { f.stands_before(inst, at) } else { self.dominates(home, here) }
    }

    /// Whether a value is available before an instruction.
    pub(super) fn available(&self, f: &Function, value: Value, at: Inst) -> bool {
        match f.value_def(value) {
            ValueDef::Result(inst, _) => self.passed(f, inst, at),
            ValueDef::Param(block, _) => self.dominates(block, f.inst_block(at)),
        }
    }
}

/// The vertex of least semidominator on the path up from `v` among those numbered `linked` and
/// above.
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
    let mut top = v;
    while ancestor[top as usize] >= linked {
        path.push(top);
        top = ancestor[top as usize];
    }
    let mut best = label[top as usize];
    let root = ancestor[top as usize];
    while let Some(u) = path.pop() {
        ancestor[u as usize] = root;
        if semi[best as usize] < semi[label[u as usize] as usize] {
            label[u as usize] = best;
        } else {
            best = label[u as usize];
        }
    }
    label[v as usize]
}

/// By vertex: the nearest ancestor that is no deeper than its semidominator, in the tree of these
/// ancestors itself. Each also has a longer way up, so that a deep tree is climbed in logarithmic
/// time (Myers, "An applicative random-access stack", 1983).
fn nearest_above(parents: &[u32], semi: &[u32]) -> Vec<u32> {
    let mut idom = vec![0; parents.len()];
    let (mut depth, mut far) = (vec![0u32; parents.len()], vec![0; parents.len()]);
    for v in 1..parents.len() {
        let mut up = parents[v] as usize;
        while up > semi[v] as usize {
            up = if far[up] > semi[v] as usize { far[up] } else { idom[up] as usize };
        }
        let (next, last) = (far[up], far[far[up]]);
        far[v] = if depth[up] - depth[next] == depth[next] - depth[last] { last } else { up };
        (idom[v], depth[v]) = (up as u32, depth[up] + 1);
    }
    idom
}
