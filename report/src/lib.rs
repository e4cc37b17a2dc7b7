//! Computes the figures of `osier report`: the points with an entry between two versions of a
//! function, the cost of their transitions, and the reasons why the other points lack an entry.
//!
//! Reports and explanations are data ([`schema`]) that this crate also prints: as text, as a page
//! for a browser, and as JSON. [`explain`] answers for a single point, and [`listing`] prints logs
//! and mappings.

mod blame;
mod brief;
mod comparison;
pub mod dot;
pub mod explain;
mod inlining;
pub mod listing;
mod markdown;
mod origin;
mod page;
mod past;
mod published;
mod rows;
mod sample;
pub mod schema;
mod section;
mod several;
pub mod source;
mod speculation;
mod summary;
mod table;
mod tables;
mod tally;
mod text;
mod totals;

pub use comparison::compare;
pub use inlining::{inlined_function, inlining_tables};
pub use markdown::{code_block, code_cell, code_span, markdown, tables_markdown};
pub use origin::is_of_library;
pub use page::{FunctionPage, PipelinePage, page, tables_page};
pub use past::{PastReportError, read_past};
pub use sample::{BetterBlame, RankedGap, check_blame, ranked_gaps};
pub use section::{MOST_LINES, TextOptions, WIDTH, colored_labels};
pub use several::several_text;
pub(crate) use speculation::speculated_version;
pub use speculation::{speculated, speculation_tables};
pub use summary::{pipeline_name, summary};
pub use tables::TableReport;
pub use text::{check_text, text};

use crate::blame::History;
use crate::explain::{BlockVisits, ViewSurroundings, view};
use crate::schema::{Actions, FunctionReport, LEVELS, Report, ReportedProgram, SCHEMA, Size, Time};
use crate::source::Lines;
use check::verdict::Verdict;
use cranelift_entity::SecondaryMap;
use derive::driver::{Missing, ProvedMapping, Secured, Why};
use ir::edit::ActionLog;
use ir::{Block, Function, Module, Point};
use osr::Level;
use profile::FunctionProfile;
use tally::{CausesOf, Gap, Tally};

/// The index of a level in [`LEVELS`].
pub(crate) fn place(level: Level) -> usize {
    LEVELS.iter().position(|name| *name == level.name()).expect("the schema has every level")
}

/// The visits of each block of a version.
pub type BlockWeights = SecondaryMap<Block, u64>;

/// The visits of each block according to a profile: the blocks of the base, or, with a log, of the
/// version that the log makes from the base. The weight of a point is the weight of its block.
/// `None` if the log inlines ([`FunctionProfile::visits_after`]). Cost: linear in the base and the
/// log.
///
/// # Panics
/// If the log belongs to another base.
pub fn weights(
    profile: &FunctionProfile,
    base: &Function,
    log: Option<&ActionLog>,
) -> Option<BlockWeights> {
    let visits = match log {
        None => profile.visits(base),
        Some(log) => profile.visits_after(base, log)?,
    };
    let mut weights = SecondaryMap::with_capacity(visits.len());
    (0u32..).zip(visits).for_each(|(block, visits)| weights[Block::from_u32(block)] = visits);
    Some(weights)
}

/// The figures of one function, its derived version, and the mappings of every level. Only entries
/// that the checker accepts count. `level` is the level of `infeasible` and `blame`. Cost: linear
/// in the entries.
pub fn function_report(base: &Function, secured: &Secured, level: Level) -> FunctionReport {
    weighed_function_report(base, secured, level, None)
}

/// Like [`function_report`]. With a profile of the base, the report also counts each point as often
/// as it ran. A function that did not run has an empty profile. Cost: linear in the entries and the
/// log.
pub fn weighed_function_report(
    base: &Function,
    secured: &Secured,
    level: Level,
    profile: Option<&FunctionProfile>,
) -> FunctionReport {
    let Secured { derived, proved, retried } = secured;
    let history = History { base, opt: &derived.function, log: &derived.log };
    let [before, after] = [None, Some(&derived.log)].map(|log| weights(profile?, base, log));
    let mut tallies = [Tally::new(base, before), Tally::new(&derived.function, after)];
    for (of, made) in &proved.levels {
        // At `live`, points lack entries where all have one at higher levels.
        let causes = match *of {
            of if of == level => Some(CausesOf::Report),
            Level::Live => Some(CausesOf::Live),
            _ => None,
        };
        for (tally, mapping) in tallies.iter_mut().zip(made.iter()) {
            take(tally, place(*of), mapping, causes.map(|of| (of, history)));
        }
    }
    let [forward, backward] = tallies.map(Tally::finish);
    FunctionReport {
        name: base.name().to_owned(),
        of_library: is_of_library(base.name()),
        visits: profile.map(|profile| profile.calls),
        base: Size::of(base),
        opt: Size::of(&derived.function),
        actions: Actions::of(derived.log.actions()),
        forward,
        backward,
        checked: proved.checked(),
        given_up: retried.given_up.clone(),
        refused: retried.refused,
        without_retry: retried.without.clone(),
    }
}

/// The optional contents of a function's view.
#[derive(Clone, Copy, Default)]
pub struct ViewOptions<'a> {
    /// The profile of the base: each point then has its visits.
    pub profile: Option<&'a FunctionProfile>,
    /// The lines of the source.
    pub lines: Option<&'a dyn Lines>,
}

/// The view of a function on the page of the report ([`page`]), at a level of its mappings, with
/// the figures of the function. Cost: near linear in the versions, their entries and the log.
///
/// # Panics
/// If the mappings were made from another base, or lack the level.
pub fn function_page(
    module: &Module,
    base: &Function,
    secured: &Secured,
    figures: &FunctionReport,
    level: Level,
    options: ViewOptions<'_>,
) -> FunctionPage {
    let log = &secured.derived.log;
    let visits = options.profile.and_then(|profile| {
        Some(BlockVisits::new(weights(profile, base, None)?, weights(profile, base, Some(log))?))
    });
    let around = ViewSurroundings { visits: visits.as_ref(), lines: options.lines };
    FunctionPage::new(&view(module, base, secured, level, around), figures)
}

/// Adds the mapping of one level. With a history, also adds the reasons of points without an entry.
fn take(
    tally: &mut Tally<'_>,
    place: usize,
    made: &ProvedMapping,
    history: Option<(CausesOf, History<'_>)>,
) {
    tally.take_level(place, made);
    let Some((of, history)) = history else { return };
    let rejected = |point: Point, verdict: Verdict| {
        let action = history.of_rejected(point, &verdict)?;
        Some(history.log.actions()[action].origin().pass())
    };
    let gaps = made.missing.iter().map(|Missing { point, why }| {
        let pass = match why {
            Why::Obstacle(obstacle) => obstacle.blame.map(|blame| blame.pass),
            why => why.verdict().and_then(|verdict| rejected(*point, verdict)),
        };
        Gap { point: *point, reason: why.name(), pass: pass.unwrap_or(UNBLAMED) }
    });
    tally.take_gaps(of, gaps);
}

/// The name in place of a pass where no action can be named.
pub const UNBLAMED: &str = "none";

/// The report on functions in module order. All its times are 0: the library reads no clock.
pub fn report(
    program: ReportedProgram,
    pipeline: Vec<String>,
    level: Level,
    functions: Vec<FunctionReport>,
) -> Report {
    let totals = totals::totals(&functions);
    let level = level.name().to_owned();
    Report {
        schema: SCHEMA,
        program,
        pipeline,
        level,
        profile: None,
        functions,
        totals,
        against: None,
        blame_check: None,
        interrupted: false,
        time: Time::default(),
    }
}
