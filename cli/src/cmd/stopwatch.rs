//! Measures the time of each kind of step. The library reads no clock: it reports the beginning of
//! steps, which this stopwatch observes.

use osier::driver::{Observer, Step};
use std::time::Instant;

/// The time spent so far in each kind of step.
#[derive(Debug)]
pub(super) struct Stopwatch {
    since: Instant,
    step: Option<Step>,
    seconds: [f64; Step::ALL.len()],
}

impl Stopwatch {
    /// A stopwatch that is stopped until a step begins.
    pub(super) fn new() -> Stopwatch {
        Stopwatch { since: Instant::now(), step: None, seconds: [0.0; Step::ALL.len()] }
    }

    /// Adds the times of another stopwatch.
    pub(super) fn merge(&mut self, other: &Stopwatch) {
        self.seconds.iter_mut().zip(other.seconds).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The seconds spent in completed steps of this kind.
    pub(super) fn seconds(&self, step: Step) -> f64 {
        self.seconds[step as usize]
    }
}

impl Observer for Stopwatch {
    fn begin(&mut self, step: Option<Step>) {
        let now = Instant::now();
        if let Some(step) = self.step {
            self.seconds[step as usize] += now.duration_since(self.since).as_secs_f64();
        }
        self.since = now;
        self.step = step;
    }
}
