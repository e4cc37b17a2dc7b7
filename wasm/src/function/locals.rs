//! A map over the locals of a function.

use std::collections::HashMap;

/// Locals with a lower index have an entry in a vector. Nearly all accesses are to these; a vector
/// for all locals would take 200 KB for a function that declares 50,000 of them in a few bytes.
const NEAR: u32 = 256;

/// A map over the indices of locals. A function may declare 50,000 locals and use a few.
#[derive(Debug)]
pub(super) struct LocalMap<T> {
    near: Vec<Option<T>>,
    far: HashMap<u32, T>,
}

impl<T> Default for LocalMap<T> {
    fn default() -> LocalMap<T> {
        LocalMap { near: Vec::new(), far: HashMap::new() }
    }
}

impl<T: Copy> LocalMap<T> {
    pub(super) fn get(&self, local: u32) -> Option<T> {
        match local < NEAR {
            true => self.near.get(local as usize).copied().flatten(),
            false => self.far.get(&local).copied(),
        }
    }

    /// Sets the entry of a local. Returns the entry before.
    pub(super) fn insert(&mut self, local: u32, value: T) -> Option<T> {
        if local >= NEAR {
            return self.far.insert(local, value);
        }
        if self.near.len() <= local as usize {
            self.near.resize(local as usize + 1, None);
        }
        self.near[local as usize].replace(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{LocalMap, NEAR};

    #[test]
    fn near_and_far_locals_have_entries_of_their_own() {
        let mut map = LocalMap::default();
        for local in [0, 3, NEAR - 1, NEAR, 49_999] {
            assert_eq!((map.get(local), map.insert(local, local + 1)), (None, None));
        }
        assert_eq!(map.insert(3, 9), Some(4));
        assert_eq!(map.insert(NEAR, 9), Some(NEAR + 1));
        let found = [0, 1, 3, NEAR - 1, NEAR, 49_999].map(|local| map.get(local));
        assert_eq!(found, [Some(1), None, Some(9), Some(NEAR), Some(9), Some(50_000)]);
    }
}
