//! Small numbers by entity.

use crate::NO_TERM;
use cranelift_entity::EntityRef;
use std::marker::PhantomData;

/// A dense table of small numbers by entity. Keys never set have [`NO_TERM`].
#[derive(Clone, Debug)]
pub struct Dense<K: EntityRef> {
    list: Vec<u32>,
    key: PhantomData<K>,
}

impl<K: EntityRef> Default for Dense<K> {
    fn default() -> Dense<K> {
        Dense { list: Vec::new(), key: PhantomData }
    }
}

impl<K: EntityRef> Dense<K> {
    /// Forgets everything and makes room for keys below `bound`.
    pub fn reset(&mut self, bound: usize) {
        self.list.clear();
        self.list.resize(bound, NO_TERM);
    }

    /// The number set for a key, if any.
    pub fn find(&self, key: K) -> Option<u32> {
        Some(self.get(key)).filter(|found| *found != NO_TERM)
    }

    /// The number set for a key; [`NO_TERM`] without a number.
    pub fn get(&self, key: K) -> u32 {
        self.list.get(key.index()).copied().unwrap_or(NO_TERM)
    }

    /// Sets the number of a key.
    ///
    /// # Panics
    /// If the key is not below the bound.
    pub fn set(&mut self, key: K, to: u32) {
        self.list[key.index()] = to;
    }

    /// Sets the number of a key. Returns the number before, or [`NO_TERM`].
    ///
    /// # Panics
    /// If the key is not below the bound.
    pub fn replace(&mut self, key: K, to: u32) -> u32 {
        std::mem::replace(&mut self.list[key.index()], to)
    }

    /// Forgets the number of a key.
    pub fn unset(&mut self, key: K) {
        if let Some(slot) = self.list.get_mut(key.index()) {
            *slot = NO_TERM;
        }
    }

    /// The numbers set, by ascending keys.
    pub fn iter(&self) -> impl Iterator<Item = (K, u32)> + '_ {
        let all = self.list.iter().enumerate().map(|(index, to)| (K::new(index), *to));
        all.filter(|(_, to)| *to != NO_TERM)
    }
}
