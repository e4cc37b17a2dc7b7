//! Plots: the costs of entries as distributions, and functions by size and share.
//!
//! `plotters` draws axes, grids and bars. It draws in fixed colors, which [`themed`] replaces by
//! the colors of the color scheme. It cannot draw links, so this module places the linked points of
//! functions itself, at coordinates that `plotters` computes.

use super::names::{address, shown_name};
use crate::schema::{DirectionFigures, FunctionReport, LEVELS, Report, Spread};
use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Placeholder colors, which [`themed`] replaces by the colors of the style.
const TEXT: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);
const FILL: RGBColor = RGBColor(1, 2, 5);
/// The size of text. The library writes 12 pixels for it, the size of names in `page.css`.
const TEXT_SIZE: u32 = 15;
const MARKS: [(&str, &str); 3] =
    [("#010203", "currentColor"), ("#010204", "var(--grid)"), ("#010205", "var(--bar)")];

/// The number of functions that the plot names.
const NAMED: usize = 6;

/// The most functions that the plot shows.
const SHOWN: usize = 5_000;

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// A drawing, in the colors of the style.
fn themed(
    width: u32,
    height: u32,
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Drawn,
) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
    draw(&area).and_then(|()| Ok(area.present()?)).expect("drawing into a string cannot fail");
    drop(area);
    MARKS.iter().fold(svg, |svg, (mark, color)| svg.replace(mark, color))
}

/// The costs of entries of both directions, at the level of the report.
pub(super) fn costs(report: &Report) -> Markup {
    let level = LEVELS.iter().position(|name| *name == report.level).expect("a level");
    let rows: [(&str, &DirectionFigures); 2] =
        [("base to opt", &report.totals.forward.sum), ("opt to base", &report.totals.backward.sum)];
    html! {
        section aria-label="Costs" {
            h2 { "Cost of an entry, at the level " (report.level) }
            div.plots {
                @for (way, figures) in rows {
                    (distribution(&format!("Operations and copies, {way}"), figures.chi.get(level)))
                    (distribution(&format!("Kept values, {way}"), figures.kept.get(level)))
                }
            }
        }
    }
}

fn distribution(name: &str, spread: Option<&Spread>) -> Markup {
    let Some(spread) = spread.filter(|spread| spread.count() > 0) else {
        return html! { figure { figcaption { (name) } p { "No entries." } } };
    };
    let counts = spread.histogram();
    let labels = Spread::BUCKETS;
    let said: Vec<String> = labels.iter().zip(counts).map(|(l, n)| format!("{l}: {n}")).collect();
    let most = counts.iter().max().copied().unwrap_or(0);
    let drawn = themed(420, 200, |area| {
        let label = |bucket: &i32| {
            usize::try_from(*bucket)
                .ok()
                .and_then(|b| labels.get(b))
                .map_or(String::new(), |l| (*l).to_owned())
        };
        let mut chart = ChartBuilder::on(area)
            .margin(6)
            .x_label_area_size(32)
            .y_label_area_size(72)
            .build_cartesian_2d((0..labels.len() as i32 - 1).into_segmented(), 0..most.max(1))?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .max_light_lines(1)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .y_labels(4)
            .label_style(("sans-serif", TEXT_SIZE).into_font().color(&TEXT))
            .x_label_formatter(&|segment| match segment {
                SegmentValue::CenterOf(bucket) => label(bucket),
                _ => String::new(),
            })
            .draw()?;
        // The histogram of `plotters` draws its bars in the order of a hash map, so that no two
        // pages were equal (`the_number_of_threads_does_not_show`).
        chart.draw_series((0..).zip(counts).map(|(bucket, count)| {
            let (left, right) = (SegmentValue::Exact(bucket), SegmentValue::Exact(bucket + 1));
            let mut bar = Rectangle::new([(left, 0), (right, count)], FILL.filled());
            bar.set_margin(0, 0, 3, 3);
            bar
        }))?;
        Ok(())
    });
    let mean = spread.mean().unwrap_or(0.0);
    html! {
        figure {
            figcaption { (name) (format!(": mean {mean:.1}, most {}", spread.max().unwrap_or(0))) }
            @let label = format!("{name}. Points by number: {}", said.join(", "));
            div role="img" aria-label=(label) { (PreEscaped(drawn)) }
        }
    }
}

