//! Tests of `ir::cfg`.

use super::*;
use crate::dom::DomTree;
use crate::{FunctionBuilder, Signature};

/// A function, and the same function with a later stamp. Only this crate can change a stamp
/// without an action.
fn two_versions() -> (Function, Function) {
    let mut builder = FunctionBuilder::new("f", Signature::default());
    let block = builder.create_block();
    builder.switch_to(block);
    builder.ret(&[]);
    let before = builder.finish().expect("complete");
    let mut after = before.clone();
    after.stamp += 1;
    (before, after)
}

#[test]
#[should_panic(expected = "stale Cfg")]
fn a_stale_order_is_refused() {
    let (before, after) = two_versions();
    let _ = DomTree::new(&after, &Cfg::new(&before));
}

#[test]
#[should_panic(expected = "stale DomTree")]
fn a_stale_tree_is_refused() {
    let (before, after) = two_versions();
    let dom = DomTree::new(&before, &Cfg::new(&before));
    let ret = after.first_inst(after.entry());
    let _ = dom.inst_dominates(&after, ret, ret);
}
