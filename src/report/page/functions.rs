//! The table of the functions.

use super::names::{address, shown};
use crate::report::text::NO_FIGURE;
use crate::schema::{DirectionFigures, FunctionReport, LEVELS, Report};
use maud::{Markup, html};

/// A column: its heading, what it means, and the figure of a function. A figure has the number by
/// which the column sorts, and the text that the reader sees.
struct Column {
    heading: &'static str,
    meaning: &'static str,
    figure: fn(&FunctionReport, usize) -> (Option<f64>, String),
}

const COLUMNS: [Column; 11] = [
    Column {
        heading: "base",
        meaning: "instructions of the base",
        figure: |f, _| whole(f.base.instructions),
    },
    Column {
        heading: "opt",
        meaning: "instructions of the optimized version",
        figure: |f, _| whole(f.opt.instructions),
    },
    Column {
        heading: "%",
        meaning: "points of the base with an entry, in percent",
        figure: |f, level| decimal(f.forward.share(level)),
    },
    Column {
        heading: "lost",
        meaning: "points of the base without an entry",
        figure: |f, _| whole(lost(&f.forward)),
    },
    Column {
        heading: "steps",
        meaning: "operations and copies of an entry from base to opt, mean",
        figure: |f, level| decimal(f.forward.chi.get(level).and_then(|s| s.mean())),
    },
    Column {
        heading: "kept",
        meaning: "values that an entry from base to opt keeps, mean",
        figure: |f, level| decimal(f.forward.kept.get(level).and_then(|s| s.mean())),
    },
    Column {
        heading: "%",
        meaning: "points of the optimized version with an entry, in percent",
        figure: |f, level| decimal(f.backward.share(level)),
    },
    Column {
        heading: "lost",
        meaning: "points of the optimized version without an entry",
        figure: |f, _| whole(lost(&f.backward)),
    },
    Column {
        heading: "steps",
        meaning: "operations and copies of an entry from opt to base, mean",
        figure: |f, level| decimal(f.backward.chi.get(level).and_then(|s| s.mean())),
    },
    Column {
        heading: "kept",
        meaning: "values that an entry from opt to base keeps, mean",
        figure: |f, level| decimal(f.backward.kept.get(level).and_then(|s| s.mean())),
    },
    Column {
        heading: "dropped",
        meaning: "entries that the checker did not accept, all levels",
        figure: |f, _| whole(f.checked.all_dropped()),
    },
];

/// Headings over several columns: those of both versions, and of both directions.
const GROUPS: [(usize, &str); 3] = [(2, "instructions"), (4, "base to opt"), (4, "opt to base")];

/// The table of the functions that the pipeline changed. The script sorts and filters it.
pub(super) fn table(report: &Report) -> Markup {
    let level = LEVELS.iter().position(|name| *name == report.level).expect("a level");
    let changed = report.functions.iter().enumerate().filter(|(_, f)| f.is_changed());
    let unchanged = report.totals.functions.unchanged;
    html! {
        section aria-labelledby="functions-heading" {
            h2 #functions-heading { "Functions" }
            p {
                "A function's name opens its listings. "
                "Shares and costs are those of the level " code { (report.level) } "."
                @if unchanged > 0 { " Left out: " (unchanged) " that the passes left as they were." }
            }
            p.tools {
                label for="filter" { "Filter by name or pass " }
                input #filter type="search" autocomplete="off" spellcheck="false";
                " " span #filtered role="status" {}
            }
            div.scroll {
                table #functions {
                    thead {
                        tr {
                            td {}
                            @for (columns, text) in GROUPS { th colspan=(columns) scope="colgroup" { (text) } }
                            td {} td {}
                        }
                        tr {
                        (heading("function", "the name of the function", "text"))
                        @for column in &COLUMNS {
                            (heading(column.heading, column.meaning, "number"))
                        }
                        (heading("blamed pass", "the pass to blame for most points without an entry", "text"))
                        }
                    }
                    tbody { @for (number, function) in changed { (row(number, function, level)) } }
                }
            }
        }
    }
}

fn heading(text: &str, meaning: &str, kind: &str) -> Markup {
    html! { th scope="col" aria-sort="none" data-kind=(kind) { button type="button" title=(meaning) { (text) } } }
}

fn row(number: usize, function: &FunctionReport, level: usize) -> Markup {
    let name = shown(&function.name);
    html! {
        tr data-n=(number) data-name=(name) {
            th scope="row" { a href=(address(&function.name)) { bdi { (name) } } }
            @for column in &COLUMNS {
                @let (number, text) = (column.figure)(function, level);
                td data-v=[number.map(|n| format!("{n:.3}"))] { (text) }
            }
            td.pass { (blamed(function).unwrap_or_default()) }
        }
    }
}

/// The pass to blame for most points without an entry, of both directions.
fn blamed(function: &FunctionReport) -> Option<String> {
    let mut all = function.forward.blame.clone();
    for (pass, count) in &function.backward.blame {
        *all.entry(pass.clone()).or_default() += count;
    }
    let most = all.into_iter().filter(|(pass, _)| pass != crate::report::UNBLAMED);
    most.max_by_key(|(_, count)| *count).map(|(pass, _)| pass)
}

/// The reachable points without an entry, at the level of the report.
fn lost(direction: &DirectionFigures) -> u64 {
    direction.infeasible.values().sum()
}

fn whole(number: u64) -> (Option<f64>, String) {
    (Some(number as f64), number.to_string())
}

fn decimal(number: Option<f64>) -> (Option<f64>, String) {
    (number, number.map_or(NO_FIGURE.to_owned(), |number| format!("{number:.1}")))
}
