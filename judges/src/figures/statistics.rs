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
mod tests;
