//! `osier check`: runs the checker on mappings that Osier makes or on the mappings of a file, and
//! prints counts of verdicts.

use super::failure::CommandFailure;
use super::format::{OutputFormat, json};
use super::input::{self, Loaded};
use super::jobs::{Jobs, Worked, each_function};
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::retry::RetryOption;
use super::select::Selection;
use super::stopwatch::Stopwatch;
use ir::text::AtName;
use ir::{Func, Function, Module};
use osier::driver::{CheckCounts, Recipe, Secured, Step, derive_proved, derive_without};
use osier::exchange::{
    self, EntryVerdict, Exported, ExportedFunction, ReadError, Rechecked, recheck, recheck_copy,
};
use osier::inlining::{CalleeLandings, NotInlined, PassPlan, inline};
use osier::schema::{CheckReport, CheckedFunction, SCHEMA};
use osr::Level;
use passes::{Callers, Pipeline};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The most places of a function, at which the versions are not proved alike, that the output
/// describes.
const MOST_UNPROVED: usize = 4;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// Check this mapping, written by `osier opt --emit mapping`, instead of making one
    #[arg(long, value_name = "M", conflicts_with_all = ["pipeline", "level", "no_retry"])]
    mapping: Option<PathBuf>,
    /// A pipeline, or passes separated by commas; O3 inlines, and so does inline among the passes
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = PassPlan::parse)]
    pipeline: PassPlan,
    /// The level of the mappings
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    #[command(flatten)]
    selection: Selection,
    /// Also print a line for each entry: function, pair of versions, direction, level, source
    /// point, and `accept` or `refuse CHECK`
    #[arg(long)]
    verdicts: bool,
    /// Format of the verdicts; osier::schema::CheckReport documents the keys of JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    #[command(flatten)]
    retry: RetryOption,
    /// Fail if more rewrites than this are given up so that entries hold
    #[arg(long, value_name = "N", conflicts_with_all = ["mapping", "no_retry"])]
    max_given_up: Option<u64>,
    #[command(flatten)]
    jobs: Jobs,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: InputLimits,
}

/// Judges mappings entry by entry and prints the counts.
///
/// After Ctrl-C the counts cover the functions that were complete by then.
///
/// # Errors
/// If the checker refutes an entry, with the retry or before it, or drops an entry of a mapping
/// that was read from a file. If more rewrites are given up than the arguments allow. Also if an
/// input cannot be read or the output cannot be written.
pub(super) fn check(args: Args) -> Result<(), CommandFailure> {
    Output::check(&args.output)?;
    let loaded = input::load_parts(&args.file, &args.limits.limits(), false)?.loaded;
    let module = &loaded.module;
    let selected = args.selection.of(module)?;
    match &args.mapping {
        None => check_own(&args, &loaded, &selected),
        Some(path) => check_exported(&args, path, &loaded, &selected),
    }
}

/// Adds up and writes the verdicts of all functions, and turns refuted entries into a failure.
fn write_verdicts(
    args: &Args,
    loaded: &Loaded,
    level: &str,
    worked: Worked<CheckedFunction>,
) -> Result<(), CommandFailure> {
    let Worked { results: functions, stopwatch, interrupted } = worked;
    let mut total = CheckCounts::default();
    let mut without_retry: Option<CheckCounts> = None;
    for function in &functions {
        total.merge(&function.checked);
        if let Some(without) = &function.without_retry {
            without_retry.get_or_insert_default().merge(without);
        }
    }
    let refused_record =
        functions.iter().find_map(|f| Some((f.name.clone(), f.refused_records.first()?.clone())));
    let given_up = GivenUpCount {
        rewrites: functions.iter().map(|f| f.refused).sum(),
        most: args.max_given_up,
        refuted: without_retry.as_ref().map_or(0, |without| without.refuted),
    };
    let dropped = total.all_dropped();
    let (refuted, entries) = (total.refuted, total.held + dropped);
    let seconds = stopwatch.seconds(Step::Check);
    let document = CheckReport {
        schema: SCHEMA,
        level: level.to_owned(),
        functions,
        left_out: loaded.left_out(),
        checked: total,
        without_retry,
        interrupted,
        seconds,
    };
    let text = match args.format {
        OutputFormat::Text => osier::report::check_text(&document),
        OutputFormat::Json => json(&document),
    };
    // A partial result does not replace the contents of a file.
    let output = if interrupted { None } else { args.output.clone() };
    Output::to(output).write(&text)?;
    super::failure::tell_progress(&format!("{entries} entries checked in {seconds:.2} s"));
    match (refuted, args.mapping.is_some() && dropped > 0) {
        // A wrong claim may have no entry that depends on it.
        (0, false) => refused_record.map_or(given_up.judged(), |(name, record)| {
            let what = format!("{}, line {}: {}", AtName(&name), record.line, record.what);
            Err(CommandFailure::Program(what))
        }),
        (0, true) => {
            Err(CommandFailure::Program(format!("{dropped} entries of the mapping do not hold")))
        }
        _ => Err(CommandFailure::Program(format!("the checker refutes {refuted} entries"))),
    }
}

