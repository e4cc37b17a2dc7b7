//! Tests of `ir::sparse`.

use super::*;
use crate::entity::Value;
use proptest::prelude::*;

proptest! {
    /// Compares the moves in place with moves into a second table.
    #[test]
    fn entries_move_as_told(
        present in proptest::collection::vec(any::<bool>(), 0..40),
        keys in proptest::collection::vec(any::<u16>(), 60),
        dropped in proptest::collection::vec(0..4u8, 40),
    ) {
        let mut table: Sparse<Value, usize> = Sparse::new();
        for (at, _) in present.iter().enumerate().filter(|(_, present)| **present) {
            table.insert(Value::new(at), at);
        }
        // The indices below the count in the order of random keys, so no index occurs twice.
        let count = present.len() + 20;
        let mut places: Vec<u32> = (0..count as u32).collect();
        places.sort_by_key(|place| keys[*place as usize]);
        let place = |at: usize| if dropped[at] == 0 { NOWHERE } else { places[at] };
        let to: Vec<u32> = (0..present.len()).map(place).collect();
        let mut expected = vec![None; count];
        for at in (0..present.len()).filter(|at| present[*at] && to[*at] != NOWHERE) {
            expected[to[at] as usize] = Some(at);
        }
        table.permute(to, count);
        prop_assert_eq!(table.entries, expected);
    }
}
