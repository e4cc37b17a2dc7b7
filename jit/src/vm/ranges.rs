//! A table of disjoint address ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Values by disjoint ranges of addresses.
#[derive(Debug)]
pub(super) struct RangeTable<T> {
    /// By the first address: the address behind the last one, and the value.
    entries: BTreeMap<usize, (usize, T)>,
}

impl<T> Default for RangeTable<T> {
    fn default() -> RangeTable<T> {
        RangeTable { entries: BTreeMap::new() }
    }
}

impl<T> RangeTable<T> {
    /// Adds a value, unless a range with this first address is there already. Returns whether the
    /// value was added. Logarithmic.
    pub(super) fn insert(&mut self, range: Range<usize>, value: T) -> bool {
        let mut added = false;
        self.entries.entry(range.start).or_insert_with(|| {
            added = true;
            (range.end, value)
        });
        added
    }

    /// The value whose range contains an address. Logarithmic.
    pub(super) fn at(&self, address: usize) -> Option<&T> {
        let (_, (end, value)) = self.entries.range(..=address).next_back()?;
        (address < *end).then_some(value)
    }

    /// The value of the range with this first address. Logarithmic.
    pub(super) fn get_mut(&mut self, start: usize) -> Option<&mut T> {
        self.entries.get_mut(&start).map(|(_, value)| value)
    }

    /// Removes the range with this first address, and returns its value. Logarithmic.
    pub(super) fn remove(&mut self, start: usize) -> Option<T> {
        self.entries.remove(&start).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
