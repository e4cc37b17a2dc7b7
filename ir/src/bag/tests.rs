//! Tests of `ir::bag`.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

/// The reference implementation of a removal: a plain list.
fn removed(items: &mut Vec<u32>, item: u32) -> bool {
    let at = items.iter().rposition(|i| *i == item);
    at.map(|at| items.swap_remove(at)).is_some()
}

#[test]
fn the_index_changes_nothing() {
    let (indexed, missed) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    // Items occur several times or not at all.
    let edits = vec((0..150u32, 0..100), 0..2000usize);
    let made = TestRunner::new(config).run(&edits, |edits| {
        let (mut bag, mut plain) = (Bag::default(), Vec::new());
        for (step, (item, percent)) in edits.into_iter().enumerate() {
            // The list grows and shrinks repeatedly.
            if percent < if step / 500 % 2 == 0 { 60 } else { 40 } {
                bag.push(item);
                plain.push(item);
            } else {
                let expected = removed(&mut plain, item);
                prop_assert_eq!(bag.remove(item), expected, "step {}", step);
                missed.set(missed.get() + u32::from(!expected));
            }
            prop_assert_eq!(bag.as_slice(), &*plain, "step {}", step);
            indexed.set(indexed.get() + u32::from(bag.places.is_some()));
            if step % 700 == 0 {
                bag = bag.clone();
            }
        }
        Ok(())
    });
    made.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(indexed.get() > 1_000 && missed.get() > 1_000, "{indexed:?} {missed:?}");
}

/// A linear search per removal would make these removals quadratic: tens of billions of steps.
#[test]
fn items_go_front_to_back_and_every_second_at_a_low_cost() {
    let count = 300_000;
    for step in [1, 2] {
        let mut bag: Bag<u32> = Bag::from((0..count).collect::<Vec<_>>());
        assert!((0..count).step_by(step).all(|item| bag.remove(item)));
        assert_eq!(bag.as_slice().len(), count as usize - count.div_ceil(step as u32) as usize);
    }
}
