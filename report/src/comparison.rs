//! Compares a report with an older one, and prints the changes.

use super::UNBLAMED;
use super::rows::{NO_FIGURE, blamed, change, level_table, percent};
use super::section::{LABEL, Section, TERM, Term, WIDTH};
use super::summary::pipeline_words;
use crate::schema::{
    Change, ComparedCause, ComparedDirection, ComparedFunction, ComparedLevel, Comparison,
    DirectionFigures, FunctionFate, FunctionReport, LEVELS, PerLevel, Report, Size,
};
use crate::table::{TextTable, grouped, shortened};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Compares a report with the report on the same pipeline in an older document. If both documents
/// have one pipeline (`alone` for the newer one), the pipelines may differ. `None` if the older
/// document has no such report. `path` names the older document. With `selected`, compares only
/// functions of these names. Cost: linear in both reports.
pub fn compare(
    report: &Report,
    past: &[Report],
    path: &str,
    alone: bool,
    selected: Option<&BTreeSet<&str>>,
) -> Option<Comparison> {
    let same = past.iter().find(|old| old.pipeline == report.pipeline);
    let only = past.first().filter(|_| alone && past.len() == 1);
    Some(compared(same.or(only)?, report, path, selected))
}

/// The functions of a report by name, and their order.
struct Indexed<'a> {
    order: Vec<&'a FunctionReport>,
    by_name: BTreeMap<&'a str, &'a FunctionReport>,
}

