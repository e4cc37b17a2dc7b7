//! `osier run`: runs a program in the interpreter, in native code, or in both by tiers.

mod interpreted;
mod interrupts;
mod native;
mod speculation;
mod surroundings;
mod tiers;
mod tools;
mod words;

use super::failure::{CommandFailure, print};
use super::input::{self, Source, Sourced};
use super::limits::{InputLimits, RunLimits};
use super::nans::NansOption;
use super::output::Output;
use super::stopwatch::Stopwatch;
use super::suggestions::SuggestionOptions;
use clap::ValueEnum;
use interp::Outcome;
use ir::text::{parse_argument, print_literal};
use ir::{Func, Module, Point};
use osier::driver::{Step, Vigilance};
use osier::inlining::{InlinedModule, ModuleSites, PassPlan};
use osier::listing;
use osier::profile::Profile;
use osier::schema::{RunSeconds, RunStats, SCHEMA};
use osier::source::line_of;
use osier::tiers::{ContextUse, TableUse};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use surroundings::HostOptions;
use tools::ToolOptions;
use words::ProgramWords;

/// Engine that executes the program
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RunEngine {
    /// The interpreter
    Interp,
    /// Native code; a function is compiled at its first call
    Jit,
    /// The interpreter, then native code: hot functions and loops are compiled, and a run enters
    /// compiled loops in the middle. In a second thread, hot functions are then optimized, too
    Tiered,
}

#[derive(Debug, clap::Args)]
#[command(override_usage = "osier run [OPTIONS] FILE [ARG]...\n       \
                            osier run [OPTIONS] FILE --invoke NAME [ARG]...")]
pub(super) struct Args {
    /// The program, and its arguments: all behind FILE is the program's; -- may stand between
    #[arg(required = true, trailing_var_arg = true, value_names = ["FILE", "ARG"])]
    program: Vec<OsString>,
    /// Call this function and print its results, one per line, instead of running the program's
    /// _start; its arguments stand behind FILE. The option may stand right behind FILE, too
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    invoke: Option<String>,
    /// Engine that executes the program
    #[arg(long, value_enum, default_value_t = RunEngine::Interp)]
    engine: RunEngine,
    /// NaNs that arithmetic in native code gives: the canonical NaN of the interpreter, or the
    /// processor's; only with --engine jit or tiered [default: canonical]
    #[arg(long, value_enum, value_name = "NANS")]
    nans: Option<NansOption>,
    /// Optimize first: a pipeline, or passes separated by commas; O3 inlines
    #[arg(long, value_name = "P", value_parser = PassPlan::parse)]
    pipeline: Option<PassPlan>,
    /// Write figures about the run as JSON to a file, or to standard error
    #[arg(long, value_name = "OUT", num_args = 0..=1, require_equals = true)]
    stats: Option<Option<PathBuf>>,
    /// Write a profile of the run to a file: branch sides, targets of indirect calls, arguments and
    /// loads that are constant; not with --engine tiered or --pipeline
    #[arg(long, value_name = "OUT", conflicts_with = "pipeline")]
    profile: Option<PathBuf>,
    /// Optimize a function after N of its calls, or N visits of one of its loop headers; without
    /// the option, costs decide, and the base is compiled first; only with --engine tiered
    #[arg(long, value_name = "N")]
    hot: Option<u32>,
    /// Let the run wait for code, so that equal runs compile equal code; otherwise a second thread
    /// compiles while the run continues; only with --engine tiered, and implied by --speculate, by
    /// --fuel and by a machine with one processor
    #[arg(long)]
    on_the_spot: bool,
    /// Print a time line of the tiers on standard error: the code that the run requested and why,
    /// when it was made, and when the run entered it; only with --engine tiered
    #[arg(long)]
    trace_tiers: bool,
    /// Make hot functions assume what this profile suggests (osier run --profile), or without a
    /// file what the run has shown when they become hot; only with --engine tiered. The pipeline
    /// then optimizes hot functions alone
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, require_equals = true)]
    speculate: Option<Option<PathBuf>>,
    /// Where runs enter code that assumes, besides calls: at hot loops and where assumptions fail,
    /// at hot loops alone, or nowhere; only with --speculate [default: everywhere]
    #[arg(long, value_enum, value_name = "PLACES", requires = "speculate")]
    tables: Option<TableOption>,
    /// Whether calls with constant arguments lead to versions of their callees that assume these
    /// arguments; only with --engine tiered, where the run waits for code [default: on]
    #[arg(long, value_enum, value_name = "WHETHER")]
    contexts: Option<ContextOption>,
    #[command(flatten)]
    suggestions: SuggestionOptions,
    #[command(flatten)]
    tools: ToolOptions,
    #[command(flatten)]
    surroundings: HostOptions,
    #[command(flatten)]
    limits: InputLimits,
    #[command(flatten)]
    run_limits: RunLimits,
}

