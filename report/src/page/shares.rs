//! The shares of points by level as stacked bars, and the times of the command.

use super::CLASSES;
use super::names::shown;
use crate::schema::{LEVELS, Report, Time};
use maud::{Markup, html};

/// A part of a bar: its class, its name, its share in percent.
type Part = (&'static str, String, f64);

/// Both directions as stacked bars.
pub(super) fn shares(report: &Report) -> Markup {
    let directions = [
        ("From the base to the optimized version", &report.totals.forward.sum),
        ("From the optimized version back to the base", &report.totals.backward.sum),
    ];
    html! {
        section aria-label="Shares" {
            h2 { "Points with an entry, by the first level that has one" }
            @for (name, figures) in directions {
                (bar(name, &parts(|level| figures.share(level))))
                @if figures.dynamic.is_some() {
                    @let name = format!("{name}, each point as often as it ran");
                    (bar(&name, &parts(|level| figures.dynamic_share(level))))
                }
            }
            (legend())
        }
    }
}

/// A share in percent. A positive share below 0.05 % prints as `under 0.1 %`, not as 0.
fn percent(share: f64) -> String {
    match share {
        small if small > 0.0 && small < 0.05 => "under\u{a0}0.1\u{a0}%".to_owned(),
        share => format!("{share:.1}\u{a0}%"),
    }
}

/// The shares that each level adds, and the rest.
fn parts(share: impl Fn(usize) -> Option<f64>) -> Vec<Part> {
    let mut below = 0.0;
    let mut parts = Vec::new();
    for (level, name) in LEVELS.iter().enumerate() {
        let Some(share) = share(level) else { continue };
        parts.push((CLASSES[level], (*name).to_owned(), share - below));
        below = share;
    }
    if !parts.is_empty() {
        parts.push(("none", "no entry".to_owned(), 100.0 - below));
    }
    parts
}

fn bar(name: &str, parts: &[Part]) -> Markup {
    let said = parts.iter().map(|(_, name, share)| format!("{name} {}", percent(*share)));
    let said = said.collect::<Vec<_>>().join(", ");
    html! {
        figure {
            figcaption { (name) }
            @match parts.is_empty() {
                true => p { "No points." },
                false => {
                    div.bar role="img" aria-label=(format!("{name}: {said}")) {
                        @for (class, name, share) in parts {
                            @if *share > 0.0 {
                                @let grow = format!("flex-grow:{share:.3}");
                                span class={ "l-" (class) } style=(grow)
                                    title=(format!("{name} {}", percent(*share))) {}
                            }
                        }
                    }
                    p.said aria-hidden="true" {
                        @for (class, name, share) in parts {
                            span { i class={ "l-" (class) } {} (name) " " (percent(*share)) } " "
                        }
                    }
                },
            }
        }
    }
}

/// The meaning of the levels, for a reader who meets them for the first time.
fn legend() -> Markup {
    let levels = [
        ("empty", "the run moves as it is: every value exists under its own name"),
        ("live", "compensation code computes from values that are live anyway"),
        ("live_e", "and from arguments of the function"),
        ("alias", "and from live values that are known to equal the wanted one"),
        ("avail", "and from values that must be kept, though nothing else needs them"),
        ("none", "no entry at any of these levels"),
        ("unreachable", "code that is proved never to run: not counted"),
    ];
    html! {
        details {
            summary { "What the levels mean" }
            dl.legend {
                @for (class, text) in levels {
                    dt { i class={ "l-" (class) } {} (class) }
                    dd { (text) }
                }
            }
        }
    }
}

/// The times of the command by phase.
pub(super) fn times(report: &Report) -> Markup {
    let Time { jobs, elapsed, import, optimize, replay, map, check, retry } = report.time;
    let phases = [
        ("import", import),
        ("optimize", optimize),
        ("verify and replay", replay),
        ("map", map),
        ("check", check),
        ("retry", retry),
    ];
    let all: f64 = phases.iter().map(|(_, seconds)| seconds).sum();
    let passes = match report.pipeline.is_empty() {
        true => "no passes".to_owned(),
        false => report.pipeline.join(" "),
    };
    html! {
        section aria-label="Times" {
            h2 { "Time by phase" }
            p { (format!("{elapsed:.2} s in all; work of {jobs} threads, added up, below.")) }
            table.times {
                tbody { @for (name, seconds) in phases {
                    tr {
                        th scope="row" { (name) }
                        td { (format!("{seconds:.2} s")) }
                        @let width = format!("width:{:.1}%", share(seconds, all));
                        td.meter { span style=(width) {} }
                    }
                } }
            }
            p { "Passes: " code { (shown(&passes)) } }
        }
    }
}

fn share(part: f64, all: f64) -> f64 {
    if all > 0.0 { 100.0 * part / all } else { 0.0 }
}
