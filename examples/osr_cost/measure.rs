//! Times and statistics on them.

use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread in seconds, which excludes other programs of the machine.
pub(crate) fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The seconds that a piece of work takes, and its result.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let begun = seconds();
    let result = work();
    (seconds() - begun, result)
}

/// The fastest times of a variant, by code place.
#[derive(Clone, Debug)]
pub(crate) struct Times(Vec<f64>);

impl Times {
    /// No times yet, of a variant at this number of places.
    pub(crate) fn new(places: usize) -> Times {
        Times(vec![f64::INFINITY; places])
    }

    /// Records a time.
    pub(crate) fn note(&mut self, place: usize, seconds: f64) {
        self.0[place] = self.0[place].min(seconds);
    }

    /// The time at the best place.
    pub(crate) fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The mean over the places.
    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// The geometric mean.
pub(crate) fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp()
}

/// The largest number.
pub(crate) fn highest(numbers: &[f64]) -> f64 {
    numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The quantile `part` of the numbers, which it sorts: 0.5 is the median.
pub(crate) fn quantile(numbers: &mut [f64], part: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[((numbers.len() - 1) as f64 * part) as usize]
}
