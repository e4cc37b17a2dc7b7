//! Prints the report as text for people, at most [`WIDTH`] columns wide.

use super::published::{self, Published, PublishedShare};
use super::section::{self, LABEL, Section, TextOptions, WIDTH, ended, joined};
use super::totals::largest;
use super::{UNBLAMED, brief, comparison, summary};
use crate::schema::{
    Actions, Causes, CheckReport, CheckedFunction, DirectionFigures, DirectionTotals,
    FeasibleShare, FunctionReport, LEVELS, PerLevel, Report, Size, Spread,
};
use crate::table::{TextTable, grouped, shortened, wrapped};
use derive::driver::{CheckCounts, GivenUp};
use ir::text::AtName;
use std::collections::{BTreeMap, BTreeSet};

/// The text in place of a missing figure.
pub(super) const NO_FIGURE: &str = "-";

/// A function that selects one figure of a record.
type Figure<T, N> = fn(&T) -> N;

/// One direction of the report with the published figures for it.
struct DirectionSection<'a> {
    name: &'static str,
    ours: &'a DirectionTotals,
    theirs: &'static Published,
}

fn sides(report: &Report) -> [DirectionSection<'_>; 2] {
    [
        DirectionSection {
            name: "base to opt",
            ours: &report.totals.forward,
            theirs: &published::FORWARD,
        },
        DirectionSection {
            name: "opt to base",
            ours: &report.totals.backward,
            theirs: &published::BACKWARD,
        },
    ]
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

/// The change from one size to another, in percent.
pub(super) fn change(before: u64, after: u64) -> String {
    match before {
        0 => NO_FIGURE.to_owned(),
        _ => format!("{:+.1} %", 100.0 * (after as f64 - before as f64) / before as f64),
    }
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

/// The indices of the levels for which the report has figures.
pub(super) fn levels(report: &Report) -> Vec<usize> {
    report.totals.forward.sum.feasible.iter().map(|(level, _)| level).collect()
}

/// A table with one column per level.
pub(super) fn level_table(heading: &str, levels: &[usize]) -> TextTable {
    let mut table = TextTable::new(LABEL, &vec![9; levels.len()]);
    table.row(heading, levels.iter().map(|level| LEVELS[*level]));
    table
}

/// The row of shares in which each point counts once.
const ALL_POINTS: &str = "  all points";

/// The row of shares in which each point counts as often as it ran.
pub(super) const AS_OFTEN: &str = "    as often as they ran";

fn feasible(report: &Report) -> TextTable {
    let levels = levels(report);
    let mut table = level_table("points with an entry, %", &levels);
    for side in sides(report) {
        let points = grouped(side.ours.sum.reachable());
        let unreachable = grouped(side.ours.sum.unreachable);
        table.line(&format!("{}: {points} reachable points, {unreachable} unreachable", side.name));
        let ours: [(&str, &PerLevel<FeasibleShare>, Figure<FeasibleShare, f64>); 7] = [
            ("  all functions, mean", &side.ours.share, |s| s.mean),
            ("    lowest", &side.ours.share, |s| s.min),
            ("    highest", &side.ours.share, |s| s.max),
            (ALL_POINTS, &side.ours.share, |s| s.weighted),
            ("  largest functions, mean", &side.ours.share_largest, |s| s.mean),
            ("    lowest", &side.ours.share_largest, |s| s.min),
            ("    highest", &side.ours.share_largest, |s| s.max),
        ];
        for (label, shares, figure) in ours {
            table.row(label, levels.iter().map(|level| percent(shares.get(*level).map(figure))));
            if report.profile.is_some() && label == ALL_POINTS {
                let dynamic = |level: &usize| percent(shares.get(*level).and_then(|s| s.dynamic));
                table.row(AS_OFTEN, levels.iter().map(dynamic));
            }
        }
        let theirs: [(&str, Figure<PublishedShare, f64>); 3] = [
            ("  thesis *, mean", |p| p.mean),
            ("    lowest", |p| p.min),
            ("    highest", |p| p.max),
        ];
        for (label, figure) in theirs {
            table.row(
                label,
                levels.iter().map(|level| percent(side.theirs.share(*level).map(|p| figure(&p)))),
            );
        }
    }
    table
}

fn costs(report: &Report) -> TextTable {
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
    let sums = [&report.totals.forward.sum, &report.totals.backward.sum];
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

/// The pass to blame, in words.
pub(super) fn blamed(pass: &str) -> &str {
    if pass == UNBLAMED { "no action named" } else { pass }
}

/// A table with the points of both directions, and their visits where there is a profile.
pub(super) struct GapTable<'a> {
    pub(super) table: TextTable,
    /// The counts of each column, and whether they are visits.
    columns: Vec<(&'a Causes, bool)>,
}

impl<'a> GapTable<'a> {
    pub(super) fn new(sums: [&'a DirectionFigures; 2]) -> GapTable<'a> {
        let mut columns = Vec::new();
        for sum in sums {
            columns.push((&sum.causes, false));
            columns.extend(sum.dynamic.as_ref().map(|dynamic| (&dynamic.causes, true)));
        }
        let widths = if columns.len() > 2 { [9, 16].repeat(2) } else { vec![14, 14] };
        GapTable { table: TextTable::new(LABEL, &widths), columns }
    }

    pub(super) fn headings(&mut self, title: &str) {
        if self.columns.len() > 2 {
            self.table.spans(&[(2, "base to opt"), (2, "opt to base")]);
            self.table.row(title, ["points", "visits"].repeat(2));
        } else {
            self.table.row(title, ["base to opt", "opt to base"]);
        }
    }

    pub(super) fn row(&mut self, label: &str, of: impl Fn(&Causes) -> u64) {
        let cells = self.columns.iter().map(|(counts, are_visits)| match are_visits {
            true => visits(of(counts)),
            false => grouped(of(counts)),
        });
        self.table.row(label, cells.collect::<Vec<_>>());
    }
}

/// A number of visits. A large one is rounded, so that it fits its column.
pub(super) fn visits(number: u64) -> String {
    match number {
        0..1_000_000_000 => grouped(number),
        _ => format!("{:.2e}", number as f64),
    }
}

pub(super) fn keys(maps: [&BTreeMap<String, u64>; 2]) -> BTreeSet<&String> {
    maps.into_iter().flat_map(BTreeMap::keys).collect()
}

fn functions(report: &Report) -> TextTable {
    let changed: Vec<&FunctionReport> =
        report.functions.iter().filter(|f| f.is_changed()).collect();
    function_table(report, "largest functions", &largest(&changed))
}

/// The level of a report, as an index.
pub(super) fn level(report: &Report) -> usize {
    LEVELS.iter().position(|name| *name == report.level).expect("the level of a report is one")
}

/// A table of functions: sizes, shares, shares of visits where there is a profile, and steps.
pub(super) fn function_table(
    report: &Report,
    title: &str,
    functions: &[&FunctionReport],
) -> TextTable {
    let (level, title) = (level(report), format!("{title}, {}", report.level));
    let dynamic = report.profile.is_some();
    let mut table = if dynamic {
        let mut table = TextTable::new(LABEL - 4, &[7, 7, 7, 7, 6, 7, 7, 6]);
        table.spans(&[(2, ""), (3, "base to opt"), (3, "opt to base")]);
        table.row(&title, ["base", "opt", "%", "run, %", "steps", "%", "run, %", "steps"]);
        table
    } else {
        let mut table = TextTable::new(LABEL, &[8; 6]);
        table.spans(&[(2, ""), (2, "base to opt"), (2, "opt to base")]);
        table.row(&title, ["base", "opt", "%", "steps", "%", "steps"]);
        table
    };
    for function in functions {
        let mut figures =
            [function.base, function.opt].map(|size| grouped(size.instructions)).to_vec();
        for side in [&function.forward, &function.backward] {
            figures.push(percent(side.share(level)));
            if dynamic {
                figures.push(percent(side.dynamic_share(level)));
            }
            figures.push(decimal(side.chi.get(level).and_then(Spread::mean)));
        }
        table.row(&format!("  {}", function.name), figures);
    }
    table
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

/// A share in percent. Rounding must not hide a point: only a share of all points prints as 100.0,
/// and only a share of none as 0.0.
pub(super) fn percent(share: Option<f64>) -> String {
    decimal(share.map(|s| if s > 0.0 && s < 100.0 { s.clamp(0.1, 99.9) } else { s }))
}

pub(super) fn decimal(figure: Option<f64>) -> String {
    figure.map_or(NO_FIGURE.to_owned(), |f| format!("{f:.1}"))
}

pub(super) fn whole(figure: Option<u64>) -> String {
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
