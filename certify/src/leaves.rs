//! Leaves for parameters and memory: the terms for contents that both versions bind.

use super::terms::CertificateTerms;
use cranelift_entity::SecondaryMap;
use ir::{Block, Type, Value};
use std::collections::BTreeSet;
use transition::Side;
use transition::certificate::{TermId, TermKind};

/// The name of a leaf. Both versions find the leaf by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum LeafName {
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
    params: [LeafSlots<Value>; 3],
    memory: [LeafSlots<Block>; 3],
    /// The leaves with their names, ascending, since terms are numbered in the order of creation.
    named: Vec<(TermId, LeafName)>,
    /// The slots filled, in order.
    filled: Vec<(usize, LeafName)>,
    /// Names that stand for different leaves in the two versions.
    unshared: BTreeSet<LeafName>,
}

/// A state of [`Leaves`] to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeavesMark {
    named: usize,
    filled: usize,
}

/// Terms by name, each plus one; zero means no term.
type LeafSlots<K> = SecondaryMap<K, TermId>;

impl Leaves {
    /// Forgets the leaves. The names that must not be shared stay.
    pub(super) fn clear(&mut self) {
        self.params.iter_mut().for_each(SecondaryMap::clear);
        self.memory.iter_mut().for_each(SecondaryMap::clear);
        self.named.clear();
        self.filled.clear();
    }

    /// Marks the state.
    pub(super) fn mark(&self) -> LeavesMark {
        LeavesMark { named: self.named.len(), filled: self.filled.len() }
    }

    /// Returns to a marked state.
    pub(super) fn rewind(&mut self, mark: LeavesMark) {
        for (list, name) in self.filled.drain(mark.filled..) {
            match name {
                LeafName::Param(param) => self.params[list][param] = 0,
                LeafName::Memory(block) => self.memory[list][block] = 0,
            }
        }
        self.named.truncate(mark.named);
    }

    /// Gives each version its own leaf with this name, in all later rounds.
    pub(super) fn unshare(&mut self, name: LeafName) {
        self.unshared.insert(name);
    }

    fn list(&self, side: Side, name: LeafName) -> usize {
        if self.unshared.contains(&name) { side as usize } else { 2 }
    }

    /// Lets `other` find the leaf named `name` too, unless `other` has a leaf. Both names must be
    /// shared, or both not.
    pub(super) fn rename(&mut self, side: Side, name: Value, other: Value) {
        let list = self.list(side, LeafName::Param(name));
        let leaf = self.params[list][name];
        if self.params[list][other] == 0 && self.list(side, LeafName::Param(other)) == list {
            self.params[list][other] = leaf;
            self.filled.push((list, LeafName::Param(other)));
        }
    }

    /// The leaf that a version binds under a name. Makes it if it is missing.
    pub(super) fn get(
        &mut self,
        terms: &mut CertificateTerms,
        side: Side,
        name: LeafName,
        ty: Option<Type>,
    ) -> TermId {
        let list = self.list(side, name);
        let (slot, kind) = match name {
            LeafName::Param(value) => (&mut self.params[list][value], TermKind::Param),
            LeafName::Memory(block) => (&mut self.memory[list][block], TermKind::MemoryParam),
        };
        if *slot == 0 {
            let leaf = terms.leaf(kind, ty);
            self.named.push((leaf, name));
            self.filled.push((list, name));
            *slot = leaf + 1;
        }
        *slot - 1
    }

    /// Whether the leaf of a parameter exists and is shared.
    pub(super) fn offers(&self, param: Value) -> bool {
        self.list(Side::Before, LeafName::Param(param)) == 2 && self.params[2][param] != 0
    }

    /// The name of a leaf.
    pub(super) fn name_of(&self, leaf: TermId) -> Option<LeafName> {
        let at = self.named.binary_search_by_key(&leaf, |(id, _)| *id).ok()?;
        Some(self.named[at].1)
    }
}
