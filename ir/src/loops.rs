//! The loop forest, including irreducible loops.
//!
//! The algorithm is from Havlak, "Nesting of Reducible and Irreducible Loops", TOPLAS 1997. It
//! processes a depth-first tree from the innermost header outward, and collapses each loop to its
//! header by union-find. In a reducible graph the result is the natural loops. A strongly connected
//! region with several entries becomes one loop, whose header is the entry that the depth-first
//! search visited first. [`LoopForest::is_reducible`] returns `false` for such loops.

use crate::cfg::{Cfg, DepthFirst, check_stamp};
use crate::entity::Block;
use crate::function::Function;
use crate::inst::Edge;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

/// A loop of a [`LoopForest`]. Ids ascend in the reverse postorder of headers, so a loop has a
/// smaller id than the loops inside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

/// All loops of the reachable blocks.
///
/// The result is valid for one stamp of one function. Queries that take the function panic on any
/// other stamp.
#[derive(Clone, Debug)]
pub struct LoopForest {
    stamp: u64,
    loops: PrimaryMap<Loop, LoopData>,
    /// By block index: the innermost loop that contains the block.
    innermost: Vec<Option<Loop>>,
    /// The blocks of all loops. The blocks of one loop are contiguous, inner loops included.
    blocks: Vec<Block>,
    /// By block index: the position in `blocks` if the block is in a loop.
    place: Vec<u32>,
}

#[derive(Clone, Debug)]
struct LoopData {
    header: Block,
    parent: Option<Loop>,
    depth: u32,
    /// The range of this loop in `LoopForest::blocks`.
    start: u32,
    end: u32,
    entries: Vec<Block>,
    latches: Vec<Block>,
    exits: Vec<Edge>,
}

impl LoopData {
    fn new(header: Block, parent: Option<Loop>, depth: u32) -> LoopData {
        let (entries, latches, exits) = (Vec::new(), Vec::new(), Vec::new());
        LoopData { header, parent, depth, start: 0, end: 0, entries, latches, exits }
    }
}

impl LoopForest {
    /// Finds the loops of a function whose control-flow graph the caller does not need. Cost: that
    /// of [`Cfg::new`] and [`LoopForest::new`].
    pub fn of(function: &Function) -> LoopForest {
        LoopForest::new(function, &Cfg::new(function))
    }

    /// Finds the loops. Cost: near linear in the number of blocks and edges of a reducible graph.
    /// An edge into the middle of a loop costs one visit for each loop around it.
    ///
    /// # Panics
    /// When `cfg` is stale.
    pub fn new(function: &Function, cfg: &Cfg) -> LoopForest {
        cfg.check(function);
        let headers = header_of_each(cfg);
        let mut forest = LoopForest {
            stamp: function.stamp(),
            loops: PrimaryMap::new(),
            innermost: vec![None; function.block_bound()],
            blocks: Vec::new(),
            place: vec![u32::MAX; function.block_bound()],
        };
        forest.make_loops(cfg, &headers);
        forest.place_blocks(cfg);
        forest.list_borders(function, cfg);
        forest
    }

    /// Creates the loops and fills `innermost`, outer loops first.
    fn make_loops(&mut self, cfg: &Cfg, headers: &Headers) {
        for (n, block) in cfg.rpo().iter().enumerate() {
            // The header of an enclosing loop is an ancestor in the depth-first tree, so this loop
            // has already visited it.
            let outer = headers.around[n].and_then(|h| self.innermost[cfg.block(h).index()]);
            self.innermost[block.index()] = if headers.is_header[n] {
                let depth = outer.map_or(1, |o| self.loops[o].depth + 1);
                Some(self.loops.push(LoopData::new(*block, outer, depth)))
            } else {
                outer
            };
        }
    }

