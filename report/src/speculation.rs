//! Computes the figures of `osier report --speculate`: the assumptions that a profile suggests, and
//! their exits.

use super::UNBLAMED;
use super::rows::{blamed, percent};
use super::section::{LABEL, Section, heading};
use super::summary::speculation_summary;
use super::tables::{TableReport, mean_and_most};
use crate::listing::NamedVersion;
use crate::schema::{
    AssumptionFigures, DropReason, ExitPrice, ReportedAssumption, Size, SpeculatedFunction,
    SpeculationReport, Spread,
};
use crate::table::{TextTable, grouped, shortened};
use derive::driver::{NoObserver, Vigilance, Why, derive};
use derive::speculate::{
    Assumption, Dropped, Exit, Observed, Pins, Plan, SpeculateError, Speculative, Suggestion,
    speculate,
};
use ir::{Func, Function, Module, Point, Value};
use osr::{Obstacle, VersionTree};
use passes::Pipeline;
use profile::Profile;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use transition::mapping::Entry;
use unicode_width::UnicodeWidthStr;

/// The figures of one function: runs the pipeline with these assumptions, and looks each assumption
/// up in the resulting version. Cost: one [`speculate()`] and one more run of the pipeline.
///
/// # Errors
/// As [`speculate()`].
///
/// # Panics
/// If the module lacks the function.
pub fn speculated(
    module: &Module,
    func: Func,
    profile: &Profile,
    suggestions: &[Suggestion],
    pipeline: &Pipeline,
    pins: Pins,
) -> Result<SpeculatedFunction, SpeculateError> {
    let base = module.body(func).expect("the module has the function");
    let (tree, made, assumptions) = speculated_version(module, base, suggestions, pipeline, pins)?;
    let plain = derive(module, base, pipeline, Vigilance::Off, &mut NoObserver);
    Ok(SpeculatedFunction {
        name: base.name().to_owned(),
        calls: profile.functions.get(&func).map_or(0, |profile| profile.calls),
        base: Size::of(base),
        opt: Size::of(&plain.function),
        speculative: Size::of(tree.function(made.optimized)),
        assumptions,
    })
}

/// The version that makes the assumptions, and the fate of each suggestion, in their order.
///
/// # Errors
/// As [`speculate()`].
pub(crate) fn speculated_version(
    module: &Module,
    base: &Function,
    suggestions: &[Suggestion],
    pipeline: &Pipeline,
    pins: Pins,
) -> Result<(VersionTree, Speculative, Vec<ReportedAssumption>), SpeculateError> {
    let assumptions: Vec<Assumption> = suggestions.iter().map(|s| s.assumption).collect();
    let plan = Plan { pins, ..Plan::new(&assumptions, pipeline) };
    let mut tree = VersionTree::new(base.clone());
    let made = speculate(module, &mut tree, VersionTree::BASE, &plan)?;
    let fates = Fates::new(base, &made);
    let named = NamedVersion::new(module, base);
    let reported = suggestions.iter().map(|s| fates.reported(&named, s)).collect();
    Ok((tree, made, reported))
}

/// The fate of each assumption. Equal assumptions share one.
struct Fates<'a> {
    base: &'a Function,
    exits: BTreeMap<Assumption, ExitPrice>,
    dropped: BTreeMap<Assumption, Dropped>,
}

