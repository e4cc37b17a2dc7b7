//! `osier check`.

use super::failure::Failure;
use super::input;
use super::jobs::{Jobs, Worked, each_function};
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::select::Selection;
use super::stopwatch::Stopwatch;
use clap::ValueEnum;
use ir::{Func, Function, Module};
use osier::driver::{CheckCounts, Step, Vigilance, certify, derive, recheck};
use osier::export::{self, Exported, ExportedFunction};
use osier::schema::{Check, CheckedFunction, SCHEMA};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the verdicts are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs; the keys are those of osier::schema::Check
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// Check this mapping, written by `osier opt --emit mapping`, and not one made here
    #[arg(long, value_name = "M", conflicts_with_all = ["pipeline", "level"])]
    mapping: Option<PathBuf>,
    /// A pipeline, or passes with commas between them
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = passes::parse)]
    pipeline: Pipeline,
    /// The level of the mappings
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    #[command(flatten)]
    selection: Selection,
    /// How the verdicts are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    jobs: Jobs,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: InputLimits,
}

/// Judges mappings, entry by entry. Fails when an entry is refuted, or when one that was handed out
/// does not hold. After Ctrl-C what is told is about the functions done by then.
pub(super) fn check(args: Args) -> Result<(), Failure> {
    let module = input::load(&args.file, &args.limits.limits())?.module;
    let selected = args.selection.of(&module)?;
    match &args.mapping {
        None => check_own(&args, &module, &selected),
        Some(path) => check_exported(&args, path, &module, &selected),
    }
}

/// Writes the verdicts.
fn told(args: &Args, worked: Worked<CheckedFunction>) -> Result<(), Failure> {
    let Worked { results: functions, stopwatch, interrupted } = worked;
    let mut total = CheckCounts::default();
    functions.iter().for_each(|f| total.merge(&f.checked));
    let dropped: u64 = total.dropped.values().sum();
    let (refuted, entries) = (total.refuted, total.held + dropped);
    let seconds = stopwatch.seconds(Step::Check);
    let document = Check { schema: SCHEMA, functions, checked: total, interrupted, seconds };
    let text = match args.format {
        Format::Text => osier::report::check_text(&document),
        Format::Json => {
            serde_json::to_string_pretty(&document).expect("figures have a JSON form") + "\n"
        }
    };
    let output = if interrupted { None } else { args.output.clone() };
    Output::to(output).write(&text)?;
    super::failure::tell(&format!("{entries} entries checked in {seconds:.2} s"));
    match (refuted, args.mapping.is_some() && dropped > 0) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::Program(format!("{dropped} entries of the mapping do not hold"))),
        _ => Err(Failure::Program(format!("{refuted} entries are refuted"))),
    }
}

type Selected<'m> = [(Func, &'m Function)];

/// Mappings made here.
fn check_own(args: &Args, module: &Module, selected: &Selected<'_>) -> Result<(), Failure> {
    let work = |base: &Function, stopwatch: &mut Stopwatch| {
        let derived = derive(module, base, &args.pipeline, Vigilance::On, stopwatch);
        let certified = certify(module, base, &derived, &[args.level], stopwatch);
        let mut checked = CheckCounts::default();
        for made in &certified.levels {
            checked.merge(&made.forward.checked());
            checked.merge(&made.backward.checked());
        }
        CheckedFunction { name: base.name().to_owned(), checked }
    };
    each_function(args.jobs.count(), selected, work, |worked| told(args, worked))
}

/// Mappings from a file, which names the pipeline that made the versions.
fn check_exported(
    args: &Args,
    path: &Path,
    module: &Module,
    selected: &Selected<'_>,
) -> Result<(), Failure> {
    let text = input::read_text(path)?;
    let wrong = |error: export::ReadError| {
        Failure::input(format!("{}:{}: {}", path.display(), error.line, error.what))
    };
    let file = export::read(&text).map_err(wrong)?;
    let pipeline = passes::parse(file.pipeline)
        .map_err(|e| Failure::input(format!("{}: {e}", path.display())))?;
    if !Level::ALL.iter().any(|level| level.name() == file.level) {
        return Err(Failure::input(format!(
            "{}: no level is named `{}`",
            path.display(),
            file.level
        )));
    }
    let exported = to_check(&file, path, module, selected)?;
    let functions: Vec<(Func, &Function)> =
        exported.values().map(|(at, _)| selected[*at]).collect();
    // By name: no two functions of a module share one, and a file has none twice.
    let by_name: BTreeMap<&str, &ExportedFunction<'_>> =
        exported.values().map(|(at, function)| (selected[*at].1.name(), *function)).collect();
    let work = |base: &Function, stopwatch: &mut Stopwatch| {
        let derived = derive(module, base, &pipeline, Vigilance::On, stopwatch);
        let parts = by_name[base.name()].parts([base, &derived.function]).map_err(wrong)?;
        let checked = recheck(module, base, &derived.function, &parts, stopwatch);
        Ok(CheckedFunction { name: base.name().to_owned(), checked })
    };
    each_function(args.jobs.count(), &functions, work, |worked| {
        let Worked { results, stopwatch, interrupted } = worked;
        // Of several errors, the first in module order is told, however many threads there were.
        let results = results.into_iter().collect::<Result<Vec<_>, Failure>>()?;
        told(args, Worked { results, stopwatch, interrupted })
    })
}

/// The functions of a file that are to be checked, in module order, each with its place among those
/// selected.
fn to_check<'f>(
    file: &'f Exported<'f>,
    path: &Path,
    module: &Module,
    selected: &Selected<'_>,
) -> Result<BTreeMap<Func, (usize, &'f ExportedFunction<'f>)>, Failure> {
    let names = module.defined().map(|(func, body)| (export::escaped(body.name()), func));
    let known: BTreeMap<String, Func> = names.collect();
    let mut exported = BTreeMap::new();
    for function in &file.functions {
        let Some(func) = known.get(function.name) else {
            let what =
                format!("{}: @{} is no function of the module", path.display(), function.name);
            return Err(Failure::input(what));
        };
        // In module order, which ids follow.
        let Ok(at) = selected.binary_search_by_key(func, |(id, _)| *id) else { continue };
        exported.insert(*func, (at, function));
    }
    // Nothing judged is no verdict.
    match exported.is_empty() && !selected.is_empty() {
        true => {
            Err(Failure::input(format!("{} has none of the functions to check", path.display())))
        }
        false => Ok(exported),
    }
}
