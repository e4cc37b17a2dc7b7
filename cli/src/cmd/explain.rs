//! `osier explain`: explains one point of a function, in one or both directions.

use super::failure::{CommandFailure, tell};
use super::format::{OutputFormat, json};
use super::input::{self, Loaded, Source, Sourced};
use super::level;
use super::limits::InputLimits;
use super::output::Output;
use super::retry::RetryOption;
use super::select;
use super::suggestions::{SuggestionOptions, read_profile};
use clap::ValueEnum;
use ir::Func;
use ir::text::AtName;
use osier::driver::counterfactual::CulpritEffort;
use osier::driver::{NoObserver, Recipe, derive_proved};
use osier::explain::{
    AssumptionQuestion, Question, assumption_text, explain as answer, explain_assumption,
    explain_inlined, test_blame, text,
};
use osier::inlining::{CalleeLandings, InlinePlan, NotInlined, PassPlan, inline};
use osier::schema::{Explanation, PointAnswer, SCHEMA, SpeculationExplanation};
use osier::speculate::suggest;
use osr::Level;
use passes::{Callers, Pipeline};
use std::path::{Path, PathBuf};
use transition::Side;

/// Direction of the transition
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DirectionOption {
    /// From the base to the optimized version
    Forward,
    /// From the optimized version to the base
    Backward,
    /// Both
    Both,
}

impl DirectionOption {
    fn headings(self) -> &'static [Side] {
        match self {
            DirectionOption::Forward => &[Side::Before],
            DirectionOption::Backward => &[Side::After],
            DirectionOption::Both => &[Side::Before, Side::After],
        }
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The module
    file: PathBuf,
    /// The function
    #[arg(long, value_name = "NAME")]
    func: String,
    /// The point: a place as `osier opt --emit listing` shows it (body:4), an instruction (inst9),
    /// a value (%x: the point before its definition), a block (body: its start), or with debug info
    /// a line (prog.c:41: the first point of it); names belong to the source version
    #[arg(long, value_name = "P")]
    point: String,
    /// Explain instead the assumptions that this profile (osier run --profile) suggests at the
    /// point, and their exits
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["level", "no_retry", "direction"])]
    speculate: Option<PathBuf>,
    #[command(flatten)]
    suggestions: SuggestionOptions,
    /// Direction of the transition
    #[arg(long, value_enum, default_value_t = DirectionOption::Both)]
    direction: DirectionOption,
    /// A pipeline, or passes separated by commas; with O3, or with inline among the passes, the
    /// entry out of the optimized version leads to several activations
    #[arg(long, value_name = "P", default_value = passes::registry::DEFAULT, value_parser = PassPlan::parse)]
    pipeline: PassPlan,
    /// The level of the mappings
    #[arg(long, value_name = "L", default_value = level::DEFAULT, value_parser = level::parser())]
    level: Level,
    /// Format of the explanation; osier::schema documents the keys of JSON: Explanation, and
    /// with --speculate SpeculationExplanation
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    retry: RetryOption,
    #[command(flatten)]
    limits: InputLimits,
}

impl Args {
    fn question<'a>(&'a self, source: &'a Source) -> Question<'a> {
        let (point, headings) = (self.point.as_str(), self.direction.headings());
        Question { point, headings, level: self.level, lines: source.lines() }
    }

    fn explanation(
        &self,
        loaded: &Loaded,
        source: &Source,
        func: Func,
        passes: Vec<&str>,
        answers: Vec<PointAnswer>,
    ) -> Explanation {
        Explanation {
            schema: SCHEMA,
            path: loaded.name.clone(),
            function: self.func.clone(),
            source_name: source.lines().and_then(|lines| lines.name(func)),
            pipeline: passes.into_iter().map(str::to_owned).collect(),
            level: self.level.name().to_owned(),
            asked: self.point.clone(),
            given_up: None,
            calls: None,
            answers,
        }
    }

    /// Writes an explanation in the format of the options.
    fn write(&self, source: &Source, explanation: &Explanation) -> Result<(), CommandFailure> {
        source.tell_notes();
        let output = Output::to(self.output.clone());
        match self.format {
            OutputFormat::Text => output.write_labeled(&text(explanation), 0),
            OutputFormat::Json => output.write(&json(explanation)),
        }
    }
}