    /// Lays out the blocks of each loop contiguously: first its own blocks in reverse postorder
    /// (the header first), then the inner loops.
    fn place_blocks(&mut self, cfg: &Cfg) {
        // The sizes including inner loops. The reverse order visits inner loops first.
        let mut own = vec![0u32; self.loops.len()];
        cfg.rpo()
            .iter()
            .filter_map(|b| self.innermost[b.index()])
            .for_each(|l| own[l.index()] += 1);
        let mut size = own.clone();
        for (id, data) in self.loops.iter().rev() {
            if let Some(parent) = data.parent {
                size[parent.index()] += size[id.index()];
            }
        }
        // The start of the next inner loop of each loop. This order visits a loop before its inner
        // loops.
        let mut inner_start = vec![0u32; self.loops.len()];
        let mut root_start = 0;
        for id in self.loops.keys() {
            let slot = match self.loops[id].parent {
                Some(parent) => &mut inner_start[parent.index()],
                None => &mut root_start,
            };
            let start = *slot;
            *slot += size[id.index()];
            inner_start[id.index()] = start + own[id.index()];
            (self.loops[id].start, self.loops[id].end) = (start, start + size[id.index()]);
        }
        let mut fill: Vec<u32> = self.loops.values().map(|l| l.start).collect();
        self.blocks = vec![cfg.block(0); root_start as usize];
        for block in cfg.rpo() {
            if let Some(id) = self.innermost[block.index()] {
                let at = &mut fill[id.index()];
                self.place[block.index()] = *at;
                self.blocks[*at as usize] = *block;
                *at += 1;
            }
        }
    }

    /// Fills `entries`, `latches` and `exits`, each in reverse postorder.
    fn list_borders(&mut self, function: &Function, cfg: &Cfg) {
        for (n, &block) in cfg.rpo().iter().enumerate() {
            let mut around = self.innermost[block.index()];
            while let Some(id) = around {
                let entered = cfg.preds(n as u32).iter().any(|p| !self.contains(id, cfg.block(*p)));
                if !entered {
                    break; // No edge from outside this loop, so none from outside outer loops.
                }
                self.loops[id].entries.push(block);
                around = self.loops[id].parent;
            }
            let inst = function.terminator(block);
            for (index, target) in function.inst(inst).targets.iter().enumerate() {
                self.list_edge(block, target.block, Edge { inst, index: index as u32 });
            }
        }
    }

    /// Adds an edge to the exits of the loops that it leaves. If it is a back edge of a loop, adds
    /// its source to the latches of that loop.
    fn list_edge(&mut self, from: Block, to: Block, edge: Edge) {
        let mut around = self.innermost[from.index()];
        while let Some(id) = around.filter(|id| !self.contains(*id, to)) {
            self.loops[id].exits.push(edge);
            around = self.loops[id].parent;
        }
        if let Some(id) = self.innermost[to.index()]
            && self.loops[id].header == to
            && self.contains(id, from)
            && self.loops[id].latches.last() != Some(&from)
        {
            self.loops[id].latches.push(from);
        }
    }

    /// The stamp of the function that the forest was computed on.
    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Checks that the function has not changed since the forest was computed.
    ///
    /// # Panics
    /// When the function has changed.
    pub fn check(&self, function: &Function) {
        check_stamp("LoopForest", self.stamp, function);
    }

    /// Every loop, outer loops before their inner loops.
    pub fn loops(&self) -> impl DoubleEndedIterator<Item = Loop> + ExactSizeIterator + use<> {
        self.loops.keys()
    }

    /// The header. In a reducible loop it is the single entry; in an irreducible loop it is the
    /// first entry in reverse postorder.
    pub fn header(&self, id: Loop) -> Block {
        self.loops[id].header
    }

    /// The innermost loop around this loop, if any.
    pub fn parent(&self, id: Loop) -> Option<Loop> {
        self.loops[id].parent
    }

    /// The nesting depth: the number of loops that contain this loop, itself included.
    pub fn depth(&self, id: Loop) -> u32 {
        self.loops[id].depth
    }

    /// The blocks of a loop, inner loops included; the header comes first.
    pub fn blocks(&self, id: Loop) -> &[Block] {
        let LoopData { start, end, .. } = self.loops[id];
        &self.blocks[start as usize..end as usize]
    }

    /// The blocks of the loop with an edge from outside, in reverse postorder.
    pub fn entries(&self, id: Loop) -> &[Block] {
        &self.loops[id].entries
    }

    /// Whether the loop has a single entry. That entry is the header, and it dominates every block
    /// of the loop.
    pub fn is_reducible(&self, id: Loop) -> bool {
        self.loops[id].entries.len() == 1
    }

    /// The latches: the blocks of the loop with an edge to its header, in reverse postorder.
    pub fn latches(&self, id: Loop) -> &[Block] {
        &self.loops[id].latches
    }