/// The rewrites given up by all functions together.
struct GivenUpCount {
    rewrites: u64,
    /// The most that are allowed.
    most: Option<u64>,
    /// The number of entries that the checker refutes if no rewrite is given up.
    refuted: u64,
}

impl GivenUpCount {
    /// Fails beyond the allowed number. Also fails if the checker refutes entries of the whole
    /// pipeline's version: then a pass or its log is wrong, even if the retry has omitted the
    /// rewrite (`a_wrong_pass_fails_though_its_rewrites_are_given_up`).
    fn judged(&self) -> Result<(), CommandFailure> {
        let rewrites = self.rewrites;
        let what = match self.most {
            _ if self.refuted > 0 => format!(
                "the checker refutes {} entries, unless {rewrites} rewrites are given up",
                self.refuted
            ),
            Some(most) if rewrites > most => {
                format!("{rewrites} rewrites are given up, more than {most}")
            }
            _ => return Ok(()),
        };
        Err(CommandFailure::Program(what))
    }
}

type Selected<'m> = [(Func, &'m Function)];

/// Makes the mappings of the selected functions and judges them.
fn check_own(args: &Args, loaded: &Loaded, selected: &Selected<'_>) -> Result<(), CommandFailure> {
    let (jobs, module) = (args.jobs.count(), &loaded.module);
    let own = |pipeline: &Pipeline, base: &Function, stopwatch: &mut Stopwatch| {
        let levels = [args.level];
        let recipe = Recipe::new(pipeline, &levels);
        let recipe = Recipe { retry: args.retry.bounds(), ..recipe };
        let Secured { derived, proved, retried } = derive_proved(module, base, &recipe, stopwatch);
        CheckedFunction {
            name: base.name().to_owned(),
            checked: proved.checked(),
            unproved: osier::explain::unproved(module, base, &derived, &proved, MOST_UNPROVED),
            rewrites: retried.announced,
            given_up: retried.given_up,
            refused: retried.refused,
            without_retry: retried.without,
            refused_records: Vec::new(),
            verdicts: args.verdicts.then(|| EntryVerdict::of_pair(&proved)),
        }
    };
    let level = args.level.name();
    let plan = match &args.pipeline {
        PassPlan::Passes(pipeline) => {
            let work = |base: &Function, stopwatch: &mut Stopwatch| own(pipeline, base, stopwatch);
            return each_function(jobs, selected, work, |worked| {
                write_verdicts(args, loaded, level, worked)
            });
        }
        PassPlan::Inlining(plan) => plan,
    };
    level::of_inlined(args.level)?;
    let plan = &plan.clone().with_retry(args.retry.bounds());
    let landings = CalleeLandings::new(module, plan);
    let funcs = funcs(selected);
    let work = |base: &Function, stopwatch: &mut Stopwatch| {
        match inline(module, funcs[base.name()], plan, &landings, stopwatch) {
            Ok(made) => CheckedFunction {
                name: base.name().to_owned(),
                checked: made.all_checked(),
                refused: made.retried.refused,
                given_up: made.retried.given_up.concat(),
                without_retry: made
                    .retried
                    .without
                    .clone()
                    .or_else(|| (plan.retry.rewrites > 0).then(|| made.all_checked())),
                verdicts: args.verdicts.then(|| EntryVerdict::of_inlined(&made)),
                ..CheckedFunction::default()
            },
            Err(NotInlined::NoCall) => own(&plan.first, base, stopwatch),
            // A copy that the checker rejects is a bug of ours, not a property of the program.
            Err(error) => panic!("@{}: {error}", base.name()),
        }
    };
    each_function(jobs, selected, work, |worked| write_verdicts(args, loaded, level, worked))
}

