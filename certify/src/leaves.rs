//! Leaves for parameters and memory: the terms for contents that both versions bind.

use super::table::Table;
use cranelift_entity::{EntityRef, SecondaryMap};
use ir::{Block, Type, Value};
use std::collections::BTreeSet;
use transition::Side;
use transition::certificate::{NO_TERM, TermId, TermKind};

/// The name of a leaf. Both versions find the leaf by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Name {
    /// A block parameter.
    Param(Value),
    /// The memory at the start of a block.
    Memory(Block),
}

/// The leaves of a round, by name and version.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// Three lists: leaves of the version before alone, leaves of the version after alone, and
    /// shared leaves.
    params: [ByName<Value>; 3],
    memory: [ByName<Block>; 3],
    /// The leaves with their names, ascending, since terms are numbered in the order of creation.
    named: Vec<(TermId, Name)>,
    /// Names that stand for different leaves in the two versions.
    unshared: BTreeSet<Name>,
    nothing_shared: bool,
}

/// Terms by name, each plus one, so that zero says there is none.
type ByName<K> = SecondaryMap<K, TermId>;

impl Leaves {
    /// Forgets the leaves, but not which names must not be shared.
    pub(super) fn clear(&mut self) {
        self.params.iter_mut().for_each(SecondaryMap::clear);
        self.memory.iter_mut().for_each(SecondaryMap::clear);
        self.named.clear();
    }

    /// From now on each version has its own leaf with this name.
    pub(super) fn unshare(&mut self, name: Name) {
        self.unshared.insert(name);
    }

    /// From now on no leaf is shared.
    pub(super) fn unshare_all(&mut self) {
        self.nothing_shared = true;
    }

    fn list(&self, side: Side, name: Name) -> usize {
        if self.nothing_shared || self.unshared.contains(&name) { side as usize } else { 2 }
    }

    /// Lets `other` find the leaf named `name` too, unless `other` has a leaf. Both names must be
    /// shared, or both not.
    pub(super) fn rename(&mut self, side: Side, name: Value, other: Value) {
        let list = self.list(side, Name::Param(name));
        let leaf = self.params[list][name];
        if self.params[list][other] == 0 && self.list(side, Name::Param(other)) == list {
            self.params[list][other] = leaf;
        }
    }

    /// The leaf that a version binds under a name. Makes it if there is none.
    pub(super) fn get(
        &mut self,
        table: &mut Table,
        side: Side,
        name: Name,
        ty: Option<Type>,
    ) -> TermId {
        let list = self.list(side, name);
        match name {
            Name::Param(value) => {
                let slot = &mut self.params[list][value];
                find_or_make(slot, &mut self.named, table, name, (TermKind::Param, ty))
            }
            Name::Memory(block) => {
                let slot = &mut self.memory[list][block];
                find_or_make(slot, &mut self.named, table, name, (TermKind::MemoryParam, None))
            }
        }
    }

    /// Whether the leaf of a parameter exists and is shared.
    pub(super) fn offers(&self, param: Value) -> bool {
        self.list(Side::Before, Name::Param(param)) == 2 && self.params[2][param] != 0
    }

    /// The name of a leaf.
    pub(super) fn name_of(&self, leaf: TermId) -> Option<Name> {
        let at = self.named.binary_search_by_key(&leaf, |(id, _)| *id).ok()?;
        Some(self.named[at].1)
    }
}

fn find_or_make(
    slot: &mut TermId,
    named: &mut Vec<(TermId, Name)>,
    table: &mut Table,
    name: Name,
    (kind, ty): (TermKind, Option<Type>),
) -> TermId {
    if *slot == 0 {
        let leaf = table.leaf(kind, ty);
        named.push((leaf, name));
        *slot = leaf + 1;
    }
    *slot - 1
}

/// A dense table of small numbers by entity. Keys never set have [`NO_TERM`].
#[derive(Clone, Debug)]
pub(super) struct Dense<K: EntityRef> {
    list: Vec<u32>,
    key: std::marker::PhantomData<K>,
}

impl<K: EntityRef> Default for Dense<K> {
    fn default() -> Dense<K> {
        Dense { list: Vec::new(), key: std::marker::PhantomData }
    }
}

impl<K: EntityRef> Dense<K> {
    /// Forgets everything and makes room for keys below `bound`.
    pub(super) fn reset(&mut self, bound: usize) {
        self.list.clear();
        self.list.resize(bound, NO_TERM);
    }

    /// The number set for a key, if any.
    pub(super) fn find(&self, key: K) -> Option<u32> {
        Some(self.get(key)).filter(|found| *found != NO_TERM)
    }

    /// The number set for a key; [`NO_TERM`] if none is.
    pub(super) fn get(&self, key: K) -> u32 {
        self.list.get(key.index()).copied().unwrap_or(NO_TERM)
    }

    /// Sets the number of a key below the bound.
    pub(super) fn set(&mut self, key: K, to: u32) {
        self.list[key.index()] = to;
    }

    /// The numbers set, by ascending keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, u32)> + '_ {
        let all = self.list.iter().enumerate().map(|(index, to)| (K::new(index), *to));
        all.filter(|(_, to)| *to != NO_TERM)
    }
}
