//! `osier report`: counts the points at which a run can transition between the versions of each
//! function.

mod blame;
mod inlining;
mod minimum;
mod speculation;

use super::failure::{CommandFailure, tell, tell_progress};
use super::format::json;
use super::input::{self, Loaded, Source, Sourced};
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
use minimum::{MeasuredShares, Minima};
use osier::driver::{Recipe, Step, derive_proved};
use osier::inlining::{InlinePlan, PassPlan};
use osier::profile::{FunctionProfile, Profile};
use osier::report::{
    self, FunctionPage, PipelinePage, RankedGap, TableReport, TextOptions, ViewOptions,
};
use osier::schema::{BlameCheck, FunctionReport, Report, ReportedProgram, Size, Time};
use osr::Level;
use passes::Pipeline;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Format of the report
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ReportFormat {
    /// For people, at most 80 columns
    Text,
    /// For programs; osier::schema::Report documents the keys
    Json,
    /// A page for a browser: figures, plots, and a view of each function
    Html,
    /// A summary for a comment on a change
    Markdown,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// A pipeline, or passes separated by commas; several of them are compared. With O3, or with
    /// inline among the passes, reports on functions with inlined code
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = PassPlan::parse)]
    pipeline: Vec<PassPlan>,
    #[command(flatten)]
    selection: Selection,
    /// Count points without an entry, by reason and by pass to blame, at this level
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Print all tables as text, and the meaning of their words, instead of at most 40 lines
    #[arg(long)]
    verbose: bool,
    /// Count each point as often as it ran, too, by this profile (osier run --profile)
    #[arg(long, value_name = "PROFILE")]
    profile: Option<PathBuf>,
    /// Tell the changes since this report (osier report --format json)
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
    /// Exit with status 1 if a share of points with an entry is lower, in either direction: levels
    /// and percentages, such as avail=99,live_e=80; with dynamic in the list, the shares count each
    /// point as often as it ran
    #[arg(long, value_name = "SHARES", value_parser = Minima::parse)]
    min: Vec<Minima>,
    /// Test the blame at N points without an entry: run the pipeline again without the rewrite to
    /// blame, and look whether the point then has an entry; if not, search a set of rewrites to
    /// blame, and count the points at the passes found
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "200")]
    blame_check: Option<u32>,
    /// Report instead on the assumptions that this profile (osier run --profile) suggests, and
    /// their exits
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["level", "no_retry", "profile", "against", "min", "blame_check"])]
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

/// The pipeline of a plan that does not inline.
fn plain_pipeline(plan: &PassPlan) -> Option<&Pipeline> {
    match plan {
        PassPlan::Passes(pipeline) => Some(pipeline),
        PassPlan::Inlining(_) => None,
    }
}

impl Args {
    /// The pipelines, if none of them inlines.
    fn plain_pipelines(&self) -> Option<Vec<&Pipeline>> {
        self.pipeline.iter().map(plain_pipeline).collect()
    }

    /// The pipeline that inlines.
    ///
    /// # Errors
    /// If the options name further pipelines, or options that reports on inlined code lack.
    fn inlining_plan(&self) -> Result<&InlinePlan, CommandFailure> {
        let refused = |what| Err(CommandFailure::input(format!("{what}, as yet")));
        let given = [
            ("--speculate", self.speculate.is_some()),
            ("--profile", self.profile.is_some()),
            ("--against", self.against.is_some()),
            ("--blame-check", self.blame_check.is_some()),
        ];
        match &self.pipeline[..] {
            [PassPlan::Inlining(plan)] => match given.iter().find(|(_, is_given)| *is_given) {
                Some((option, _)) => refused(format!("{option}: no pipeline with inline")),
                None => Ok(plan),
            },
            _ => refused("--pipeline: several pipelines, but none with inline".to_owned()),
        }
    }

    /// Checks that no pipeline is given twice.
    ///
    /// # Errors
    /// If a pipeline is given twice.
    fn check_pipelines(&self) -> Result<(), CommandFailure> {
        let mut seen = BTreeSet::new();
        match self.pipeline.iter().map(names).find(|names| !seen.insert(names.clone())) {
            None => Ok(()),
            Some(twice) => {
                let name = report::pipeline_name(&twice);
                Err(CommandFailure::input(format!("--pipeline: {name} is given twice")))
            }
        }
    }

    /// Checks that shares of visits have a profile.
    ///
    /// # Errors
    /// If they lack a profile.
    fn check_minima(&self) -> Result<(), CommandFailure> {
        let is_without = self.min.iter().any(Minima::is_dynamic) && self.profile.is_none();
        match is_without {
            true => Err(CommandFailure::input("--min: dynamic requires --profile")),
            false => Ok(()),
        }
    }

