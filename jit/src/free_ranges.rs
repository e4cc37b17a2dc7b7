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
mod tests;
