//! The order of blocks: a doubly linked list with insertion and removal in constant time.

use crate::entity::Block;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The neighbors of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    prev: PackedOption<Block>,
    next: PackedOption<Block>,
}

/// The blocks of a function in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    links: SecondaryMap<Block, Links>,
    first: PackedOption<Block>,
    last: PackedOption<Block>,
    count: usize,
}

impl Layout {
    pub(crate) fn first(&self) -> Option<Block> {
        self.first.expand()
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The block behind a block of the layout.
    pub(crate) fn after(&self, block: Block) -> Option<Block> {
        self.links[block].next.expand()
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter { layout: self, front: self.first, back: self.last, left: self.count }
    }

    /// Appends a block that is not in the layout.
    pub(crate) fn push(&mut self, block: Block) {
        let last = self.last;
        self.link(last, block, None.into());
    }

    /// Inserts a block that is not in the layout before a block that is.
    pub(crate) fn insert_before(&mut self, block: Block, next: Block) {
        let prev = self.links[next].prev;
        self.link(prev, block, next.into());
    }

    fn link(&mut self, prev: PackedOption<Block>, block: Block, next: PackedOption<Block>) {
        self.links[block] = Links { prev, next };
        self.join(prev, block.into());
        self.join(block.into(), next);
        self.count += 1;
    }

    /// Removes a block from the layout.
    pub(crate) fn remove(&mut self, block: Block) {
        let Links { prev, next } = std::mem::take(&mut self.links[block]);
        self.join(prev, next);
        self.count -= 1;
    }

    /// Makes two blocks neighbors. `None` on one side makes the other block an end of the list.
    fn join(&mut self, prev: PackedOption<Block>, next: PackedOption<Block>) {
        match prev.expand() {
            Some(prev) => self.links[prev].next = next,
            None => self.first = next,
        }
        match next.expand() {
            Some(next) => self.links[next].prev = prev,
            None => self.last = prev,
        }
    }
}

impl FromIterator<Block> for Layout {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Layout {
        let mut layout = Layout::default();
        blocks.into_iter().for_each(|block| layout.push(block));
        layout
    }
}

/// An iterator over the blocks from both ends.
#[derive(Clone, Debug)]
pub(crate) struct Iter<'l> {
    layout: &'l Layout,
    front: PackedOption<Block>,
    back: PackedOption<Block>,
    left: usize,
}

impl Iterator for Iter<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        self.left = self.left.checked_sub(1)?;
        let block = self.front.expand()?;
        self.front = self.layout.links[block].next;
        Some(block)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Block> {
        self.left = self.left.checked_sub(1)?;
        let block = self.back.expand()?;
        self.back = self.layout.links[block].prev;
        Some(block)
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests;