impl<'a> Fates<'a> {
    fn new(base: &'a Function, made: &Speculative) -> Fates<'a> {
        let exits = made.exits.iter().filter_map(|exit| {
            // `Speculative::exit` would search all exits for each assumption.
            let entry = made.backward.get(&exit.to).and_then(|m| m.entry(Point::before(exit.inst)));
            let entry = entry.expect("each assumption has an exit");
            Some((exit.assumption?, price(base, exit, entry)))
        });
        Fates { base, exits: exits.collect(), dropped: made.dropped.iter().copied().collect() }
    }

    fn reported(&self, named: &NamedVersion<'_>, suggestion: &Suggestion) -> ReportedAssumption {
        let Suggestion { assumption, observed, visits, worth } = *suggestion;
        let exit = self.exits.get(&assumption).copied();
        let why = self.dropped.get(&assumption).map(reason);
        let fact = crate::listing::fact(self.base, &assumption);
        ReportedAssumption {
            at: named.place(assumption.at),
            value: named.text.value(assumption.value),
            fact,
            observed: Observed::KINDS[observed.kind()],
            visits,
            worth,
            fate: match (exit, &why) {
                (Some(_), _) => "exit",
                (None, Some(_)) => "dropped",
                (None, None) => "settled",
            },
            why,
            exit,
        }
    }
}

/// The price of an exit. Kept values here: the values that the assumption pins, and the values that
/// the entry requires and that are not live; a value that is both counts once.
fn price(base: &Function, exit: &Exit, entry: &Entry) -> ExitPrice {
    let kept: BTreeSet<Value> = entry.kept.iter().chain(&exit.pins).copied().collect();
    let kept_args = kept.iter().filter(|value| base.arguments().contains(value)).count();
    ExitPrice {
        kept: (kept.len() - kept_args) as u64,
        kept_args: kept_args as u64,
        pins: exit.pins.len() as u64,
        chi: entry.size() as u64,
        replays: entry.replays.len() as u64,
    }
}

fn reason(dropped: &Dropped) -> DropReason {
    let pass = match dropped.no_exit() {
        Some(Why::Obstacle(Obstacle { blame: Some(blame), .. })) => blame.pass,
        _ => UNBLAMED,
    };
    DropReason { reason: dropped.name(), pass, text: dropped.to_string() }
}

impl SpeculationReport {
    /// Sets the sums from the functions.
    pub fn sum(&mut self) {
        self.totals = AssumptionFigures::default();
        self.observed.clear();
        for assumption in self.functions.iter().flat_map(|function| &function.assumptions) {
            self.totals.add(assumption);
            self.observed.entry(assumption.observed.to_owned()).or_default().add(assumption);
        }
    }
}

/// The most assumptions that the text lists.
const MOST: usize = 20;

/// The report as tables.
pub fn speculation_tables(report: &SpeculationReport) -> TableReport {
    let mut tables = Vec::new();
    if report.totals.suggested > 0 {
        tables.push((fates(report), true));
        tables.extend(dropped(&report.totals).map(|table| (table, true)));
        tables.push((prices(&report.totals), true));
        tables.push((sizes(report), false));
        tables.push((worthwhile(report), true));
    }
    let suggested = format!(
        "{} of {} with suggestions, at places visited {} times or more",
        grouped(report.functions.len() as u64),
        grouped(report.program.functions),
        grouped(report.visits)
    );
    let (profile, more) = (Some(report.profile.as_str()), vec![("functions", suggested)]);
    TableReport {
        title: format!("Speculation report on {}", report.program.path),
        summary: speculation_summary(report),
        heading: heading(&report.program, profile, &report.pipeline, more, report.interrupted),
        interrupted: report.interrupted,
        tables,
        rest: vec![legend()],
    }
}

fn fates(report: &SpeculationReport) -> TextTable {
    let mut table = TextTable::new(LABEL, &[10; 5]);
    table.row("assumptions", ["suggested", "with exit", "settled", "dropped", "exits, %"]);
    let row = |label: &str, figures: &AssumptionFigures, table: &mut TextTable| {
        let counts =
            [figures.suggested, figures.exits, figures.settled, figures.all_dropped()].map(grouped);
        table.row(label, counts.into_iter().chain([percent(figures.share)]));
    };
    for kind in Observed::KINDS {
        if let Some(figures) = report.observed.get(kind) {
            row(&format!("  {kind}"), figures, &mut table);
        }
    }
    row("  all", &report.totals, &mut table);
    table
}

/// A table of the assumptions dropped, by reason with the passes to blame below it.
fn dropped(totals: &AssumptionFigures) -> Option<TextTable> {
    let mut table = TextTable::new(LABEL, &[10]);
    table.row("dropped, and pass to blame", [grouped(totals.all_dropped())]);
    for (reason, passes) in &totals.dropped {
        table.row(&format!("  {}", reason.replace('_', " ")), [grouped(passes.values().sum())]);
        for (pass, count) in passes {
            table.row(&format!("    {}", blamed(pass)), [grouped(*count)]);
        }
    }
    (!totals.dropped.is_empty()).then_some(table)
}

fn prices(totals: &AssumptionFigures) -> TextTable {
    let mut table = TextTable::new(LABEL, &[10; 2]);
    table.row("price of an exit", ["mean", "most"]);
    let rows: [(&str, &Spread); 4] = [
        ("  kept values", &totals.kept),
        ("  kept arguments", &totals.kept_args),
        ("  steps and copies", &totals.chi),
        ("  replayed stores", &totals.replays),
    ];
    for (label, spread) in rows {
        table.row(label, mean_and_most(spread));
    }
    table.row("  exits that pin a value", [grouped(totals.pinned)]);
    table
}

fn sizes(report: &SpeculationReport) -> TextTable {
    let mut table = TextTable::new(LABEL, &[12; 3]);
    table.row("size of these functions", ["base", "opt", "assuming"]);
    let sizes = report.functions.iter().map(|f| [f.base, f.opt, f.speculative]);
    table.row("  instructions", Size::sums(sizes).map(|size| grouped(size.instructions)));
    table
}

/// The assumptions of the highest worth, over all functions.
fn worthwhile(report: &SpeculationReport) -> TextTable {
    let functions = report.functions.iter();
    let mut all: Vec<(&SpeculatedFunction, &ReportedAssumption)> =
        functions.flat_map(|f| f.assumptions.iter().map(move |a| (f, a))).collect();
    // Stable, so that equal worth stays in module order.
    all.sort_by_key(|(_, assumption)| Reverse(assumption.worth));
    const WIDE: usize = 50;
    let mut table = TextTable::new(WIDE, &[11, 11, 8]);
    table.row("most worthwhile assumptions", ["visits", "worth", "kept"]);
    for (function, assumption) in all.iter().take(MOST) {
        let claim = format!(
            " {}: {} {}",
            shortened(&assumption.at, 16),
            shortened(&assumption.value, 12),
            shortened(&assumption.fact, 16)
        );
        // The name of the function takes the room that the claim leaves.
        let name = shortened(&function.name, (WIDE - 4).saturating_sub(claim.width()));
        let label = format!("  @{name}{claim}");
        let kept = match assumption.exit {
            Some(exit) => grouped(exit.kept + exit.kept_args),
            None => assumption.fate.to_owned(),
        };
        let worth = match assumption.worth {
            ..0 => format!("-{}", grouped(assumption.worth.unsigned_abs())),
            _ => grouped(assumption.worth.unsigned_abs()),
        };
        table.row(&label, [grouped(assumption.visits), worth, kept]);
    }
    table.and_more(all.len(), MOST);
    table
}

/// The terms of the tables with their explanations.
fn legend() -> Section {
    Section::legend(&[
        ("exits, %", "the assumptions with a proved exit, of those that need one"),
        ("settled", "a pass proved the assumption, or removed it with code that never runs"),
        ("dropped", "the version does not make the assumption"),
        ("kept", "values, arguments included, that the version keeps for an exit alone"),
        ("steps", "operations executed and values copied by a run that leaves"),
        ("worth", "instructions that the profiled runs would have saved, roughly"),
    ])
}