    /// The destination of the report. The report of an interrupted command replaces no file.
    fn output(&self, interrupted: bool) -> Output {
        Output::to(if interrupted { None } else { self.output.clone() })
    }

    fn text_options(&self, output: &Output) -> TextOptions {
        TextOptions { verbose: self.verbose, colored: output.is_colored() }
    }

    /// Writes a report of tables in the format of the options, with the shares below a minimum.
    fn write(
        &self,
        document: &impl serde::Serialize,
        tables: &TableReport,
        interrupted: bool,
        below: &[String],
    ) -> Result<(), CommandFailure> {
        let output = self.output(interrupted);
        output.write(&match self.format {
            ReportFormat::Text => tables.text(self.text_options(&output)),
            ReportFormat::Html => report::tables_page(tables),
            ReportFormat::Markdown => report::tables_markdown(tables, below),
            ReportFormat::Json => json(document),
        })
    }
}

/// The names of the passes of a pipeline.
fn names(plan: &PassPlan) -> Vec<String> {
    plan.names().into_iter().map(str::to_owned).collect()
}

/// Writes the report on a module. After Ctrl-C, the report covers the functions that were complete
/// by then, and goes to standard output instead of replacing a file.
///
/// # Errors
/// If an input cannot be read, no function is selected, the output cannot be written, or a share is
/// below `--min`.
pub(super) fn report(args: Args) -> Result<(), CommandFailure> {
    let started = Instant::now();
    Output::check(&args.output)?;
    args.check_pipelines()?;
    // Only pages show lines of the source.
    let limits = args.limits.limits();
    let lines = args.format == ReportFormat::Html;
    let Sourced { loaded, source } = input::load_parts(&args.file, &limits, lines)?;
    let import = started.elapsed().as_secs_f64();
    let clock = ReportClock { started, import };
    let selected = args.selection.of(&loaded.module)?;
    let Some(pipelines) = args.plain_pipelines() else {
        let plan = args.inlining_plan()?;
        level::of_inlined(args.level)?;
        args.min.iter().try_for_each(Minima::check_inlined)?;
        return inlining::report(&args, &loaded, &selected, plan, clock);
    };
    if let Some(path) = &args.speculate {
        let [pipeline] = pipelines[..] else {
            return Err(CommandFailure::input("--speculate: one pipeline at a time, as yet"));
        };
        let profile = read_profile(path, &loaded.module)?;
        return speculation::report(&args, pipeline, &loaded, &selected, path, &profile, clock);
    }
    let past = args.against.as_deref().map(|path| Past::read(path, &pipelines)).transpose()?;
    args.check_minima()?;
    let profile = args.profile.as_deref().map(|path| read_profile(path, &loaded.module));
    let profile = profile.transpose()?;
    let source = &source;
    let names = || selected.iter().map(|(_, body)| body.name().to_owned()).collect();
    let names = (!args.selection.is_everything()).then(names);
    let (args, loaded) = (&args, &loaded);
    let plan = PlainReports { args, loaded, source, pipelines, profile, past, selected: names };
    plan.report(&selected, clock)?;
    source.tell_notes();
    Ok(())
}

/// When a report began, and how long the import of its module took.
#[derive(Clone, Copy)]
struct ReportClock {
    started: Instant,
    /// In seconds.
    import: f64,
}

