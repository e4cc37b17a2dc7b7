//! Older reports, read from their JSON documents: the keys that a comparison needs. Other figures
//! are as in an empty report.
//!
//! The documents are untrusted: a report is rejected if its figures contradict each other, and all
//! sums over it saturate.

use super::place;
use crate::schema::{DirectionFigures, Report, SCHEMA, Time};
use crate::table::shortened;
use osr::Level;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The reason why a document cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PastReportError {
    /// The text is no document of `osier report --format json`.
    Malformed(String),
    /// The document has another schema.
    OtherSchema(u64),
    /// Figures contradict each other.
    Contradiction(String),
}

impl fmt::Display for PastReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PastReportError::Malformed(what) => {
                write!(f, "it is no report of `osier report --format json`: {what}")
            }
            PastReportError::OtherSchema(found) => {
                write!(f, "the report has schema {found}; this program reads schema {SCHEMA}")
            }
            PastReportError::Contradiction(what) => {
                write!(f, "the figures of the report contradict each other: {what}")
            }
        }
    }
}

impl std::error::Error for PastReportError {}

/// The schema of a document. Other keys are ignored.
#[derive(Deserialize)]
struct Schema {
    schema: u64,
}

/// Reads the document of one pipeline, or the array of several. Keys that no comparison reads are
/// ignored. Cost: linear in the text.
///
/// # Errors
/// [`PastReportError`], which names the place in the text or the function.
pub fn read_past(text: &str) -> Result<Vec<Report>, PastReportError> {
    // Documents of another schema may have other keys, so the schema comes first.
    for Schema { schema } in documents::<Schema>(text)? {
        if schema != u64::from(SCHEMA) {
            return Err(PastReportError::OtherSchema(schema));
        }
    }
    let reports: Vec<Report> = documents(text)?;
    if reports.is_empty() {
        return Err(PastReportError::Malformed("an array without reports".to_owned()));
    }
    reports.iter().try_for_each(consistent)?;
    Ok(reports)
}

fn documents<'de, T: Deserialize<'de>>(text: &'de str) -> Result<Vec<T>, PastReportError> {
    let parsed = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(text),
        false => serde_json::from_str(text).map(|one| vec![one]),
    };
    // Messages quote the text.
    parsed.map_err(|error| PastReportError::Malformed(shortened(&error.to_string(), 200)))
}

/// The longest time of a command in seconds that a report may claim: 30 years.
const MOST_SECONDS: f64 = 1e9;

/// Rejects a report whose figures contradict each other: a level without figures, two functions of
/// one name, more entries than points, causes that do not add up to the points without an entry, or
/// an impossible time.
fn consistent(report: &Report) -> Result<(), PastReportError> {
    let fault = |what: String| Err(PastReportError::Contradiction(what));
    let level = Level::ALL.iter().find(|level| level.name() == report.level);
    let Some(level) = level else {
        return fault(format!("no mapping has a level named {}", shortened(&report.level, 40)));
    };
    let Time { elapsed, import, optimize, replay, map, check, retry, .. } = report.time;
    let times = [elapsed, import, optimize, replay, map, check, retry];
    if !times.iter().all(|time| (0.0..MOST_SECONDS).contains(time)) {
        return fault("a time is negative, or longer than 30 years".to_owned());
    }
    let mut names = BTreeSet::new();
    for function in &report.functions {
        let name = shortened(&function.name, 60);
        if !names.insert(&function.name) {
            return fault(format!("@{name} occurs twice"));
        }
        for side in [&function.forward, &function.backward] {
            let reachable = side.points.checked_sub(side.unreachable);
            let Some(reachable) = reachable else {
                return fault(format!("@{name} has more unreachable points than points"));
            };
            if side.feasible.iter().any(|(_, entries)| *entries > reachable) {
                return fault(format!("@{name} has more entries than reachable points"));
            }
            if let Some(what) = contradiction(side, place(*level)) {
                return fault(format!("@{name} has {what}"));
            }
            let dynamic = side.dynamic.as_ref();
            if dynamic.is_some() != report.profile.is_some() {
                return fault(format!("@{name} has visits without a profile, or none with one"));
            }
            if dynamic.is_some_and(|d| d.feasible.iter().any(|(_, visits)| *visits > d.visits)) {
                return fault(format!("@{name} has more visits with an entry than visits"));
            }
        }
    }
    Ok(())
}

/// The contradiction among the levels of one direction, in words. `level` is the level at which the
/// report names causes.
fn contradiction(side: &DirectionFigures, level: usize) -> Option<&'static str> {
    let chain = Level::ALL.iter().map(|level| side.feasible.get(place(*level)));
    let Some(chain) = chain.collect::<Option<Vec<_>>>() else {
        return Some("no figure for a level");
    };
    if !chain.is_sorted() {
        return Some("fewer entries at a higher level");
    }
    let causes = side.causes.infeasible_by_pass.values().flat_map(BTreeMap::values);
    let causes = causes.fold(0u64, |sum, count| sum.saturating_add(*count));
    (side.missing(level) != Some(causes)).then_some("other causes than points without an entry")
}
