//! Tests of `jit::vm::ranges`.

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
