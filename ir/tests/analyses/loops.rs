//! Loops, compared with their definition by strongly connected regions.

use crate::analyses::graphs::{Graph, function, on_many_graphs};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::loops::{Loop, LoopForest};
use ir::{Block, Edge, Function};
use std::collections::BTreeSet;

/// A loop of the definition.
#[derive(Debug)]
struct Region {
    header: usize,
    nodes: BTreeSet<usize>,
    depth: u32,
}

/// Whether a path of at least one edge leads from `a` to `b` within `nodes`.
fn path_within(graph: &Graph, nodes: &BTreeSet<usize>, a: usize, b: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![a];
    while let Some(n) = work.pop() {
        for s in graph[n].iter().filter(|s| nodes.contains(s)) {
            if *s == b {
                return true;
            }
            if seen.insert(*s) {
                work.push(*s);
            }
        }
    }
    false
}

/// Loops by definition: each strongly connected part is a loop. Its header is its first member in
/// reverse postorder. The inner loops are the loops of the part without the header.
fn regions(
    graph: &Graph,
    order: &dyn Fn(usize) -> usize,
    nodes: &BTreeSet<usize>,
    depth: u32,
    found: &mut Vec<Region>,
) {
    let mut left = nodes.clone();
    while let Some(&n) = left.first() {
        let mutual =
            |m: &usize| path_within(graph, nodes, n, *m) && path_within(graph, nodes, *m, n);
        let part: BTreeSet<usize> = nodes.iter().copied().filter(mutual).collect();
        left.remove(&n);
        left.retain(|m| !part.contains(m));
        if let Some(&header) = part.iter().min_by_key(|m| order(**m)) {
            let inner = part.iter().copied().filter(|m| *m != header).collect();
            found.push(Region { header, nodes: part, depth });
            regions(graph, order, &inner, depth + 1, found);
        }
    }
}

fn check_loop(graph: &Graph, function: &Function, forest: &LoopForest, id: Loop, region: &Region) {
    let blocks: Vec<Block> = function.blocks().collect();
    let cfg = Cfg::new(function);
    let dom = DomTree::new(function, &cfg);
    let set = |nodes: &dyn Fn(usize) -> bool| -> Vec<Block> {
        cfg.rpo()
            .iter()
            .copied()
            .filter(|b| nodes(blocks.iter().position(|c| c == b).expect("laid out")))
            .collect()
    };
    let inside = |n: usize| region.nodes.contains(&n);
    let reached = |n: usize| cfg.is_reachable(blocks[n]);
    let has_edge = |from: usize, to: usize| graph[from].contains(&to);
    let mut members = forest.blocks(id).to_vec();
    assert_eq!(members.first(), Some(&blocks[region.header]));
    members.sort_by_key(|b| cfg.rpo_index(*b));
    assert_eq!(members, set(&inside), "{graph:?}");
    assert_eq!(forest.depth(id), region.depth);
    let entered = |n: usize| {
        inside(n) && (0..graph.len()).any(|p| reached(p) && !inside(p) && has_edge(p, n))
    };
    assert_eq!(forest.entries(id), set(&entered));
    assert_eq!(forest.latches(id), set(&|n| inside(n) && has_edge(n, region.header)));
    let dominated = members.iter().all(|b| dom.dominates(blocks[region.header], *b));
    assert_eq!(forest.is_reducible(id), dominated, "{graph:?}");
    let exit_edges = set(&inside).into_iter().flat_map(|b| {
        let inst = function.terminator(b);
        let targets = function.successors(b).iter().enumerate();
        let leaves = targets.filter(|(_, t)| !forest.contains(id, t.block)).map(|(i, _)| i as u32);
        leaves.map(move |index| Edge { inst, index }).collect::<Vec<_>>()
    });
    assert_eq!(forest.exits(id), exit_edges.collect::<Vec<_>>());
    for (n, block) in blocks.iter().enumerate() {
        assert_eq!(forest.contains(id, *block), inside(n));
    }
}

#[test]
fn loops_are_the_nested_strongly_connected_regions() {
    let (mut irreducible, mut nested) = (0, 0);
    on_many_graphs(|graph| {
        let function = function(graph);
        let cfg = Cfg::new(&function);
        let forest = LoopForest::new(&function, &cfg);
        let blocks: Vec<Block> = function.blocks().collect();
        let order =
            |n: usize| cfg.rpo_index(blocks[n]).expect("only reachable nodes are asked for");
        let reached = (0..graph.len()).filter(|n| cfg.is_reachable(blocks[*n])).collect();
        let mut expected = Vec::new();
        regions(graph, &order, &reached, 1, &mut expected);
        expected.sort_by_key(|r| order(r.header));
        assert_eq!(forest.loops().len(), expected.len(), "{graph:?}");
        for (id, region) in forest.loops().zip(&expected) {
            check_loop(graph, &function, &forest, id, region);
            irreducible += u32::from(!forest.is_reducible(id));
            nested += u32::from(forest.parent(id).is_some());
            let parent = forest.parent(id).map(|p| forest.header(p));
            let around = expected
                .iter()
                .filter(|r| r.nodes.contains(&region.header) && r.depth + 1 == region.depth);
            assert_eq!(parent, around.map(|r| blocks[r.header]).next());
        }
        for (n, block) in blocks.iter().enumerate() {
            let depth = expected
                .iter()
                .filter(|r| r.nodes.contains(&n))
                .map(|r| r.depth)
                .max()
                .unwrap_or(0);
            assert_eq!(forest.depth_of(*block), depth, "{graph:?} {n}");
        }
    });
    assert!(
        irreducible > 100 && nested > 100,
        "{irreducible} irreducible and {nested} nested loops were tried"
    );
}
