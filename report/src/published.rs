//! Published figures that the report prints beside ours: D'Elia's thesis, chapter 5, the twelve
//! hottest functions of C benchmarks under LLVM 3.6.2. The programs and the compiler differ from
//! ours. The figures are for orientation, and ours do not reproduce them.

/// The share of feasible points at one level over several functions, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublishedShare {
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// The published figures of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Published {
    /// The share at each level, by index in [`crate::schema::LEVELS`].
    shares: [Option<PublishedShare>; 5],
    /// The mean size of compensation code at `avail`, in instructions.
    pub(super) chi: f64,
    /// The mean number of kept values at `avail`.
    pub(super) kept: f64,
}

impl Published {
    /// The share at a level. `None` if it is not published.
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

/// From the optimized version to the base. The thesis does not report `alias`.
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
