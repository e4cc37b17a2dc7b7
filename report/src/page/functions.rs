//! The table of the functions.

use super::names::{address, shown_name};
use crate::schema::{DirectionFigures, FunctionReport, Report};
use crate::table::grouped;
use crate::text::{NO_FIGURE, percent};
use maud::{Markup, html};

/// A column: its heading, its meaning, and the figure of a function. A figure has the number by
/// which the column sorts, and the text that the reader sees.
struct FunctionColumn {
    heading: &'static str,
    meaning: &'static str,
    figure: fn(&FunctionReport, usize) -> (Option<f64>, String),
    group: Group,
    /// Whether the column needs a profile.
    dynamic: bool,
}

const COLUMNS: [FunctionColumn; 16] = [
    FunctionColumn {
        heading: "base",
        meaning: "instructions of the base",
        figure: |f, _| whole(f.base.instructions),
        group: Group::Size,
        dynamic: false,
    },
    FunctionColumn {
        heading: "opt",
        meaning: "instructions of the optimized version",
        figure: |f, _| whole(f.opt.instructions),
        group: Group::Size,
        dynamic: false,
    },
    FunctionColumn {
        heading: "calls",
        meaning: "calls in the profile",
        figure: |f, _| f.visits.map_or((None, NO_FIGURE.to_owned()), whole),
        group: Group::Calls,
        dynamic: true,
    },
    FunctionColumn {
        heading: "%",
        meaning: "points of the base with an entry, in percent",
        figure: |f, level| share(f.forward.share(level)),
        group: Group::Forward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "ran %",
        meaning: "the same, each point counted as often as it ran",
        figure: |f, level| share(f.forward.dynamic_share(level)),
        group: Group::Forward,
        dynamic: true,
    },
    FunctionColumn {
        heading: "lost",
        meaning: "points of the base without an entry",
        figure: |f, _| whole(lost(&f.forward)),
        group: Group::Forward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "ran, lost",
        meaning: "visits of points of the base without an entry",
        figure: |f, _| lost_visits(&f.forward).map_or((None, NO_FIGURE.to_owned()), whole),
        group: Group::Forward,
        dynamic: true,
    },
    FunctionColumn {
        heading: "steps",
        meaning: "operations and copies of an entry from base to opt, mean",
        figure: |f, level| decimal(f.forward.chi.get(level).and_then(|s| s.mean())),
        group: Group::Forward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "kept",
        meaning: "values that an entry from base to opt keeps, mean",
        figure: |f, level| decimal(f.forward.kept.get(level).and_then(|s| s.mean())),
        group: Group::Forward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "%",
        meaning: "points of the optimized version with an entry, in percent",
        figure: |f, level| share(f.backward.share(level)),
        group: Group::Backward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "ran %",
        meaning: "the same, each point counted as often as it ran",
        figure: |f, level| share(f.backward.dynamic_share(level)),
        group: Group::Backward,
        dynamic: true,
    },
    FunctionColumn {
        heading: "lost",
        meaning: "points of the optimized version without an entry",
        figure: |f, _| whole(lost(&f.backward)),
        group: Group::Backward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "ran, lost",
        meaning: "visits of points of the optimized version without an entry",
        figure: |f, _| lost_visits(&f.backward).map_or((None, NO_FIGURE.to_owned()), whole),
        group: Group::Backward,
        dynamic: true,
    },
    FunctionColumn {
        heading: "steps",
        meaning: "operations and copies of an entry from opt to base, mean",
        figure: |f, level| decimal(f.backward.chi.get(level).and_then(|s| s.mean())),
        group: Group::Backward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "kept",
        meaning: "values that an entry from opt to base keeps, mean",
        figure: |f, level| decimal(f.backward.kept.get(level).and_then(|s| s.mean())),
        group: Group::Backward,
        dynamic: false,
    },
    FunctionColumn {
        heading: "dropped",
        meaning: "entries that the checker did not accept, all levels",
        figure: |f, _| whole(f.checked.all_dropped()),
        group: Group::Checked,
        dynamic: false,
    },
];

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
    changed.sort_by_key(|(_, f)| std::cmp::Reverse((losses(f), f.base.instructions)));
    let unchanged = report.totals.functions.unchanged;
    let columns: Vec<&FunctionColumn> =
        COLUMNS.iter().filter(|column| report.profile.is_some() || !column.dynamic).collect();
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
                    true => "The functions whose points without an entry ran most come first. ",
                    false => "The functions that lose most points come first. ",
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
fn head(columns: &[&FunctionColumn]) -> Markup {
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
            @for column in columns { (heading(column.heading, column.meaning, "number")) }
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
    columns: &[&FunctionColumn],
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

fn whole(number: u64) -> (Option<f64>, String) {
    (Some(number as f64), grouped(number).replace(' ', "\u{a0}"))
}

fn share(share: Option<f64>) -> (Option<f64>, String) {
    (share, percent(share))
}

fn decimal(number: Option<f64>) -> (Option<f64>, String) {
    (number, number.map_or(NO_FIGURE.to_owned(), |number| format!("{number:.1}")))
}
