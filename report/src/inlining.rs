//! Computes the figures of `osier report` for a pipeline that inlines: the points with an entry
//! into or out of the inlined version, and the price by the number of activations.

use super::rows::percent;
use super::section::{self, LABEL, Section};
use super::summary::inlining_summary;
use super::tables::{TableReport, mean_and_most};
use super::text::given_up_section;
use crate::schema::{
    FramePrice, InlinedFunction, InliningFigures, InliningReport, PointCounts, Size,
};
use crate::table::{TextTable, grouped, shortened};
use derive::driver::Why;
use derive::inlining::Inlined;
use ir::Point;
use osr::VersionTree;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The figures of one function and its version with inlined code. Cost: linear in the entries.
pub fn inlined_function(made: &Inlined) -> InlinedFunction {
    let [base, cleaned, opt] = [VersionTree::BASE, made.cleaned, made.optimized]
        .map(|version| Size::of(made.tree.function(version)));
    let mut figures = InliningFigures {
        calls: made.copies.instances().len() as u64 - 1,
        checked: made.checked.clone(),
        ..InliningFigures::default()
    };
    let missing = |way: usize, point: Point| made.missing[way].at(point).map(Why::name);
    for point in &made.points[0] {
        figures.up.add(missing(0, *point));
    }
    for point in &made.points[1] {
        let is_own = made.origin(*point).is_none_or(|(instance, _)| instance == 0);
        let counts = if is_own { &mut figures.own } else { &mut figures.inlined };
        counts.add(missing(1, *point));
    }
    for (_, entry) in made.down.entries() {
        let price = figures.frames.entry(entry.activations()).or_default();
        price.values.add(entry.assign_lists().map(|list| list.len() as u64).sum());
        price.chi.add(entry.size() as u64);
        price.kept.add(entry.kept.len() as u64);
    }
    let name = made.tree.function(VersionTree::BASE).name().to_owned();
    let (given_up, refused) = (made.retried.given_up.concat(), made.retried.refused);
    InlinedFunction { name, base, cleaned, opt, given_up, refused, figures }
}

impl InliningReport {
    /// Sets the sums from the functions.
    pub fn sum(&mut self) {
        self.totals = InliningFigures::default();
        self.functions.iter().for_each(|function| self.totals.merge(&function.figures));
    }
}

/// The functions that the text lists.
const MOST: usize = 12;

/// The report as tables.
pub fn inlining_tables(report: &InliningReport) -> TableReport {
    let totals = &report.totals;
    let mut tables = Vec::new();
    if !report.functions.is_empty() {
        tables.push(points(totals));
        tables.extend(lost(totals));
        tables.extend([prices(totals), sizes(report), largest(report)]);
    }
    let given_up = report.functions.iter().map(|f| (f.name.as_str(), f.given_up.as_slice()));
    let refused = report.functions.iter().map(|f| f.refused).sum();
    let rest = given_up_section(refused, given_up).into_iter().chain([legend()]).collect();
    TableReport {
        title: format!("Inlining report on {}", report.program.path),
        summary: inlining_summary(report),
        heading: heading(report),
        interrupted: report.interrupted,
        tables: tables.into_iter().map(|table| (table, true)).collect(),
        rest,
    }
}

fn heading(report: &InliningReport) -> Section {
    let functions = format!(
        "{} of {} with inlined code, {} calls inlined",
        grouped(report.functions.len() as u64),
        grouped(report.functions.len() as u64 + report.plain),
        grouped(report.totals.calls)
    );
    let checked = &report.totals.checked;
    let checked = format!(
        "{} entries hold, {} dropped, {} of them refuted",
        grouped(checked.held),
        grouped(checked.all_dropped()),
        grouped(checked.refuted)
    );
    let more = vec![("functions", functions), ("checked", checked)];
    section::heading(&report.program, None, &report.pipeline, more, report.interrupted)
}

