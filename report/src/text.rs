//! Prints the report as text for people, at most [`WIDTH`] columns wide.

use super::published::{self, Published, PublishedShare};
use super::rows::{
    AS_OFTEN, GapTable, blamed, change, decimal, directions, function_table, level, level_table,
    levels, percent, whole,
};
use super::section::{self, LABEL, Section, TextOptions, WIDTH, ended, joined};
use super::totals::by_size;
use super::{brief, comparison, summary};
use crate::schema::{
    Actions, Causes, CheckReport, CheckedFunction, DirectionTotals, FeasibleShare, FunctionReport,
    LEVELS, PerLevel, Report, Size, Spread,
};
use crate::table::{TextTable, grouped, shortened, wrapped};
use derive::driver::{CheckCounts, GivenUp};
use ir::text::AtName;
use std::collections::{BTreeMap, BTreeSet};

/// A function that selects one figure of a record.
type Figure<T, N> = fn(&T) -> N;

/// The directions of the report, each with the published figures for it.
fn sides(report: &Report) -> [(&'static str, &DirectionTotals, &'static Published); 2] {
    let [forward, backward] = directions(report);
    [(forward.0, forward.1, &published::FORWARD), (backward.0, backward.1, &published::BACKWARD)]
}

/// The sections of a report, in order.
pub(super) fn sections(report: &Report) -> Vec<Section> {
    let mut sections = vec![heading(report)];
    if report.totals.functions.changed > 0 {
        sections.extend([
            Section::Table(sizes(report)),
            actions(&report.totals.actions),
            Section::Table(feasible(report)),
            Section::Table(costs(report)),
            Section::Table(infeasible(report)),
            Section::Table(checked_table(
                "entries checked, all levels",
                &report.totals.checked,
                report.totals.without_retry.as_ref(),
            )),
        ]);
        let blame = brief::blame_check(report).map(|term| Section::Terms(vec![term]));
        sections.extend(blame);
        let given_up = report.functions.iter().map(|f| (f.name.as_str(), f.given_up.as_slice()));
        sections.extend(given_up_section(report.totals.refused, given_up));
        sections.extend([
            Section::Table(functions(report)),
            legend(),
            Section::Note(FOOTNOTE.to_owned()),
        ]);
    }
    sections
}

/// The report as text, with the two sentences of [`summary()`] before its tables. Every line ends
/// with `\n`.
pub fn text(report: &Report, options: TextOptions) -> String {
    let mut all = vec![Section::Sentences(summary(report).into())];
    if options.verbose {
        all.extend(report.against.iter().flat_map(comparison::sections));
        all.extend(sections(report));
    } else {
        all = brief::sections(report, all);
    }
    joined(&all, options.colored)
}

/// The text of `osier check`. Every line ends with `\n`.
pub fn check_text(check: &CheckReport) -> String {
    let mut lines = verdict_lines(check);
    lines.extend(checked_table("entries", &check.checked, check.without_retry.as_ref()).lines());
    if check.interrupted {
        lines.insert(0, "interrupted: covers the functions complete by then".to_owned());
    }
    let is_wrong =
        |f: &&CheckedFunction| !f.checked.dropped.is_empty() || !f.refused_records.is_empty();
    let failed = check.functions.iter().filter(is_wrong);
    for function in failed {
        lines.push(String::new());
        let name = AtName(&function.name).to_string();
        let without = function.without_retry.as_ref();
        lines.extend(checked_table(&name, &function.checked, without).lines());
        lines.extend(function.unproved.iter().flat_map(crate::explain::unproved_text));
        for record in &function.refused_records {
            let label = format!("  line {}: ", record.line);
            lines.extend(wrapped(&label, record.what.split(' '), WIDTH));
        }
    }
    let given_up = check.functions.iter().map(|f| (f.name.as_str(), f.given_up.as_slice()));
    let refused = check.functions.iter().map(|f| f.refused).sum();
    if let Some(section) = given_up_section(refused, given_up) {
        lines.push(String::new());
        lines.extend(section.lines());
    }
    ended(&lines)
}

