//! Verdicts on single entries, as `osier check --verdicts` and the extracted judge print them.

use crate::{ACROSS, DIRECTIONS, PAIR_NAMES};
use check::verdict::Verdict;
use derive::driver::Proved;
use derive::inlining::Inlined;
use ir::Point;
use transition::mapping::Mapping;

/// The verdict on one entry of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct EntryVerdict {
    /// The pair of versions, by its name in a file of mappings. `None` if the function has a single
    /// pair, and for entries across inlined code, which belong to no pair.
    pub pair: Option<&'static str>,
    /// `forward`, `backward`, `into` or `out`.
    pub direction: &'static str,
    /// The id of the instruction before which the entry starts.
    pub source: u32,
    /// The name of the check that the entry fails; `None` if it holds.
    pub refused_by: Option<&'static str>,
}

impl EntryVerdict {
    pub(crate) fn new(
        pair: Option<&'static str>,
        direction: &'static str,
        point: Point,
        refused_by: Option<&'static str>,
    ) -> EntryVerdict {
        EntryVerdict { pair, direction, source: point.inst().as_u32(), refused_by }
    }

    /// Like [`EntryVerdict::new`], from a verdict of the checker.
    pub(crate) fn of(
        pair: Option<&'static str>,
        direction: &'static str,
        point: Point,
        verdict: &Verdict,
    ) -> EntryVerdict {
        let refused_by = verdict.finding().map(|finding| finding.check.name());
        EntryVerdict::new(pair, direction, point, refused_by)
    }

    /// The verdicts on the accepted entries of a mapping and on the others, ascending by point.
    pub(crate) fn of_mapping<'a>(
        pair: Option<&'static str>,
        direction: &'static str,
        accepted: &'a Mapping,
        rejected: impl IntoIterator<Item = (Point, Verdict)>,
    ) -> impl Iterator<Item = EntryVerdict> + 'a {
        let accepted = accepted.points().map(|point| (point, Verdict::Holds));
        let mut all: Vec<(Point, Verdict)> = accepted.chain(rejected).collect();
        all.sort_by_key(|(point, _)| *point);
        all.into_iter()
            .map(move |(point, verdict)| EntryVerdict::of(pair, direction, point, &verdict))
    }

    /// The line of the verdict: the function, the pair of versions or `-`, the direction, the
    /// level, the source point, and `accept` or `refuse CHECK`.
    pub fn line(&self, function: &str, level: &str) -> String {
        let EntryVerdict { pair, direction, source, refused_by } = self;
        let (name, pair) = (crate::escaped(function), pair.unwrap_or("-"));
        let verdict = refused_by.map_or("accept".to_owned(), |check| format!("refuse {check}"));
        format!("{name} {pair} {direction} {level} {source} {verdict}")
    }

    /// The verdicts on all entries of all levels of a pair, dropped ones included, in the order of
    /// a file of mappings. Cost: near linear in the entries.
    pub fn of_pair(certified: &Proved) -> Vec<EntryVerdict> {
        let mut all = Vec::new();
        for (_, made) in &certified.levels {
            for (direction, made) in DIRECTIONS.into_iter().zip(made.iter()) {
                let (accepted, rejected) = (&made.mapping, made.missing.rejected());
                all.extend(EntryVerdict::of_mapping(None, direction, accepted, rejected));
            }
        }
        all
    }

    /// The verdicts on the entries of the two pairs of an inlining, dropped ones included, and on
    /// the entries across the copy, in the order of a file of mappings. Cost: near linear in the
    /// entries.
    pub fn of_inlined(made: &Inlined) -> Vec<EntryVerdict> {
        let mut all = Vec::new();
        for (pair, steps) in PAIR_NAMES.into_iter().zip(&made.pairs) {
            for (direction, step) in DIRECTIONS.into_iter().zip(steps.iter()) {
                let (mapping, rejected) = (&step.mapping, step.missing.rejected());
                all.extend(EntryVerdict::of_mapping(Some(pair), direction, mapping, rejected));
            }
        }
        let into = made.up.entries().map(|(point, _)| (ACROSS[0], point));
        let out = made.down.entries().map(|(point, _)| (ACROSS[1], point));
        let across = into.chain(out);
        all.extend(across.map(|(way, point)| EntryVerdict::new(None, way, point, None)));
        all
    }
}
