//! Block order and dominance, compared with their definitions by paths.

use crate::analyses::graphs::{Graph, function, on_many_graphs, reachable};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Function, FunctionBuilder, Opcode, Point, Signature, Type};

fn analyses(function: &Function) -> (Cfg, DomTree) {
    let cfg = Cfg::new(function);
    let dom = DomTree::new(function, &cfg);
    (cfg, dom)
}

/// Dominance by definition: `a` dominates `b` if `b` is reachable, but becomes unreachable without
/// `a`.
fn naive_dominates(graph: &Graph, a: usize, b: usize) -> bool {
    reachable(graph, None)[b] && !reachable(graph, Some(a))[b]
}

#[test]
fn reverse_postorder_lists_reachable_blocks_before_all_but_back_edges() {
    on_many_graphs(|graph| {
        let function = function(graph);
        let (cfg, dom) = analyses(&function);
        let blocks: Vec<Block> = function.blocks().collect();
        let reached = reachable(graph, None);
        assert_eq!(cfg.rpo().first(), Some(&function.entry()));
        assert_eq!(cfg.rpo().len(), reached.iter().filter(|r| **r).count());
        for (n, block) in blocks.iter().enumerate() {
            assert_eq!(cfg.is_reachable(*block), reached[n], "{graph:?} {block}");
            assert_eq!(cfg.rpo_index(*block).map(|i| cfg.rpo()[i]), reached[n].then_some(*block));
            // A dominator comes before the blocks that it dominates.
            if let Some(idom) = dom.idom(*block) {
                assert!(cfg.rpo_index(idom) < cfg.rpo_index(*block));
            }
        }
        // In an acyclic graph no edge runs against the order.
        let acyclic = graph.iter().enumerate().all(|(n, succs)| succs.iter().all(|s| *s > n));
        for (n, succs) in graph.iter().enumerate().filter(|(n, _)| acyclic && reached[*n]) {
            for s in succs {
                assert!(cfg.rpo_index(blocks[n]) < cfg.rpo_index(blocks[*s]), "{graph:?}");
            }
        }
    });
}

#[test]
fn dominance_is_as_defined_by_paths() {
    on_many_graphs(|graph| {
        let function = function(graph);
        let (_, dom) = analyses(&function);
        let blocks: Vec<Block> = function.blocks().collect();
        for b in 0..graph.len() {
            let without: Vec<bool> =
                (0..graph.len()).map(|a| naive_dominates(graph, a, b)).collect();
            for a in 0..graph.len() {
                assert_eq!(dom.dominates(blocks[a], blocks[b]), without[a], "{graph:?} {a} {b}");
            }
            // The immediate dominator is the strict dominator that all strict dominators dominate.
            let strict: Vec<usize> = (0..graph.len()).filter(|a| *a != b && without[*a]).collect();
            let nearest =
                strict.iter().find(|c| strict.iter().all(|a| naive_dominates(graph, *a, **c)));
            assert_eq!(dom.idom(blocks[b]), nearest.map(|c| blocks[*c]), "{graph:?} {b}");
        }
    });
}

#[test]
fn the_tree_agrees_with_itself() {
    on_many_graphs(|graph| {
        let function = function(graph);
        let (cfg, dom) = analyses(&function);
        let mut preorder = dom.preorder().to_vec();
        for (n, block) in preorder.iter().enumerate() {
            let parent_at = dom.idom(*block).map(|p| preorder.iter().position(|b| *b == p));
            assert!(parent_at.is_none_or(|p| p < Some(n)), "parents come first");
            assert!(dom.children(*block).iter().all(|c| dom.idom(*c) == Some(*block)));
            let last =
                dom.children(*block).windows(2).all(|w| cfg.rpo_index(w[0]) < cfg.rpo_index(w[1]));
            assert!(last, "children stand in reverse postorder");
        }
        let children: usize = preorder.iter().map(|b| dom.children(*b).len()).sum();
        assert_eq!(children + 1, preorder.len());
        preorder.sort();
        let mut rpo = cfg.rpo().to_vec();
        rpo.sort();
        assert_eq!(preorder, rpo);
        for a in cfg.rpo() {
            for b in cfg.rpo() {
                let common = dom.common_dominator(*a, *b).expect("both are reachable");
                assert!(dom.dominates(common, *a) && dom.dominates(common, *b));
                let closer = dom
                    .children(common)
                    .iter()
                    .find(|c| dom.dominates(**c, *a) && dom.dominates(**c, *b));
                assert_eq!(closer, None);
            }
        }
    });
}

/// The function is `entry(x): a = add x x; br_if a, then, join(a)`, `then: b = mul a a; jump
/// join(b)` and `join(p): c = add p x; return c`. It also has an unreachable block, `dead`.
#[test]
fn availability_counts_own_parameters_and_earlier_results() {
    let mut builder = FunctionBuilder::new("f", Signature::new(&[Type::I32], &[Type::I32]));
    let [entry, then, join, dead] = [(); 4].map(|()| builder.create_block());
    let x = builder.append_param(entry, Type::I32);
    let p = builder.append_param(join, Type::I32);
    builder.switch_to(entry);
    let a = builder.op(Opcode::Add, Type::I32, &[x, x]);
    let branch = builder.br_if(a, ir::Target::new(then, &[]), ir::Target::new(join, &[a]));
    builder.switch_to(then);
    let b = builder.op(Opcode::Mul, Type::I32, &[a, a]);
    let then_jump = builder.jump(join, &[b]);
    builder.switch_to(join);
    let c = builder.op(Opcode::Add, Type::I32, &[p, x]);
    let ret = builder.ret(&[c]);
    builder.switch_to(dead);
    let d = builder.constant(Type::I32, 1);
    let dead_ret = builder.ret(&[d]);
    let function = builder.finish().expect("complete").function;
    let (_, dom) = analyses(&function);
    let available = |value, inst| dom.available_at(&function, value, Point::before(inst));
    let inst = |value| function.defining_inst(value).expect("a result");
    assert!(available(x, inst(a)) && !available(a, inst(a)) && available(a, branch));
    assert!(
        available(a, then_jump)
            && available(b, then_jump)
            && !available(b, ret)
            && !available(p, then_jump)
    );
    assert!(
        available(p, inst(c)) && available(c, ret) && !available(c, inst(c)) && available(a, ret)
    );
    assert!(
        !available(x, dead_ret) && !available(d, dead_ret),
        "nothing is available in unreachable blocks"
    );
    assert!(!available(ir::Value::from_u32(99), ret), "nor is what the function lacks");
    assert!(
        dom.inst_dominates(&function, inst(a), branch)
            && !dom.inst_dominates(&function, branch, branch)
    );
    assert!(
        dom.inst_dominates(&function, branch, ret)
            && !dom.inst_dominates(&function, then_jump, ret)
    );
    assert!(!dom.inst_dominates(&function, inst(d), dead_ret));
}
