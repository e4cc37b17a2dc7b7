//! The figures of the thesis this report stands beside: D'Elia, chapter 5, the twelve hottest
//! functions of C benchmarks, LLVM 3.6.2. Other programs and another compiler: they are printed for
//! orientation, and ours are no reproduction of them.

/// Shares of feasible points at one level, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublishedShare {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// What is published of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// By place in [`crate::schema::LEVELS`].
    shares: [Option<PublishedShare>; 5],
    /// Mean size of compensation code at `avail`, in instructions.
    pub(super) chi: f64,
    /// Mean number of kept values at `avail`.
    pub(super) kept: f64,
}

impl Published {
    /// The shares at a level, if they are published.
    pub(super) fn share(&self, level: usize) -> Option<PublishedShare> {
        self.shares.get(level).copied().flatten()
    }
}

const fn share(mean: f64, min: f64, max: f64) -> Option<PublishedShare> {
    Some(PublishedShare { mean, min, max })
}

/// From the base to the optimized version.
pub(super) const FORWARD: Published = Published {
    shares: [
        share(8.4, 1.4, 42.9),
        share(44.5, 8.9, 74.1),
        share(60.8, 11.8, 97.7),
        share(72.2, 36.9, 99.2),
        share(99.8, 97.8, 100.0),
    ],
    chi: 12.8,
    kept: 2.8,
};

/// From the optimized version to the base; `alias` is not reported.
pub(super) const BACKWARD: Published = Published {
    shares: [
        share(23.0, 1.5, 75.4),
        share(38.2, 1.5, 82.2),
        share(57.5, 5.7, 90.4),
        None,
        share(98.5, 91.7, 100.0),
    ],
    chi: 2.9,
    kept: 2.0,
};
