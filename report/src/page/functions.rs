//! The table of the functions.

use super::names::{address, shown_name};
use crate::rows::{NO_FIGURE, percent};
use crate::schema::{DirectionFigures, FunctionReport, Report};
use crate::table::grouped;
use maud::{Markup, html};

/// A figure: the number by which its column sorts, and the text that the reader sees.
type Figure = (Option<f64>, String);

/// The figure of a function at a level.
type FigureOf = Box<dyn Fn(&FunctionReport, usize) -> Figure>;

/// A column: its heading, its meaning, and the figure of a function.
struct FunctionColumn {
    heading: &'static str,
    meaning: String,
    figure: FigureOf,
    group: Group,
    /// Whether the column needs a profile.
    dynamic: bool,
}

impl FunctionColumn {
    fn new(
        group: Group,
        heading: &'static str,
        meaning: &str,
        figure: impl Fn(&FunctionReport, usize) -> Figure + 'static,
    ) -> FunctionColumn {
        let (meaning, figure) = (meaning.to_owned(), Box::new(figure));
        FunctionColumn { heading, meaning, figure, group, dynamic: false }
    }

    /// The same column, which needs a profile.
    fn ran(self) -> FunctionColumn {
        FunctionColumn { dynamic: true, ..self }
    }
}

/// All columns, in order.
fn columns() -> Vec<FunctionColumn> {
    let new = |group, heading, meaning: &str, figure: fn(&FunctionReport, usize) -> Figure| {
        FunctionColumn::new(group, heading, meaning, figure)
    };
    let mut all = vec![
        new(Group::Size, "base", "instructions of the base", |f, _| whole(f.base.instructions)),
        new(Group::Size, "opt", "instructions of the optimized version", |f, _| {
            whole(f.opt.instructions)
        }),
        new(Group::Calls, "calls", "calls in the profile", |f, _| maybe(f.visits)).ran(),
    ];
    all.extend(direction_columns(Group::Forward, "base", "base to opt", |f| &f.forward));
    all.extend(direction_columns(Group::Backward, "optimized version", "opt to base", |f| {
        &f.backward
    }));
    let dropped = "entries that the checker did not accept, all levels";
    all.push(new(Group::Checked, "dropped", dropped, |f, _| whole(f.checked.all_dropped())));
    all
}

/// The columns of one direction, from points of the version `from`.
fn direction_columns(
    group: Group,
    from: &str,
    way: &str,
    of: fn(&FunctionReport) -> &DirectionFigures,
) -> [FunctionColumn; 6] {
    let new = |heading, meaning: &str, figure: fn(&DirectionFigures, usize) -> Figure| {
        FunctionColumn::new(group, heading, meaning, move |f, level| figure(of(f), level))
    };
    [
        new("%", &format!("points of the {from} with an entry, in percent"), |side, level| {
            share(side.share(level))
        }),
        new("ran %", "the same, each point counted as often as it ran", |side, level| {
            share(side.dynamic_share(level))
        })
        .ran(),
        new("lost", &format!("points of the {from} without an entry"), |side, _| whole(lost(side))),
        new("ran, lost", &format!("visits of points of the {from} without an entry"), |side, _| {
            maybe(lost_visits(side))
        })
        .ran(),
        new(
            "steps",
            &format!("operations and copies of an entry from {way}, mean"),
            |side, level| decimal(side.chi.get(level).and_then(|s| s.mean())),
        ),
        new("kept", &format!("values that an entry from {way} keeps, mean"), |side, level| {
            decimal(side.kept.get(level).and_then(|s| s.mean()))
        }),
    ]
}

/// The subject of the columns under a common heading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Size,
    Calls,
    Forward,
    Backward,
    Checked,
}

impl Group {
    fn heading(self) -> &'static str {
        match self {
            Group::Size => "instructions",
            Group::Forward => "base to opt",
            Group::Backward => "opt to base",
            Group::Calls | Group::Checked => "",
        }
    }
}

