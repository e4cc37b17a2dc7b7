//! Parameters that only ever receive one value.
//!
//! The *root* of a parameter is the one value that arrives on every edge that may be taken, or the
//! parameter itself if several values arrive. The search is optimistic, so a set of parameters that
//! pass each other around loops has the root of the value that enters the set.

use super::{Analysis, Fact};
use cranelift_entity::EntityRef;
use ir::cfg::Cfg;
use ir::{Block, Value, ValueDef};

/// The number of times that the search restarts after a parameter that looked like a copy turned
/// out not to be one. After that many restarts, the search may miss copies: a bound on cost, not on
/// correctness.
const RESTARTS: usize = 32;

/// By value index: the root of each parameter; `None` for results. Cost: blocks and edges, times
/// the nesting of loops, times one more than the restarts.
pub(super) fn roots(analysis: &Analysis<'_>) -> Vec<Option<Value>> {
    let function = analysis.function;
    let cfg = Cfg::new(function);
    let is_entered = |b: &Block| analysis.entered.contains(b.index()) && *b != function.entry();
    let blocks: Vec<Block> = cfg.rpo().iter().copied().filter(is_entered).collect();
    let mut search =
        RootSearch { analysis, roots: vec![None; function.value_bound()], restarts: RESTARTS };
    for &argument in function.arguments() {
        search.roots[argument.index()] = Some(argument);
    }
    while search.sweep(&blocks) {}
    search.roots
}

struct RootSearch<'a> {
    analysis: &'a Analysis<'a>,
    /// `None` where nothing has arrived yet.
    roots: Vec<Option<Value>>,
    restarts: usize,
}

impl RootSearch<'_> {
    /// Visits every parameter once. Returns whether another sweep is needed.
    fn sweep(&mut self, blocks: &[Block]) -> bool {
        let mut moved = false;
        for &block in blocks {
            for (index, &param) in self.analysis.function.block_params(block).iter().enumerate() {
                let before = self.roots[param.index()];
                // A parameter that is not a copy remains so: roots only move down.
                if before == Some(param) {
                    continue;
                }
                let after = self.incoming(block, index, param);
                self.roots[param.index()] = after;
                moved |= before != after;
                let fell = before.is_some() && after == Some(param);
                if fell && self.restarts > 0 {
                    // Roots computed from this one are stale. A comparison of new roots with stale
                    // ones would miss copies (the test `a_late_fall_does_not_hide_copies`).
                    self.restarts -= 1;
                    self.forget_copies();
                    return true;
                }
            }
        }
        moved
    }

    fn forget_copies(&mut self) {
        for (index, root) in self.roots.iter_mut().enumerate() {
            *root = root.filter(|r| r.index() == index);
        }
    }

    /// The root that arrives on every taken edge; the parameter itself if several do. `None` if no
    /// root has arrived yet.
    fn incoming(&self, block: Block, index: usize, param: Value) -> Option<Value> {
        let function = self.analysis.function;
        let mut agreed = None;
        for edge in function.predecessors(block).iter().filter(|e| self.analysis.is_taken(**e)) {
            let arg = function.target(*edge).args[index];
            let is_copy = matches!(function.value_def(arg), ValueDef::Param(..))
                && !matches!(self.analysis.fact(arg), Fact::Constant(_));
            let root = if is_copy { self.roots[arg.index()] } else { Some(arg) };
            if arg == param || root.is_none() || agreed == root {
                continue;
            }
            if agreed.is_some() {
                return Some(param);
            }
            agreed = root;
        }
        agreed
    }
}
