//! The landing points that the search tries from a source point.
//!
//! A gap may be as long as a block: an unrolled hash has thousands of instructions between two
//! effects. The likeliest landing point to cost nothing is the source point's own place. If the
//! target version lacks the instruction, the next instruction that it has there takes this role.
//! Between the two, the source version executes only instructions that the target version lacks.

use crate::facts::Facts;
use crate::pair::analyzed::Analyzed;
use crate::paths::Paths;
use cranelift_entity::SecondaryMap;
use ir::{Inst, Point};
use std::collections::BTreeSet;

/// Landing points tried from one source point. A longer gap is sampled at both ends and around the
/// source point's own place.
const MAX_LANDINGS: usize = 24;

/// The product of landing points tried and values to provide at the first of them. With many values
/// to provide, the search tries fewer landing points.
const MAX_VALUES_TRIED: usize = 1 << 13;

/// The places of the points of one version in the other version.
#[derive(Debug, Default)]
pub(crate) struct OwnPlaces {
    /// By instruction: the next unmoved instruction of its block, from itself on, that the other
    /// version has.
    next: SecondaryMap<Inst, Option<Inst>>,
}

impl OwnPlaces {
    /// The places in `q` of the points of `p`. Cost: linear in the instructions of `p`.
    pub(crate) fn new(facts: &Facts, p: &Analyzed<'_>, q: &Analyzed<'_>) -> OwnPlaces {
        let mut places = OwnPlaces::default();
        for &block in p.cfg.rpo() {
            let (mut next, mut at) = (None, Some(p.f.terminator(block)));
            while let Some(inst) = at {
                if q.f.has_inst(inst) && !facts.is_moved(inst) {
                    next = Some(inst);
                }
                places.next[inst] = next;
                at = p.f.prev_inst(inst);
            }
        }
        places
    }

    /// The place of a point: a point of the other version, in the gap of the same anchor or not.
    pub(crate) fn of(&self, point: Point) -> Option<Point> {
        self.next[point.inst()].map(Point::before)
    }
}

/// The landing points worth trying, in order. The source point's own instruction comes first, if
/// the target version has it, and then its own place: they are the likeliest to cost nothing. Of a
/// short gap all others follow, earliest first. Of a long gap, or with many values to provide, some
/// around that place follow, then some at its start and its end. Cost: their number, however long
/// the gap is. If only some points are allowed, the other points do not count; then each point of
/// the gap costs a test.
pub(crate) fn landings_to_try(
    paths: &Paths,
    places: &OwnPlaces,
    anchor: Inst,
    source: Point,
    allowed: Option<&BTreeSet<Point>>,
    values: impl Fn(Point) -> usize,
) -> Vec<Point> {
    let landings = paths.landings(anchor);
    if let Some(allowed) = allowed {
        let mut landings: Vec<Point> =
            landings.iter().copied().filter(|at| allowed.contains(at)).collect();
        landings.sort_by_key(|at| *at != source);
        landings.truncate(MAX_LANDINGS);
        return landings;
    }
    let count = landings.len();
    let Some(first) = landings.first() else { return Vec::new() };
    let number = |point: Point| paths.landing_number(anchor, point);
    let own = number(source);
    let place = places.of(source).and_then(number).or(own);
    let most = most_tried(values(*first));
    // In a short gap, points of equal cost are tried in the order of the gap.
    let ahead = [own, place.filter(|at| count > most && Some(*at) != own)];
    let tried = sampled(count, place, most).into_iter();
    let tried = tried.filter(|i| !ahead.contains(&Some(*i)));
    ahead.into_iter().flatten().chain(tried).map(|i| landings[i]).collect()
}

/// The number of landing points to try with this number of values to provide. At least three: one
/// at each place that is sampled.
fn most_tried(values: usize) -> usize {
    (MAX_VALUES_TRIED / values.max(1)).clamp(3, MAX_LANDINGS)
}

/// The indices of at most `most` landing points to try, of `count`. `own` is the index of the
/// source point's own place.
fn sampled(count: usize, own: Option<usize>, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    // Three samples that do not overlap: the middle one is pushed away from both ends, which the
    // other two cover. `count` exceeds `most`, so the bounds of `clamp` are in order.
    let (third, own) = (most / 3, own.unwrap_or(count / 2));
    let near_start = own.saturating_sub(third / 2).clamp(third, count - third);
    let near_end = (own + third.div_ceil(2)).clamp(near_start, count - third);
    (near_start..near_end).chain(0..third).chain(count - third..count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_landing_points_are_among_more() {
        for count in 1..80 {
            for own in (0..count).map(Some).chain([None]) {
                let all: BTreeSet<usize> = sampled(count, own, most_tried(0)).into_iter().collect();
                for values in [1, 300, 400, 700, 1000, 2000, 1 << 20] {
                    let fewer = sampled(count, own, most_tried(values));
                    assert!(
                        fewer.iter().all(|i| all.contains(i)),
                        "{count} landing points, own {own:?}, {values} values: {fewer:?}"
                    );
                }
            }
        }
    }
}