/// A line for each verdict, and an empty one behind them.
fn verdict_lines(check: &CheckReport) -> Vec<String> {
    let mut lines = Vec::new();
    for function in &check.functions {
        let verdicts = function.verdicts.iter().flatten();
        lines.extend(verdicts.map(|verdict| verdict.line(&function.name, &check.level)));
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

/// A table of the verdicts: accepted entries, and dropped ones by failed check. If the retry has
/// won entries, also the number of dropped ones without it.
fn checked_table(label: &str, checked: &CheckCounts, without: Option<&CheckCounts>) -> TextTable {
    let mut table = TextTable::new(LABEL, &[14]);
    let dropped = checked.all_dropped();
    table.row(label, [grouped(checked.held + dropped)]);
    table.row("  held", [grouped(checked.held)]);
    table.row("  dropped", [grouped(dropped)]);
    for (reason, count) in &checked.dropped {
        table.row(&format!("    {reason}"), [grouped(*count)]);
    }
    table.row("  refuted, of those dropped", [grouped(checked.refuted)]);
    let more = without.map(CheckCounts::all_dropped).filter(|more| *more != dropped);
    if let Some(more) = more {
        table.row("  dropped with the retry off", [grouped(more)]);
    }
    table
}

/// The most rewrites given up that a text lists.
const MOST_GIVEN_UP: usize = 24;

/// A list of the rewrites given up, function by function. `None` without such rewrites.
pub(super) fn given_up_section<'f>(
    refused: u64,
    functions: impl Iterator<Item = (&'f str, &'f [GivenUp])>,
) -> Option<Section> {
    let all: Vec<(&str, &GivenUp)> =
        functions.flat_map(|(name, given_up)| given_up.iter().map(move |g| (name, g))).collect();
    let mut table = TextTable::new(LABEL, &[14]);
    table.row("rewrites given up", [grouped(refused)]);
    for (name, g) in all.iter().take(MOST_GIVEN_UP) {
        let name = shortened(name, WIDTH / 2);
        table.line(&format!("  @{name}: {}/{}, then {} failed", g.pass, g.rule, g.check));
        table.line(&shortened(&format!("    a{} {}", g.action, g.text), WIDTH));
        if g.count > 1 {
            table.line("    and a stretch of rewrites behind it");
        }
    }
    table.and_more(all.len(), MOST_GIVEN_UP);
    (!all.is_empty()).then_some(Section::Table(table))
}

fn heading(report: &Report) -> Section {
    let counts = report.totals.functions;
    let functions =
        format!("{} of {}", grouped(counts.selected), grouped(report.program.functions));
    let below = if counts.changed > 0 { " (the figures below)" } else { "" };
    let changed = format!("{} changed{below}", grouped(counts.changed));
    let unchanged = format!("{} unchanged", grouped(counts.unchanged));
    let more = vec![("functions", format!("{functions}: {changed}, {unchanged}"))];
    let profile = report.profile.as_deref();
    section::heading(&report.program, profile, &report.pipeline, more, report.interrupted)
}

fn sizes(report: &Report) -> TextTable {
    let mut table = TextTable::new(LABEL, &[12, 12, 12]);
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
    table
}

fn actions(actions: &Actions) -> Section {
    let counts = actions.counts().filter(|(_, count)| *count > 0);
    let mut each: Vec<String> =
        counts.map(|(name, count)| format!("{name} {},", grouped(count))).collect();
    if let Some(last) = each.last_mut() {
        last.pop();
    }
    Section::Words(format!("actions of the passes: {}", grouped(actions.total())), each)
}

/// The row of shares in which each point counts once.
const ALL_POINTS: &str = "  all points";

fn feasible(report: &Report) -> TextTable {
    let levels = levels(report);
    let mut table = level_table("points with an entry, %", &levels);
    for (name, ours, theirs) in sides(report) {
        let points = grouped(ours.sum.reachable());
        let unreachable = grouped(ours.sum.unreachable);
        table.line(&format!("{}: {points} reachable points, {unreachable} unreachable", name));
        let shares: [(&str, &PerLevel<FeasibleShare>, Figure<FeasibleShare, f64>); 7] = [
            ("  all functions, mean", &ours.share, |s| s.mean),
            ("    lowest", &ours.share, |s| s.min),
            ("    highest", &ours.share, |s| s.max),
            (ALL_POINTS, &ours.share, |s| s.weighted),
            ("  largest functions, mean", &ours.share_largest, |s| s.mean),
            ("    lowest", &ours.share_largest, |s| s.min),
            ("    highest", &ours.share_largest, |s| s.max),
        ];
        for (label, shares, figure) in shares {
            table.row(label, levels.iter().map(|level| percent(shares.get(*level).map(figure))));
            if report.profile.is_some() && label == ALL_POINTS {
                let dynamic = |level: &usize| percent(shares.get(*level).and_then(|s| s.dynamic));
                table.row(AS_OFTEN, levels.iter().map(dynamic));
            }
        }
        let rows: [(&str, Figure<PublishedShare, f64>); 3] = [
            ("  thesis *, mean", |p| p.mean),
            ("    lowest", |p| p.min),
            ("    highest", |p| p.max),
        ];
        for (label, figure) in rows {
            table.row(
                label,
                levels.iter().map(|level| percent(theirs.share(*level).map(|p| figure(&p)))),
            );
        }
    }
    table
}

fn costs(report: &Report) -> TextTable {
    let levels = levels(report);
    let avail = LEVELS.iter().position(|name| *name == "avail").expect("avail is a level");
    let mut table = level_table("cost of an entry", &levels);
    for (name, ours, theirs) in sides(report) {
        table.line(name);
        let sum = &ours.sum;
        let rows: [(&str, &PerLevel<Spread>, Option<f64>); 3] = [
            ("  compensation steps, mean", &sum.chi, Some(theirs.chi)),
            ("  kept values, mean", &sum.kept, Some(theirs.kept)),
            ("  kept arguments, mean", &sum.kept_args, None),
        ];
        for (label, spreads, published) in rows {
            table
                .row(label, levels.iter().map(|l| decimal(spreads.get(*l).and_then(Spread::mean))));
            table.row(
                "    most",
                levels.iter().map(|l| whole(spreads.get(*l).and_then(Spread::max))),
            );
            if published.is_some() {
                let figures = levels.iter().map(|l| decimal(published.filter(|_| *l == avail)));
                table.row("    thesis *, mean", figures);
            }
        }
    }
    table
}

/// A table of the points without an entry: by reason with the passes to blame below it, and by
/// pass. With a profile, the visits of these points stand beside their numbers.
fn infeasible(report: &Report) -> TextTable {
    let sums = directions(report).map(|(_, direction)| &direction.sum);
    let mut gaps = GapTable::new(sums);
    gaps.headings(&format!("points without entry, {}", report.level));
    if sums.iter().all(|side| side.causes.infeasible.is_empty()) {
        gaps.table.line("  none");
        return gaps.table;
    }
    let causes = sums.map(|side| &side.causes);
    gaps.row("  by reason, and pass to blame", Causes::total);
    for reason in keys(causes.map(|causes| &causes.infeasible)) {
        let of = |counts: &Causes| counts.infeasible.get(reason).copied().unwrap_or(0);
        gaps.row(&format!("    {}", reason.replace('_', " ")), of);
        let none = BTreeMap::new();
        let passes = causes.map(|causes| causes.infeasible_by_pass.get(reason).unwrap_or(&none));
        for pass in keys(passes) {
            gaps.row(&format!("      {}", blamed(pass)), |counts| counts.of(reason, pass));
        }
    }
    gaps.row("  by pass to blame", |counts| counts.blame.values().sum());
    for pass in keys(causes.map(|causes| &causes.blame)) {
        gaps.row(&format!("    {}", blamed(pass)), |counts| {
            counts.blame.get(pass).copied().unwrap_or(0)
        });
    }
    gaps.table
}

pub(super) fn keys(maps: [&BTreeMap<String, u64>; 2]) -> BTreeSet<&String> {
    maps.into_iter().flat_map(BTreeMap::keys).collect()
}

/// The most functions that the verbose text and the figures of the page list.
const MOST_FUNCTIONS: usize = 40;

/// The largest functions. Functions of libraries come last.
fn functions(report: &Report) -> TextTable {
    let changed: Vec<&FunctionReport> =
        report.functions.iter().filter(|f| f.is_changed()).collect();
    let ordered = by_size(&changed);
    let shown = &ordered[..ordered.len().min(MOST_FUNCTIONS)];
    let table = function_table(report, level(report), "largest functions", shown);
    table.cut("--format html", ordered.len() - shown.len())
}

/// The terms of the tables with their explanations.
fn legend() -> Section {
    Section::legend(&[
        (
            "levels:",
            "the values that compensation code may read; each level includes the one before.",
        ),
        ("empty", "none: every value exists under its own id"),
        ("live", "values live at the source point, and operations on them"),
        ("live_e", "and the function's arguments"),
        ("alias", "and live values that the log shows to equal the wanted one"),
        ("avail", "and available values that are not live; they must be kept"),
        ("steps", "operations executed and values copied by a transition"),
        (
            "base, opt",
            "the function before and after the passes; all points: over all functions together",
        ),
    ])
}

const FOOTNOTE: &str = "D'Elia's thesis: means over the 12 hottest functions of other programs under LLVM 3.6.2. \
                        Published figures for comparison, not measured here; ours do not reproduce them.";