    /// The edges that leave the loop, in reverse postorder of their sources.
    pub fn exits(&self, id: Loop) -> &[Edge] {
        &self.loops[id].exits
    }

    /// The innermost loop that contains a block.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost.get(block.index()).copied().flatten()
    }

    /// The number of loops that contain a block.
    pub fn depth_of(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |id| self.depth(id))
    }

    /// Whether a block is in this loop or in a loop inside it. Cost: constant.
    pub fn contains(&self, id: Loop, block: Block) -> bool {
        let LoopData { start, end, .. } = self.loops[id];
        self.place.get(block.index()).is_some_and(|p| (start..end).contains(p))
    }
}

/// The headers of the loops, by reverse-postorder number.
struct Headers {
    is_header: Vec<bool>,
    /// The header of the innermost loop around the block. For a header: the header of the next loop
    /// around its own loop.
    around: Vec<Option<u32>>,
}

/// Havlak's algorithm. Inside this function, nodes are preorder numbers.
fn header_of_each(cfg: &Cfg) -> Headers {
    let tree = DepthFirst::new(cfg.graph());
    let count = cfg.len();
    // The sources of forward and cross edges, by target. When the algorithm finds a loop, it moves
    // an edge into the middle of the loop to the loop's header. The enclosing loops then see that
    // edge too.
    let mut entering: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut repeating: Vec<Vec<u32>> = vec![Vec::new(); count];
    for to in 0..count as u32 {
        for &pred in cfg.preds(tree.node[to as usize]) {
            let from = tree.pre[pred as usize];
            let list = if tree.is_ancestor(to, from) { &mut repeating } else { &mut entering };
            list[to as usize].push(from);
        }
    }
    let mut collapsed = UnionFind::new(count);
    let mut header: Vec<Option<u32>> = vec![None; count];
    let mut is_header = vec![false; count];
    // By node: the last header whose body contained it. This marks membership without clearing the
    // marks per header.
    let mut seen_for = vec![u32::MAX; count];
    // Descending preorder visits the headers of inner loops first, so an inner loop is already a
    // single node here.
    for w in (0..count as u32).rev() {
        is_header[w as usize] = !repeating[w as usize].is_empty();
        let mut body: Vec<u32> = Vec::new();
        seen_for[w as usize] = w;
        for &from in &repeating[w as usize] {
            let from = collapsed.find(from);
            if std::mem::replace(&mut seen_for[from as usize], w) != w {
                body.push(from);
            }
        }
        let mut next = 0;
        while let Some(&x) = body.get(next) {
            next += 1;
            // The body grows backward along entering edges. A source outside the subtree of `w`
            // means that the loop has an entry other than `w`. The edge then counts as an edge into
            // `w`.
            for y in std::mem::take(&mut entering[x as usize]) {
                let y = collapsed.find(y);
                if !tree.is_ancestor(w, y) {
                    entering[w as usize].push(y);
                } else if std::mem::replace(&mut seen_for[y as usize], w) != w {
                    body.push(y);
                }
            }
        }
        for x in body {
            header[x as usize] = Some(w);
            collapsed.join(x, w);
        }
    }
    by_rpo_number(&tree, &header, &is_header)
}

fn by_rpo_number(tree: &DepthFirst, header: &[Option<u32>], is_header: &[bool]) -> Headers {
    let pre = |n: usize| tree.pre[n] as usize;
    Headers {
        is_header: (0..tree.pre.len()).map(|n| is_header[pre(n)]).collect(),
        around: (0..tree.pre.len())
            .map(|n| header[pre(n)].map(|h| tree.node[h as usize]))
            .collect(),
    }
}

/// Disjoint sets of nodes, each represented by its header.
struct UnionFind {
    parent: Vec<u32>,
}

impl UnionFind {
    fn new(count: usize) -> UnionFind {
        UnionFind { parent: (0..count as u32).collect() }
    }

    /// The representative of the node's set. Halves the path that it follows.
    fn find(&mut self, mut n: u32) -> u32 {
        while self.parent[n as usize] != n {
            let above = self.parent[self.parent[n as usize] as usize];
            self.parent[n as usize] = above;
            n = above;
        }
        n
    }

    /// Merges the set of `n` into the set of `into`. Both are representatives.
    fn join(&mut self, n: u32, into: u32) {
        self.parent[n as usize] = into;
    }
}