impl<'a> Indexed<'a> {
    fn new(report: &'a Report) -> Indexed<'a> {
        let order: Vec<&FunctionReport> = report.functions.iter().collect();
        let by_name = order.iter().map(|function| (function.name.as_str(), *function)).collect();
        Indexed { order, by_name }
    }

    /// Keeps the functions of these names.
    fn retain(&mut self, names: &BTreeSet<&str>) {
        self.order.retain(|function| names.contains(function.name.as_str()));
        self.by_name.retain(|name, _| names.contains(name));
    }
}

fn compared(
    old: &Report,
    new: &Report,
    path: &str,
    selected: Option<&BTreeSet<&str>>,
) -> Comparison {
    let mut sides = [Indexed::new(old), Indexed::new(new)];
    if let Some(names) = selected {
        sides.iter_mut().for_each(|side| side.retain(names));
    }
    if old.interrupted || new.interrupted {
        let names = sides.each_ref().map(|s| s.by_name.keys().copied().collect::<BTreeSet<_>>());
        sides[0].retain(&names[1]);
        sides[1].retain(&names[0]);
    }
    let level = LEVELS.iter().position(|name| *name == new.level).expect("a report has a level");
    let sums = sides.each_ref().map(Sums::of);
    let same_level = old.level == new.level;
    let profiled = old.profile.is_some() && new.profile.is_some();
    let direction = |of: fn(&Sums) -> &DirectionFigures| {
        compared_direction([of(&sums[0]), of(&sums[1])], same_level, profiled)
    };
    let [before, after] = [old, new];
    Comparison {
        path: path.to_owned(),
        program: Change { old: before.program.path.clone(), new: after.program.path.clone() },
        pipeline: Change { old: before.pipeline.clone(), new: after.pipeline.clone() },
        level: Change { old: before.level.clone(), new: after.level.clone() },
        interrupted: Change { old: before.interrupted, new: after.interrupted },
        selected: selected.is_some(),
        compared: Change { old: sides[0].order.len() as u64, new: sides[1].order.len() as u64 },
        forward: direction(|sums| &sums.forward),
        backward: direction(|sums| &sums.backward),
        functions: compared_functions(&sides, level),
        base: Change { old: sums[0].base, new: sums[1].base },
        opt: Change { old: sums[0].opt, new: sums[1].opt },
        // The times of a document cover all of its functions.
        time: selected.is_none().then_some(Change { old: before.time, new: after.time }),
    }
}

/// Sums over the changed functions of a report.
#[derive(Default)]
struct Sums {
    base: Size,
    opt: Size,
    forward: DirectionFigures,
    backward: DirectionFigures,
}

impl Sums {
    fn of(functions: &Indexed<'_>) -> Sums {
        let mut sums = Sums::default();
        for function in functions.order.iter().filter(|function| function.is_changed()) {
            sums.base.merge(&function.base);
            sums.opt.merge(&function.opt);
            sums.forward.merge(&function.forward);
            sums.backward.merge(&function.backward);
        }
        sums
    }
}

fn compared_direction(
    [old, new]: [&DirectionFigures; 2],
    same_level: bool,
    profiled: bool,
) -> ComparedDirection {
    let mut levels = PerLevel::default();
    for level in 0..LEVELS.len() {
        let (Some(before), Some(after)) = (old.feasible.get(level), new.feasible.get(level)) else {
            continue;
        };
        let dynamic = |side: &DirectionFigures| side.dynamic.as_ref().and_then(|d| d.share(level));
        let figures = ComparedLevel {
            entries: Change { old: *before, new: *after },
            share: Change { old: old.share(level), new: new.share(level) },
            dynamic: profiled.then(|| Change { old: dynamic(old), new: dynamic(new) }),
        };
        levels.set(level, figures);
    }
    ComparedDirection {
        points: Change { old: old.reachable(), new: new.reachable() },
        levels,
        causes: same_level.then(|| compared_causes(old, new)),
    }
}

/// The causes whose counts differ, by growth: the cause with the largest increase of points comes
/// first.
fn compared_causes(old: &DirectionFigures, new: &DirectionFigures) -> Vec<ComparedCause> {
    let mut causes: BTreeMap<(&str, &str), Change<u64>> = BTreeMap::new();
    for (side, is_new) in [(old, false), (new, true)] {
        for (reason, passes) in &side.causes.infeasible_by_pass {
            for (pass, count) in passes {
                let points = causes.entry((reason, pass)).or_default();
                let figure = if is_new { &mut points.new } else { &mut points.old };
                *figure = *count;
            }
        }
    }
    let causes = causes.into_iter().filter(|(_, points)| points.differs());
    let mut causes: Vec<ComparedCause> = causes
        .map(|((reason, pass), points)| ComparedCause {
            reason: reason.to_owned(),
            pass: pass.to_owned(),
            points,
        })
        .collect();
    causes
        .sort_by_key(|cause| Reverse(i128::from(cause.points.new) - i128::from(cause.points.old)));
    causes
}

fn compared_functions(sides: &[Indexed<'_>; 2], level: usize) -> Vec<ComparedFunction> {
    let [old, new] = sides;
    let after = new.order.iter().map(|function| (old.by_name.get(&*function.name), Some(function)));
    let gone = old.order.iter().filter(|function| !new.by_name.contains_key(&*function.name));
    let pairs = after.chain(gone.map(|function| (Some(function), None)));
    let compared =
        pairs.filter_map(|(old, new)| compared_function(old.copied(), new.copied(), level));
    let mut functions: Vec<ComparedFunction> = compared.collect();
    functions.sort_by_key(|function| Reverse(function.lost));
    functions
}

/// A function that selects one direction of a function.
type DirectionOf = fn(&FunctionReport) -> &DirectionFigures;

/// The change of one function. `None` if equally many points lack an entry in each direction.
fn compared_function(
    old: Option<&FunctionReport>,
    new: Option<&FunctionReport>,
    level: usize,
) -> Option<ComparedFunction> {
    let (mut lost, mut gained) = (0u64, 0u64);
    let sides: [DirectionOf; 2] = [|function| &function.forward, |function| &function.backward];
    for of in sides {
        let missing =
            |f: Option<&FunctionReport>| f.and_then(|f| of(f).missing(level)).unwrap_or(0);
        let (before, after) = (missing(old), missing(new));
        lost = lost.saturating_add(after.saturating_sub(before));
        gained = gained.saturating_add(before.saturating_sub(after));
    }
    let fate = match (old, new) {
        (None, _) => FunctionFate::New,
        (_, None) => FunctionFate::Gone,
        _ if lost > 0 => FunctionFate::Lost,
        _ if gained > 0 => FunctionFate::Gained,
        _ => return None,
    };
    let share = |of: DirectionOf| {
        let share = |f: Option<&FunctionReport>| f.and_then(|f| of(f).share(level));
        Change { old: share(old), new: share(new) }
    };
    Some(ComparedFunction {
        name: old.or(new)?.name.clone(),
        fate,
        lost,
        gained,
        forward: share(|f| &f.forward),
        backward: share(|f| &f.backward),
    })
}

/// The most causes and functions that a verbose text lists.
const MOST: usize = 40;

/// The sections of a comparison, in order, for verbose text. A page has tables of its own, with
/// links (`page::against`).
pub(super) fn sections(comparison: &Comparison) -> Vec<Section> {
    sections_within(comparison, MOST, MOST)
}

/// The sections with at most so many causes and functions.
pub(super) fn sections_within(
    comparison: &Comparison,
    causes: usize,
    functions: usize,
) -> Vec<Section> {
    vec![
        Section::Terms(heading(comparison)),
        Section::Table(share_table(comparison)),
        Section::Table(cause_table(comparison, causes)),
        Section::Table(functions_table(comparison, functions)),
        Section::Table(sizes_table(comparison)),
    ]
}

fn directions(comparison: &Comparison) -> [(&'static str, &ComparedDirection); 2] {
    [("base to opt", &comparison.forward), ("opt to base", &comparison.backward)]
}

fn heading(comparison: &Comparison) -> Vec<Term> {
    let room = WIDTH - TERM;
    let mut terms = vec![("against", shortened(&comparison.path, room))];
    if comparison.program.differs() {
        terms.push(("", shortened(&format!("of {}", comparison.program.old), room)));
    }
    if comparison.pipeline.differs() {
        let Change { old, new } = &comparison.pipeline;
        terms.push(("", format!("with {}; here {}", pipeline_words(old), pipeline_words(new))));
    }
    if comparison.level.differs() {
        let Change { old, new } = &comparison.level;
        terms.push(("", format!("with causes at the level {old}; here at {new}")));
    }
    let which = match comparison.interrupted {
        Change { old: false, new: false } => None,
        Change { old: true, new: false } => Some("it was interrupted"),
        Change { old: false, new: true } => Some("this report was interrupted"),
        Change { old: true, new: true } => Some("both were interrupted"),
    };
    if comparison.selected {
        terms.push(("", "the selected functions alone".to_owned()));
    }
    if let Some(which) = which {
        let common = grouped(comparison.compared.new);
        terms.push(("", format!("{which}: the {common} functions that both have")));
    }
    terms
}

/// The shares by level, old and new.
fn share_table(comparison: &Comparison) -> TextTable {
    let levels: Vec<usize> = comparison.forward.levels.iter().map(|(level, _)| level).collect();
    let mut table = level_table("old and new points, %", &levels);
    for (name, side) in directions(comparison) {
        let of = |get: fn(&ComparedLevel) -> Option<f64>| {
            let shares = levels.iter().map(|level| percent(side.levels.get(*level).and_then(get)));
            shares.collect::<Vec<_>>()
        };
        table.row(&format!("  {name}, old"), of(|figures| figures.share.old));
        table.row("    new", of(|figures| figures.share.new));
        if side.levels.iter().any(|(_, figures)| figures.dynamic.is_some()) {
            table.row("    old, as often as they ran", of(|f| f.dynamic.and_then(|d| d.old)));
            table.row("    new, as often as they ran", of(|f| f.dynamic.and_then(|d| d.new)));
        }
    }
    table
}

/// A table with old and new counts of both directions.
fn count_table(title: &str) -> TextTable {
    let mut table = TextTable::new(LABEL, &[12; 4]);
    table.spans(&[(2, "base to opt"), (2, "opt to base")]);
    table.row(title, ["old", "new", "old", "new"]);
    table
}

/// The points, those without an entry, and the causes whose numbers changed.
fn cause_table(comparison: &Comparison, most: usize) -> TextTable {
    let level = &comparison.level.new;
    let place = LEVELS.iter().position(|name| name == level).expect("a report has a level");
    let mut table = count_table(&format!("points, {level}"));
    let sides = directions(comparison).map(|(_, side)| side);
    let cells = |changes: [Change<u64>; 2]| {
        changes.map(|change| [grouped(change.old), grouped(change.new)]).concat()
    };
    table.row("  reachable", cells(sides.map(|side| side.points)));
    let missing = |side: &ComparedDirection| {
        let entries = side.levels.get(place).map(|figures| figures.entries).unwrap_or_default();
        Change {
            old: side.points.old.saturating_sub(entries.old),
            new: side.points.new.saturating_sub(entries.new),
        }
    };
    table.row("  without an entry", cells(sides.map(missing)));
    let [Some(forward), Some(backward)] = sides.map(|side| side.causes.as_ref()) else {
        table.line("    causes are not compared, since the levels differ");
        return table;
    };
    let mut rows: BTreeMap<(&str, &str), [Change<u64>; 2]> = BTreeMap::new();
    for (at, causes) in [forward, backward].into_iter().enumerate() {
        for ComparedCause { reason, pass, points } in causes {
            rows.entry((reason, pass)).or_default()[at] = *points;
        }
    }
    let mut order: Vec<(&str, &str)> = rows.keys().copied().collect();
    order.sort_by_key(|cause| {
        let more = |points: &Change<u64>| i128::from(points.new) - i128::from(points.old);
        Reverse(rows[cause].iter().map(more).sum::<i128>())
    });
    for (reason, pass) in order.iter().take(most) {
        let label = match *pass {
            UNBLAMED => format!("    {}", reason.replace('_', " ")),
            pass => format!("    {}: {}", blamed(pass), reason.replace('_', " ")),
        };
        table.row(&label, cells(rows[&(*reason, *pass)]));
    }
    table.and_more(order.len(), most);
    table
}

fn functions_table(comparison: &Comparison, most: usize) -> TextTable {
    let mut table = TextTable::new(LABEL, &[8, 6, 9, 9, 9, 9]);
    table.spans(&[(2, ""), (2, "base to opt, %"), (2, "opt to base, %")]);
    let title = format!("functions, {}", comparison.level.new);
    table.row(&title, ["", "points", "old %", "new %", "old %", "new %"]);
    for function in comparison.functions.iter().take(most) {
        let more = match (function.lost, function.gained) {
            (0, 0) => "0".to_owned(),
            (0, gained) => format!("+{}", grouped(gained)),
            (lost, _) => format!("-{}", grouped(lost)),
        };
        let shares = [function.forward, function.backward];
        let shares = shares.map(|share| [percent(share.old), percent(share.new)]).concat();
        let cells = [function.fate.name().to_owned(), more].into_iter().chain(shares);
        table.row(&format!("  {}", function.name), cells);
    }
    if comparison.functions.is_empty() {
        table.line("  none has more or fewer points without an entry");
    }
    table.and_more(comparison.functions.len(), most);
    table
}

fn sizes_table(comparison: &Comparison) -> TextTable {
    let mut table = TextTable::new(LABEL, &[12; 3]);
    table.row("size and time", ["old", "new", "change"]);
    for (label, sizes) in [("base", comparison.base), ("opt", comparison.opt)] {
        let (old, new) = (sizes.old.instructions, sizes.new.instructions);
        let label = format!("  instructions, {label}");
        table.row(&label, [grouped(old), grouped(new), change(old, new)]);
    }
    let Some(Change { old, new }) = comparison.time else { return table };
    let [old, new] = [old, new].map(|time| time.work());
    let seconds = |seconds: f64| format!("{seconds:.2} s");
    // Shorter times say nothing, and the quotient could be any number.
    let change = match old >= 0.001 {
        true => format!("{:+.1} %", 100.0 * (new - old) / old),
        false => NO_FIGURE.to_owned(),
    };
    table.row("  time of all threads", [seconds(old), seconds(new), change]);
    table
}