/// By name: the functions.
fn funcs<'m>(selected: &Selected<'m>) -> BTreeMap<&'m str, Func> {
    selected.iter().map(|(func, base)| (base.name(), *func)).collect()
}

/// Judges the mappings of a file. The file names the pipeline, which is run again to make the
/// optimized versions.
fn check_exported(
    args: &Args,
    path: &Path,
    loaded: &Loaded,
    selected: &Selected<'_>,
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let text = input::read_text(path)?;
    let wrong = |error: exchange::ReadError| {
        CommandFailure::input(format!("{}:{}: {}", path.display(), error.line, error.what))
    };
    let file = exchange::read(&text).map_err(wrong)?;
    file.check_sizes(module).map_err(wrong)?;
    let plan = PassPlan::parse(file.pipeline)
        .map_err(|e| CommandFailure::input(format!("{}: {e}", path.display())))?;
    if !Level::ALL.iter().any(|level| level.name() == file.level) {
        return Err(CommandFailure::input(format!(
            "{}: unknown level `{}`",
            path.display(),
            file.level
        )));
    }
    let exported = to_check(&file, path, module, selected)?;
    let functions: Vec<(Func, &Function)> =
        exported.values().map(|(at, _)| selected[*at]).collect();
    // Names are unique keys: functions of a module have distinct names, and the reader rejects a
    // file that lists a function twice.
    let by_name: BTreeMap<&str, &ExportedFunction<'_>> =
        exported.values().map(|(at, function)| (selected[*at].1.name(), *function)).collect();
    let landings = landings(&file, module, &plan).map_err(wrong)?;
    let of = FileOf { module, plan: &plan, landings, verdicts: args.verdicts };
    let funcs = funcs(selected);
    let work = |base: &Function, stopwatch: &mut Stopwatch| {
        let name = base.name();
        of.verdicts(by_name[name], funcs[name], base, stopwatch).map_err(wrong)
    };
    each_function(args.jobs.count(), &functions, work, |worked| {
        let Worked { results, stopwatch, interrupted } = worked;
        // If several functions fail, the command reports the first in module order. The report is
        // thus the same for every number of threads.
        let results = results.into_iter().collect::<Result<Vec<_>, CommandFailure>>()?;
        write_verdicts(args, loaded, file.level, Worked { results, stopwatch, interrupted })
    })
}

/// The landings of frames that the file proves.
///
/// # Errors
/// If the file lists a function that the module lacks, or that no pipeline inlines, or a record is
/// malformed.
fn landings<'m>(
    file: &Exported<'_>,
    module: &'m Module,
    plan: &PassPlan,
) -> Result<CalleeLandings<'m>, ReadError> {
    let callers = Callers::new(module);
    let may_inline = |func: Func| match plan {
        PassPlan::Passes(_) => false,
        PassPlan::Inlining(plan) => plan.may_inline(&callers, func),
    };
    let known = names(module);
    let mut certificates = Vec::new();
    for landing in &file.landings {
        let func = known.get(landing.name).copied();
        // The values live at all points of a large function could take the square of its size.
        let func = func.filter(|func| may_inline(*func));
        let base = func.and_then(|func| module.body(func));
        let (Some(func), Some(base)) = (func, base) else {
            let what = format!("the passes of the file inline no function {}", landing.name);
            return Err(ReadError { line: landing.line(), what });
        };
        certificates.push((func, landing.landing(func, base)?));
    }
    Ok(CalleeLandings::proved_by(callers, certificates))
}