impl ReportClock {
    /// The seconds since the report began.
    fn elapsed(self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// The older document of `--against`.
struct Past {
    path: String,
    reports: Vec<Report>,
}

impl Past {
    /// Reads the document.
    ///
    /// # Errors
    /// If the document cannot be read, is no report, or lacks a report on these pipelines.
    fn read(path: &Path, pipelines: &[&Pipeline]) -> Result<Past, CommandFailure> {
        let name = path.display().to_string();
        let reports = report::read_past(&input::read_text(path)?);
        let reports = reports.map_err(|e| CommandFailure::input(format!("{name}: {e}")))?;
        let is_there = |pipeline: &&Pipeline| {
            let names = pipeline.names();
            reports.iter().any(|old| names.iter().eq(&old.pipeline))
        };
        if !(pipelines.iter().any(is_there) || pipelines.len() == 1 && reports.len() == 1) {
            return Err(CommandFailure::input(format!(
                "{name}: it has no report on any of these pipelines"
            )));
        }
        Ok(Past { path: name, reports })
    }
}

/// A report to be made, on pipelines that do not inline.
struct PlainReports<'a> {
    args: &'a Args,
    loaded: &'a Loaded,
    source: &'a Source,
    pipelines: Vec<&'a Pipeline>,
    profile: Option<Profile>,
    past: Option<Past>,
    /// The names of the functions that options selected.
    selected: Option<BTreeSet<String>>,
}

impl PlainReports<'_> {
    fn report(
        &self,
        selected: &[(Func, &Function)],
        clock: ReportClock,
    ) -> Result<(), CommandFailure> {
        let funcs: BTreeMap<&str, Func> =
            selected.iter().map(|(func, base)| (base.name(), *func)).collect();
        let jobs = self.args.jobs.count();
        // A thread drops versions and mappings of a function and pipeline before it takes the next
        // one. Memory thus holds the module and one function per thread.
        let figures = |base: &Function, _: &mut Stopwatch| {
            let each = self.pipelines.iter();
            each.map(|pipeline| self.figures(pipeline, funcs[base.name()], base)).collect()
        };
        each_function(jobs, selected, figures, |worked| {
            let time = Time { import: clock.import, jobs: jobs as u64, ..Time::default() };
            let mut results = worked.results;
            let checks = self.blame_checks(&mut results, &funcs)?;
            let mut pages = self.pages(results, time);
            let columns = pages.iter_mut().zip(checks);
            for (PipelinePage { report, .. }, check) in columns {
                report.interrupted = worked.interrupted;
                report.blame_check = check;
                report.time.elapsed = clock.elapsed();
                self.compare(report);
                tell_times(report, self.pipelines.len() > 1);
            }
            let shares = pages.iter().map(|page| MeasuredShares::of(&page.report));
            let below = minimum::compare(&self.args.min, shares);
            self.write(&pages, worked.interrupted, &below.lines)?;
            below.verdict()
        })
    }

    /// The figures of one function with one pipeline, for a page also its view, and the times.
    fn figures(&self, pipeline: &Pipeline, func: Func, base: &Function) -> Reported {
        let mut stopwatch = Stopwatch::new();
        let recipe = Recipe::new(pipeline, &Level::ALL);
        let recipe = Recipe { retry: self.args.retry.bounds(), ..recipe };
        let secured = derive_proved(&self.loaded.module, base, &recipe, &mut stopwatch);
        let none = FunctionProfile::default();
        let profile = self.profile.as_ref();
        let profile = profile.map(|profile| profile.functions.get(&func).unwrap_or(&none));
        let level = self.args.level;
        let figures = report::weighed_function_report(base, &secured, level, profile);
        let wants_view = self.args.format == ReportFormat::Html && figures.is_changed();
        let view = wants_view.then(|| {
            let options = ViewOptions { profile, lines: self.source.lines() };
            report::function_page(&self.loaded.module, base, &secured, &figures, level, options)
        });
        let gaps = self.args.blame_check.map_or_else(Vec::new, |most| {
            report::ranked_gaps(func, base, &secured, level, profile, most as usize)
        });
        Reported { figures, view, gaps, stopwatch }
    }

    /// The points that a test of blame takes, with one pipeline: those with the lowest ranks, at
    /// most so many.
    fn gaps(functions: &[Vec<Reported>], column: usize, most: usize) -> Vec<RankedGap> {
        let mut gaps: Vec<RankedGap> =
            functions.iter().flat_map(|each| each[column].gaps.iter().copied()).collect();
        gaps.sort_unstable();
        gaps.truncate(most);
        gaps
    }

    /// The tests of blame that the option requests, by pipeline. The figures then count each tested
    /// point at the pass that the test blames.
    ///
    /// # Errors
    /// If threads cannot be started.
    fn blame_checks(
        &self,
        functions: &mut [Vec<Reported>],
        funcs: &BTreeMap<&str, Func>,
    ) -> Result<Vec<Option<BlameCheck>>, CommandFailure> {
        let Some(most) = self.args.blame_check else {
            return Ok(vec![None; self.pipelines.len()]);
        };
        let (module, level) = (&self.loaded.module, self.args.level);
        let (retry, jobs) = (self.args.retry.bounds(), self.args.jobs.count());
        let mut checks = Vec::new();
        for (column, pipeline) in self.pipelines.iter().enumerate() {
            let gaps = Self::gaps(functions, column, most as usize);
            let (check, better) = blame::check(module, pipeline, retry, level, gaps, jobs)?;
            for Reported { figures, view, .. } in functions.iter_mut().map(|each| &mut each[column])
            {
                if let Some(better) = better.get(&funcs[figures.name.as_str()]) {
                    better.correct(figures);
                    *view = view.take().map(|view| view.with_figures(figures));
                }
            }
            checks.push(Some(check));
        }
        Ok(checks)
    }

