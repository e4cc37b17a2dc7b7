//! Functions made from bare graphs.

use ir::{Block, Function, FunctionBuilder, InstSpec, Opcode, Signature, Target, Type};

/// A graph: the successors of each node; node 0 is the entry.
pub type Graph = Vec<Vec<usize>>;

/// A deterministic source of random numbers (SplitMix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Every graph of `count` nodes in which no edge leads to the entry.
pub fn all_graphs(count: usize) -> impl Iterator<Item = Graph> {
    let bits = count - 1;
    let codes = 1u64 << (bits * count);
    (0..codes).map(move |code| {
        let successors = |n: usize| (0..bits).filter(move |s| code >> (n * bits + s) & 1 == 1).map(|s| s + 1);
        (0..count).map(|n| successors(n).collect()).collect()
    })
}

/// A random graph: mostly forward edges, some back, some doubled.
pub fn random_graph(rng: &mut Rng, count: usize) -> Graph {
    let node = |rng: &mut Rng, n: usize| match rng.below(4) {
        0 => 1 + rng.below(count - 1),
        _ => (n + 1 + rng.below(3)).min(count - 1).max(1),
    };
    (0..count).map(|n| (0..rng.below(4)).map(|_| node(rng, n)).collect()).collect()
}

/// A function with this control flow, blocks in node order. The entry's one parameter decides branches.
pub fn function(graph: &Graph) -> Function {
    let signature = Signature::new(&[Type::I32], &[]);
    let mut builder = FunctionBuilder::new("graph", signature);
    let blocks: Vec<Block> = graph.iter().map(|_| builder.create_block()).collect();
    let condition = builder.append_param(blocks[0], Type::I32);
    for (n, successors) in graph.iter().enumerate() {
        builder.switch_to(blocks[n]);
        let targets: Vec<Target> = successors.iter().map(|s| Target::new(blocks[*s], &[])).collect();
        let (opcode, args) = match targets.len() {
            0 => (Opcode::Return, vec![]),
            1 => (Opcode::Jump, vec![]),
            2 => (Opcode::BrIf, vec![condition]),
            _ => (Opcode::Switch, vec![condition]),
        };
        builder.insert(InstSpec::terminator(opcode, &args, targets));
    }
    builder.finish().expect("every block is terminated")
}

/// The nodes reachable from node 0 without entering `without`.
pub fn reachable(graph: &Graph, without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut work = vec![0];
    while let Some(n) = work.pop() {
        if Some(n) != without && !std::mem::replace(&mut seen[n], true) {
            work.extend(&graph[n]);
        }
    }
    seen
}

/// Runs a check on every graph of up to four nodes and on random ones of up to forty.
pub fn on_many_graphs(mut check: impl FnMut(&Graph)) {
    for count in 1..=4 {
        all_graphs(count).for_each(|g| check(&g));
    }
    let mut rng = Rng(7);
    for round in 0..300 {
        let graph = random_graph(&mut rng, 5 + round % 36);
        check(&graph);
    }
}
