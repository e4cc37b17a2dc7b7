//! Compares the checker's own dominators with the dominators of the IR, which the checker does not
//! use.

use crate::accept::graph::BlockGraph;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::text::parse_module;
use ir::{Block, Function};
use proptest::collection::vec;
use proptest::prelude::*;

/// Compares reachability and dominance for all pairs of blocks.
fn assert_same_dominators(f: &Function) {
    let graph = BlockGraph::new(f, |_| true);
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

/// The first function of a text.
fn function(text: &str) -> Function {
    let module = parse_module(text).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    module.defined().next().expect("one function").1.clone()
}

/// A function of `blocks` blocks behind its entry. Each block ends in a jump to the first target of
/// its list, a switch over all targets, or a return if the list is empty. The entry jumps to the
/// first block. So graphs have unreachable blocks, loops that do not end, irreducible loops, blocks
/// that jump to themselves, and several edges between two blocks.
fn graph(blocks: &[Vec<usize>]) -> Function {
    let mut text = String::from("func @f(%x: i32) {\nentry:\njump b0\n");
    for (index, targets) in blocks.iter().enumerate() {
        let names: Vec<String> = targets.iter().map(|t| format!("b{}", t % blocks.len())).collect();
        text.push_str(&match &names[..] {
            [] => format!("b{index}:\nreturn\n"),
            [target] => format!("b{index}:\njump {target}\n"),
            [default, rest @ ..] => {
                format!("b{index}:\nswitch %x, [{}], default {default}\n", rest.join(", "))
            }
        });
    }
    text.push_str("}\n");
    function(&text)
}

proptest! {
    #[test]
    fn dominators_are_those_of_the_ir(
        blocks in vec(vec(any::<usize>(), 0..4), 1..24),
    ) {
        assert_same_dominators(&graph(&blocks));
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
    function(&text)
}

#[test]
fn dominators_of_deep_trees_are_found() {
    assert_same_dominators(&deep(40));
    // A size at which a quadratic climb, or recursion, does not finish.
    let f = deep(100_000);
    let graph = BlockGraph::new(&f, |_| true);
    let (first, last) = (f.blocks().nth(1).expect("c0"), f.blocks().last().expect("the last w"));
    assert!(graph.dominates(f.entry(), last) && !graph.dominates(first, last));
}
