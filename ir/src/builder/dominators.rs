//! Immediate dominators of an arbitrary rooted graph.
//!
//! The algorithm is by Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a
//! Flowgraph" (TOPLAS 1979), in the version with path compression. Untrusted programs reach the
//! builder, so it needs a bound for every input. SSA construction runs the algorithm on two graphs:
//! the control-flow graph, and the graph of values that flow into block parameters. The graph of
//! values is not a function, so [`crate::dom`] does not apply.

/// "No node": larger than every node.
pub(super) const NONE: u32 = u32::MAX;

/// A directed graph with the nodes `0..count`. All neighbor lists are concatenated in one vector.
#[derive(Debug)]
pub(super) struct AdjacencyLists {
    start: Vec<u32>,
    list: Vec<u32>,
}

impl AdjacencyLists {
    /// The graph with these edges. The neighbors of a node keep the order of `edges`.
    pub(super) fn new(
        count: usize,
        edges: impl Iterator<Item = (u32, u32)> + Clone,
    ) -> AdjacencyLists {
        let mut start = vec![0u32; count + 1];
        for (from, _) in edges.clone() {
            start[from as usize + 1] += 1;
        }
        for n in 0..count {
            start[n + 1] += start[n];
        }
        let mut list = vec![0u32; start[count] as usize];
        let mut fill = start.clone();
        for (from, to) in edges {
            list[fill[from as usize] as usize] = to;
            fill[from as usize] += 1;
        }
        AdjacencyLists { start, list }
    }

    /// The neighbors of a node.
    pub(super) fn of(&self, node: u32) -> &[u32] {
        &self.list[self.start[node as usize] as usize..self.start[node as usize + 1] as usize]
    }

    /// The graph with every edge reversed.
    fn reversed(&self) -> AdjacencyLists {
        let count = self.start.len() - 1;
        let edges =
            (0..count as u32).flat_map(|from| self.of(from).iter().map(move |to| (*to, from)));
        AdjacencyLists::new(count, edges)
    }
}

/// The nodes reachable from node 0, numbered in depth-first order, with their immediate dominators.
#[derive(Debug)]
pub(super) struct Dominators {
    /// By depth-first number: the node.
    pub(super) order: Vec<u32>,
    /// By depth-first number: the number of the immediate dominator, which is smaller. The root is
    /// its own immediate dominator.
    pub(super) idom: Vec<u32>,
}

impl Dominators {
    /// Computes the dominators. Cost: the number of edges times the logarithm of the number of
    /// nodes.
    pub(super) fn new(succs: &AdjacencyLists) -> Dominators {
        let preds = succs.reversed();
        let (order, number, parent) = depth_first(succs);
        let count = order.len();
        let mut forest = Forest {
            semi: (0..count as u32).collect(),
            label: (0..count as u32).collect(),
            ancestor: vec![NONE; count],
            path: Vec::new(),
        };
        let mut idom = vec![0u32; count];
        // The nodes with semidominator `n`, as a linked list per `n`.
        let mut bucket = vec![NONE; count];
        let mut next_in_bucket = vec![NONE; count];
        // Descending order: every node larger than `w` has its semidominator and is linked into the
        // forest.
        for w in (1..count as u32).rev() {
            for pred in preds.of(order[w as usize]) {
                let v = number[*pred as usize];
                if v != NONE {
                    let u = forest.eval(v);
                    forest.semi[w as usize] = forest.semi[w as usize].min(forest.semi[u as usize]);
                }
            }
            let semi = forest.semi[w as usize] as usize;
            next_in_bucket[w as usize] = std::mem::replace(&mut bucket[semi], w);
            let above = parent[w as usize];
            forest.ancestor[w as usize] = above;
            // The nodes with the semidominator `above`: their paths down from `above` are now in
            // the forest. If an inner node of such a path has a smaller semidominator, it has the
            // same immediate dominator as `v`, which the last loop resolves.
            let mut v = std::mem::replace(&mut bucket[above as usize], NONE);
            while v != NONE {
                let u = forest.eval(v);
                let closer = forest.semi[u as usize] < forest.semi[v as usize];
                idom[v as usize] = if closer { u } else { above };
                v = next_in_bucket[v as usize];
            }
        }
        // Ascending order: the immediate dominators of smaller nodes are final.
        for w in 1..count {
            if idom[w] != forest.semi[w] {
                idom[w] = idom[idom[w] as usize];
            }
        }
        Dominators { order, idom }
    }
}

/// Depth-first search from node 0. Returns the nodes by number, the numbers by node, and the
/// parents' numbers by number.
fn depth_first(succs: &AdjacencyLists) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let count = succs.start.len() - 1;
    let (mut order, mut number, mut parent) = (vec![0], vec![NONE; count], vec![0]);
    number[0] = 0;
    // The current path, as pairs of a number and the index of the next neighbor. An explicit stack,
    // because the input determines the depth.
    let mut path = vec![(0u32, 0usize)];
    while let Some((from, next)) = path.last_mut() {
        let from_number = *from;
        match succs.of(order[from_number as usize]).get(*next) {
            Some(&to) => {
                *next += 1;
                if number[to as usize] == NONE {
                    let new = order.len() as u32;
                    number[to as usize] = new;
                    order.push(to);
                    parent.push(from_number);
                    path.push((new, 0));
                }
            }
            None => {
                path.pop();
            }
        }
    }
    (order, number, parent)
}

/// The forest of processed nodes, in depth-first numbers.
#[derive(Debug)]
struct Forest {
    semi: Vec<u32>,
    /// By node: the node with the smallest semidominator between the node and its compressed
    /// ancestor.
    label: Vec<u32>,
    ancestor: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// The node with the smallest semidominator on the path from `v` up to the root of its tree,
    /// the root excluded.
    fn eval(&mut self, v: u32) -> u32 {
        if self.ancestor[v as usize] == NONE {
            return v;
        }
        self.compress(v);
        self.label[v as usize]
    }

    fn compress(&mut self, v: u32) {
        let mut x = v;
        while self.ancestor[self.ancestor[x as usize] as usize] != NONE {
            self.path.push(x);
            x = self.ancestor[x as usize];
        }
        while let Some(x) = self.path.pop() {
            let above = self.ancestor[x as usize] as usize;
            let (mine, theirs) = (self.label[x as usize], self.label[above]);
            if self.semi[theirs as usize] < self.semi[mine as usize] {
                self.label[x as usize] = theirs;
            }
            self.ancestor[x as usize] = self.ancestor[above];
        }
    }
}
