//! The blocks that bind the leaves of classes.

use crate::TermIndex;
use crate::table::{ClassTable, TermForm, TermKey};
use ir::Block;
use ir::dom::DomTree;

/// The deepest block that binds a leaf of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// The class has no leaves.
    Anywhere,
    /// This block binds a leaf. The blocks that bind the other leaves dominate this block.
    Below(Block),
    /// No block binds a leaf of the class, or two binding blocks do not dominate one another.
    Nowhere,
}

impl Home {
    /// Whether all leaves are bound strictly above a block.
    pub fn is_above(self, dom: &DomTree, block: Block) -> bool {
        match self {
            Home::Anywhere => true,
            Home::Below(home) => home != block && dom.dominates(home, block),
            Home::Nowhere => false,
        }
    }

    fn deeper(self, dom: &DomTree, other: Home) -> Home {
        match (self, other) {
            (Home::Anywhere, other) | (other, Home::Anywhere) => other,
            (Home::Below(a), Home::Below(b)) if dom.dominates(a, b) => other,
            (Home::Below(a), Home::Below(b)) if dom.dominates(b, a) => self,
            _ => Home::Nowhere,
        }
    }
}

/// The homes of the terms of a table in one function, found on demand.
#[derive(Debug, Default)]
pub struct Homes {
    pub(crate) known: Vec<Option<Home>>,
    /// Homes recorded of terms below `marked`, each with the home known before.
    pub(crate) changes: Vec<(TermIndex, Option<Home>)>,
    /// The largest number of terms at which the state was marked.
    pub(crate) marked: usize,
    stack: Vec<TermIndex>,
}

impl Homes {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.known.clear();
        self.changes.clear();
        self.marked = 0;
    }

    /// Records the block that binds a leaf.
    pub fn bind(&mut self, leaf: TermIndex, block: Block) {
        self.grow(leaf);
        self.record(leaf, Home::Below(block));
    }

    /// Whether a block has bound a leaf.
    pub fn is_bound(&self, leaf: TermIndex) -> bool {
        matches!(self.known.get(leaf as usize), Some(Some(Home::Below(_))))
    }

    fn grow(&mut self, term: TermIndex) {
        if self.known.len() <= term as usize {
            self.known.resize(term as usize + 1, None);
        }
    }

    /// The home of a class: the home of its first term. Cost: linear in the table, amortized over
    /// all queries.
    pub fn of<F: TermForm>(
        &mut self,
        table: &ClassTable<F>,
        dom: &DomTree,
        class: TermIndex,
    ) -> Home {
        let Some(top) = table.terms().get(class as usize).map(|_| class) else {
            return Home::Nowhere;
        };
        self.grow(top);
        if let Some(home) = self.known[top as usize] {
            return home;
        }
        // A stack instead of recursion: a chain of operations may be as long as the function.
        self.stack.push(top);
        while let Some(&term) = self.stack.last() {
            let found = match F::key(&table.terms()[term as usize]) {
                TermKey::Operation(operation) => {
                    // Terms name earlier terms, so the operands are within the bounds of `known`
                    // too.
                    let args = operation.args.iter();
                    if let Some(first) = args.clone().find(|a| self.known[**a as usize].is_none()) {
                        self.stack.push(*first);
                        continue;
                    }
                    let homes = args.map(|a| self.known[*a as usize].unwrap_or(Home::Nowhere));
                    homes.fold(Home::Anywhere, |a, b| a.deeper(dom, b))
                }
                // A leaf that no block has bound. If a block does so later, `bind` replaces the
                // answer.
                TermKey::Leaf(_) => Home::Nowhere,
            };
            if self.known[term as usize].is_none() {
                self.record(term, found);
            }
            self.stack.pop();
        }
        self.known[top as usize].unwrap_or(Home::Nowhere)
    }
}
