//! The text of a report in at most [`MOST_LINES`] lines: the shares, the price at one level, the
//! most frequent causes, and some functions.

#[cfg(doc)]
use super::MOST_LINES;
use super::comparison;
use super::rows::{
    AS_OFTEN, GapTable, blamed, change, decimal, directions, function_table, level, level_table,
    levels, percent, whole,
};
use super::section::{LABEL, Section, Term, fitted};
use super::summary::counted;
use super::totals::by_size;
use crate::schema::{Causes, DirectionFigures, FunctionReport, LEVELS, Report, Spread};
use crate::table::{TextTable, grouped};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The index of the level `live`.
const LIVE: usize = 1;

/// The most causes that the text lists.
const CAUSES: usize = 4;

/// Appends the sections of the brief text to `beginning`. A comparison with an older report already
/// shows the shares, and replaces the tables of causes and functions.
pub(super) fn sections(report: &Report, beginning: Vec<Section>) -> Vec<Section> {
    let mut all = beginning;
    all.extend(Section::stopped(report.interrupted));
    if report.totals.functions.changed == 0 && report.against.is_none() {
        return all;
    }
    if let Some(against) = &report.against {
        all.extend(comparison::sections_within(against, CAUSES, usize::MAX));
        // The tables of causes, of functions and of sizes come last, in this order.
        let [causes, functions] = [all.len() - 3, all.len() - 2];
        all.push(legend());
        return fitted(all, &[functions, causes]);
    }
    all.extend([
        Section::Table(shares(report)),
        Section::Table(costs(report)),
        Section::Table(causes(report)),
    ]);
    let [causes, list] = [all.len() - 1, all.len()];
    let functions = Section::Table(functions(report));
    all.extend([functions, Section::Terms(terms(report)), legend()]);
    fitted(all, &[list, causes])
}