/// The functions of a module by their escaped names.
fn names(module: &Module) -> BTreeMap<String, Func> {
    module.defined().map(|(func, body)| (exchange::escaped(body.name()), func)).collect()
}

/// A file of mappings.
struct FileOf<'a> {
    module: &'a Module,
    plan: &'a PassPlan,
    landings: CalleeLandings<'a>,
    /// Whether the output contains the verdict on each entry.
    verdicts: bool,
}

impl FileOf<'_> {
    /// The verdicts on the records of one function.
    ///
    /// # Errors
    /// As [`ExportedFunction::parts`] and [`ExportedFunction::copy`].
    fn verdicts(
        &self,
        exported: &ExportedFunction<'_>,
        func: Func,
        base: &Function,
        stopwatch: &mut Stopwatch,
    ) -> Result<CheckedFunction, ReadError> {
        let module = self.module;
        let pipeline = match self.plan {
            PassPlan::Passes(pipeline) => pipeline,
            PassPlan::Inlining(plan) => {
                // Call this first, so that both forms have the ids of the file.
                let callers = self.landings.callers();
                let is_inlined = plan.inlines(callers, func, stopwatch);
                let left_out = exported.left_out();
                let versions =
                    is_inlined.then(|| plan.versions(callers, func, &left_out, stopwatch));
                if let Some(versions) = versions.flatten() {
                    let versions = versions.each_ref();
                    let copy = exported.copy(module, func, versions)?;
                    let found =
                        recheck_copy(module, func, versions, copy, &self.landings, stopwatch);
                    return Ok(self.checked(base, found));
                }
                // Without inlined code, the version comes from the passes before the inlining.
                &plan.first
            }
        };
        let derived = derive_without(module, base, pipeline, &exported.left_out, stopwatch);
        let parts = exported.parts([base, &derived.function])?;
        let found = recheck(module, base, &derived.function, &parts, stopwatch);
        Ok(self.checked(base, found))
    }

    fn checked(&self, base: &Function, found: Rechecked) -> CheckedFunction {
        CheckedFunction {
            name: base.name().to_owned(),
            checked: found.counts,
            refused_records: found.refused,
            verdicts: self.verdicts.then_some(found.entries),
            ..CheckedFunction::default()
        }
    }
}

/// The functions of a file that are also selected, in module order. Each comes with its index among
/// the selected functions.
///
/// # Errors
/// If the file names a function that the module lacks, or if no selected function is in the file.
fn to_check<'f>(
    file: &'f Exported<'f>,
    path: &Path,
    module: &Module,
    selected: &Selected<'_>,
) -> Result<BTreeMap<Func, (usize, &'f ExportedFunction<'f>)>, CommandFailure> {
    let known = names(module);
    let mut exported = BTreeMap::new();
    for function in &file.functions {
        let Some(func) = known.get(function.name) else {
            let what =
                format!("{}: the module has no function {}", path.display(), AtName(function.name));
            return Err(CommandFailure::input(what));
        };
        // `selected` is in module order, which is the order of ids, so binary search applies.
        let Ok(at) = selected.binary_search_by_key(func, |(id, _)| *id) else { continue };
        exported.insert(*func, (at, function));
    }
    // A check of nothing must not pass: an empty intersection would exit with status 0.
    match exported.is_empty() && !selected.is_empty() {
        true => Err(CommandFailure::input(format!(
            "{}: the file contains none of the functions to check",
            path.display()
        ))),
        false => Ok(exported),
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandFailure, GivenUpCount};

    #[test]
    fn a_wrong_pass_fails_though_its_rewrites_are_given_up() {
        let ends =
            |rewrites, most, refuted| match (GivenUpCount { rewrites, most, refuted }).judged() {
                Err(CommandFailure::Program(what)) => Some(what),
                _ => None,
            };
        assert_eq!(ends(2, None, 0), None);
        assert_eq!(ends(2, Some(2), 0), None);
        let beyond = ends(2, Some(1), 0).expect("a failure");
        assert!(beyond.contains("2 rewrites are given up, more than 1"), "{beyond}");
        let refuted = ends(2, Some(2), 7).expect("a failure");
        assert!(refuted.contains("refutes 7 entries"), "{refuted}");
    }
}
