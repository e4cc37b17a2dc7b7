//! `osier report`: counts the points at which a run can transition between the versions of each
//! function.

use super::failure::{CommandFailure, tell};
use super::format::json;
use super::input::{self, Loaded};
use super::jobs::{Jobs, each_function};
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::retry::RetryOption;
use super::select::Selection;
use super::stopwatch::Stopwatch;
use super::suggestions::{SuggestionOptions, read_profile};
use clap::ValueEnum;
use ir::{Func, Function};
use osier::driver::{Recipe, Step, derive_certified};
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, PassPlan, inline};
use osier::profile::Profile;
use osier::report::{self, FunctionPage, PipelinePage, ViewOptions};
use osier::schema::{
    AssumptionFigures, InliningFigures, InliningReport, ReportedProgram, SCHEMA, Size,
    SpeculationReport, SpeculationTime, Time,
};
use osier::speculate::{Suggester, Suggestion};
use osr::Level;
use passes::Pipeline;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Format of the report
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ReportFormat {
    /// For people, at most 80 columns
    Text,
    /// For programs; the keys are those of osier::schema::Report
    Json,
    /// A page for a browser: figures, plots, and a view of each function
    Html,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// A pipeline, or passes separated by commas; with O3, or with inline among the passes, reports
    /// on functions with inlined code
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = PassPlan::parse)]
    pipeline: PassPlan,
    #[command(flatten)]
    selection: Selection,
    /// Count points without an entry, by reason and by pass to blame, at this level
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Report on assumptions instead: those that this profile suggests (osier run --profile), and
    /// their exits
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["level", "no_retry"])]
    speculate: Option<PathBuf>,
    #[command(flatten)]
    suggestions: SuggestionOptions,
    #[command(flatten)]
    retry: RetryOption,
    #[command(flatten)]
    jobs: Jobs,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    limits: InputLimits,
}

/// Writes the report on a module. After Ctrl-C the report covers the functions that were complete
/// by then. It goes to standard output, so that it does not replace the contents of a file.
///
/// # Errors
/// If an input cannot be read, no function is selected, or the output cannot be written.
pub(super) fn report(args: Args) -> Result<(), CommandFailure> {
    let started = Instant::now();
    let loaded = input::load(&args.file, &args.limits.limits())?;
    let import = started.elapsed().as_secs_f64();
    let selected = args.selection.of(&loaded.module)?;
    let jobs = args.jobs.count();
    let pipeline = match &args.pipeline {
        PassPlan::Passes(pipeline) => pipeline,
        PassPlan::Inlining(_) if args.speculate.is_some() => {
            return Err(CommandFailure::input("--speculate: no pipeline with inline, as yet"));
        }
        PassPlan::Inlining(plan) => {
            level::of_inlined(args.level)?;
            return inlining(&args, &loaded, &selected, plan, (started, import));
        }
    };
    if let Some(profile) = &args.speculate {
        let profiled = read_profile(profile, &loaded.module)?;
        let time = SpeculationTime { import, jobs: jobs as u64, ..SpeculationTime::default() };
        let profile = (profile.as_path(), &profiled);
        return speculation((&args, pipeline), &loaded, &selected, profile, (started, time));
    }
    // A thread drops versions and mappings of a function before it takes the next one. Memory thus
    // holds the module and one function per thread.
    let figures = |base: &Function, stopwatch: &mut Stopwatch| {
        let recipe = Recipe::new(pipeline, &Level::ALL);
        let recipe = Recipe { retry: args.retry.bounds(), ..recipe };
        let secured = derive_certified(&loaded.module, base, &recipe, stopwatch);
        let figures = report::function_report(base, &secured, args.level);
        let wants_view = args.format == ReportFormat::Html && figures.is_changed();
        let view = wants_view.then(|| {
            let asked = (&figures, args.level);
            report::function_page(&loaded.module, base, &secured, asked, ViewOptions::default())
        });
        (figures, view)
    };
    each_function(jobs, &selected, figures, |worked| {
        let pipeline = args.pipeline.names().into_iter().map(str::to_owned).collect();
        let (figures, views): (Vec<_>, Vec<_>) = worked.results.into_iter().unzip();
        let numbered = views.into_iter().enumerate();
        let views: Vec<FunctionPage> = numbered.filter_map(|(n, view)| Some(view?.at(n))).collect();
        let mut report = report::report(program(&loaded), pipeline, args.level, figures);
        report.interrupted = worked.interrupted;
        report.time = Time {
            import,
            jobs: jobs as u64,
            elapsed: started.elapsed().as_secs_f64(),
            ..times(&worked.stopwatch)
        };
        tell_times(&report.time);
        let output = if report.interrupted { None } else { args.output.clone() };
        let text = match args.format {
            ReportFormat::Text => report::text(&report),
            ReportFormat::Html => report::page(&[PipelinePage { report, views }]),
            ReportFormat::Json => json(&report),
        };
        Output::to(output).write(&text)
    })
}