/// Explains one point and writes the explanation.
///
/// # Errors
/// If an input cannot be read, the module lacks the function, neither version has the point, or the
/// output cannot be written.
pub(super) fn explain(args: Args) -> Result<(), CommandFailure> {
    Output::check(&args.output)?;
    let Sourced { loaded, source } = input::load_parts(&args.file, &args.limits.limits(), true)?;
    let (func, base) = select::named(&loaded.module, &args.func)?;
    let inlines =
        |plan: &InlinePlan| plan.inlines(&Callers::new(&loaded.module), func, &mut NoObserver);
    let pipeline = match (&args.pipeline, &args.speculate) {
        (PassPlan::Passes(pipeline), Some(profile)) => {
            return speculation(&args, pipeline, &loaded, &source, func, profile);
        }
        (PassPlan::Inlining(_), Some(_)) => {
            return Err(CommandFailure::input("--speculate: no pipeline with inline, as yet"));
        }
        (PassPlan::Passes(pipeline), None) => pipeline,
        (PassPlan::Inlining(plan), None) if inlines(plan) => {
            return inlining(&args, &loaded, &source, func, plan);
        }
        (PassPlan::Inlining(plan), None) => {
            tell(&format!(
                "{}: {}; the passes before are explained",
                AtName(&args.func),
                NotInlined::NoCall
            ));
            &plan.first
        }
    };
    let module = &loaded.module;
    let recipe = Recipe::new(pipeline, &Level::ALL);
    let recipe = Recipe { retry: args.retry.bounds(), ..recipe };
    let made = derive_proved(module, base, &recipe, &mut NoObserver);
    let question = args.question(&source);
    let mut answers = answer(module, base, &made.derived, &made.proved, question)
        .map_err(|e| CommandFailure::input(format!("{}: {e}", AtName(base.name()))))?;
    test_blame(module, base, &made, pipeline, question, CulpritEffort::default(), &mut answers);
    let given_up = Some(made.retried.given_up);
    let explanation = args.explanation(&loaded, &source, func, pipeline.names(), answers);
    args.write(&source, &Explanation { given_up, ..explanation })
}

/// Explains one point of a function with inlined code and writes the explanation.
///
/// # Errors
/// If such versions have no mappings at the level, neither version has the point, or the output
/// cannot be written.
fn inlining(
    args: &Args,
    loaded: &Loaded,
    source: &Source,
    func: Func,
    plan: &InlinePlan,
) -> Result<(), CommandFailure> {
    level::of_inlined(args.level)?;
    let module = &loaded.module;
    let plan = &plan.clone().with_retry(args.retry.bounds());
    let landings = CalleeLandings::new(module, plan);
    let made = inline(module, func, plan, &landings, &mut NoObserver);
    // The plan inlines calls, and a copy that the checker rejects is a bug of ours.
    let made = made.unwrap_or_else(|why| panic!("@{}: {why}", args.func));
    let answers = explain_inlined(module, &made, args.question(source))
        .map_err(|error| CommandFailure::input(format!("{}: {error}", AtName(&args.func))))?;
    let calls = Some(made.copies.instances().len() as u64 - 1);
    let explanation = args.explanation(loaded, source, func, plan.names(), answers);
    args.write(source, &Explanation { calls, ..explanation })
}

/// Explains the assumptions at one point and writes the explanation.
///
/// # Errors
/// If the profile cannot be read, it suggests no assumption there, or the output cannot be written.
fn speculation(
    args: &Args,
    pipeline: &Pipeline,
    loaded: &Loaded,
    source: &Source,
    func: Func,
    path: &Path,
) -> Result<(), CommandFailure> {
    let module = &loaded.module;
    let profile = read_profile(path, module)?;
    let suggestions = suggest(module, func, &profile, &args.suggestions.options());
    let question = AssumptionQuestion {
        point: &args.point,
        suggestions: &suggestions,
        pipeline,
        pins: args.suggestions.pins().0,
        lines: source.lines(),
    };
    let assumptions = explain_assumption(module, func, question)
        .map_err(|error| CommandFailure::input(format!("{}: {error}", AtName(&args.func))))?;
    let explanation = SpeculationExplanation {
        schema: SCHEMA,
        path: loaded.name.clone(),
        profile: path.display().to_string(),
        function: args.func.clone(),
        pipeline: pipeline.names().into_iter().map(str::to_owned).collect(),
        asked: args.point.clone(),
        assumptions,
    };
    let output = Output::to(args.output.clone());
    match args.format {
        OutputFormat::Text => output.write_labeled(&assumption_text(&explanation), 0),
        OutputFormat::Json => output.write(&json(&explanation)),
    }
}
