//! The switches that demand transitions in extra runs.

use std::fmt;
use verify::prng::Prng;

/// The transitions that a run must make. Default: no transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stress {
    /// Make a transition at every n-th visit of a mapped point.
    pub every: Option<u64>,
    /// Make a transition at every visit of the mapped point with this number. Numbers start at 1
    /// and run over the functions of a pair of versions in order. In a function, points of the
    /// earlier version come first.
    pub at_static: Option<u64>,
    /// Make a transition at the visit with this number, counted from 1 over all mapped points of a
    /// run.
    pub at_dynamic: Option<u64>,
    /// The seed that shifts the start of counting for `every`. Without it, counting starts at the
    /// first visit.
    pub seed: Option<u64>,
}

impl Stress {
    /// Whether any switch is on.
    pub fn is_on(&self) -> bool {
        self.every.is_some() || self.at_static.is_some() || self.at_dynamic.is_some()
    }

    /// Whether a switch demands a transition at the visit and the point with these numbers.
    pub(super) fn fires(&self, visit: u64, point: u64, offset: u64) -> bool {
        self.every.is_some_and(|n| n > 0 && (visit + offset).is_multiple_of(n))
            || self.at_static == Some(point)
            || self.at_dynamic == Some(visit)
    }

    /// The shift of counting for `every` in a run: less than `every`, and 0 without a seed.
    pub(super) fn offset(&self, run: u64) -> u64 {
        match (self.every, self.seed) {
            (Some(every @ 1..), Some(seed)) => Prng::new(seed).fork(run).next_u64() % every,
            _ => 0,
        }
    }
}

impl fmt::Display for Stress {
    /// Prints the equivalent options of the command, each after a blank.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switches = [
            ("--osr-every", self.every),
            ("--osr-at-static", self.at_static),
            ("--osr-at-dynamic", self.at_dynamic),
            ("--stress-seed", self.seed),
        ];
        for (name, number) in switches {
            if let Some(number) = number {
                write!(f, " {name} {number}")?;
            }
        }
        Ok(())
    }
}
