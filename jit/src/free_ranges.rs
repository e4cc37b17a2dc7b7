//! Ranges of free memory: by address, to join neighbours, and by length, to find one that fits.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Disjoint free ranges. Every operation costs a logarithm of their number: it looks at no more
/// than four of them (`each_operation_looks_at_few_ranges`).
#[derive(Debug, Default)]
pub(crate) struct FreeRanges {
    /// The ends, by start.
    by_start: BTreeMap<usize, usize>,
    /// Lengths and starts.
    by_length: BTreeSet<(usize, usize)>,
    /// The searches in, insertions into and removals from the two trees so far.
    #[cfg(test)]
    steps: u64,
}

impl FreeRanges {
    /// Takes `length` bytes at a multiple of `align`, and leaves the rest of their range. Returns
    /// their start.
    ///
    /// Best fit: takes the shortest range of at least `length` bytes if they fit there at a
    /// multiple of `align`. Otherwise takes the shortest range with room for the bytes and their
    /// alignment. Of equal ranges, takes the first by address. `None` without such a range. All
    /// lengths, starts and alignments are multiples of `granule`.
    pub(crate) fn take(&mut self, length: usize, align: usize, granule: usize) -> Option<usize> {
        let fits = |start: usize, end: usize| start.next_multiple_of(align) + length <= end;
        let (had, start) = self.at_least(length)?;
        let start = if fits(start, start + had) {
            start
        } else {
            self.at_least(length.checked_add(align - granule)?)?.1
        };
        let end = self.remove(start)?;
        let taken = start.next_multiple_of(align);
        self.insert(start..taken);
        self.insert(taken + length..end);
        Some(taken)
    }

    /// The length and the start of the shortest range of at least `length` bytes.
    fn at_least(&mut self, length: usize) -> Option<(usize, usize)> {
        self.note();
        self.by_length.range((length, 0)..).next().copied()
    }

    /// Frees a range, and joins it with its neighbours within `bounds`. Returns the joined range.
    pub(crate) fn give(&mut self, range: Range<usize>, bounds: &Range<usize>) -> Range<usize> {
        let mut joined = range;
        self.note();
        let before = self.by_start.range(..joined.start).next_back();
        let before = before.filter(|(_, end)| **end == joined.start).map(|(start, _)| *start);
        if let Some(start) = before.filter(|start| *start >= bounds.start) {
            self.remove(start);
            joined.start = start;
        }
        if joined.end < bounds.end
            && let Some(end) = self.remove(joined.end)
        {
            joined.end = end;
        }
        self.insert(joined.clone());
        joined
    }

    /// Takes the range that begins at an address out, and returns its end.
    pub(crate) fn remove(&mut self, start: usize) -> Option<usize> {
        self.note();
        let end = self.by_start.remove(&start)?;
        self.note();
        self.by_length.remove(&(end - start, start));
        Some(end)
    }

    fn insert(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.note();
        self.by_start.insert(range.start, range.end);
        self.note();
        self.by_length.insert((range.len(), range.start));
    }

    /// Counts a step, in tests.
    fn note(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    /// The number of ranges, and the steps so far.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, u64) {
        assert_eq!(self.by_start.len(), self.by_length.len());
        (self.by_start.len(), self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::FreeRanges;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::ops::Range;

    /// The granules of the model.
    const GRANULES: usize = 64;

    /// Whether each granule is free, and the two chunks that ranges must not join.
    struct Model {
        free: [bool; GRANULES],
        taken: Vec<Range<usize>>,
    }

    fn chunk(at: usize) -> Range<usize> {
        if at < GRANULES / 2 { 0..GRANULES / 2 } else { GRANULES / 2..GRANULES }
    }

    impl Model {
        /// The runs of free granules within the chunks.
        fn runs(&self) -> Vec<Range<usize>> {
            let mut runs: Vec<Range<usize>> = Vec::new();
            for at in (0..GRANULES).filter(|at| self.free[*at]) {
                match runs.last_mut().filter(|run| run.end == at && chunk(run.start) == chunk(at)) {
                    Some(run) => run.end += 1,
                    None => runs.push(at..at + 1),
                }
            }
            runs
        }

        fn set(&mut self, range: Range<usize>, free: bool) {
            for at in range {
                assert_ne!(std::mem::replace(&mut self.free[at], free), free, "{at}");
            }
        }
    }

    proptest! {
        /// The ranges are the runs of free granules, after any series of takes and gives; the
        /// shortest that fits is taken, and none is refused that must fit.
        #[test]
        fn free_ranges_are_the_runs_of_free_granules(
            steps in vec((1..12usize, 0..3u32, any::<u8>(), any::<bool>()), 0..60),
        ) {
            let mut ranges = FreeRanges::default();
            let mut model = Model { free: [true; GRANULES], taken: Vec::new() };
            for half in [chunk(0), chunk(GRANULES - 1)] {
                ranges.give(half.clone(), &half);
            }
            for (length, align, which, takes) in steps {
                if takes {
                    let align = 1usize << align;
                    let shortest = |least| {
                        let fit = model.runs().into_iter().filter(|run| run.len() >= least);
                        fit.min_by_key(|run| (run.len(), run.start))
                    };
                    let fits =
                        |run: &Range<usize>| run.start.next_multiple_of(align) + length <= run.end;
                    let best = shortest(length).filter(fits);
                    let best = best.or_else(|| shortest(length + align - 1));
                    let wanted = best.map(|run| run.start.next_multiple_of(align));
                    let taken = ranges.take(length, align, 1);
                    prop_assert_eq!(taken, wanted);
                    if let Some(start) = taken {
                        model.set(start..start + length, false);
                        model.taken.push(start..start + length);
                    }
                } else if !model.taken.is_empty() {
                    let range = model.taken.swap_remove(usize::from(which) % model.taken.len());
                    model.set(range.clone(), true);
                    let joined = ranges.give(range.clone(), &chunk(range.start));
                    prop_assert!(model.runs().contains(&joined), "{joined:?}");
                }
                let known: Vec<_> = ranges.by_start.iter().map(|(s, e)| *s..*e).collect();
                prop_assert_eq!(known, model.runs());
                prop_assert_eq!(ranges.counts().0, model.runs().len());
            }
        }
    }

    /// Of 100,000 pieces, every second is freed, then the rest: the steps of each stay constant.
    #[test]
    fn each_operation_looks_at_few_ranges() {
        const PIECES: usize = 100_000;
        let all = 0..PIECES * 64;
        let mut ranges = FreeRanges::default();
        ranges.give(all.clone(), &all);
        let mut most = 0;
        let mut counted = |ranges: &mut FreeRanges, step: &mut dyn FnMut(&mut FreeRanges)| {
            let before = ranges.counts().1;
            step(ranges);
            most = most.max(ranges.counts().1 - before);
        };
        for _ in 0..PIECES {
            counted(&mut ranges, &mut |ranges| {
                ranges.take(64, 64, 64).expect("the range has room for all");
            });
        }
        assert_eq!(ranges.counts().0, 0);
        for first in [0, 1] {
            for piece in (first..PIECES).step_by(2) {
                counted(&mut ranges, &mut |ranges| {
                    ranges.give(64 * piece..64 * piece + 64, &all);
                });
            }
            assert_eq!(ranges.counts().0, if first == 0 { PIECES / 2 } else { 1 });
        }
        assert!(most <= 7, "an operation took {most} steps");
    }
}
