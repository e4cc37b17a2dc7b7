//! Tests of `judges::figures::statistics`.

use super::{Estimate, Iterations, geometric_mean, rank};

#[test]
fn intervals_are_those_of_the_binomial_distribution() {
    // Tables of the sign test have these ranks, counted from 1.
    let ranks: Vec<Option<usize>> = (0..=12).map(rank).collect();
    let none = [None; 6];
    assert_eq!(ranks[..6], none);
    let some = [0, 0, 0, 1, 1, 1, 2].map(Some);
    assert_eq!(ranks[6..], some);
    assert_eq!(rank(25), Some(7));
}

#[test]
fn a_median_has_the_interval_of_its_numbers() {
    assert_eq!(Estimate::of([]), None);
    let few = Estimate::of([3.0, 1.0]).expect("numbers");
    assert_eq!((few.median, few.interval), (2.0, None));
    assert!(few.is_above(1.9) && !few.is_above(2.0));
    let seven = Estimate::of([7.0, 1.0, 6.0, 2.0, 5.0, 3.0, 4.0]).expect("numbers");
    assert_eq!((seven.median, seven.interval), (4.0, Some([1.0, 7.0])));
    assert!(!seven.is_above(1.0) && seven.is_above(0.9));
    let nine = Estimate::of((1..=9).map(f64::from)).expect("numbers");
    assert_eq!(nine.interval, Some([2.0, 8.0]));
}

#[test]
fn means_are_geometric() {
    assert_eq!(geometric_mean([]), None);
    let mean = geometric_mean([0.5, 2.0, 8.0]).expect("numbers");
    assert!((mean - 2.0).abs() < 1e-12, "{mean}");
}

#[test]
fn iterations_are_scored_without_the_first() {
    assert_eq!(Iterations::of(&[9.0, 1.0, 1.0, 1.0]), None);
    let scored = Iterations::of(&[9.0, 1.0, 4.0, 3.0, 2.0, 5.0]).expect("enough");
    assert_eq!((scored.first, scored.worst, scored.average), (9.0, 3.5, 3.0));
    let flat = Iterations::of(&[2.0; 20]).expect("enough");
    assert!((flat.combined() - 2.0).abs() < 1e-12);
}
