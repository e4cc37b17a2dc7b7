//! The report as text for people, at most [`WIDTH`] columns wide.

use super::published::{self, Published, PublishedShare};
use super::table::{Table, grouped, shortened, wrapped};
use super::totals::largest;
use crate::driver::Checked;
use crate::schema::{Actions, Check, DirectionTotals, FunctionReport, LEVELS, PerLevel, Report, Share, Size, Spread};
use std::collections::{BTreeMap, BTreeSet};

/// The widest line of the text.
pub const WIDTH: usize = 80;

/// Columns of the labels before tables of figures.
const LABEL: usize = 30;

/// Columns of the names of functions.
const NAME: usize = 30;

/// Stands where there is no figure.
const NO_FIGURE: &str = "-";

/// Takes one figure out of many.
type Figure<T, N> = fn(&T) -> N;

/// One direction of the report, and what is published of it.
struct Side<'a> {
    name: &'static str,
    ours: &'a DirectionTotals,
    theirs: &'static Published,
}

fn sides(report: &Report) -> [Side<'_>; 2] {
    [
        Side { name: "base to opt", ours: &report.totals.forward, theirs: &published::FORWARD },
        Side { name: "opt to base", ours: &report.totals.backward, theirs: &published::BACKWARD },
    ]
}

/// The report as text, each line ended.
pub fn text(report: &Report) -> String {
    let mut lines = heading(report);
    if report.totals.functions.changed > 0 {
        let sections =
            [sizes(report), actions(&report.totals.actions), feasible(report), costs(report), infeasible(report)];
        let checked = checked_lines("entries checked, all levels", &report.totals.checked);
        for section in sections.into_iter().chain([checked, functions(report), legend(), footnote()]) {
            lines.push(String::new());
            lines.extend(section);
        }
    }
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// What `osier check` says, each line ended.
pub fn check_text(check: &Check) -> String {
    let mut lines = checked_lines("entries", &check.checked);
    let failed = check.functions.iter().filter(|f| !f.checked.dropped.is_empty());
    for function in failed {
        lines.push(String::new());
        lines.extend(checked_lines(&shortened(&format!("@{}", function.name), LABEL), &function.checked));
    }
    lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

/// How many entries hold, and what became of the others.
fn checked_lines(label: &str, checked: &Checked) -> Vec<String> {
    let mut table = Table::new(LABEL, &[14]);
    let dropped = checked.dropped.values().sum();
    table.row(label, [grouped(checked.held + dropped)]);
    table.row("  held", [grouped(checked.held)]);
    table.row("  dropped", [grouped(dropped)]);
    for (reason, count) in &checked.dropped {
        table.row(&format!("    {reason}"), [grouped(*count)]);
    }
    table.row("  refuted, of those dropped", [grouped(checked.refuted)]);
    table.lines()
}

fn heading(report: &Report) -> Vec<String> {
    let mut pipeline: Vec<&str> = report.pipeline.iter().map(String::as_str).collect();
    if pipeline.is_empty() {
        pipeline.push("(no passes)");
    }
    let counts = report.totals.functions;
    let functions = format!("{} of {}", grouped(counts.selected), grouped(report.program.functions));
    let below = if counts.changed > 0 { " (the figures below)" } else { "" };
    let changed = format!("{} changed{below}", grouped(counts.changed));
    let unchanged = format!("{} left as they are", grouped(counts.unchanged));
    let mut lines = vec![format!("program    {}", shortened(&report.program.path, WIDTH - 11))];
    lines.extend(wrapped("pipeline   ", pipeline, WIDTH));
    lines.extend(wrapped("functions  ", [&*format!("{functions}:"), &*format!("{changed},"), &*unchanged], WIDTH));
    lines
}

fn sizes(report: &Report) -> Vec<String> {
    let mut table = Table::new(LABEL, &[12, 12, 12]);
    table.row("size of changed functions", ["base", "opt", "change"]);
    let rows: [(&str, Figure<Size, u64>); 3] = [
        ("  instructions", |s| s.instructions),
        ("  instructions, no constants", |s| s.instructions - s.constants),
        ("  block parameters", |s| s.params),
    ];
    for (label, size) in rows {
        let (base, opt) = (size(&report.totals.base), size(&report.totals.opt));
        table.row(label, [grouped(base), grouped(opt), change(base, opt)]);
    }
    table.lines()
}

/// How much larger or smaller, in percent.
fn change(before: u64, after: u64) -> String {
    match before {
        0 => NO_FIGURE.to_owned(),
        _ => format!("{:+.1} %", 100.0 * (after as f64 - before as f64) / before as f64),
    }
}

fn actions(actions: &Actions) -> Vec<String> {
    let counts = actions.counts().filter(|(_, count)| *count > 0);
    let mut each: Vec<String> = counts.map(|(name, count)| format!("{name} {},", grouped(count))).collect();
    if let Some(last) = each.last_mut() {
        last.pop();
    }
    let mut lines = vec![format!("actions of the passes: {}", grouped(actions.total()))];
    lines.extend(wrapped("  ", each.iter().map(String::as_str), WIDTH));
    lines
}

/// The levels the report has figures for.
fn levels(report: &Report) -> Vec<usize> {
    report.totals.forward.sum.feasible.iter().map(|(level, _)| level).collect()
}

/// A table with one column for each of the levels.
fn level_table(heading: &str, levels: &[usize]) -> Table {
    let mut table = Table::new(LABEL, &vec![9; levels.len()]);
    table.row(heading, levels.iter().map(|level| LEVELS[*level]));
    table
}

fn feasible(report: &Report) -> Vec<String> {
    let levels = levels(report);
    let mut table = level_table("points with an entry, %", &levels);
    for side in sides(report) {
        let points = grouped(side.ours.sum.reachable());
        let unreachable = grouped(side.ours.sum.unreachable);
        table.line(&format!("{}: {points} points, {unreachable} unreachable ones apart", side.name));
        let ours: [(&str, &PerLevel<Share>, Figure<Share, f64>); 7] = [
            ("  all functions, mean", &side.ours.share, |s| s.mean),
            ("    lowest", &side.ours.share, |s| s.min),
            ("    highest", &side.ours.share, |s| s.max),
            ("  all points", &side.ours.share, |s| s.weighted),
            ("  largest functions, mean", &side.ours.share_largest, |s| s.mean),
            ("    lowest", &side.ours.share_largest, |s| s.min),
            ("    highest", &side.ours.share_largest, |s| s.max),
        ];
        for (label, shares, figure) in ours {
            table.row(label, levels.iter().map(|level| percent(shares.get(*level).map(figure))));
        }
        let theirs: [(&str, Figure<PublishedShare, f64>); 3] =
            [("  thesis *, mean", |p| p.mean), ("    lowest", |p| p.min), ("    highest", |p| p.max)];
        for (label, figure) in theirs {
            table.row(label, levels.iter().map(|level| percent(side.theirs.share(*level).map(|p| figure(&p)))));
        }
    }
    table.lines()
}

fn costs(report: &Report) -> Vec<String> {
    let levels = levels(report);
    let avail = LEVELS.iter().position(|name| *name == "avail").expect("avail is a level");
    let mut table = level_table("cost of an entry", &levels);
    for side in sides(report) {
        table.line(side.name);
        let sum = &side.ours.sum;
        let rows: [(&str, &PerLevel<Spread>, Option<f64>); 3] = [
            ("  compensation steps, mean", &sum.chi, Some(side.theirs.chi)),
            ("  kept values, mean", &sum.kept, Some(side.theirs.kept)),
            ("  kept arguments, mean", &sum.kept_args, None),
        ];
        for (label, spreads, published) in rows {
            table.row(label, levels.iter().map(|l| decimal(spreads.get(*l).and_then(Spread::mean))));
            table.row("    most", levels.iter().map(|l| whole(spreads.get(*l).and_then(Spread::max))));
            if published.is_some() {
                let figures = levels.iter().map(|l| decimal(published.filter(|_| *l == avail)));
                table.row("    thesis *, mean", figures);
            }
        }
    }
    table.lines()
}

fn infeasible(report: &Report) -> Vec<String> {
    let mut table = Table::new(LABEL, &[14, 14]);
    let (forward, backward) = (&report.totals.forward.sum, &report.totals.backward.sum);
    table.row(&format!("points without entry, {}", report.level), ["base to opt", "opt to base"]);
    let none = forward.infeasible.is_empty() && backward.infeasible.is_empty();
    if none {
        table.line("  none");
        return table.lines();
    }
    count_rows("  by reason", &forward.infeasible, &backward.infeasible, &mut table);
    count_rows("  by pass to blame", &forward.blame, &backward.blame, &mut table);
    table.lines()
}

/// A row for each key of either map, and one for their sums.
fn count_rows(label: &str, forward: &BTreeMap<String, u64>, backward: &BTreeMap<String, u64>, table: &mut Table) {
    let sum = |counts: &BTreeMap<String, u64>| grouped(counts.values().sum());
    table.row(label, [sum(forward), sum(backward)]);
    let keys: BTreeSet<&String> = forward.keys().chain(backward.keys()).collect();
    for key in keys {
        let count = |counts: &BTreeMap<String, u64>| grouped(counts.get(key).copied().unwrap_or(0));
        table.row(&format!("    {}", key.replace('_', " ")), [count(forward), count(backward)]);
    }
}

fn functions(report: &Report) -> Vec<String> {
    let changed: Vec<&FunctionReport> = report.functions.iter().filter(|f| f.is_changed()).collect();
    let largest = largest(&changed);
    let levels = levels(report);
    let avail = *levels.last().expect("a report has figures for a level");
    let mut headings = Table::new(NAME, &[8, 8, 16, 16]);
    headings.row("", ["", "", "base to opt", "opt to base"]);
    let mut table = Table::new(NAME, &[8; 6]);
    let title = format!("largest functions, {}", LEVELS[avail]);
    table.row(&title, ["base", "opt", "%", "steps", "%", "steps"]);
    for function in largest {
        let mut figures = [function.base, function.opt].map(|size| grouped(size.instructions)).to_vec();
        for side in [&function.forward, &function.backward] {
            let steps = side.chi.get(avail).and_then(Spread::mean);
            figures.extend([percent(side.share(avail)), decimal(steps)]);
        }
        table.row(&format!("  {}", function.name), figures);
    }
    [headings.lines(), table.lines()].concat()
}

/// What the words in the tables mean.
fn legend() -> Vec<String> {
    const WORDS: [(&str, &str); 8] = [
        ("levels:", "what the code that moves execution over may read. Each includes the one before."),
        ("empty", "nothing is needed: every value is there under its own name"),
        ("live", "values still used where execution leaves, and operations on them"),
        ("live_e", "and the function's arguments"),
        ("alias", "and live values that equal the wanted one, as the passes' log tells"),
        ("avail", "and values computed but no longer used: these have to be kept"),
        ("steps", "operations executed, and values copied, on moving over"),
        ("base, opt", "the function before the passes, and after; all points: of all functions, not by function"),
    ];
    let lines = WORDS.iter().map(|(word, meaning)| wrapped(&format!("{word:<11}"), meaning.split(' '), WIDTH));
    lines.flatten().collect()
}

fn footnote() -> Vec<String> {
    let text = "D'Elia's thesis: means over the 12 hottest functions of other programs under LLVM 3.6.2. \
                Published figures to stand beside, not measured here; ours are no reproduction of them.";
    wrapped("* ", text.split(' '), WIDTH)
}

/// A share. Only all reads 100.0 and only none reads 0.0, however many points one point is lost among.
fn percent(share: Option<f64>) -> String {
    decimal(share.map(|s| if s > 0.0 && s < 100.0 { s.clamp(0.1, 99.9) } else { s }))
}

fn decimal(figure: Option<f64>) -> String {
    figure.map_or(NO_FIGURE.to_owned(), |f| format!("{f:.1}"))
}

fn whole(figure: Option<u64>) -> String {
    figure.map_or(NO_FIGURE.to_owned(), grouped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_all_but_one_is_not_all() {
        let shares = [0.0, 0.001, 50.04, 99.96, 100.0].map(|s| percent(Some(s)));
        assert_eq!(shares, ["0.0", "0.1", "50.0", "99.9", "100.0"]);
        assert_eq!(percent(None), NO_FIGURE);
    }
}
