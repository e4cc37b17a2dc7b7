//! Dense numbers for the edges of a function, for bit sets.

use cranelift_entity::EntityRef;
use ir::{Edge, Function};

/// Numbers every edge. Valid until the function changes.
#[derive(Clone, Debug)]
pub(crate) struct EdgeIndex {
    /// By instruction index: the number of a terminator's first edge.
    first: Vec<u32>,
    count: usize,
}

impl EdgeIndex {
    /// Cost: linear in instruction ids and blocks.
    pub(crate) fn new(function: &Function) -> EdgeIndex {
        let mut index = EdgeIndex { first: vec![0; function.inst_bound()], count: 0 };
        for block in function.blocks() {
            let inst = function.terminator(block);
            index.first[inst.index()] = index.count as u32;
            index.count += function.inst(inst).targets.len();
        }
        index
    }

    /// The number of an edge, below [`EdgeIndex::len`].
    pub(crate) fn of(&self, edge: Edge) -> usize {
        (self.first[edge.inst.index()] + edge.index) as usize
    }

    /// The number of edges.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}
