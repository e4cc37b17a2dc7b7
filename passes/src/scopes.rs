//! Walks down the dominator tree with tables of the values that dominate the current block.

use ir::Block;
use ir::dom::DomTree;

/// Tables that grow on the way down and shrink on the way up.
pub(crate) trait DominatorScopes {
    /// Visits a block. The tables hold the keys of exactly the blocks that dominate it.
    fn enter(&mut self, block: Block);
    /// The number of keys in the tables.
    fn depth(&self) -> usize;
    /// Removes the keys entered last, until `depth` are left.
    fn leave(&mut self, depth: usize);
}

/// Visits every reachable block, each after the blocks that dominate it. Cost: linear in blocks.
pub(crate) fn walk_scopes(dom: &DomTree, entry: Block, tables: &mut impl DominatorScopes) {
    /// A block to enter, or the number of keys to keep once the subtree of a block is done.
    enum ScopeStep {
        Enter(Block),
        Leave(usize),
    }
    let mut steps = vec![ScopeStep::Enter(entry)];
    while let Some(step) = steps.pop() {
        match step {
            ScopeStep::Enter(block) => {
                steps.push(ScopeStep::Leave(tables.depth()));
                tables.enter(block);
                // Reversed: the stack then pops the first child first.
                steps.extend(dom.children(block).iter().rev().map(|b| ScopeStep::Enter(*b)));
            }
            ScopeStep::Leave(depth) => tables.leave(depth),
        }
    }
}
