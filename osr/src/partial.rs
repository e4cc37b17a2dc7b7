//! Pairs with too many live values for an entry at every point.
//!
//! Example: a function of 15,000 instructions that reads 2,000 words first and adds them up last.
//! Thousands of values are live at most of its points, and an entry names each of them. Engines
//! enter such a function at loop headers and leave it at calls, and need no entry elsewhere.
//!
//! Such a pair has entries at its loop headers, then at its calls, then from the start of the
//! function on, as far as the limit of live values goes ([`crate::live::MAX_LIVE_VALUES`]). The
//! other points have none, for the reason [`crate::Reason::TooLong`]. [`crate::synthesize_at`]
//! answers for each of them.

use crate::live::{LiveTable, MAX_LIVE_VALUES};
use crate::pair::VersionPair;
use crate::reason::{Reason, Unmapped};
use crate::search::SearchResult;
use crate::synthesize::SynthesizedMapping;
use ir::Point;
use std::collections::BTreeSet;
use transition::{Pair, Side};

/// The share of the limit that the live values at the first choice of points may take: landing
/// points need as many values again, and armed entries more.
const SHARE: usize = 2;

/// Chooses points with entries, both ways.
pub(crate) struct Choice {
    /// By side: the points of the version, the most wanted first, each with the values live there.
    wanted: Pair<Vec<(Point, usize)>>,
    /// The values live at the points that the next choice may have, for each side.
    budget: usize,
}

impl Choice {
    /// Before the first choice. Cost: liveness in both versions.
    pub(crate) fn new(pair: &VersionPair<'_>) -> Choice {
        let wanted = Pair::from_fn(|side| most_wanted(pair, side));
        Choice { wanted, budget: MAX_LIVE_VALUES / SHARE }
    }
}

impl Iterator for Choice {
    type Item = Pair<BTreeSet<Point>>;

    /// The next choice has half the values of the last one. `None` when no more than one a point is
    /// left.
    fn next(&mut self) -> Option<Pair<BTreeSet<Point>>> {
        let budget = self.budget;
        self.budget /= 2;
        let chosen = |wanted: &Vec<(Point, usize)>| {
            let sums = wanted.iter().scan(0, |sum, (point, size)| {
                *sum += size;
                Some((*point, *sum))
            });
            sums.take_while(|(_, sum)| *sum <= budget).map(|(point, _)| point).collect()
        };
        (budget > 0).then(|| self.wanted.as_ref().map(chosen))
    }
}

/// The reachable points of a version, the most wanted first.
fn most_wanted(pair: &VersionPair<'_>, side: Side) -> Vec<(Point, usize)> {
    let f = pair.source(side).f;
    let sizes = LiveTable::sizes(pair.source(side), pair.demand);
    let mut seen = BTreeSet::new();
    let reachable = f.blocks().filter(|block| !pair.is_unreachable(side, *block));
    let all = reachable.flat_map(|block| f.block_insts(block)).map(Point::before);
    pair.loop_headers(side)
        .into_iter()
        .chain(pair.calls(side))
        .chain(all)
        .filter(|point| !pair.is_unreachable(side, f.inst_block(point.inst())))
        .filter(|point| seen.insert(*point))
        .map(|point| (point, sizes[point.inst().as_u32() as usize]))
        .collect()
}

impl SearchResult {
    /// Counts all points of the version that the mapping leaves from, instead of those asked for.
    /// The others have no entry, for the reason [`Reason::TooLong`].
    pub(crate) fn count_all_points(&mut self, pair: &VersionPair<'_>) {
        let (reachable, unreachable) = points_of(pair, self.from);
        let SynthesizedMapping { mapping, unmapped, .. } = &mut self.synthesized;
        let known: BTreeSet<Point> = unmapped.iter().map(|u| u.point).collect();
        let others = reachable.iter().copied();
        let others = others.filter(|p| mapping.entry(*p).is_none() && !known.contains(p));
        unmapped.extend(others.map(|point| {
            let blame = pair.facts.first.of_inst(point.inst());
            Unmapped { point, reason: Reason::TooLong, value: None, inst: None, blame }
        }));
        unmapped.sort_by_key(|u| u.point);
        self.synthesized.unreachable = unreachable;
        self.synthesized.points = reachable.len() + unreachable;
    }
}

/// The reachable points of the version on side `from`, in the order of the function, and the number
/// of unreachable ones.
pub(crate) fn points_of(pair: &VersionPair<'_>, from: Side) -> (Vec<Point>, usize) {
    let f = pair.source(from).f;
    let (mut reachable, mut unreachable) = (Vec::new(), 0);
    for block in f.blocks() {
        let here = f.block_insts(block).map(Point::before);
        if pair.is_unreachable(from, block) {
            unreachable += here.count();
        } else {
            reachable.extend(here);
        }
    }
    (reachable, unreachable)
}
