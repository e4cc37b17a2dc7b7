//! The changes since an older report.

use super::names::{address, shown, shown_name};
use crate::rows::percent;
use crate::schema::{
    Change, ComparedDirection, ComparedFunction, Comparison, FunctionFate, LEVELS,
};
use maud::{Markup, html};

/// The most functions and causes that the page lists; JSON has all.
const LISTED: usize = 200;

/// The changes by level, by function and by cause.
pub(super) fn changes(comparison: &Comparison, pipeline: usize) -> Markup {
    let directions = [("base to opt", &comparison.forward), ("opt to base", &comparison.backward)];
    html! {
        section.against aria-label="Changes" {
            h2 { "What changed since " bdi { (shown(&comparison.path)) } }
            (caveats(comparison))
            @for (name, direction) in directions { (levels(name, direction)) }
            (functions(&comparison.functions, pipeline))
            @for (name, direction) in directions { (causes(name, direction)) }
            (costs(comparison))
        }
    }
}

/// The differences that make figures hard to compare.
fn caveats(comparison: &Comparison) -> Markup {
    let Comparison { program, pipeline, level, interrupted, selected, compared, .. } = comparison;
    html! {
        @if *selected { p { "Only the selected functions are compared." } }
        @if program.differs() {
            p {
                "Programs: " bdi { (shown(&program.old)) } " then, "
                bdi { (shown(&program.new)) } " now."
            }
        }
        @if pipeline.differs() {
            p {
                "Passes then: " code { (shown(&pipeline.old.join(" "))) } ". Now: "
                code { (shown(&pipeline.new.join(" "))) } "."
            }
        }
        @if level.differs() {
            p {
                "Levels: " (shown(&level.old)) " then, " (shown(&level.new))
                " now. Functions are compared at the latter."
            }
        }
        @if interrupted.old || interrupted.new {
            p.alert {
                "A report was interrupted. Only functions of both are compared: "
                (compared.old) " then, " (compared.new) " now."
            }
        }
    }
}

fn levels(name: &str, direction: &ComparedDirection) -> Markup {
    let is_dynamic = direction.levels.iter().any(|(_, level)| level.dynamic.is_some());
    html! {
        h3 { (name) ": points with an entry" }
        div.scroll tabindex="0" role="group" aria-label=(name) { table {
            thead { tr {
                td {}
                (headings(&["points then", "now", "% then", "now", "change"]))
                @if is_dynamic { (headings(&["ran % then", "now"])) }
            } }
            tbody { @for (level, change) in direction.levels.iter() { tr {
                th scope="row" { (LEVELS[level]) }
                td { (change.entries.old) } td { (change.entries.new) }
                td { (percent(change.share.old)) } td { (percent(change.share.new)) }
                td { (difference(change.share)) }
                @if is_dynamic {
                    @let dynamic = change.dynamic.unwrap_or_default();
                    td { (percent(dynamic.old)) } td { (percent(dynamic.new)) }
                }
            } } }
        } }
    }
}

fn functions(functions: &[ComparedFunction], pipeline: usize) -> Markup {
    html! {
        h3 { "Functions" }
        @match functions.is_empty() {
            true => p { "No function lost or gained a point." },
            false => div.scroll tabindex="0" role="group" aria-label="Changed functions" { table {
                thead { tr {
                    (headings(&["function", "change", "points lost", "gained"]))
                    (headings(&["base to opt % then", "now", "opt to base % then", "now"]))
                } }
                tbody { @for f in functions.iter().take(LISTED) { tr {
                    th scope="row" { (function_name(f, pipeline)) }
                    td { (f.fate.name()) } td { (f.lost) } td { (f.gained) }
                    td { (percent(f.forward.old)) } td { (percent(f.forward.new)) }
                    td { (percent(f.backward.old)) } td { (percent(f.backward.new)) }
                } } }
            } },
        }
        (rest(functions.len()))
    }
}

/// The name of a function, as a link if this report has it.
fn function_name(function: &ComparedFunction, pipeline: usize) -> Markup {
    let name = shown_name(&function.name);
    html! {
        @match function.fate {
            FunctionFate::Gone => bdi { (name) },
            FunctionFate::Lost | FunctionFate::Gained | FunctionFate::New => {
                a href=(address(&function.name, pipeline)) { bdi { (name) } }
            }
        }
    }
}

fn causes(name: &str, direction: &ComparedDirection) -> Markup {
    html! {
        @if let Some(causes) = direction.causes.as_ref().filter(|causes| !causes.is_empty()) {
            h3 { (name) ": points without an entry, where their number changed" }
            div.scroll tabindex="0" role="group" aria-label={ "Causes, " (name) } { table {
                thead { tr {
                    (headings(&["reason", "pass to blame", "then", "now"]))
                } }
                tbody { @for cause in causes.iter().take(LISTED) { tr {
                    th scope="row" { (shown(&cause.reason.replace('_', " "))) }
                    td { (shown(&cause.pass)) } td { (cause.points.old) } td { (cause.points.new) }
                } } }
            } }
            (rest(causes.len()))
        }
    }
}

/// Sizes and times.
fn costs(comparison: &Comparison) -> Markup {
    let Comparison { base, opt, time, .. } = comparison;
    html! {
        p {
            "Instructions of the bases: " (base.old.instructions) " then, " (base.new.instructions)
            " now; of the optimized versions: " (opt.old.instructions) " then, "
            (opt.new.instructions) " now."
            @if let Some(time) = time {
                " Time: " (format!("{:.2} s then, ", time.old.work()))
                (format!("{:.2} s now, of all threads.", time.new.work()))
            }
        }
    }
}

fn headings(texts: &[&str]) -> Markup {
    html! { @for text in texts { th scope="col" { (text) } } }
}

fn rest(all: usize) -> Markup {
    html! { @if all > LISTED { p.note { "and " (all - LISTED) " more: see --format json" } } }
}

fn difference(share: Change<Option<f64>>) -> String {
    match (share.old, share.new) {
        (Some(old), Some(new)) => format!("{:+.1}", new - old),
        _ => "-".to_owned(),
    }
}
