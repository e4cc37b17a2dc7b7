//! Prints the report as one page for a browser, which needs nothing else.
//!
//! The page has the figures of the text, plots of them, and a view of each function that the
//! pipeline changed. Without its script the page still shows all figures; the views need the
//! script. A view is compressed data inside the page, so that a page of a large program opens at
//! once: the script unpacks and lays out the one function that the reader opens.

mod figures;
mod functions;
mod names;
mod plots;
mod shares;
mod view;

pub use view::FunctionPage;

use super::text::{Section, sections};
use super::{inlining, speculation};
use crate::schema::{InliningReport, LEVELS, Report, SpeculationReport};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use names::shown;

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

/// The report as a page. `views` has the views of the functions that the pipeline changed
/// ([`function_page`](super::function_page)), in the order of the report.
pub fn page(report: &Report, views: &[FunctionPage]) -> String {
    let title = format!("OSR report on {}", report.program.path);
    let body = html! {
        section #overview {
            (summary(report))
            (shares::shares(report))
            (plots::sizes(report))
            (functions::table(report))
            (plots::costs(report))
            (shares::times(report))
            section #figures aria-labelledby="figures-heading" {
                h2 #figures-heading { "All figures" }
                (figures::sections(&sections(report)))
            }
        }
        section #function hidden aria-live="off" {}
        @for view in views { (view.data()) }
    };
    document(&title, &body, true)
}

/// The report on assumptions as a page, with the tables of its text.
pub fn speculation_page(report: &SpeculationReport) -> String {
    let title = format!("Speculation report on {}", report.program.path);
    tables(&title, &speculation::sections(report))
}

/// The report on inlining as a page, with the tables of its text.
pub fn inlining_page(report: &InliningReport) -> String {
    let title = format!("Inlining report on {}", report.program.path);
    tables(&title, &inlining::sections(report))
}

/// A page of tables alone.
fn tables(title: &str, sections: &[Section]) -> String {
    document(title, &figures::sections(sections), false)
}

/// What was measured, in two sentences, and whether it is all.
fn summary(report: &Report) -> Markup {
    let [measured, found] = super::summary(report);
    html! {
        @if report.interrupted {
            p.alert role="alert" {
                "The command was interrupted. This page covers the functions that were complete "
                "by then."
            }
        }
        p.summary { (shown(&measured)) " " (shown(&found)) }
    }
}

/// A page with a title and a body. With `active`, the page has the scripts, and a policy that lets
/// the browser run no other and load nothing.
fn document(title: &str, body: &Markup, active: bool) -> String {
    let title = shown(title);
    let policy = match active {
        true => "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
        false => "default-src 'none'; style-src 'unsafe-inline'",
    };
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
                @if active {
                    script {
                        (PreEscaped("'use strict';\n{\n"))
                        @for script in SCRIPTS { (PreEscaped(script)) }
                        (PreEscaped("}\n"))
                    }
                }
            }
        }
    };
    page.into_string()
}
