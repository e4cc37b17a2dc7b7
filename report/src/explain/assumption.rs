//! Explains the assumptions that a profile suggests at a place: their fates, and the price of their
//! exits.

use super::text::{TextLines, entry_lines, place};
use super::{INST, SHOWN, Shown, point, shown_entry};
use crate::listing::NamedVersion;
use crate::schema::{ExplainedAssumption, SpeculationExplanation};
use crate::source::{Lines, VersionLines};
use crate::speculated_version;
use crate::table::{grouped, shortened};
use derive::speculate::{Pins, SpeculateError, Suggestion};
use ir::{Func, Module, Point};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeSet;
use std::fmt;

/// The most places that an error names.
const PLACES: usize = 5;

/// The reason why the assumptions at a place cannot be explained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssumptionError {
    /// The profile suggests none there.
    NoneThere {
        /// The place in the question.
        asked: String,
        /// The first places with suggestions.
        places: Vec<String>,
        /// The number of further places.
        more: usize,
    },
    /// The function cannot make the assumptions suggested.
    Refused(SpeculateError),
}

impl fmt::Display for AssumptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, places, more) = match self {
            AssumptionError::NoneThere { asked, places, more } => (asked, places, *more),
            AssumptionError::Refused(why) => return why.fmt(f),
        };
        write!(f, "the profile suggests no assumption at {asked:?}")?;
        match (places.as_slice(), more) {
            ([], _) => write!(f, ", nor elsewhere in the function"),
            (places, 0) => write!(f, "; it does at {}", places.join(", ")),
            (places, more) => write!(f, "; it does at {} and {more} more", places.join(", ")),
        }
    }
}

impl std::error::Error for AssumptionError {}

/// The question about a place.
#[derive(Clone, Copy, Debug)]
pub struct AssumptionQuestion<'a> {
    /// A place of the base, in the notation of [`super::Question::point`]. A line denotes all its
    /// assumptions. A value also denotes the
    /// assumptions about it.
    pub point: &'a str,
    /// The suggestions for the function, all of which the version assumes.
    pub suggestions: &'a [Suggestion],
    /// The passes that run on the version with the assumptions.
    pub pipeline: &'a Pipeline,
    /// The values that assumptions keep.
    pub pins: Pins,
    /// The lines of the source, if they are known.
    pub lines: Option<&'a dyn Lines>,
}

/// Explains the assumptions at a place of a function. Cost: one [`derive::speculate::speculate`].
///
/// # Errors
/// If there is no suggestion at the place; the message names places with suggestions. If the
/// function cannot make the assumptions.
///
/// # Panics
/// If the module lacks the function.
pub fn explain_assumption(
    module: &Module,
    func: Func,
    question: AssumptionQuestion<'_>,
) -> Result<Vec<ExplainedAssumption>, AssumptionError> {
    let base = module.body(func).expect("the module has the function");
    let named = NamedVersion::new(module, base);
    let known = question.lines.map(|lines| VersionLines::of_base(lines, func));
    let with_lines = NamedVersion::new(module, base).with_lines(known);
    let found = point::find(&named, question.point);
    let is_asked = |s: &&Suggestion| {
        Some(s.assumption.at) == found
            || point::is_at_line(&with_lines, question.point, s.assumption.at)
            || named.text.value(s.assumption.value) == question.point.trim()
    };
    let asked: Vec<&Suggestion> = question.suggestions.iter().filter(is_asked).collect();
    if asked.is_empty() {
        let places: BTreeSet<Point> =
            question.suggestions.iter().map(|s| s.assumption.at).collect();
        let shown: Vec<String> = places.iter().take(PLACES).map(|at| named.place(*at)).collect();
        return Err(AssumptionError::NoneThere {
            asked: shortened(question.point, SHOWN),
            more: places.len() - shown.len(),
            places: shown,
        });
    }
    let AssumptionQuestion { suggestions, pipeline, pins, .. } = question;
    let (tree, made, reported) = speculated_version(module, base, suggestions, pipeline, pins)
        .map_err(AssumptionError::Refused)?;
    let optimized = NamedVersion::new(module, tree.function(made.optimized));
    let from = Shown { name: "opt", version: &optimized };
    let to = Shown { name: "base", version: &named };
    let explained = |suggestion: &&Suggestion| {
        let of = |s: &Suggestion| s.assumption == suggestion.assumption;
        let at = question.suggestions.iter().position(of).expect("it is one of them");
        let exit = made.exits.iter().find(|e| e.assumption == Some(suggestion.assumption));
        let entry = exit.and_then(|exit| made.exit(exit.inst));
        ExplainedAssumption {
            assumption: reported[at].clone(),
            place: to.place(suggestion.assumption.at),
            inst: exit.map(|exit| optimized.text.inst_up_to(exit.inst, INST)),
            point: exit.map(|exit| from.place(Point::before(exit.inst))),
            pins: exit.map_or(Vec::new(), |exit| to.values(exit.pins.iter().copied())),
            entry: entry.map(|(_, entry)| {
                let stands = |inst| to.place(Point::before(inst));
                shown_entry([from, to], Level::Avail, entry.entry(), |_| None, stands)
            }),
        }
    };
    Ok(asked.iter().map(explained).collect())
}

/// The explanation as text, at most [`crate::WIDTH`] columns wide. Every line ends with
/// `\n`.
pub fn assumption_text(explanation: &SpeculationExplanation) -> String {
    let mut lines = TextLines::default();
    lines.field("function", &format!("@{}", explanation.function));
    lines.words(
        "pipeline",
        &match explanation.pipeline.as_slice() {
            [] => "(no passes)".to_owned(),
            passes => passes.join(" "),
        },
    );
    lines.field("profile", &explanation.profile);
    for explained in &explanation.assumptions {
        lines.blank();
        assumption_lines(explained, &mut lines);
    }
    lines.text()
}

fn assumption_lines(explained: &ExplainedAssumption, lines: &mut TextLines) {
    let assumption = &explained.assumption;
    lines.field("assume", &format!("{} {}", assumption.value, assumption.fact));
    place("at", &explained.place, lines);
    let visits = grouped(assumption.visits);
    let sign = if assumption.worth < 0 { "-" } else { "" };
    let worth = format!("{sign}{}", grouped(assumption.worth.unsigned_abs()));
    let why = format!("{}; {visits} visits, worth {worth} instructions", assumption.observed);
    lines.words("since", &why);
    match (&assumption.why, &explained.point) {
        (Some(why), _) => lines.words("dropped", &why.text),
        (None, None) => lines.words("settled", "a pass proved it, or removed its code"),
        (None, Some(point)) => place("leaves", point, lines),
    }
    if !explained.pins.is_empty() {
        lines.words("pins", &explained.pins.join(" "));
    }
    if let Some(entry) = &explained.entry {
        entry_lines(entry, lines);
    }
}
