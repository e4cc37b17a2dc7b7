//! Prints the report as one self-contained page for a browser.
//!
//! The page has the figures of the text, plots of them, and a view of each function that the
//! pipeline changed. Without its script the page still shows all figures; the views need the
//! script. A view is compressed data inside the page, so that a page of a large program opens at
//! once: the script unpacks and lays out the one function that the reader opens.

mod against;
mod figures;
mod functions;
mod names;
mod plots;
mod shares;
mod view;

pub use view::FunctionPage;

use super::rows::percent;
use super::table::grouped;
use super::tables::TableReport;
use super::text::sections;
use crate::schema::{DirectionFigures, LEVELS, Report};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use names::{shown, unbroken};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The style of the page, for light and dark color schemes.
const STYLE: &str = include_str!("page.css");

/// The scripts of a page with views of functions.
const SCRIPTS: [&str; 4] = [
    include_str!("script/table.js"),
    include_str!("script/listing.js"),
    include_str!("script/point.js"),
    include_str!("script/main.js"),
];

/// The names of the levels, and of the points without one, as classes of the style.
pub(super) const CLASSES: [&str; LEVELS.len() + 2] =
    ["empty", "live", "live_e", "alias", "avail", "pure", "full", "none", "unreachable"];

/// The report on one pipeline, and the views of the functions that it changed
/// ([`function_page`](super::function_page)), in the order of the report.
#[derive(Clone, Debug)]
pub struct PipelinePage {
    /// The report.
    pub report: Report,
    /// The views.
    pub views: Vec<FunctionPage>,
}

/// The reports on a program as one page. With several pipelines, the reader chooses among them;
/// without the script, their reports follow each other.
///
/// # Panics
/// If there is no report.
pub fn page(pipelines: &[PipelinePage]) -> String {
    let first = &pipelines.first().expect("a page is about a report").report;
    let title = format!("OSR report on {}", first.program.path);
    let body = html! {
        @if pipelines.len() > 1 { (pipeline_choice(pipelines)) }
        @for (number, PipelinePage { report, .. }) in pipelines.iter().enumerate() {
            @let label = format!("Pipeline {}", super::pipeline_name(&report.pipeline));
            section.overview data-k=(number) aria-label=(label) {
                (overview(number, report))
            }
        }
        noscript { p.note { "The listings of functions need scripts, which are off here." } }
        section #function hidden {}
        @for (number, PipelinePage { views, .. }) in pipelines.iter().enumerate() {
            @for view in views { (view.data(number)) }
        }
    };
    document(&title, &body, true)
}

/// The parts of the page about one pipeline.
fn overview(number: usize, report: &Report) -> Markup {
    html! {
        (summary(report))
        @if let Some(comparison) = &report.against { (against::changes(comparison, number)) }
        (shares::shares(report))
        (plots::sizes(report, number))
        (functions::table(report, number))
        (plots::costs(report))
        (shares::times(report))
        section aria-label="All figures" {
            h2 { "All figures" }
            (figures::sections(&sections(report)))
        }
    }
}

/// Links to the reports on the pipelines, with their shares beside each other.
fn pipeline_choice(pipelines: &[PipelinePage]) -> Markup {
    let share = |figures: &DirectionFigures, report: &Report| {
        percent(level(report).and_then(|level| figures.share(level)))
    };
    let level_name = pipelines.first().map_or("", |page| &page.report.level);
    html! {
        nav aria-label="Pipelines" {
            div.scroll { table {
                thead { tr {
                    th scope="col" { "pipeline" } th scope="col" { "base to opt %, " (level_name) }
                    th scope="col" { "opt to base %, " (level_name) }
                    th scope="col" { "instructions, optimized" }
                } }
                tbody { @for (n, PipelinePage { report, .. }) in pipelines.iter().enumerate() { tr {
                    @let name = shown(&super::pipeline_name(&report.pipeline));
                    th scope="row" { a data-choose=(n) href={ "#k=" (n) } { code { (name) } } }
                    td { (share(&report.totals.forward.sum, report)) }
                    td { (share(&report.totals.backward.sum, report)) }
                    td { (report.totals.opt.instructions) }
                } } }
            } }
        }
    }
}

/// The index of the level of a report in [`LEVELS`].
fn level(report: &Report) -> Option<usize> {
    LEVELS.iter().position(|name| *name == report.level)
}

/// The tables of a report as a page.
pub fn tables_page(report: &TableReport) -> String {
    let body = html! { h2 { "Figures" } (figures::sections(&report.sections())) };
    document(&report.title, &body, false)
}

/// The two sentences at the start, and whether the report is whole.
fn summary(report: &Report) -> Markup {
    let [measured, found] = super::summary(report);
    html! {
        @if report.interrupted {
            p.alert role="alert" {
                "The command was interrupted. This page covers the functions that were complete "
                "by then."
            }
        }
        @if !report.program.left_out.is_empty() {
            p.alert role="alert" { (left_out(report)) }
        }
        p.summary { (shown(&unbroken(&measured))) " " (shown(&unbroken(&found))) }
    }
}

/// The sentence about functions that are left out.
fn left_out(report: &Report) -> String {
    let program = &report.program;
    let count = program.left_out.len() as u64;
    let features: BTreeSet<&str> = program.left_out.iter().map(|one| &*one.feature).collect();
    let features: Vec<&str> = features.into_iter().collect();
    let all = grouped(program.functions + count);
    format!("Left out: {} of {all} functions, which use {}.", grouped(count), features.join(", "))
}

/// The script of the page, as it stands between its tags.
fn script() -> String {
    format!("'use strict';\n{{\n{}}}\n", SCRIPTS.concat())
}

/// A page with a title and a body. With `active`, the page has the script. The content policy lets
/// the browser load nothing and run this script alone, by its digest. Even a name that the browser
/// mistakes for markup cannot run code.
fn document(title: &str, body: &Markup, active: bool) -> String {
    let title = shown(title);
    let script = active.then(script);
    let allowed = script.as_ref().map(|script| STANDARD.encode(Sha256::digest(script)));
    let allowed = allowed.map_or_else(|| "'none'".to_owned(), |hash| format!("'sha256-{hash}'"));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (title) } }
                main { (body) }
                @if let Some(script) = &script { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string()
}
