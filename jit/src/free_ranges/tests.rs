//! Tests of `jit::free_ranges`.

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
