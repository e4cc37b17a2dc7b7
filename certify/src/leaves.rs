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
    /// Names that stand for different leaves in the two versions.
    unshared: BTreeSet<LeafName>,
    nothing_shared: bool,
}

/// Terms by name, each plus one, so that zero says there is none.
type LeafSlots<K> = SecondaryMap<K, TermId>;

impl Leaves {
    /// Forgets the leaves. The names that must not be shared stay.
    pub(super) fn clear(&mut self) {
        self.params.iter_mut().for_each(SecondaryMap::clear);
        self.memory.iter_mut().for_each(SecondaryMap::clear);
        self.named.clear();
    }

    /// Gives each version its own leaf with this name, in all later rounds.
    pub(super) fn unshare(&mut self, name: LeafName) {
        self.unshared.insert(name);
    }

    /// Shares no leaf, in all later rounds.
    pub(super) fn unshare_all(&mut self) {
        self.nothing_shared = true;
    }

    fn list(&self, side: Side, name: LeafName) -> usize {
        if self.nothing_shared || self.unshared.contains(&name) { side as usize } else { 2 }
    }

    /// Lets `other` find the leaf named `name` too, unless `other` has a leaf. Both names must be
    /// shared, or both not.
    pub(super) fn rename(&mut self, side: Side, name: Value, other: Value) {
        let list = self.list(side, LeafName::Param(name));
        let leaf = self.params[list][name];
        if self.params[list][other] == 0 && self.list(side, LeafName::Param(other)) == list {
            self.params[list][other] = leaf;
        }
    }

    /// The leaf that a version binds under a name. Makes it if there is none.
    pub(super) fn get(
        &mut self,
        terms: &mut CertificateTerms,
        side: Side,
        name: LeafName,
        ty: Option<Type>,
    ) -> TermId {
        let list = self.list(side, name);
        match name {
            LeafName::Param(value) => {
                let slot = &mut self.params[list][value];
                find_or_make(slot, &mut self.named, terms, name, (TermKind::Param, ty))
            }
            LeafName::Memory(block) => {
                let slot = &mut self.memory[list][block];
                find_or_make(slot, &mut self.named, terms, name, (TermKind::MemoryParam, None))
            }
        }
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

fn find_or_make(
    slot: &mut TermId,
    named: &mut Vec<(TermId, LeafName)>,
    terms: &mut CertificateTerms,
    name: LeafName,
    (kind, ty): (TermKind, Option<Type>),
) -> TermId {
    if *slot == 0 {
        let leaf = terms.leaf(kind, ty);
        named.push((leaf, name));
        *slot = leaf + 1;
    }
    *slot - 1
}