/// Writes the report on versions with inlined code, as [`report`] does.
fn inlining(
    args: &Args,
    loaded: &Loaded,
    selected: &[(Func, &Function)],
    plan: &InlinePlan,
    (started, import): (Instant, f64),
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let landings = CalleeLandings::new(module, plan);
    let funcs: BTreeMap<&str, Func> =
        selected.iter().map(|(func, base)| (base.name(), *func)).collect();
    let figures = |base: &Function, stopwatch: &mut Stopwatch| {
        match inline(module, funcs[base.name()], plan, &landings, stopwatch) {
            Ok(made) => Some(report::inlined_function(&made)),
            Err(NotInlined::NoCall) => None,
            // A copy that the checker refuses is a bug of ours, and no property of the program.
            Err(error) => panic!("@{}: {error}", base.name()),
        }
    };
    let jobs = args.jobs.count();
    each_function(jobs, selected, figures, |worked| {
        let plain = worked.results.iter().filter(|function| function.is_none()).count() as u64;
        let mut report = InliningReport {
            schema: SCHEMA,
            program: program(loaded),
            pipeline: args.pipeline.names().into_iter().map(str::to_owned).collect(),
            plain,
            functions: worked.results.into_iter().flatten().collect(),
            totals: InliningFigures::default(),
            interrupted: worked.interrupted,
            time: Time { import, jobs: jobs as u64, ..times(&worked.stopwatch) },
        };
        report.sum();
        report.time.elapsed = started.elapsed().as_secs_f64();
        tell_times(&report.time);
        let text = match args.format {
            ReportFormat::Text => report::inlining_text(&report),
            ReportFormat::Html => report::inlining_page(&report),
            ReportFormat::Json => json(&report),
        };
        let output = if report.interrupted { None } else { args.output.clone() };
        Output::to(output).write(&text)
    })
}

/// Writes the report on the assumptions that a profile suggests, as [`report`] does.
fn speculation(
    (args, pipeline): (&Args, &Pipeline),
    loaded: &Loaded,
    selected: &[(Func, &Function)],
    (path, profile): (&Path, &Profile),
    (started, time): (Instant, SpeculationTime),
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let suggester = Suggester::new(module, profile, args.suggestions.options());
    let suggested: BTreeMap<&str, (Func, Vec<Suggestion>)> = selected
        .iter()
        .map(|(func, base)| (base.name(), (*func, suggester.of(*func))))
        .filter(|(_, (_, suggestions))| !suggestions.is_empty())
        .collect();
    let functions: Vec<(Func, &Function)> =
        selected.iter().filter(|(_, base)| suggested.contains_key(base.name())).copied().collect();
    let (pins, pins_name) = args.suggestions.pins();
    let figures = |base: &Function, _: &mut Stopwatch| {
        let (func, suggestions) = &suggested[base.name()];
        report::speculated(module, *func, profile, suggestions, (pipeline, pins))
            .map_err(|error| CommandFailure::input(format!("@{}: {error}", base.name())))
    };
    each_function(args.jobs.count(), &functions, figures, |worked| {
        let figures: Result<Vec<_>, CommandFailure> = worked.results.into_iter().collect();
        let mut report = SpeculationReport {
            schema: SCHEMA,
            program: program(loaded),
            profile: path.display().to_string(),
            pipeline: args.pipeline.names().into_iter().map(str::to_owned).collect(),
            pins: pins_name,
            visits: args.suggestions.options().visits,
            functions: figures?,
            observed: BTreeMap::new(),
            totals: AssumptionFigures::default(),
            interrupted: worked.interrupted,
            time,
        };
        report.sum();
        report.time.elapsed = started.elapsed().as_secs_f64();
        let text = match args.format {
            ReportFormat::Text => report::speculation_text(&report),
            ReportFormat::Html => report::speculation_page(&report),
            ReportFormat::Json => json(&report),
        };
        tell(&format!("{:.2} s in all", report.time.elapsed));
        let output = if report.interrupted { None } else { args.output.clone() };
        Output::to(output).write(&text)
    })
}

fn program(loaded: &Loaded) -> ReportedProgram {
    let bodies = || loaded.module.defined().map(|(_, body)| body);
    let instructions = bodies().map(|body| Size::of(body).instructions).sum();
    ReportedProgram { path: loaded.name.clone(), functions: bodies().count() as u64, instructions }
}

fn times(stopwatch: &Stopwatch) -> Time {
    Time {
        optimize: stopwatch.seconds(Step::Optimize),
        replay: stopwatch.seconds(Step::Replay),
        map: stopwatch.seconds(Step::Map),
        check: stopwatch.seconds(Step::Check),
        retry: stopwatch.seconds(Step::Retry),
        ..Time::default()
    }
}

/// Writes the times to standard error. Times differ from run to run, so they stay out of the text
/// of the report, which goldens compare.
fn tell_times(time: &Time) {
    let several = match time.jobs {
        1 => String::new(),
        jobs => format!(" (work of {jobs} threads, added up)"),
    };
    let retry = match time.retry {
        0.0 => String::new(),
        retry => format!(", retry {retry:.2} s"),
    };
    tell(&format!(
        "import {:.2} s, optimize {:.2} s, verify and replay {:.2} s, map {:.2} s, check {:.2} s{retry}{several}; {:.2} s in all",
        time.import, time.optimize, time.replay, time.map, time.check, time.elapsed
    ));
}