    /// The report on each pipeline, from the figures of the functions, and the views.
    fn pages(&self, functions: Vec<Vec<Reported>>, time: Time) -> Vec<PipelinePage> {
        let column = |_: &&Pipeline| PipelineColumn::with_capacity(functions.len());
        let mut columns: Vec<PipelineColumn> = self.pipelines.iter().map(column).collect();
        for each in functions {
            columns.iter_mut().zip(each).for_each(|(column, made)| column.add(made));
        }
        let made = self.pipelines.iter().zip(columns).map(|(pipeline, column)| {
            let names = pipeline.names().into_iter().map(str::to_owned).collect();
            let mut report =
                report::report(program(self.loaded), names, self.args.level, column.functions);
            report.profile = self.args.profile.as_ref().map(|path| path.display().to_string());
            let Time { import, jobs, .. } = time;
            report.time = Time { import, jobs, ..times(&column.stopwatch) };
            PipelinePage { report, views: column.views }
        });
        made.collect()
    }

    /// Compares a report with the older report on its pipeline.
    fn compare(&self, report: &mut Report) {
        let Some(Past { path, reports }) = &self.past else { return };
        let selected = self.selected.as_ref();
        let names = selected.map(|names| names.iter().map(String::as_str).collect());
        let alone = self.pipelines.len() == 1;
        report.against = report::compare(report, reports, path, alone, names.as_ref());
        if report.against.is_none() {
            let name = report::pipeline_name(&report.pipeline);
            tell(&format!("{path} has no report on the pipeline {name}"));
        }
    }

    fn write(
        &self,
        pages: &[PipelinePage],
        interrupted: bool,
        below: &[String],
    ) -> Result<(), CommandFailure> {
        let output = self.args.output(interrupted);
        let options = self.args.text_options(&output);
        let reports: Vec<&Report> = pages.iter().map(|page| &page.report).collect();
        let text = match (self.args.format, &reports[..]) {
            (ReportFormat::Html, _) => report::page(pages),
            (ReportFormat::Markdown, reports) => report::markdown(reports, below),
            (ReportFormat::Text, [report]) => report::text(report, options),
            (ReportFormat::Text, reports) => report::several_text(reports, options),
            (ReportFormat::Json, [report]) => json(report),
            (ReportFormat::Json, reports) => json(&reports),
        };
        output.write(&text)
    }
}

/// The figures, view and times of one function with one pipeline.
struct Reported {
    figures: FunctionReport,
    view: Option<FunctionPage>,
    gaps: Vec<RankedGap>,
    stopwatch: Stopwatch,
}

/// The figures, views and times of all functions with one pipeline.
struct PipelineColumn {
    functions: Vec<FunctionReport>,
    views: Vec<FunctionPage>,
    stopwatch: Stopwatch,
}

impl PipelineColumn {
    fn with_capacity(functions: usize) -> PipelineColumn {
        let functions = Vec::with_capacity(functions);
        PipelineColumn { functions, views: Vec::new(), stopwatch: Stopwatch::new() }
    }

    fn add(&mut self, Reported { figures, view, stopwatch, .. }: Reported) {
        self.views.extend(view.map(|view| view.at(self.functions.len())));
        self.functions.push(figures);
        self.stopwatch.merge(&stopwatch);
    }
}

fn program(loaded: &Loaded) -> ReportedProgram {
    let bodies = || loaded.module.defined().map(|(_, body)| body);
    let instructions = bodies().map(|body| Size::of(body).instructions).sum();
    ReportedProgram {
        path: loaded.name.clone(),
        functions: bodies().count() as u64,
        instructions,
        left_out: loaded.left_out(),
    }
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
fn tell_times(report: &Report, has_others: bool) {
    let name = match has_others {
        true => format!("{}: ", report::pipeline_name(&report.pipeline)),
        false => String::new(),
    };
    tell_progress(&format!("{name}{}", times_text(&report.time)));
}

/// The times in words.
fn times_text(time: &Time) -> String {
    let several = match time.jobs {
        1 => String::new(),
        jobs => format!(" (work of {jobs} threads, added up)"),
    };
    let retry = match time.retry {
        0.0 => String::new(),
        retry => format!(", retry {retry:.2} s"),
    };
    format!(
        "import {:.2} s, optimize {:.2} s, verify and replay {:.2} s, map {:.2} s, check {:.2} s{retry}{several}; {:.2} s in all",
        time.import, time.optimize, time.replay, time.map, time.check, time.elapsed
    )
}
