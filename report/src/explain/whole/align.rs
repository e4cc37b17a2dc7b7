//! Lays the lines of two listings side by side.

use std::collections::BTreeMap;

/// The place of one line in each listing: the index of the line, or `None` for a gap.
pub(super) type Row = [Option<u32>; 2];

/// Rows that show both listings in order, each line once. A key occurs at most once in a listing.
/// Lines with the same key stand in one row, as many as can without changing the order of a
/// listing. Lines between two such rows stand beside each other.
///
/// Example: the left listing is `a b c`, and the right one `a x c`. The rows are `a a`, `b x`,
/// `c c`.
///
/// The common lines are a longest increasing subsequence (Fredman 1975). Cost: `n log n` for `n`
/// lines.
pub(super) fn rows<K: Ord>(left: &[K], right: &[K]) -> Vec<Row> {
    let places: BTreeMap<&K, u32> = right.iter().zip(0..).collect();
    let common: Vec<(u32, u32)> =
        left.iter().zip(0..).filter_map(|(key, l)| Some((l, *places.get(key)?))).collect();
    let mut rows = Vec::with_capacity(left.len().max(right.len()));
    let mut next = [0, 0];
    for (l, r) in increasing(&common) {
        between(&mut rows, next, [l, r]);
        rows.push([Some(l), Some(r)]);
        next = [l + 1, r + 1];
    }
    between(&mut rows, next, [left.len() as u32, right.len() as u32]);
    rows
}

/// Adds the lines of two stretches beside each other.
fn between(rows: &mut Vec<Row>, from: [u32; 2], to: [u32; 2]) {
    let length = (to[0] - from[0]).max(to[1] - from[1]);
    let line = |side: usize, n: u32| Some(from[side] + n).filter(|line| *line < to[side]);
    rows.extend((0..length).map(|n| [line(0, n), line(1, n)]));
}

/// A longest subsequence of pairs, ascending in the first part, in which the second part ascends.
fn increasing(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // The last pair of the best subsequence of each length, and the pair before each pair.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < pair.1);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let chain = std::iter::successors(ends.last().copied(), |at| before[*at]);
    let mut best: Vec<(u32, u32)> = chain.map(|at| pairs[at]).collect();
    best.reverse();
    best
}

#[cfg(test)]
mod tests;