/// Functions by size and share of points with an entry, up. The functions that lose most are named.
/// If every point has an entry, functions by size and price: all shares would lie on one line.
pub(super) fn sizes(report: &Report, pipeline: usize) -> Markup {
    let level = LEVELS.iter().position(|name| *name == report.level).expect("a level");
    let changed = report.functions.iter().filter(|f| f.is_changed());
    match changed.clone().all(|f| super::functions::losses(f).1 == 0) {
        true => prices(changed.collect(), level, pipeline),
        false => shares(report, level, pipeline),
    }
}

/// Functions by size and price: operations and copies of an entry, and the values that it keeps,
/// the mean of the dearer direction.
fn prices(functions: Vec<&FunctionReport>, level: usize, pipeline: usize) -> Markup {
    let mean = |spread: Option<&Spread>| spread.and_then(Spread::mean).unwrap_or(0.0);
    let of = |figures: &DirectionFigures| {
        let costs = [&figures.chi, &figures.kept, &figures.kept_args];
        costs.iter().map(|cost| mean(cost.get(level))).sum::<f64>()
    };
    let price = |f: &FunctionReport| of(&f.forward).max(of(&f.backward));
    let mut functions: Vec<(&FunctionReport, f64)> =
        functions.into_iter().map(|f| (f, price(f))).collect();
    functions.sort_by(|a, b| {
        (a.0.of_library, -a.1).partial_cmp(&(b.0.of_library, -b.1)).expect("means")
    });
    let left_out = functions.len().saturating_sub(SHOWN);
    functions.truncate(SHOWN);
    let dear = functions.iter().take(NAMED).filter(|(_, price)| *price > 0.0).count();
    if dear == 0 {
        return html! {};
    }
    let most = functions.iter().map(|(_, price)| *price).fold(0.0, f64::max);
    let axis = Axis { name: "price", range: (0.0, most * 1.1), unit: "for an entry" };
    html! {
        section aria-label="Functions by size" {
            h2 { "Functions by size, and price of an entry" }
            p {
                "Every point has an entry. Its price is the number of operations and copies, and of "
                "values and arguments that are kept for it: the mean of a function, in its dearer "
                "direction. Every point is a link."
            }
            (scatter(&functions, dear, pipeline, &axis))
            @if left_out > 0 { p { (left_out) " functions that cost least are left out." } }
        }
    }
}

fn shares(report: &Report, level: usize, pipeline: usize) -> Markup {
    let share = |f: &FunctionReport| {
        let both = [f.forward.share(level), f.backward.share(level)];
        both.into_iter().flatten().reduce(f64::min)
    };
    let mut functions: Vec<(&FunctionReport, f64)> = report
        .functions
        .iter()
        .filter(|f| f.is_changed())
        .filter_map(|f| Some((f, share(f)?)))
        .collect();
    functions.sort_by_key(|(f, _)| std::cmp::Reverse(super::functions::losses(f)));
    let left_out = functions.len().saturating_sub(SHOWN);
    functions.truncate(SHOWN);
    if functions.is_empty() {
        return html! {};
    }
    let lowest = functions.iter().map(|(_, share)| *share).fold(100.0, f64::min);
    let bottom = (((lowest - 5.0) / 10.0).floor() * 10.0).clamp(0.0, 90.0);
    let range = (bottom, 100.0 + (100.0 - bottom) * 0.04);
    let axis = Axis { name: "%", range, unit: "%" };
    let losing: Vec<&FunctionReport> = functions
        .iter()
        .map(|(f, _)| *f)
        .take(NAMED)
        .filter(|f| super::functions::losses(f).1 > 0)
        .collect();
    html! {
        section aria-label="Functions by size" {
            h2 { "Functions by size, and share of points with an entry" }
            p { "The share is the lower one of the two directions. Every point is a link." }
            (scatter(&functions, losing.len(), pipeline, &axis))
            @if left_out > 0 { p { (left_out) " functions that lose least are left out." } }
            @if !losing.is_empty() {
                p { "Largest losses: " @for (n, f) in losing.iter().enumerate() {
                    @if n > 0 { ", " }
                    a href=(address(&f.name, pipeline)) { bdi { (shown_name(&f.name)) } }
                    " (" (super::functions::losses(f).1) " points)"
                } "." }
            }
        }
    }
}

