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

    /// All values.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|(_, value)| value)
    }

    /// Removes the range with this first address, and returns its value. Logarithmic.
    pub(super) fn remove(&mut self, start: usize) -> Option<T> {
        self.entries.remove(&start).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::RangeTable;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::ops::Range;

    /// Ranges of a few lengths, one in each slot of 16 addresses, so that they are disjoint.
    fn range(slot: usize, length: usize) -> Range<usize> {
        16 * slot..16 * slot + length
    }

    proptest! {
        /// The table answers as a list that is searched from its beginning.
        #[test]
        fn a_table_of_ranges_is_a_list(
            steps in vec((0..12usize, 1..=16usize, any::<bool>()), 0..40),
            probes in vec(0..256usize, 0..20),
        ) {
            let mut table = RangeTable::default();
            let mut list: Vec<(Range<usize>, usize)> = Vec::new();
            for (number, (slot, length, removes)) in steps.into_iter().enumerate() {
                let range = range(slot, length);
                if removes {
                    let at = list.iter().position(|(other, _)| other.start == range.start);
                    let mut removed = at.map(|at| list.remove(at).1);
                    prop_assert_eq!(table.get_mut(range.start), removed.as_mut());
                    prop_assert_eq!(table.remove(range.start), removed);
                    continue;
                }
                let is_new = list.iter().all(|(other, _)| other.start != range.start);
                prop_assert_eq!(table.insert(range.clone(), number), is_new);
                if is_new {
                    list.push((range, number));
                }
            }
            for probe in probes {
                let found = list.iter().find(|(range, _)| range.contains(&probe));
                prop_assert_eq!(table.at(probe), found.map(|(_, number)| number));
            }
        }
    }
}