/// Where runs enter code that assumes, besides calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum TableOption {
    /// At hot loops, and where assumptions fail
    Everywhere,
    /// At hot loops alone
    Loops,
    /// Nowhere
    Nowhere,
}

impl TableOption {
    fn places(self) -> TableUse {
        match self {
            TableOption::Everywhere => TableUse::Everywhere,
            TableOption::Loops => TableUse::AtLoops,
            TableOption::Nowhere => TableUse::Nowhere,
        }
    }
}

/// Whether calls with constant arguments lead to versions of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum ContextOption {
    /// They do
    On,
    /// All calls of a function run one version
    Off,
}

impl From<ContextOption> for ContextUse {
    fn from(option: ContextOption) -> ContextUse {
        match option {
            ContextOption::On => ContextUse::On,
            ContextOption::Off => ContextUse::Off,
        }
    }
}

/// The default of `--hot` with `--speculate`.
const HOT: u32 = 1000;

/// A function to call, its arguments as bits, and whether its results are printed.
struct Call {
    words: ProgramWords,
    func: Func,
    args: Vec<u64>,
    prints_results: bool,
}

/// Runs a program and writes its results and figures.
///
/// # Errors
/// If an input or option is wrong or the module cannot be instantiated. Also if the program traps,
/// exceeds a limit, or exits with a status other than 0, which becomes the status of the command.
pub(super) fn run(args: Args) -> Result<(), CommandFailure> {
    use RunEngine::{Interp, Jit, Tiered};
    let words = ProgramWords::of(&args.program, args.invoke.as_deref())?;
    let native = args.tools.needs_native_code();
    let needs: [(Option<&str>, &[RunEngine], &str); 8] = [
        (args.hot.and(Some("--hot")), &[Tiered], "tiered"),
        (args.nans.and(Some("--nans")), &[Jit, Tiered], "jit or tiered"),
        (args.on_the_spot.then_some("--on-the-spot"), &[Tiered], "tiered"),
        (args.trace_tiers.then_some("--trace-tiers"), &[Tiered], "tiered"),
        (args.contexts.and(Some("--contexts")), &[Tiered], "tiered"),
        (args.speculate.as_ref().and(Some("--speculate")), &[Tiered], "tiered"),
        (native, &[Jit, Tiered], "jit or tiered"),
        (args.profile.as_ref().and(Some("--profile")), &[Interp, Jit], "interp or jit"),
    ];
    let refused = needs.into_iter().find_map(|(option, engines, names)| {
        let option = option.filter(|_| !engines.contains(&args.engine))?;
        Some(format!("{option} requires --engine {names}"))
    });
    if let Some(why) = refused {
        return Err(CommandFailure::input(why));
    }
    if args.engine == RunEngine::Tiered && matches!(args.pipeline, Some(PassPlan::Inlining(_))) {
        return Err(CommandFailure::input("--engine tiered: no pipeline with inline, as yet"));
    }
    Output::check(args.stats.iter().flatten().chain(&args.profile))?;
    let mut stats = RunStats { schema: SCHEMA, ..RunStats::default() };
    let (InlinedModule { module, sites }, source) = loaded(&args, &words.file, &mut stats.seconds)?;
    let module = Arc::new(module);
    // The process ends with the run, and the system takes its memory. To free SQLite function by
    // function took 4 % of the instructions of a short run.
    std::mem::forget(Arc::clone(&module));
    let call = called(&module, words)?;
    let Executed { ended, profile } = match args.engine {
        RunEngine::Interp => interpreted::execute(&args, &module, &sites, &call, &mut stats)?,
        engine => native::execute(&args, engine, &module, sites, &call, &mut stats)?,
    };
    stats.interrupted = matches!(ended, Err(CommandFailure::Interrupted));
    let printed = ended.and_then(|outcome| print_outcome(&module, &source, &call, &outcome));
    // Figures matter most when the program failed, so write them before returning the failure
    // (`stats_are_written_for_a_program_that_native_code_fails_to_run`).
    if let Some(out) = &args.stats {
        write_stats(out.clone(), &stats)?;
    }
    // A failed program has a profile up to its failure.
    if let (Some(out), Some(profile)) = (&args.profile, profile) {
        Output::to(Some(out.clone())).write(&profile.write(&module))?;
    }
    printed
}

/// The module, optimized if `--pipeline` is set, and its source. Stores the times in `seconds`.
fn loaded(
    args: &Args,
    file: &Path,
    seconds: &mut RunSeconds,
) -> Result<(InlinedModule, Source), CommandFailure> {
    let started = Instant::now();
    let Sourced { loaded, source } = input::load_with_source(file, &args.limits.limits())?;
    let module = loaded.module;
    seconds.import = started.elapsed().as_secs_f64();
    // Profiles are in terms of the base.
    let Some(pipeline) = args.pipeline.as_ref().filter(|_| args.speculate.is_none()) else {
        return Ok((InlinedModule { module, sites: ModuleSites::new() }, source));
    };
    let mut stopwatch = Stopwatch::new();
    let optimized = pipeline.optimize(&module, Vigilance::On, &mut stopwatch);
    seconds.optimize = Some(stopwatch.seconds(Step::Optimize));
    seconds.replay = Some(stopwatch.seconds(Step::Replay));
    Ok((optimized, source))
}

