//! Names of leaves: decides which block binds the leaf of a name.

use super::leaves::LeafName;
use cranelift_entity::EntityRef;
use ir::{Block, Function, Value};
use number::Dense;
use std::collections::BTreeSet;

/// The names taken by blocks of one version in this round.
#[derive(Debug, Default)]
pub(super) struct NameOwners {
    params: Dense<Value>,
    memory: Dense<Block>,
    clash: bool,
    /// Names taken, each with the block that had it before.
    taken: Vec<(LeafName, u32)>,
    /// The names that joins hand on, by the names they come from, each with the number of names
    /// taken before.
    handed: Vec<(usize, LeafName, LeafName)>,
}

impl NameOwners {
    /// Starts a round without taken names. A name may be a parameter or a block of either version.
    pub(super) fn clear(&mut self, [f, other]: [&Function; 2]) {
        self.params.reset(f.value_bound().max(other.value_bound()));
        self.memory.reset(f.block_bound().max(other.block_bound()));
        self.clash = false;
        self.taken.clear();
        self.handed.clear();
    }

    /// The number of names taken so far.
    pub(super) fn mark(&self) -> usize {
        self.taken.len()
    }

    /// Returns to the state in which this many names were taken. A clash stays: a block before the
    /// mark may own a name that a later block has yielded.
    pub(super) fn rewind(&mut self, mark: usize) {
        let before = self.handed.partition_point(|(at, ..)| *at < mark);
        self.handed.truncate(before);
        while self.taken.len() > mark
            && let Some((name, owner)) = self.taken.pop()
        {
            match name {
                LeafName::Param(param) => self.params.set(param, owner),
                LeafName::Memory(block) => self.memory.set(block, owner),
            }
        }
    }

    /// Whether two blocks of this round wanted the same name, which requires another round.
    pub(super) fn clash(&self) -> bool {
        self.clash
    }

    /// Records that joins hand the name `of` on to the name `to`. Precedes [`NameOwners::take`].
    pub(super) fn hand(&mut self, of: LeafName, to: LeafName) {
        self.handed.push((self.taken.len(), of, to));
    }

    /// The names that joins hand on, each with the name it comes from.
    pub(super) fn handed(&self) -> impl Iterator<Item = (LeafName, LeafName)> {
        self.handed.iter().map(|(_, of, to)| (*of, *to))
    }

    /// Takes the first free name for a block: `handed`, which a join hands on to it, or else one of
    /// its `own`. If several blocks in a row are handed one name, the last of them takes it. The
    /// other blocks are added to `yielded`, and yield the name in the next round
    /// (`tests/oir/osr/joins_in_a_row.oir`). `None`, and another round, if every name is taken.
    pub(super) fn take(
        &mut self,
        yielded: &mut BTreeSet<(LeafName, Block)>,
        block: Block,
        handed: Option<LeafName>,
        own: &[LeafName],
    ) -> Option<LeafName> {
        let handed = handed.filter(|name| !yielded.contains(&(*name, block)));
        let is_free = |name: &LeafName| self.owner(*name).is_none_or(|owner| owner == block);
        let taken = handed.into_iter().chain(own.iter().copied()).find(is_free);
        // The block behind wins at once, although the block before has numbered its parameters
        // under the name by now. That is why another round is needed.
        if let Some(name) = handed
            && let Some(before) = self.owner(name).filter(|owner| *owner != block)
        {
            yielded.insert((name, before));
            self.set_owner(name, block);
            self.clash = true;
        }
        match taken {
            Some(name) => self.set_owner(name, block),
            None => self.clash = true,
        }
        taken
    }

    fn owner(&self, name: LeafName) -> Option<Block> {
        let owner = match name {
            LeafName::Param(param) => self.params.find(param),
            LeafName::Memory(block) => self.memory.find(block),
        };
        owner.map(|block| Block::new(block as usize))
    }

    fn set_owner(&mut self, name: LeafName, block: Block) {
        let before = match name {
            LeafName::Param(param) => self.params.replace(param, block.as_u32()),
            LeafName::Memory(of) => self.memory.replace(of, block.as_u32()),
        };
        self.taken.push((name, before));
    }
}