/// The table of the functions that the pipeline changed. The script sorts and filters it.
pub(super) fn table(report: &Report, pipeline: usize) -> Markup {
    let level = super::level(report).expect("a report has a level");
    let mut changed: Vec<(usize, &FunctionReport)> =
        report.functions.iter().enumerate().filter(|(_, f)| f.is_changed()).collect();
    // A reader of the page asks first which function loses most.
    changed
        .sort_by_key(|(_, f)| (f.of_library, std::cmp::Reverse((losses(f), f.base.instructions))));
    let unchanged = report.totals.functions.unchanged;
    let mut columns = columns();
    columns.retain(|column| report.profile.is_some() || !column.dynamic);
    let id = |name: &str| match pipeline {
        0 => name.to_owned(),
        other => format!("{name}-{other}"),
    };
    html! {
        section aria-label="Functions" {
            h2 { "Functions" }
            p {
                "A name opens the listings of the function. "
                @match report.profile.is_some() {
                    true => "The functions whose points without an entry ran most come first",
                    false => "The functions that lose most points come first",
                }
                @match changed.iter().any(|(_, f)| f.of_library) {
                    true => ", those of libraries last. ",
                    false => ". ",
                }
                "Shares and costs are those of the level " code { (report.level) } "."
                @if unchanged > 0 {
                    " Left out: " (unchanged) " that the passes left as they were."
                }
            }
            p.tools {
                label for=(id("filter")) { "Filter by name or pass " }
                input.filter id=(id("filter")) type="search" autocomplete="off" spellcheck="false";
                " " span.filtered role="status" {}
            }
            div.scroll {
                table.functions id=(id("functions")) {
                    thead { (head(&columns)) }
                    tbody { @for (number, function) in changed {
                        (row(number, pipeline, function, level, &columns))
                    } }
                }
            }
        }
    }
}

/// The headings: groups over several columns, then the columns by which the table sorts.
fn head(columns: &[FunctionColumn]) -> Markup {
    html! {
        tr {
            td {}
            @for group in columns.chunk_by(|a, b| a.group == b.group) {
                @match group[0].group.heading() {
                    "" => td colspan=(group.len()) {},
                    text => th colspan=(group.len()) scope="colgroup" { (text) },
                }
            }
            td {}
        }
        tr {
            (heading("function", "the name of the function", "text"))
            @for column in columns { (heading(column.heading, &column.meaning, "number")) }
            (heading("blamed pass", "the pass to blame for most points without an entry", "text"))
        }
    }
}

fn heading(text: &str, meaning: &str, kind: &str) -> Markup {
    html! {
        th scope="col" aria-sort="none" data-kind=(kind) {
            button type="button" title=(meaning) { (text) }
        }
    }
}

fn row(
    number: usize,
    pipeline: usize,
    function: &FunctionReport,
    level: usize,
    columns: &[FunctionColumn],
) -> Markup {
    let name = shown_name(&function.name);
    html! {
        tr data-n=(number) data-name=(name) {
            th scope="row" { a href=(address(&function.name, pipeline)) { bdi { (name) } } }
            @for column in columns {
                @let (number, text) = (column.figure)(function, level);
                td data-v=[number.map(|n| format!("{n:.3}"))] { (text) }
            }
            td.pass { (blamed(function).unwrap_or_default()) }
        }
    }
}

/// The pass to blame for most points without an entry, of both directions.
fn blamed(function: &FunctionReport) -> Option<String> {
    let mut all = function.forward.causes.blame.clone();
    for (pass, count) in &function.backward.causes.blame {
        *all.entry(pass.clone()).or_default() += count;
    }
    let most = all.into_iter().filter(|(pass, _)| pass != crate::UNBLAMED);
    most.max_by_key(|(pass, count)| (*count, std::cmp::Reverse(pass.clone()))).map(|(pass, _)| pass)
}

/// The visits, with a profile, and the number of points without an entry, over both directions.
pub(super) fn losses(function: &FunctionReport) -> (u64, u64) {
    let both = [&function.forward, &function.backward];
    let visits = both.iter().map(|side| lost_visits(side).unwrap_or(0));
    (visits.fold(0, u64::saturating_add), both.iter().map(|side| lost(side)).sum())
}

/// The visits of points without an entry. `None` without a profile.
fn lost_visits(direction: &DirectionFigures) -> Option<u64> {
    Some(direction.dynamic.as_ref()?.causes.total())
}

/// The reachable points without an entry, at the level of the report.
fn lost(direction: &DirectionFigures) -> u64 {
    direction.causes.total()
}

fn whole(number: u64) -> Figure {
    (Some(number as f64), grouped(number).replace(' ', "\u{a0}"))
}

fn maybe(number: Option<u64>) -> Figure {
    number.map_or((None, NO_FIGURE.to_owned()), whole)
}

fn share(share: Option<f64>) -> Figure {
    (share, percent(share))
}

fn decimal(number: Option<f64>) -> Figure {
    (number, number.map_or(NO_FIGURE.to_owned(), |number| format!("{number:.1}")))
}
