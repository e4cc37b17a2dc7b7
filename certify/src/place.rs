//! Where one version binds the leaves of classes, and which edges it may take.

use super::table::Table;
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{Block, Edge, Function};
use smallvec::SmallVec;
use transition::certificate::{TermId, TermKind};

/// Where a class is bound: the deepest block that binds one of its leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Site {
    /// The class has no leaves.
    Anywhere,
    /// This block binds a leaf. The blocks that bind the other leaves dominate it.
    Below(Block),
    /// This version does not bind one of the leaves, or two binding blocks do not dominate one
    /// another.
    Nowhere,
}

/// The sites of the terms of a table, found on demand.
#[derive(Debug, Default)]
pub(super) struct Sites {
    known: Vec<Option<Site>>,
    stack: Vec<TermId>,
}

impl Sites {
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// Records the block that binds a leaf.
    pub(super) fn bind(&mut self, leaf: TermId, block: Block) {
        self.grow(leaf);
        self.known[leaf as usize] = Some(Site::Below(block));
    }

    /// Whether the version has bound a leaf.
    pub(super) fn is_bound(&self, leaf: TermId) -> bool {
        matches!(self.known.get(leaf as usize), Some(Some(Site::Below(_))))
    }

    fn grow(&mut self, term: TermId) {
        if self.known.len() <= term as usize {
            self.known.resize(term as usize + 1, None);
        }
    }

    /// The site of a class, which is that of its first term. Cost: amortized over all questions,
    /// linear in the table.
    pub(super) fn of(&mut self, table: &Table, dom: &DomTree, class: TermId) -> Site {
        let Some(top) = table.terms.get(class as usize).map(|_| class) else {
            return Site::Nowhere;
        };
        self.grow(top);
        if let Some(site) = self.known[top as usize] {
            return site;
        }
        self.stack.push(top);
        while let Some(&term) = self.stack.last() {
            let found = match &table.terms[term as usize].kind {
                TermKind::Op { args, .. } => {
                    // Terms name earlier terms, so the operands are within the bounds of `known`
                    // too.
                    let Some(first) = args.iter().find(|a| self.known[**a as usize].is_none())
                    else {
                        let sites =
                            args.iter().map(|a| self.known[*a as usize].unwrap_or(Site::Nowhere));
                        let site = sites.fold(Site::Anywhere, |a, b| deeper(dom, a, b));
                        self.known[term as usize] = Some(site);
                        self.stack.pop();
                        continue;
                    };
                    self.stack.push(*first);
                    continue;
                }
                // A leaf that no block of this version has bound. Should one do so later, `bind`
                // replaces the answer.
                _ => Site::Nowhere,
            };
            self.known[term as usize].get_or_insert(found);
            self.stack.pop();
        }
        self.known[top as usize].unwrap_or(Site::Nowhere)
    }
}

fn deeper(dom: &DomTree, a: Site, b: Site) -> Site {
    match (a, b) {
        (Site::Anywhere, other) | (other, Site::Anywhere) => other,
        (Site::Below(x), Site::Below(y)) if dom.dominates(x, y) => b,
        (Site::Below(x), Site::Below(y)) if dom.dominates(y, x) => a,
        _ => Site::Nowhere,
    }
}

/// The targets that a block's terminator may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Taken {
    /// None: the block is unreachable.
    #[default]
    None,
    /// The one with this index.
    One(u32),
    /// All of them.
    All,
}

impl Taken {
    fn has(self, index: u32) -> bool {
        match self {
            Taken::None => false,
            Taken::One(only) => only == index,
            Taken::All => true,
        }
    }
}

/// The live edges of one version, by block index.
#[derive(Debug, Default)]
pub(super) struct LiveEdges {
    taken: Vec<Taken>,
}

impl LiveEdges {
    pub(super) fn clear(&mut self, f: &Function) {
        self.taken.clear();
        self.taken.resize(f.block_bound(), Taken::None);
    }

    /// Records the targets that a block's terminator may take. Returns whether they changed.
    pub(super) fn take(&mut self, block: Block, taken: Taken) -> bool {
        std::mem::replace(&mut self.taken[block.as_u32() as usize], taken) != taken
    }

    /// Whether a block is reachable.
    pub(super) fn has_block(&self, block: Block) -> bool {
        self.taken.get(block.as_u32() as usize).is_some_and(|t| *t != Taken::None)
    }

    /// Whether an edge is live.
    pub(super) fn has(&self, f: &Function, edge: Edge) -> bool {
        self.taken[f.inst_block(edge.inst).as_u32() as usize].has(edge.index)
    }

    /// The live edges into a block.
    pub(super) fn leading_to<'s>(
        &'s self,
        f: &'s Function,
        block: Block,
    ) -> impl Iterator<Item = Edge> + 's {
        f.predecessors(block).iter().copied().filter(|e| self.has(f, *e))
    }

    /// The live edges out of a block, targets in order.
    pub(super) fn out_of(&self, f: &Function, block: Block) -> SmallVec<[Edge; 2]> {
        let inst = f.terminator(block);
        let edges = (0..f.inst(inst).targets.len() as u32).map(|index| Edge { inst, index });
        edges.filter(|e| self.has(f, *e)).collect()
    }

    /// The number of live edges.
    pub(super) fn count(&self, f: &Function, cfg: &Cfg) -> usize {
        cfg.rpo().iter().map(|block| self.out_of(f, *block).len()).sum()
    }
}
