//! Judges a pair of versions with its mappings as a file describes them.

use crate::{DIRECTIONS, EntryVerdict, ExportedParts};
use check::relate;
use check::verdict::Options;
use derive::driver::{CheckCounts, Observer, Step};
use ir::{Function, Module};
use transition::{Pair, Side};

/// A record of a file that the checker rejects.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RefusedRecord {
    /// The number of the line, from 1.
    pub line: usize,
    /// The record, and the cause.
    pub what: String,
}

/// The verdicts on the mappings of a function of a file.
#[derive(Clone, Debug, Default)]
pub struct Rechecked {
    /// Counts of the verdicts.
    pub counts: CheckCounts,
    /// The verdict on each entry, in the order of the file.
    pub entries: Vec<EntryVerdict>,
    /// The records that the checker rejects, at most [`Rechecked::MOST`]: the claim about a copy
    /// with inlined code, and entries across the copy.
    pub refused: Vec<RefusedRecord>,
}

impl Rechecked {
    /// The most records that are described.
    pub const MOST: usize = 8;
}

/// Judges mappings in both directions against their certificate, regardless of their origin.
/// Malformed parts lower the count of accepted entries and never cause a panic. If the versions are
/// not proved to correspond, that verdict applies to every entry.
pub fn recheck(
    module: &Module,
    base: &Function,
    opt: &Function,
    parts: &ExportedParts,
    observer: &mut dyn Observer,
) -> Rechecked {
    observer.begin(Some(Step::Check));
    let versions = Pair::new(base, opt);
    let relation = relate(module, versions, &parts.certificate, Options::default());
    let mut found = Rechecked::default();
    for (direction, side) in DIRECTIONS.into_iter().zip(Side::BOTH) {
        let (mapping, armed) = (&parts.mappings[side], &parts.mappings[side.other()]);
        let verdicts = match &relation {
            Ok(relation) => relation.judge(side, mapping, &parts.facts[side], &[armed]),
            Err(verdict) => vec![*verdict; mapping.len()],
        };
        found.counts.points += versions[side].inst_count() as u64;
        verdicts.iter().for_each(|verdict| found.counts.count(verdict));
        let points = mapping.points();
        let entry = |(point, verdict)| EntryVerdict::of(None, direction, point, verdict);
        found.entries.extend(points.zip(&verdicts).map(entry));
    }
    observer.begin(None);
    found
}