fn points(totals: &InliningFigures) -> TextTable {
    let mut table = TextTable::new(LABEL, &[12, 12, 10]);
    table.row("points with an entry", ["points", "entries", "share, %"]);
    let rows = [
        ("  up: of the base", &totals.up),
        ("  down: outside inlined code", &totals.own),
        ("  down: in inlined code", &totals.inlined),
    ];
    for (label, counts) in rows {
        let PointCounts { points, entries, .. } = counts;
        table.row(label, [grouped(*points), grouped(*entries), percent(counts.share())]);
    }
    table
}

/// A table of the points without an entry, by reason.
fn lost(totals: &InliningFigures) -> Option<TextTable> {
    let mut reasons: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for (at, counts) in [&totals.up, &totals.own, &totals.inlined].into_iter().enumerate() {
        for (reason, count) in &counts.lost {
            reasons.entry(reason).or_default()[at] += count;
        }
    }
    let mut table = TextTable::new(LABEL, &[10, 14, 16]);
    table.row("points without one, by reason", ["up", "down, outside", "down, inlined"]);
    for (reason, counts) in &reasons {
        table.row(&format!("  {}", reason.replace('_', " ")), counts.map(grouped));
    }
    (!reasons.is_empty()).then_some(table)
}

fn prices(totals: &InliningFigures) -> TextTable {
    let mut table = TextTable::new(22, &[12, 10, 10, 10, 10]);
    table.row("activations landed in", ["entries", "values", "steps", "kept", "most"]);
    for (count, FramePrice { values, chi, kept }) in &totals.frames {
        let entries = grouped(values.count());
        let [[values, _], [chi, _], [kept, most]] = [values, chi, kept].map(mean_and_most);
        table.row(&format!("  {count}"), [entries, values, chi, kept, most]);
    }
    table
}

fn sizes(report: &InliningReport) -> TextTable {
    let mut table = TextTable::new(LABEL, &[10, 10, 10, 10]);
    table.row("size of these functions", ["base", "cleaned", "inlined", "growth"]);
    let sizes = report.functions.iter().map(|f| [f.base, f.cleaned, f.opt]);
    let [base, cleaned, opt] = Size::sums(sizes).map(|size| size.instructions);
    let growth = if cleaned == 0 { 1.0 } else { opt as f64 / cleaned as f64 };
    let growth = format!("{growth:.2}");
    table.row("  instructions", [grouped(base), grouped(cleaned), grouped(opt), growth]);
    table
}

/// The functions with the most inlined calls.
fn largest(report: &InliningReport) -> TextTable {
    const WIDE: usize = 32;
    let mut table = TextTable::new(WIDE, &[8, 9, 9, 9, 9]);
    let heads = ["calls", "cleaned", "inlined", "up, %", "down, %"];
    table.row("most calls inlined", heads);
    let mut functions: Vec<&InlinedFunction> = report.functions.iter().collect();
    functions.sort_by_key(|function| Reverse(function.figures.calls));
    for function in functions.iter().take(MOST) {
        let InliningFigures { calls, up, own, inlined, .. } = &function.figures;
        let mut down = own.clone();
        down.points += inlined.points;
        down.entries += inlined.entries;
        let sizes = [function.cleaned, function.opt].map(|size| grouped(size.instructions));
        let [cleaned, opt] = sizes;
        let label = format!("  @{}", shortened(&function.name, WIDE - 4));
        table.row(
            &label,
            [grouped(*calls), cleaned, opt, percent(up.share()), percent(down.share())],
        );
    }
    table.and_more(functions.len(), MOST);
    table
}

/// The terms of the tables with their explanations.
fn legend() -> Section {
    Section::legend(&[
        ("checked", "entries of all steps: to the cleaned version, and behind the copy"),
        ("up", "entries from the base into the version with inlined code"),
        ("down", "entries out of that version, into activations of bases"),
        ("landed in", "the function in the middle of inlined code, and its callers"),
        ("values", "values that an entry provides, on average"),
        ("steps", "operations executed and values copied by a transition, on average"),
        ("kept", "values kept for an entry alone, on average, and the most of one"),
        ("growth", "the instructions after inlining, of those before (cleaned)"),
    ])
}
