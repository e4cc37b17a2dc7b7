//! Medians with confidence intervals, and geometric means.
//!
//! The interval of a median is a pair of order statistics: of seven numbers, the least and the
//! greatest enclose the median of the distribution with 98.4 % confidence. The statement needs no
//! assumption about the distribution, which for times of processes is skewed.

use serde::Serialize;

/// The least confidence of an interval.
const CONFIDENCE: f64 = 0.95;

/// A median with its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The median; of an even number of numbers, the mean of the middle two.
    pub median: f64,
    /// The bounds of the interval of 95 % or more. `None` for fewer than six numbers, which have no
    /// such interval.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// The estimate of some numbers; `None` without numbers.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
        let median = (sorted[low] + sorted[high]) / 2.0;
        let interval = rank(sorted.len()).map(|r| [sorted[r], sorted[sorted.len() - 1 - r]]);
        Some(Estimate { median, interval })
    }

    /// Whether the whole interval lies above a bound. Without an interval, whether the median does.
    pub fn is_above(&self, bound: f64) -> bool {
        self.interval.map_or(self.median, |[low, _]| low) > bound
    }
}

/// The greatest rank, counted from 0, for which the interval from the number of this rank to its
/// counterpart from the end has the confidence. Each of the two tails has the probability that at
/// most `rank` of `count` numbers lie on one side of the median.
fn rank(count: usize) -> Option<usize> {
    let (mut term, mut tail, mut found) = (0.5f64.powi(count as i32), 0.0, None);
    for rank in 0..count / 2 {
        tail += term;
        if 1.0 - 2.0 * tail < CONFIDENCE {
            break;
        }
        found = Some(rank);
        term *= (count - rank) as f64 / (rank + 1) as f64;
    }
    found
}

/// The geometric mean of positive numbers; `None` without numbers.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.into_iter().fold((0.0, 0u32), |(s, n), x| (s + x.ln(), n + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// First, worst and average iteration, as JetStream 3 scores a benchmark. The first iteration
/// stands for itself; the mean of the four slowest others is the worst case; the mean of all others
/// is the average.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Iterations {
    /// Seconds of the first iteration.
    pub first: f64,
    /// Mean seconds of the four slowest iterations but the first.
    pub worst: f64,
    /// Mean seconds of all iterations but the first.
    pub average: f64,
}

/// The number of iterations in the worst case.
pub const WORST: usize = 4;

impl Iterations {
    /// The figures of at least five iterations, in order; `None` for fewer.
    pub fn of(seconds: &[f64]) -> Option<Iterations> {
        let (first, others) = seconds.split_first()?;
        if others.len() < WORST {
            return None;
        }
        let mut sorted = others.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        Some(Iterations { first: *first, worst: mean(&sorted[..WORST]), average: mean(others) })
    }

    /// The geometric mean of the three, in seconds. The ratio of two of them is the inverse of the
    /// ratio of the scores.
    pub fn combined(&self) -> f64 {
        (self.first * self.worst * self.average).cbrt()
    }
}

#[cfg(test)]
mod tests {
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
}
