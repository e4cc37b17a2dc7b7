//! `osier fuzz`: its options, and the steps of the command: run the campaigns, print their figures,
//! reduce the first failure.

mod apart;
mod campaigns;
mod corpus;
mod failures;
mod findings;
mod native;
mod replay;
mod smith;
mod sources;

use super::failure::{CommandFailure, tell, tell_progress};
use super::format::json;
use super::interrupt::CtrlC;
use super::jobs::Jobs;
use super::level;
use super::limits::InputLimits;
use super::nans::NansOption;
use super::output::Output;
use campaigns::{CampaignResults, CampaignSources, CampaignStop};
use failures::failures;
use findings::FindingsFolder;
use fuzz::{self, CampaignOptions, FuzzReport, Stress};
use jit::Nans;
use native::CaseRange;
use osr::Level;
use passes::Pipeline;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The longest time of one program that runs in the interpreter, in seconds. The longest program of
/// the corpus takes a minute.
const CASE_SECONDS: u64 = 600;
/// The longest time for judging failures again and reducing, in seconds.
const REDUCE_SECONDS: u32 = 60;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Stop after this many seconds, also within a program; a corpus alone is judged again and
    /// again until then, with other seeds and passes
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    time: Option<u32>,
    /// Longest time of one program: seconds [default: 600], or seconds of processor time with
    /// --engine jit [default: 120]; a program that takes longer is left, and the command fails
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    case_time: Option<u32>,
    /// Longest time for judging failing programs again and reducing the first
    #[arg(help_heading = "Failures", long, value_name = "SECONDS", default_value_t = REDUCE_SECONDS)]
    reduce_time: u32,
    /// Stop after this many generated programs [default: 1000 when no limit is given]
    #[arg(long, value_name = "N")]
    programs: Option<u64>,
    /// Stop after comparing this many transitions
    #[arg(long, value_name = "N")]
    transitions: Option<u64>,
    /// The seed of the first generated program; each later program takes the next seed
    #[arg(long, value_name = "S", default_value_t = CampaignOptions::default().seed)]
    seed: u64,
    /// Approximate number of instructions of a generated program's main function
    #[arg(help_heading = "Programs", long, value_name = "N", default_value_t = CampaignOptions::default().size, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: u32,
    /// Number of argument lists to run each generated program with
    #[arg(help_heading = "Programs", long, value_name = "N", default_value_t = CampaignOptions::default().inputs, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    inputs: u32,
    #[command(flatten)]
    jobs: Jobs,
    /// A pipeline, or passes separated by commas; several take turns [default: named, shuffled and
    /// random ones]
    #[arg(help_heading = "Versions", long, value_name = "P", value_parser = passes::parse)]
    pipeline: Vec<Pipeline>,
    /// Put the passes of every pipeline in a random order
    #[arg(help_heading = "Versions", long)]
    shuffle: bool,
    /// The level of the mappings; several take turns [default: mostly avail]
    #[arg(help_heading = "Versions", long, value_name = "L", value_parser = level::parser())]
    level: Vec<Level>,
    /// Number of versions of each program, 2 to 6 [default: mostly 2]
    #[arg(help_heading = "Versions", long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(fuzz::MAX_VERSIONS)))]
    versions: Option<u32>,
    /// Transitions per run and direction after which the run continues to its end (--engine interp)
    #[arg(help_heading = "Oracles", long, value_name = "N", default_value_t = CampaignOptions::default().going_on)]
    going_on: u32,
    /// Make and check no certificates (--engine interp)
    #[arg(help_heading = "Oracles", long)]
    no_certificates: bool,
    /// Chains of random transitions among all versions, for each argument list (--engine interp)
    #[arg(help_heading = "Oracles", long, value_name = "N", default_value_t = CampaignOptions::default().chains)]
    chains: u32,
    /// Most assumptions of a speculative version of a function; 0 for no such versions
    #[arg(help_heading = "Oracles", long, value_name = "N", default_value_t = CampaignOptions::default().assumptions)]
    assumptions: u32,
    /// Judge speculative versions alone
    #[arg(help_heading = "Oracles", long)]
    only_speculation: bool,
    /// Make and judge no versions with inlined code
    #[arg(help_heading = "Oracles", long)]
    no_inlining: bool,
    /// Judge versions with inlined code alone
    #[arg(help_heading = "Oracles", long, conflicts_with_all = ["only_speculation", "no_inlining"])]
    only_inlining: bool,
    /// Compare states at assumptions alone (--engine interp)
    #[arg(help_heading = "Oracles", long, requires = "only_speculation")]
    only_exits: bool,
    /// Judge landing tables alone
    #[arg(
        help_heading = "Oracles",
        long,
        requires = "only_speculation",
        conflicts_with = "only_exits"
    )]
    only_tables: bool,
    /// Generate references, and move them at every call of the host
    #[arg(help_heading = "Programs", long)]
    stress_gc: bool,
    /// Generate host memories, which have 64-bit addresses
    #[arg(help_heading = "Programs", long)]
    host_memory: bool,
    /// Generate calls of imported functions with declared effects
    #[arg(help_heading = "Programs", long)]
    declared_calls: bool,
    #[command(flatten)]
    stress: StressArgs,
    /// WebAssembly programs: a file, a file and its arguments in quotes, or a folder of files
    #[arg(long, value_name = "FILE ARGS|DIR", num_args = 1..)]
    corpus: Vec<String>,
    /// Number of random WebAssembly modules to take from wasm-smith
    #[arg(long, value_name = "N")]
    smith: Option<u64>,
    /// File that WebAssembly programs read as their standard input
    #[arg(help_heading = "Programs", long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Format of the figures; osier_fuzz::FuzzReport documents the keys of JSON
    #[arg(long, value_enum, default_value_t = FuzzFormat::Text)]
    format: FuzzFormat,
    /// Fail when the figures of generated programs fall below the floors, or when no transition of
    /// a program of the corpus is compared
    #[arg(long)]
    floors: bool,
    /// Print the first failing program as it is, without reducing it
    #[arg(help_heading = "Failures", long)]
    no_reduce: bool,
    /// Write each finding to two files in this folder: a test (KEY.oir) and a record (KEY.json); of
    /// findings with equal keys, those of earlier runs included, the smallest program stays that
    /// shows the finding again
    #[arg(help_heading = "Failures", long, value_name = "DIR")]
    findings: Option<PathBuf>,
    /// Judge the findings in these folders or records again, and no other program; with --findings,
    /// the findings that do not pass are written to one folder
    #[arg(
        help_heading = "Failures",
        long,
        value_name = "DIR|FILE",
        num_args = 1..,
        conflicts_with_all = ALONE
    )]
    replay: Vec<PathBuf>,
    /// Judge only the program of this record
    #[arg(long, hide = true, value_name = "FILE")]
    case: Option<PathBuf>,
    /// Engine that makes the transitions
    #[arg(long, value_enum, default_value_t = FuzzEngine::Interp)]
    engine: FuzzEngine,
    /// NaNs that arithmetic gives: the canonical NaN, or the processor's; with the latter, programs
    /// observe no NaN, and comparisons ignore the bits of NaNs (--engine jit) [default: canonical]
    #[arg(help_heading = "Oracles", long, value_enum)]
    nans: Option<NansOption>,
    /// Judge only these cases and write lines for the parent process
    #[arg(long, hide = true)]
    native_cases: Option<native::CaseRange>,
    /// Judge only the case on standard input
    #[arg(long, hide = true)]
    native_case: Option<String>,
    /// End with the process of this number, which started this one
    #[arg(long, hide = true, value_name = "PROCESS")]
    for_replay: Option<u32>,
    // Its heading would hold for options behind it, too.
    #[command(flatten)]
    limits: InputLimits,
}