/// The axis that shows a figure of functions.
struct Axis {
    name: &'static str,
    range: (f64, f64),
    /// The words behind a figure.
    unit: &'static str,
}

/// The plot. The first functions are named.
fn scatter(
    functions: &[(&FunctionReport, f64)],
    named: usize,
    pipeline: usize,
    axis: &Axis,
) -> Markup {
    let size = |f: &FunctionReport| f.base.instructions.max(1) as f64;
    let largest = functions.iter().map(|(f, _)| size(f)).fold(10.0, f64::max);
    let mut places = Vec::new();
    let axes = themed(860, 320, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d((1.0..largest * 1.3).log_scale(), axis.range.0..axis.range.1)?;
        chart
            .configure_mesh()
            .max_light_lines(1)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .x_desc("instructions of the base")
            .y_desc(axis.name)
            .y_labels(6)
            .x_label_formatter(&|n| format!("{n:.0}"))
            .y_label_formatter(&|n| match axis.range.1 - axis.range.0 < 6.0 {
                true => format!("{n:.1}"),
                false => format!("{n:.0}"),
            })
            .label_style(("sans-serif", TEXT_SIZE).into_font().color(&TEXT))
            .axis_desc_style(("sans-serif", TEXT_SIZE).into_font().color(&TEXT))
            .draw()?;
        places =
            functions.iter().map(|(f, share)| chart.backend_coord(&(size(f), *share))).collect();
        Ok(())
    });
    let named = labelled(&places[..named]);
    let axes = axes.trim_end().trim_end_matches("</svg>");
    html! {
        figure.wide {
            (PreEscaped(axes))
            @for (n, ((f, figure), (x, y))) in functions.iter().zip(&places).enumerate().rev() {
                a href=(address(&f.name, pipeline)) tabindex="-1" {
                    @let figures = format!(": {} instructions, {figure:.1} {}", f.base.instructions, axis.unit);
                    title { (shown_name(&f.name)) (figures) }
                    circle.f cx=(x) cy=(y) r="4" {}
                    @if named.contains(&n) {
                        @let (at, anchor) = if *x > 650 { (x - 7, "end") } else { (x + 7, "start") };
                        text.name x=(at) y=(y + 4) text-anchor=(anchor) { (short(&f.name)) }
                    }
                }
            }
            (PreEscaped("</svg>"))
        }
    }
}

/// The points to label: their names do not cover the name of an earlier point.
fn labelled(places: &[(i32, i32)]) -> Vec<usize> {
    let mut labelled: Vec<usize> = Vec::new();
    for (n, (x, y)) in places.iter().enumerate() {
        let covers = |m: &usize| (places[*m].0 - x).abs() < 170 && (places[*m].1 - y).abs() < 13;
        if !labelled.iter().any(covers) {
            labelled.push(n);
        }
    }
    labelled
}

/// A name that fits beside a point.
fn short(name: &str) -> String {
    let name = shown_name(name);
    match name.chars().count() > 24 {
        true => name.chars().take(23).chain(['…']).collect(),
        false => name,
    }
}