fn sums(report: &Report) -> [(&'static str, &DirectionFigures); 2] {
    directions(report).map(|(name, direction)| (name, &direction.sum))
}

/// The shares of all points by level.
fn shares(report: &Report) -> TextTable {
    let levels = levels(report);
    let mut table = level_table("points with an entry, %", &levels);
    for (name, sum) in sums(report) {
        table.row(&format!("  {name}"), levels.iter().map(|level| percent(sum.share(*level))));
        if report.profile.is_some() {
            table.row(AS_OFTEN, levels.iter().map(|level| percent(sum.dynamic_share(*level))));
        }
    }
    table
}

/// The price of entries at the level of the report: means, and the highest figures in brackets.
fn costs(report: &Report) -> TextTable {
    let level = level(report);
    let mut table = TextTable::new(LABEL, &[14, 14]);
    let sums = sums(report).map(|(_, sum)| sum);
    let title = format!("mean cost (most), {}", report.level);
    table.row(&title, ["base to opt", "opt to base"]);
    let figure = |spread: Option<&Spread>| {
        let most = whole(spread.and_then(Spread::max));
        format!("{} ({most})", decimal(spread.and_then(Spread::mean)))
    };
    table.row("  compensation steps", sums.map(|sum| figure(sum.chi.get(level))));
    table.row("  kept values", sums.map(|sum| figure(sum.kept.get(level))));
    table.row("  kept arguments", sums.map(|sum| figure(sum.kept_args.get(level))));
    table
}

/// Whether every point has an entry at the level of the report, but not at `live`. The tables then
/// show the level `live`: a table of full shares tells nothing, and entries of higher levels cost
/// kept values.
fn costs_at_live(report: &Report) -> bool {
    let sums = sums(report).map(|(_, sum)| sum);
    sums.iter().all(|sum| sum.causes.total() == 0)
        && sums.iter().any(|sum| sum.live_causes.total() > 0)
}

/// The most frequent causes of points without an entry: reason and pass to blame.
fn causes(report: &Report) -> TextTable {
    let sums = sums(report).map(|(_, sum)| sum);
    let at_live = costs_at_live(report);
    let (mut gaps, level) = match at_live {
        true => (GapTable::at_live(sums), LEVELS[LIVE]),
        false => (GapTable::new(sums), report.level.as_str()),
    };
    gaps.headings(&format!("points without entry, {level}"));
    let mut points: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (reason, passes) in sums.iter().flat_map(|s| &causes_at(s, at_live).infeasible_by_pass) {
        for (pass, count) in passes {
            *points.entry((reason, pass)).or_default() += count;
        }
    }
    if points.is_empty() {
        gaps.table.line("  none");
        return gaps.table;
    }
    gaps.row("  all", Causes::total);
    let mut causes: Vec<((&str, &str), u64)> = points.into_iter().collect();
    causes.sort_by_key(|(_, count)| Reverse(*count));
    for ((reason, pass), _) in &causes {
        let label = format!("    {}: {}", blamed(pass), reason.replace('_', " "));
        gaps.row(&label, |counts| counts.of(reason, pass));
    }
    // The row of all stands before them.
    gaps.table.keep(1 + CAUSES);
    gaps.table
}

fn causes_at(figures: &DirectionFigures, live: bool) -> &Causes {
    if live { &figures.live_causes } else { &figures.causes }
}

/// The functions with the most points without an entry. If every point has one, the largest
/// functions. Functions of libraries come last.
fn functions(report: &Report) -> TextTable {
    let changed: Vec<&FunctionReport> =
        report.functions.iter().filter(|f| f.is_changed()).collect();
    let at_live = costs_at_live(report);
    let level = if at_live { LIVE } else { level(report) };
    let missing = |function: &FunctionReport| -> u64 {
        let sides = [&function.forward, &function.backward];
        sides.iter().map(|side| causes_at(side, at_live).total()).sum()
    };
    let mut lacking: Vec<&FunctionReport> =
        changed.iter().copied().filter(|function| missing(function) > 0).collect();
    let (title, functions) = match lacking.is_empty() {
        true => ("largest functions", by_size(&changed)),
        false => {
            lacking.sort_by_key(|f| (f.of_library, Reverse(missing(f))));
            ("most without entry", lacking)
        }
    };
    function_table(report, level, title, &functions).whole_with("--format html")
}

/// Figures that need no table.
fn terms(report: &Report) -> Vec<Term> {
    let totals = &report.totals;
    let (base, opt) = (totals.base.instructions, totals.opt.instructions);
    let size = format!(
        "{} instructions before and {} after the passes, {}",
        grouped(base),
        grouped(opt),
        change(base, opt)
    );
    let checked = &totals.checked;
    let dropped = checked.all_dropped();
    let of = format!("{} entries of all levels", grouped(checked.held + dropped));
    let checked = match dropped {
        0 => format!("{of}: all hold"),
        _ => format!(
            "{of}: {} hold, {} are dropped, {} of these are refuted",
            grouped(checked.held),
            grouped(dropped),
            grouped(checked.refuted)
        ),
    };
    let mut terms = vec![("size", size), ("checked", checked)];
    if totals.refused > 0 {
        let refused = format!("{} rewrites, so that entries hold", grouped(totals.refused));
        terms.push(("given up", refused));
    }
    terms.extend(blame_check(report));
    terms
}

/// The result of the test of blame, if there was one.
pub(super) fn blame_check(report: &Report) -> Option<Term> {
    let check = report.blame_check?;
    let text = match check.points {
        0 => "no point without an entry, so no blame to check".to_owned(),
        points => {
            let share = |count: u64| format!("{:.0} %", 100.0 * count as f64 / points as f64);
            let mut text = format!(
                "checked at {}: {} right, the entry is there without the action that the log \
                 suggests; in all {} have it without one action",
                counted(points, "point", "points"),
                share(check.right),
                share(check.one),
            );
            let others = [
                (check.few, "without two or three"),
                (check.many, "without more"),
                (check.not_found, "with no set found"),
                (check.over_work, "were over the bound on work"),
            ];
            for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
                text += &format!(", {} {what}", share(count));
            }
            text
        }
    };
    Some(("blame", text))
}

/// The meaning of the levels, in few lines.
fn legend() -> Section {
    let levels = "what the code of an entry may read: at empty nothing, at live the live values, \
                  at live_e arguments too, at alias equal values too, at avail kept values too";
    Section::legend(&[("levels", levels)])
}