/// The options without which `--replay` stands: each record has its own.
const ALONE: [&str; 33] = [
    "time",
    "reduce_time",
    "programs",
    "transitions",
    "seed",
    "size",
    "inputs",
    "jobs",
    "pipeline",
    "shuffle",
    "level",
    "versions",
    "going_on",
    "no_certificates",
    "chains",
    "assumptions",
    "only_speculation",
    "no_inlining",
    "only_inlining",
    "only_exits",
    "only_tables",
    "stress_gc",
    "host_memory",
    "declared_calls",
    "StressArgs",
    "InputLimits",
    "corpus",
    "smith",
    "stdin",
    "floors",
    "no_reduce",
    "engine",
    "nans",
];

/// Format of the figures
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FuzzFormat {
    /// For people
    Text,
    /// For programs, with documented keys
    Json,
    /// Test cases for services: each oracle, and each finding
    Junit,
    /// A summary for a comment on a change
    Markdown,
}

/// Engine that makes the transitions
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FuzzEngine {
    /// The interpreter, by all oracles
    Interp,
    /// Native code, compared with the interpreter at each transition; runs in child processes
    Jit,
}

/// The sources of cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SourceKind {
    Corpus,
    Smith,
    Generated,
    /// The program of a finding's file.
    Saved,
}

