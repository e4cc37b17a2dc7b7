//! The text of reports on one program with several pipelines: tables with the pipelines as columns.

use super::rows::{change, decimal, level, levels, percent};
use super::section::{LABEL, Section, TextOptions, WIDTH, joined};
use super::summary::{pipeline_name, several_summary};
use super::text;
use crate::schema::{DirectionFigures, LEVELS, Report, Spread};
use crate::table::{TextTable, grouped, shortened};

/// The most pipelines beside each other. More stand in tables below.
const COLUMNS: usize = 4;

/// The width of a column.
const COLUMN: usize = 12;

/// The reports on several pipelines over the same functions, as text: two sentences, tables with
/// the pipelines as columns, and the changes since an older report. Verbose text has the whole
/// report on each pipeline behind that. Every line ends with `\n`.
pub fn several_text(reports: &[&Report], options: TextOptions) -> String {
    let mut all = vec![Section::Sentences(several_summary(reports).into())];
    all.extend(sections(reports));
    if !options.verbose {
        all.push(Section::Sentences(vec!["The report on each pipeline: --verbose.".to_owned()]));
        return joined(&all, options.colored);
    }
    let each = reports.iter().map(|report| {
        let name = shortened(&pipeline_name(&report.pipeline), WIDTH - 6);
        format!("== {name} ==\n\n{}", text::text(report, options))
    });
    let parts: Vec<String> = std::iter::once(joined(&all, options.colored)).chain(each).collect();
    parts.join("\n")
}

/// The tables with the pipelines as columns, and the changes since an older report.
pub(super) fn sections(reports: &[&Report]) -> Vec<Section> {
    let mut all = Vec::new();
    all.extend(Section::stopped(reports.iter().any(|report| report.interrupted)));
    all.extend(reports.chunks(COLUMNS).map(|reports| Section::Table(table(reports))));
    all.extend(changes(reports).map(Section::Table));
    all
}

/// A function that selects the sums of one direction.
type SumOf = fn(&Report) -> &DirectionFigures;

/// The figures of some pipelines.
fn table(reports: &[&Report]) -> TextTable {
    let mut table = TextTable::new(LABEL, &vec![COLUMN; reports.len()]);
    let names =
        reports.iter().map(|report| shortened(&pipeline_name(&report.pipeline), COLUMN - 2));
    table.row("points with an entry, %", names);
    let Some(first) = reports.first() else { return table };
    let sides: [(&str, SumOf); 2] = [
        ("base to opt", |report| &report.totals.forward.sum),
        ("opt to base", |report| &report.totals.backward.sum),
    ];
    for (name, sum) in sides {
        table.line(name);
        for level in levels(first) {
            let shares = reports.iter().map(|report| percent(sum(report).share(level)));
            table.row(&format!("  {}", LEVELS[level]), shares);
        }
        let at = level(first);
        if first.profile.is_some() {
            let shares = reports.iter().map(|report| percent(sum(report).dynamic_share(at)));
            table.row(&format!("  {}, as often as they ran", LEVELS[at]), shares);
        }
        figures(&mut table, reports, LEVELS[at], |report| sum(report));
    }
    table.line("sizes and time");
    let opt = |report: &Report| report.totals.opt.instructions;
    let base = |report: &Report| report.totals.base.instructions;
    table.row("  functions changed", reports.iter().map(|r| grouped(r.totals.functions.changed)));
    table.row("  instructions", reports.iter().map(|report| grouped(opt(report))));
    table.row("    change", reports.iter().map(|report| change(base(report), opt(report))));
    let seconds = reports.iter().map(|report| format!("{:.2} s", report.time.work()));
    table.row("  time of all threads", seconds);
    table
}

/// The cost and the gaps of one direction, at one level.
fn figures(
    table: &mut TextTable,
    reports: &[&Report],
    name: &str,
    sum: impl Fn(&Report) -> &DirectionFigures,
) {
    let of = |spread: Option<&Spread>| decimal(spread.and_then(Spread::mean));
    let steps = reports.iter().map(|report| of(sum(report).chi.get(level(report))));
    table.row(&format!("  steps, mean, {name}"), steps);
    let kept = reports.iter().map(|report| of(sum(report).kept.get(level(report))));
    table.row(&format!("  kept values, mean, {name}"), kept);
    let gaps = reports.iter().map(|report| grouped(sum(report).causes.total()));
    table.row(&format!("  points without entry, {name}"), gaps);
}

/// The points that each pipeline has lost and gained since the older report. `None` without an
/// older report.
fn changes(reports: &[&Report]) -> Option<TextTable> {
    let compared: Vec<&Report> =
        reports.iter().copied().filter(|report| report.against.is_some()).collect();
    let mut table = TextTable::new(LABEL, &[12, 12, 12]);
    let path = &compared.first()?.against.as_ref()?.path;
    let title = format!("against {}", shortened(path, LABEL - 10));
    table.row(&title, ["functions", "lost", "gained"]);
    for report in compared {
        let Some(against) = &report.against else { continue };
        let functions = &against.functions;
        let sum = |of: fn(&crate::schema::ComparedFunction) -> u64| {
            grouped(functions.iter().fold(0u64, |sum, function| sum.saturating_add(of(function))))
        };
        let name = shortened(&pipeline_name(&report.pipeline), LABEL - 2);
        let figures = [grouped(functions.len() as u64), sum(|f| f.lost), sum(|f| f.gained)];
        table.row(&format!("  {name}"), figures);
    }
    Some(table)
}