/// The function to call and its arguments. Without `--invoke` it is `_start` or `main`.
///
/// # Errors
/// If the module lacks the function, or the arguments do not fit its signature.
fn called(module: &Module, words: ProgramWords) -> Result<Call, CommandFailure> {
    let Some((name, texts)) = &words.invoke else {
        let entry = ["_start", "main"].into_iter().find_map(|name| module.lookup(name));
        let func =
            entry.ok_or_else(|| no_function("the program has no _start; use --invoke", module))?;
        if !module.signature(func).params.is_empty() {
            return Err(CommandFailure::input("main takes arguments; use --invoke main ARG..."));
        }
        return Ok(Call { words, func, args: Vec::new(), prints_results: false });
    };
    let func = module.lookup(name.strip_prefix('@').unwrap_or(name));
    let func = func.ok_or_else(|| no_function(&format!("no function {name:?}"), module))?;
    let signature = module.signature(func);
    if signature.params.len() != texts.len() {
        let (wants, given) = (signature.params.len(), texts.len());
        return Err(CommandFailure::input(format!(
            "{name} {signature} takes {wants} arguments; given: {given}"
        )));
    }
    let literal = |(text, ty): (&String, &ir::Type)| {
        parse_argument(text, *ty).ok_or_else(|| {
            CommandFailure::input(format!(
                "{text:?} is not a valid {ty}, the type that {name} expects"
            ))
        })
    };
    let args = texts.iter().zip(&signature.params).map(literal).collect::<Result<_, _>>()?;
    Ok(Call { words, func, args, prints_results: true })
}

/// A failure that lists functions of the module: the exported functions, or without exports, all
/// functions with a body.
fn no_function(what: &str, module: &Module) -> CommandFailure {
    const SHOWN: usize = 20;
    let functions = module.exports.iter().filter(|export| export.func().is_some());
    let mut names: Vec<&str> = functions.map(|export| &*export.name).collect();
    if names.is_empty() {
        names = module.defined().map(|(_, body)| body.name()).collect();
    }
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    names.truncate(SHOWN);
    match names.as_slice() {
        [] => CommandFailure::input(format!("{what} (the module has no functions)")),
        names => CommandFailure::input(format!("{what} (functions: {}{more})", names.join(", "))),
    }
}

/// The outcome of a run; a failure if an engine could not continue it, or a signal ended it.
type ProgramEnd = Result<Outcome, CommandFailure>;

/// A run, and its profile if the options request one.
struct Executed {
    ended: ProgramEnd,
    profile: Option<Profile>,
}

/// Prints the results, or turns the outcome into a failure.
fn print_outcome(
    module: &Module,
    source: &Source,
    call: &Call,
    outcome: &Outcome,
) -> Result<(), CommandFailure> {
    match outcome {
        Outcome::Returned(values) if call.prints_results => {
            let types = &module.signature(call.func).results;
            let lines = values
                .iter()
                .zip(types)
                .map(|(bits, ty)| format!("{}\n", print_literal(*ty, *bits)));
            Output::Stdout.write(&lines.collect::<String>())
        }
        Outcome::Returned(_) | Outcome::Exited(0) => Ok(()),
        Outcome::Exited(status) => Err(CommandFailure::exited(*status)),
        other => Err(CommandFailure::Program(format!(
            "{other}{}",
            place(module, source, other).unwrap_or_default()
        ))),
    }
}

/// The place where a run ended, in the notation of listings, with its line in the source. `None` if
/// the outcome names no instruction, or one of another version.
fn place(module: &Module, source: &Source, outcome: &Outcome) -> Option<String> {
    let site = outcome.site()?;
    let (body, inst) = (module.body(site.func)?, site.inst?);
    if !body.has_inst(inst) {
        return None;
    }
    // Passes may have made the body. Added instructions have new ids, without lines.
    let line = line_of(source.lines(), site.func, inst);
    source.tell_notes();
    let line = line.map_or(String::new(), |line| format!(" at {line}"));
    Some(format!(" ({}{line})", listing::place(module, body, Point::before(inst))))
}

fn write_stats(out: Option<PathBuf>, stats: &RunStats) -> Result<(), CommandFailure> {
    let json = serde_json::to_string_pretty(stats).expect("figures have a JSON form");
    match out {
        Some(path) => Output::to(Some(path)).write(&(json + "\n")),
        None => {
            print(&json);
            Ok(())
        }
    }
}
