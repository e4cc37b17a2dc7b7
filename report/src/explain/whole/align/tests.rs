//! Tests of `report::explain::whole::align`.

use super::*;
use proptest::prelude::*;

#[test]
fn common_lines_share_a_row_and_others_stand_beside_each_other() {
    let rows = rows(&["a", "b", "c"], &["a", "x", "y", "c"]);
    let both = |l, r| [Some(l), Some(r)];
    assert_eq!(rows, [both(0, 0), both(1, 1), [None, Some(2)], both(2, 3)]);
}

#[test]
fn a_line_that_moved_stands_in_two_rows() {
    let rows = rows(&["hoisted", "head", "rest"], &["head", "rest", "hoisted"]);
    assert_eq!(rows, [[Some(0), None], [Some(1), Some(0)], [Some(2), Some(1)], [None, Some(2)]]);
}

proptest! {
    #[test]
    fn every_line_has_one_row_in_order(
        left in proptest::collection::btree_set(0u8..40, 0..30),
        right in Just((0u8..40).collect::<Vec<u8>>()).prop_shuffle(),
        cut in 0usize..40,
    ) {
        let left: Vec<u8> = left.into_iter().collect();
        let right = &right[..cut];
        let rows = rows(&left, right);
        for (side, length) in [(0, left.len()), (1, right.len())] {
            let lines: Vec<u32> = rows.iter().filter_map(|row| row[side]).collect();
            prop_assert_eq!(lines, (0..length as u32).collect::<Vec<u32>>());
        }
    }
}
