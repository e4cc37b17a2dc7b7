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

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.entries.len() <= key.index() {
            self.entries.resize_with(key.index() + 1, || None);
        }
        self.entries[key.index()] = Some(value);
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