impl SourceKind {
    const ALL: [SourceKind; 4] =
        [SourceKind::Corpus, SourceKind::Smith, SourceKind::Generated, SourceKind::Saved];

    fn name(self) -> &'static str {
        match self {
            SourceKind::Corpus => "corpus",
            SourceKind::Smith => "smith",
            SourceKind::Generated => "generated",
            SourceKind::Saved => "saved",
        }
    }

    fn from_name(name: &str) -> Option<SourceKind> {
        SourceKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The options that force transitions in extra runs.
#[derive(Debug, clap::Args)]
struct StressArgs {
    /// Run everything again with a transition at every N-th visit of a mapped point
    #[arg(help_heading = "Transitions by force", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    osr_every: Option<u64>,
    /// Run everything again with a transition at every visit of the K-th mapped point
    #[arg(help_heading = "Transitions by force", long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    osr_at_static: Option<u64>,
    /// Run everything again with a transition at the K-th visit of a mapped point
    #[arg(help_heading = "Transitions by force", long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    osr_at_dynamic: Option<u64>,
    /// Start the counting for --osr-every at a random visit in each run
    #[arg(help_heading = "Transitions by force", long, value_name = "S")]
    stress_seed: Option<u64>,
}

impl Args {
    fn options(&self) -> CampaignOptions {
        let StressArgs { osr_every, osr_at_static, osr_at_dynamic, stress_seed } = self.stress;
        CampaignOptions {
            seed: self.seed,
            size: self.size,
            inputs: self.inputs,
            levels: self.level.clone(),
            pipelines: self.pipeline.iter().map(|p| p.passes().to_vec()).collect(),
            shuffle: self.shuffle,
            versions: self.versions,
            going_on: self.going_on,
            certificates: !self.no_certificates,
            chains: self.chains,
            assumptions: self.assumptions,
            only_speculation: self.only_speculation,
            inlining: !self.no_inlining,
            only_inlining: self.only_inlining,
            only_exits: self.only_exits,
            only_tables: self.only_tables,
            stress_gc: self.stress_gc,
            host_memory: self.host_memory,
            declared_calls: self.declared_calls,
            nans: self.nans.map_or_else(Nans::default, Nans::from),
            stress: Stress {
                every: osr_every,
                at_static: osr_at_static,
                at_dynamic: osr_at_dynamic,
                seed: stress_seed,
            },
        }
    }

    /// The longest time of one case, in seconds.
    fn case_seconds(&self) -> u64 {
        let usual = match self.engine {
            FuzzEngine::Interp => CASE_SECONDS,
            FuzzEngine::Jit => native::CPU_SECONDS,
        };
        self.case_time.map_or(usual, u64::from)
    }
}

/// Judges programs until a limit is reached, then prints the figures and reports the failures.
///
/// # Errors
/// If an oracle finds something, no program is judged, or a figure is below its floor and
/// `--floors` is set. Also if an input is wrong, a finding cannot be written, no child process can
/// be started, or the user pressed Ctrl-C.
pub(super) fn fuzz(args: Args) -> Result<(), CommandFailure> {
    // A child of this process gets its options too, and limits itself.
    let is_child = args.native_case.is_some() || args.native_cases.is_some();
    if let Some(parent) = args.for_replay.filter(|_| !is_child) {
        #[cfg(target_os = "linux")]
        native::end_with_parent()?;
        // It may have ended before that.
        if std::os::unix::process::parent_id() != parent {
            return Err(CommandFailure::input("the process that started this one has ended"));
        }
    }
    if args.native_case.is_some() {
        return quietly(|| apart::child_of_one(&args.options()));
    }
    if args.nans.is_some() && args.engine == FuzzEngine::Interp {
        return Err(CommandFailure::input("--nans requires --engine jit"));
    }
    if args.only_exits && args.engine == FuzzEngine::Jit {
        return Err(CommandFailure::input("--only-exits applies to --engine interp only"));
    }
    if args.smith.is_some() && !smith::IS_BUILT {
        return Err(CommandFailure::input(
            "--smith: this build has no wasm-smith; build with --features osier-cli/smith",
        ));
    }
    if args.floors && !args.generates() && args.corpus.is_empty() {
        return Err(CommandFailure::input("--floors: the options select no programs with floors"));
    }
    let folder = args.findings.clone().map(FindingsFolder::open).transpose()?;
    if !args.replay.is_empty() {
        return replay::replay(&args, folder.as_ref());
    }
    let sources = CampaignSources::new(&args)?;
    if let Some(CaseRange { kind, cases }) = args.native_cases.clone() {
        sources.read(&args, Some(cases.clone()))?;
        let source = sources.source(kind).ok_or_else(|| CommandFailure::input("no such source"))?;
        return quietly(|| native::child(&*source, cases, args.case_seconds()));
    }
    sources.read(&args, None)?;
    let stop = Arc::new(CampaignStop::new(CtrlC::listen()));
    let (results, failures) = quietly(|| {
        let results = CampaignResults::judged(&args, &sources, &stop);
        let failures = failures(&args, &sources, results.campaigns(), &stop);
        (results, failures)
    });
    let report = results.report(&args, &sources, &stop, &failures);
    let records = failures::records(&args, &sources, &failures);
    stop.interrupt.end();
    let text = match args.format {
        FuzzFormat::Json => json(&report),
        FuzzFormat::Text => results.text(&report),
        FuzzFormat::Junit => fuzz::junit(&report, args.floors),
        FuzzFormat::Markdown => fuzz::markdown(&report, args.floors),
    };
    let mut errors = CommandErrors::default();
    errors.note(Output::Stdout.write(&text));
    tell_speed(&report);
    tell_failures(&report);
    errors.note(report.verdict(args.floors).map_err(CommandFailure::Program));
    match report.broken {
        Some(why) => errors.note(Err(CommandFailure::Input(why))),
        None if report.interrupted => errors.note(Err(CommandFailure::Interrupted)),
        None => {}
    }
    if let Some(folder) = &folder {
        records.iter().for_each(|record| errors.note(folder.tell_saved(record)));
    }
    errors.end()
}

/// The errors of steps that do not depend on each other: a finding that cannot be written must
/// neither hide the failures nor keep the others from being written.
#[derive(Default)]
struct CommandErrors(Vec<CommandFailure>);

impl CommandErrors {
    fn note(&mut self, step: Result<(), CommandFailure>) {
        match step {
            Ok(()) => {}
            // It ends the command with status 0, so any other error comes after it.
            Err(CommandFailure::ClosedOutput) => self.0.insert(0, CommandFailure::ClosedOutput),
            Err(error) => self.0.push(error),
        }
    }

    /// Tells all errors but the last, which ends the command.
    ///
    /// # Errors
    /// If a step failed.
    fn end(mut self) -> Result<(), CommandFailure> {
        let Some(last) = self.0.pop() else { return Ok(()) };
        for error in self.0 {
            error.tell();
        }
        Err(last)
    }
}

/// Tells what the oracles found, and the programs that took too long.
fn tell_failures(report: &FuzzReport) {
    for failure in &report.failures {
        tell(&format!("{}\nreproduce: {}", failure.message, failure.reproduce));
        if let Some(guilty) = &failure.guilty {
            tell(&format!("found no more without {guilty}"));
        }
        if failure.reproduced == Some(false) {
            tell("a second judgment of this program found nothing");
        }
        if let Some(test) = &failure.test {
            tell(&format!("as a test:\n{test}"));
        }
    }
    for command in &report.late {
        tell(&format!("took longer than --case-time: {command}"));
    }
}

/// Runs `work` without the message that a panic prints. Oracles catch panics of the code under test
/// and report them as findings, so the message would be noise. A panic that reaches this function
/// is a bug of the fuzzer, which panics again with the last message.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let last = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&last);
    std::panic::set_hook(Box::new(move |panic| {
        *heard.lock().unwrap_or_else(|e| e.into_inner()) = panic.to_string();
    }));
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    drop(std::panic::take_hook());
    done.unwrap_or_else(|_| {
        panic!("bug in the fuzzer: {}", last.lock().unwrap_or_else(|e| e.into_inner()))
    })
}

/// Writes the speed to standard error. Times differ from run to run, so they stay out of the text
/// on standard output, which goldens compare.
fn tell_speed(report: &FuzzReport) {
    let speed = report.transitions as f64 / report.seconds.max(1e-9);
    tell_progress(&format!(
        "{} transitions in {:.2} seconds, {speed:.0} a second with {} threads",
        report.transitions, report.seconds, report.jobs
    ));
}
