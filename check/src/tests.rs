//! The checker's own dominators, compared with those of the IR, which the checker does not use.

use super::graph::Graph;
use crate::generate::{Weights, generate};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::text::parse_module;
use ir::{Block, Function};

/// Compares reachability and dominance for all pairs of blocks.
fn assert_same_dominators(f: &Function) {
    let graph = Graph::new(f, |_| true);
    let cfg = Cfg::new(f);
    let dom = DomTree::new(f, &cfg);
    let blocks: Vec<Block> = f.blocks().collect();
    for &a in &blocks {
        assert_eq!(graph.has(a), cfg.is_reachable(a), "{a}");
        for &b in blocks.iter().filter(|b| cfg.is_reachable(a) && cfg.is_reachable(**b)) {
            assert_eq!(graph.dominates(a, b), dom.dominates(a, b), "{a} over {b} in @{}", f.name());
        }
    }
}

#[test]
fn dominators_are_those_of_the_definition() {
    for seed in 0..60 {
        let program = generate(seed, 60, &Weights::default());
        program.module.defined().for_each(|(_, f)| assert_same_dominators(f));
    }
}

/// A chain of `n` blocks, `n` more blocks below its end, and an edge from the function entry to
/// each of these. The depth-first tree is deep, and its semidominators are high. Without far links,
/// the climb of `nearest_above` is quadratic here.
fn deep(n: usize) -> Function {
    let name = |kind: &str, from: usize| {
        (from..from + n).map(|i| format!("{kind}{i}")).collect::<Vec<_>>().join(", ")
    };
    let mut text =
        format!("func @deep(%x: i32) {{\nentry:\nswitch %x, [c0, {}], default c0\n", name("w", 0));
    (0..n - 1).for_each(|i| text.push_str(&format!("c{i}:\njump c{}\n", i + 1)));
    text.push_str(&format!("c{}:\nswitch %x, [{}], default w0\n", n - 1, name("w", 0)));
    (0..n).for_each(|i| text.push_str(&format!("w{i}:\nreturn\n")));
    text.push_str("}\n");
    let module = parse_module(&text).unwrap_or_else(|errors| panic!("{}", errors[0]));
    module.defined().next().expect("one function").1.clone()
}

#[test]
fn dominators_of_deep_trees_are_found() {
    assert_same_dominators(&deep(40));
    // A size at which a quadratic climb, or recursion, does not finish.
    let f = deep(100_000);
    let graph = Graph::new(&f, |_| true);
    let (first, last) = (f.blocks().nth(1).expect("c0"), f.blocks().last().expect("the last w"));
    assert!(graph.dominates(f.entry(), last) && !graph.dominates(first, last));
}
