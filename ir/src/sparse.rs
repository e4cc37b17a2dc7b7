//! A table from ids to data in which ids may be missing.

use cranelift_entity::EntityRef;
use std::marker::PhantomData;

/// A vector of optional entries, indexed by an id. A version has only the ids that survive in it.
/// The other ids, deleted ones and ids of sibling versions, are holes. Look-up of a hole gives
/// `None`; a `SecondaryMap` would give a default that looks like data.
#[derive(Clone, Debug)]
pub(crate) struct Sparse<K, V> {
    entries: Vec<Option<V>>,
    key: PhantomData<K>,
}

/// The new index of an entry that [`Sparse::permute`] drops.
pub(crate) const NOWHERE: u32 = u32::MAX;

impl<K: EntityRef, V> Sparse<K, V> {
    pub(crate) fn new() -> Self {
        Sparse { entries: Vec::new(), key: PhantomData }
    }

    /// A table without holes, with the entries of the keys from 0 on, in order.
    pub(crate) fn dense(entries: Vec<Option<V>>) -> Self {
        Sparse { entries, key: PhantomData }
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.entries.get(key.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.entries.get_mut(key.index())?.as_mut()
    }

    /// Makes room for exactly `count` entries in total.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.entries.reserve_exact(count.saturating_sub(self.entries.len()));
    }

    /// Gives back the room beyond the entries.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        let (len, needed) = (self.entries.len(), key.index() + 1);
        if self.entries.capacity() < needed {
            // A quarter instead of the double: a pass that inserts one instruction into a large
            // version would otherwise double its tables.
            self.entries.reserve_exact((needed - len).max(len / 4).max(4));
        }
        if len < needed {
            self.entries.resize_with(needed, || None);
        }
        self.entries[key.index()] = Some(value);
    }

    /// Moves every entry to the index that `to` gives for its present index, in place. `to` has
    /// [`NOWHERE`] for entries that are dropped, and no other index twice. The table then has
    /// `count` entries; `to` names smaller indices only. Cost: linear.
    pub(crate) fn permute(&mut self, mut to: Vec<u32>, count: usize) {
        to.resize(self.entries.len(), NOWHERE);
        for (entry, to) in self.entries.iter_mut().zip(&mut to) {
            match *to {
                NOWHERE => *entry = None,
                // A hole has no entry to move; entries that land there later must stay.
                _ if entry.is_none() => *to = NOWHERE,
                _ => {}
            }
        }
        self.reserve(count);
        self.entries.resize_with(self.entries.len().max(count), || None);
        for start in 0..to.len() {
            if to[start] == NOWHERE {
                continue;
            }
            let (mut at, mut moving) = (start, self.entries[start].take());
            // The entry pushes out the entry at its new index, and so on, until a hole takes an
            // entry.
            while let Some(entry) = moving {
                let next = std::mem::replace(&mut to[at], NOWHERE) as usize;
                moving = self.entries[next].replace(entry);
                at = next;
            }
        }
        self.entries.truncate(count);
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> + '_ {
        self.entries.iter_mut().flatten()
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        self.entries.get_mut(key.index())?.take()
    }

    pub(crate) fn bound(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.entries.iter().enumerate().filter(|(_, e)| e.is_some()).map(|(i, _)| K::new(i))
    }
}

#[cfg(test)]
mod tests;
