//! Functions generated from bare graphs.

use ir::{Block, Function, FunctionBuilder, InstSpec, Opcode, Signature, Target, Type, Value};

/// A graph: the successors of each node; node 0 is the entry.
pub(crate) type Graph = Vec<Vec<usize>>;

/// A deterministic source of random numbers (SplitMix64).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Every graph with `count` nodes in which no edge leads to the entry.
pub(crate) fn all_graphs(count: usize) -> impl Iterator<Item = Graph> {
    let bits = count - 1;
    let codes = 1u64 << (bits * count);
    (0..codes).map(move |code| {
        let successors =
            |n: usize| (0..bits).filter(move |s| code >> (n * bits + s) & 1 == 1).map(|s| s + 1);
        (0..count).map(|n| successors(n).collect()).collect()
    })
}

/// A random graph: mostly forward edges, some back edges, some duplicates.
pub(crate) fn random_graph(rng: &mut Rng, count: usize) -> Graph {
    let node = |rng: &mut Rng, n: usize| match rng.below(4) {
        0 => 1 + rng.below(count - 1),
        _ => (n + 1 + rng.below(3)).min(count - 1).max(1),
    };
    (0..count).map(|n| (0..rng.below(4)).map(|_| node(rng, n)).collect()).collect()
}

/// A function with this control flow, blocks in node order. Its single parameter is the condition
/// of all branches.
pub(crate) fn function(graph: &Graph) -> Function {
    let signature = Signature::new(&[Type::I32], &[]);
    let mut builder = FunctionBuilder::new("graph", signature);
    let blocks: Vec<Block> = graph.iter().map(|_| builder.create_block()).collect();
    let condition = builder.append_param(blocks[0], Type::I32);
    for (n, successors) in graph.iter().enumerate() {
        builder.switch_to(blocks[n]);
        let targets: Vec<Target> =
            successors.iter().map(|s| Target::new(blocks[*s], &[])).collect();
        let (opcode, args) = match targets.len() {
            0 => (Opcode::Return, vec![]),
            1 => (Opcode::Jump, vec![]),
            2 => (Opcode::BrIf, vec![condition]),
            _ => (Opcode::Switch, vec![condition]),
        };
        builder.insert(InstSpec::terminator(opcode, &args, targets));
    }
    builder.finish().expect("every block is terminated").function
}

/// A function with this control flow and random parameters, values and arguments. It is strict:
/// every definition dominates its uses.
pub(crate) fn function_with_values(graph: &Graph, rng: &mut Rng) -> Function {
    let mut builder = FunctionBuilder::new("values", Signature::new(&[Type::I32, Type::I32], &[]));
    let blocks: Vec<Block> = graph.iter().map(|_| builder.create_block()).collect();
    let params: Vec<Vec<Value>> = (0..graph.len())
        .map(|n| {
            (0..if n == 0 { 2 } else { rng.below(3) })
                .map(|_| builder.append_param(blocks[n], Type::I32))
                .collect()
        })
        .collect();
    let dominators: Vec<Vec<usize>> = (0..graph.len())
        .map(|b| {
            let reached = reachable(graph, None)[b];
            (0..graph.len())
                .filter(|a| *a != b && reached && !reachable(graph, Some(*a))[b])
                .collect()
        })
        .collect();
    // Dominators come first, so that later blocks can use their definitions.
    let mut order: Vec<usize> = (0..graph.len()).collect();
    order.sort_by_key(|n| (dominators[*n].len(), *n));
    let mut defined = params.clone();
    for n in order {
        builder.switch_to(blocks[n]);
        let inherited = dominators[n].iter().flat_map(|d| defined[*d].clone());
        let mut available: Vec<Value> = inherited.chain(params[n].iter().copied()).collect();
        for _ in 0..rng.below(4) {
            let pick = |rng: &mut Rng| available.get(rng.below(available.len().max(1))).copied();
            let value = match (pick(rng), pick(rng)) {
                (Some(a), Some(b)) if rng.below(4) > 0 => {
                    // A remainder may trap, but not with a nonzero constant divisor.
                    let opcode = if rng.below(3) == 0 { Opcode::Urem } else { Opcode::Add };
                    builder.op(opcode, Type::I32, &[a, b])
                }
                _ => builder.constant(Type::I32, 1),
            };
            available.push(value);
            defined[n].push(value);
        }
        if available.is_empty() {
            available.push(builder.constant(Type::I32, 2));
        }
        let mut pick = || available[rng.below(available.len())];
        let targets: Vec<Target> = graph[n]
            .iter()
            .map(|s| {
                Target::new(blocks[*s], &params[*s].iter().map(|_| pick()).collect::<Vec<_>>())
            })
            .collect();
        let (opcode, args) = match targets.len() {
            0 => (Opcode::Return, vec![pick()]),
            1 => (Opcode::Jump, vec![]),
            2 => (Opcode::BrIf, vec![pick()]),
            _ => (Opcode::Switch, vec![pick()]),
        };
        builder.insert(InstSpec::terminator(opcode, &args, targets));
    }
    builder.finish().expect("every block is terminated").function
}

/// The nodes reachable from node 0 without entering `without`.
pub(crate) fn reachable(graph: &Graph, without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    let mut work = vec![0];
    while let Some(n) = work.pop() {
        if Some(n) != without && !std::mem::replace(&mut seen[n], true) {
            work.extend(&graph[n]);
        }
    }
    seen
}

/// Runs a check on every graph of up to four nodes, and on random graphs of up to forty nodes.
pub(crate) fn on_many_graphs(mut check: impl FnMut(&Graph)) {
    for count in 1..=4 {
        all_graphs(count).for_each(|g| check(&g));
    }
    let mut rng = Rng(7);
    for round in 0..300 {
        let graph = random_graph(&mut rng, 5 + round % 36);
        check(&graph);
    }
}
