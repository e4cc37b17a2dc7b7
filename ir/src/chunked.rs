//! A table by id whose clones share their common contents.
//!
//! Machines that grow by a function at a time clone their module each time. The table lies in
//! chunks behind shared pointers. A clone copies the pointers alone, and a change copies the chunk
//! that it changes, if another table has it, too.

use cranelift_entity::EntityRef;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The entries of a chunk. A clone of 16,000 entries copies 250 pointers, and a change of an entry
/// copies 64 entries at most. A clone that grows by an entry costs about the least where both
/// numbers are alike, for some thousand entries.
const CHUNK: usize = 64;

/// A table of all ids from 0 up to a length. Reading costs constant time, a clone the number of
/// entries divided by 64.
#[derive(Clone, Debug)]
pub struct ChunkedMap<K, V> {
    /// All chunks but the last have [`CHUNK`] entries.
    chunks: Vec<Arc<Vec<V>>>,
    length: usize,
    keys: PhantomData<K>,
}

impl<K, V> Default for ChunkedMap<K, V> {
    fn default() -> ChunkedMap<K, V> {
        ChunkedMap { chunks: Vec::new(), length: 0, keys: PhantomData }
    }
}

impl<K: EntityRef, V> ChunkedMap<K, V> {
    /// A table without entries.
    pub fn new() -> ChunkedMap<K, V> {
        ChunkedMap::default()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the table has an entry of this id.
    pub fn is_valid(&self, key: K) -> bool {
        key.index() < self.length
    }

    /// The id of the next entry.
    pub fn next_key(&self) -> K {
        K::new(self.length)
    }

    /// The entry of an id, if there is one.
    pub fn get(&self, key: K) -> Option<&V> {
        self.chunks.get(key.index() / CHUNK)?.get(key.index() % CHUNK)
    }

    /// All ids, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.length).map(K::new)
    }

    /// All entries, in the order of their ids.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// All ids with their entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.values().enumerate().map(|(index, value)| (K::new(index), value))
    }

    /// The ids up to which the two tables share all chunks, so that their entries are equal. Costs
    /// the number of entries divided by 64.
    pub fn shared_with(&self, other: &ChunkedMap<K, V>) -> usize {
        let same = |(one, other): &(&Arc<Vec<V>>, &Arc<Vec<V>>)| Arc::ptr_eq(one, other);
        let shared = self.chunks.iter().zip(&other.chunks).take_while(same);
        shared.map(|(chunk, _)| chunk.len()).sum()
    }

    /// All ids from one on with their entries, in order. Ids before it cost nothing.
    pub fn iter_from(&self, first: usize) -> impl Iterator<Item = (K, &V)> {
        let chunks = self.chunks.iter().skip(first / CHUNK);
        let values = chunks.flat_map(|chunk| chunk.iter()).skip(first % CHUNK);
        values.enumerate().map(move |(index, value)| (K::new(first + index), value))
    }
}

impl<K: EntityRef, V: Clone> ChunkedMap<K, V> {
    /// Adds an entry at the end, and returns its id.
    pub fn push(&mut self, value: V) -> K {
        let key = self.next_key();
        if self.length.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::default());
        }
        let last = self.chunks.last_mut().expect("a chunk with room");
        Arc::make_mut(last).push(value);
        self.length += 1;
        key
    }

    /// All entries, for changes. Copies all chunks that other tables have, too.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.chunks.iter_mut().flat_map(|chunk| Arc::make_mut(chunk).iter_mut())
    }

    /// The entry of an id, for changes. Copies its chunk, if another table has it, too.
    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        if !self.is_valid(key) {
            return None;
        }
        Arc::make_mut(self.chunks.get_mut(key.index() / CHUNK)?).get_mut(key.index() % CHUNK)
    }
}

impl<K: EntityRef, V> Index<K> for ChunkedMap<K, V> {
    type Output = V;

    fn index(&self, key: K) -> &V {
        let (length, index) = (self.length, key.index());
        self.get(key).unwrap_or_else(|| panic!("no entry {index} of {length}"))
    }
}

impl<K: EntityRef, V: Clone> IndexMut<K> for ChunkedMap<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        let (length, index) = (self.length, key.index());
        self.get_mut(key).unwrap_or_else(|| panic!("no entry {index} of {length}"))
    }
}

impl<K: EntityRef, V: PartialEq> PartialEq for ChunkedMap<K, V> {
    fn eq(&self, other: &ChunkedMap<K, V>) -> bool {
        let shared = self.shared_with(other);
        let rest = |map| ChunkedMap::iter_from(map, shared).map(|(_, value)| value);
        self.length == other.length && rest(self).eq(rest(other))
    }
}

impl<K: EntityRef, V: Clone> FromIterator<V> for ChunkedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> ChunkedMap<K, V> {
        let mut map = ChunkedMap::new();
        values.into_iter().for_each(|value| _ = map.push(value));
        map
    }
}

#[cfg(test)]
mod tests;
