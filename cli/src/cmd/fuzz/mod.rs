//! `osier fuzz`: runs the campaigns of the command, prints their figures, and reduces the first
//! failure.

mod corpus;
mod native;
mod smith;
mod sources;

use super::failure::{CommandFailure, tell};
use super::format::{OutputFormat, json};
use super::interrupt::CtrlC;
use super::jobs::Jobs;
use super::level;
use super::nans::NansOption;
use super::output::Output;
use corpus::CorpusProgram;
use fuzz::{
    self, AddUp, CampaignLimits, CampaignOptions, Case, CaseSource, Figures, FuzzOracle, Results,
    Stress, campaign, campaign_by,
};
use fuzz::{FuzzFailure, FuzzReport};
use jit::Nans;
use osier::schema;
use osr::Level;
use passes::Pipeline;
use smith::Smith;
use sources::{CorpusPrograms, Generated};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Generated programs when the command sets no limit.
const PROGRAMS: u64 = 1000;
/// A campaign ends after this many programs with failures.
const FAILURES: usize = 10;
/// The interval between progress messages of a long campaign.
const TELL_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    time: Option<u32>,
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
    #[arg(long, value_name = "N", default_value_t = CampaignOptions::default().size, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    size: u32,
    /// Number of argument lists to run each generated program with
    #[arg(long, value_name = "N", default_value_t = CampaignOptions::default().inputs, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    inputs: u32,
    #[command(flatten)]
    jobs: Jobs,
    /// A pipeline, or passes separated by commas; several take turns [default: named, shuffled and
    /// random ones]
    #[arg(long, value_name = "P", value_parser = passes::parse)]
    pipeline: Vec<Pipeline>,
    /// Put the passes of every pipeline in a random order
    #[arg(long)]
    shuffle: bool,
    /// The level of the mappings; several take turns [default: mostly avail]
    #[arg(long, value_name = "L", value_parser = level::parser())]
    level: Vec<Level>,
    /// Number of versions of each program, 2 to 6 [default: mostly 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(fuzz::MAX_VERSIONS)))]
    versions: Option<u32>,
    /// Transitions per run and direction after which the run continues to its end (--engine interp)
    #[arg(long, value_name = "N", default_value_t = CampaignOptions::default().going_on)]
    going_on: u32,
    /// Make and check no certificates (--engine interp)
    #[arg(long)]
    no_certificates: bool,
    /// Chains of random transitions among all versions, for each argument list (--engine interp)
    #[arg(long, value_name = "N", default_value_t = CampaignOptions::default().chains)]
    chains: u32,
    /// Most assumptions of a speculative version of a function; 0 for no such versions
    #[arg(long, value_name = "N", default_value_t = CampaignOptions::default().assumptions)]
    assumptions: u32,
    /// Judge speculative versions alone
    #[arg(long)]
    only_speculation: bool,
    /// Make and judge no versions with inlined code
    #[arg(long)]
    no_inlining: bool,
    /// Judge versions with inlined code alone
    #[arg(long, conflicts_with_all = ["only_speculation", "no_inlining"])]
    only_inlining: bool,
    /// Compare states at assumptions alone (--engine interp)
    #[arg(long, requires = "only_speculation")]
    only_exits: bool,
    /// Generate references, and move them at every call of the host
    #[arg(long)]
    stress_gc: bool,
    /// Generate host memories, which have 64-bit addresses
    #[arg(long)]
    host_memory: bool,
    /// Generate calls of imported functions with declared effects
    #[arg(long)]
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
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Format of the figures; osier_fuzz::FuzzReport documents the keys of JSON
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    format: OutputFormat,
    /// Fail when the figures of generated programs fall below the floors
    #[arg(long)]
    floors: bool,
    /// Print the first failing program as it is, without reducing it
    #[arg(long)]
    no_reduce: bool,
    /// Engine that makes the transitions
    #[arg(long, value_enum, default_value_t = FuzzEngine::Interp)]
    engine: FuzzEngine,
    /// NaNs that arithmetic gives: the canonical NaN, or the processor's; with the latter, programs
    /// observe no NaN, and comparisons ignore the bits of NaNs (--engine jit) [default: canonical]
    #[arg(long, value_enum)]
    nans: Option<NansOption>,
    /// Judge only these cases and write lines for the parent process
    #[arg(long, hide = true)]
    native_cases: Option<native::CaseRange>,
    /// Judge only the case on standard input
    #[arg(long, hide = true)]
    native_case: Option<String>,
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
}

impl SourceKind {
    const ALL: [SourceKind; 3] = [SourceKind::Corpus, SourceKind::Smith, SourceKind::Generated];

    fn name(self) -> &'static str {
        match self {
            SourceKind::Corpus => "corpus",
            SourceKind::Smith => "smith",
            SourceKind::Generated => "generated",
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    osr_every: Option<u64>,
    /// Run everything again with a transition at every visit of the K-th mapped point
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    osr_at_static: Option<u64>,
    /// Run everything again with a transition at the K-th visit of a mapped point
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    osr_at_dynamic: Option<u64>,
    /// Start the counting for --osr-every at a random visit in each run
    #[arg(long, value_name = "S")]
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

    /// Whether the command generates programs: if a limit for generated programs is set, or if the
    /// options select neither a corpus nor wasm-smith.
    fn generates(&self) -> bool {
        let limited = self.time.is_some() || self.programs.is_some() || self.transitions.is_some();
        limited || (self.corpus.is_empty() && self.smith.is_none())
    }

    /// The largest number of programs to generate.
    fn most_programs(&self) -> u64 {
        let unlimited = self.time.is_some() || self.transitions.is_some();
        self.programs.unwrap_or(if unlimited { u64::MAX } else { PROGRAMS })
    }
}

/// Judges programs until a limit is reached, then prints the figures and reports the failures.
///
/// # Errors
/// If an oracle finds something, or a figure is below its floor and `--floors` is set. Also if an
/// input is wrong, no child process can be started, or the user pressed Ctrl-C.
pub(super) fn fuzz(args: Args) -> Result<(), CommandFailure> {
    if args.native_case.is_some() {
        return quietly(|| native::child_of_one(args.options().generated(args.seed)));
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
    let programs = corpus::programs(&args.corpus, args.stdin.as_deref())?;
    if let Some(share) = &args.native_cases {
        return quietly(|| as_child(&args, programs, share));
    }
    let clock = CampaignStop {
        started: Instant::now(),
        interrupt: CtrlC::listen(),
        broken: Mutex::default(),
    };
    let (parts, report) = quietly(|| {
        let parts = CampaignResults::judged(&args, programs, &clock);
        let report = parts.report(&args, &clock);
        (parts, report)
    });
    let interrupted = report.interrupted;
    clock.interrupt.end();
    let text = match args.format {
        OutputFormat::Json => json(&report),
        OutputFormat::Text => parts.text(&report),
    };
    Output::Stdout.write(&text)?;
    tell_speed(&report);
    let verdict = parts.verdict(&args, &report);
    // Report the failures found so far before the error that ended the campaign.
    if let Some(why) = clock.broken() {
        if let Err(failure) = verdict {
            failure.tell();
        }
        return Err(CommandFailure::Input(why));
    }
    match (interrupted, verdict) {
        (false, verdict) => verdict,
        (true, Ok(())) => Err(CommandFailure::Interrupted),
        (true, Err(failure)) => {
            failure.tell();
            Err(CommandFailure::Interrupted)
        }
    }
}

/// Judges a share of the cases and writes its results for the parent process.
fn as_child(
    args: &Args,
    programs: Vec<CorpusProgram>,
    share: &native::CaseRange,
) -> Result<(), CommandFailure> {
    let options = args.options();
    let cases = share.cases.clone();
    match share.kind {
        SourceKind::Corpus => native::child(&CorpusPrograms::new(programs, &options), cases),
        SourceKind::Smith => {
            native::child(&Smith { options, modules: args.smith.unwrap_or(0) }, cases)
        }
        SourceKind::Generated => native::child(&Generated { options }, cases),
    }
}

/// The events that end a campaign before its limits.
struct CampaignStop {
    started: Instant,
    interrupt: CtrlC,
    /// The error that keeps the command from judging further cases.
    broken: Mutex<Option<String>>,
}

impl CampaignStop {
    fn broken(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the campaigns because of an error. Later errors do not replace the first.
    fn end_broken(&self, why: String) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Whether the campaigns must end before their limits.
    fn is_over(&self) -> bool {
        self.interrupt.is_raised() || self.broken().is_some()
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

/// The results of the campaigns of one command.
struct CampaignResults {
    /// With the command of each failure.
    corpus: Option<(Results, Vec<String>)>,
    smith: Option<Results>,
    generated: Option<Results>,
}

impl CampaignResults {
    /// Runs the campaigns one after another.
    fn judged(args: &Args, programs: Vec<CorpusProgram>, clock: &CampaignStop) -> CampaignResults {
        let options = args.options();
        let corpus = (!programs.is_empty()).then(|| {
            let source = CorpusPrograms::new(programs, &options);
            let results = run(args, SourceKind::Corpus, &source, source.len(), u64::MAX, clock);
            let commands =
                results.failures.iter().map(|f| source.command(f.number).to_owned()).collect();
            (results, commands)
        });
        let smith = args.smith.map(|modules| {
            let source = Smith { options: options.clone(), modules };
            run(args, SourceKind::Smith, &source, modules, u64::MAX, clock)
        });
        // Corpus and wasm-smith cases run in full; their transitions count against the limit for
        // generated programs.
        let spent = corpus.as_ref().map_or(0, |(results, _)| results.figures.transitions());
        let spent = spent + smith.as_ref().map_or(0, |results| results.figures.transitions());
        let left = args.transitions.map_or(u64::MAX, |most| most.saturating_sub(spent));
        let source = Generated { options };
        let generated = args
            .generates()
            .then(|| run(args, SourceKind::Generated, &source, args.most_programs(), left, clock));
        CampaignResults { corpus, smith, generated }
    }

    fn results(&self) -> impl Iterator<Item = &Results> {
        self.corpus.iter().map(|(results, _)| results).chain(&self.smith).chain(&self.generated)
    }

    fn figures(&self) -> Figures {
        let mut all = Figures::default();
        self.results().for_each(|results| all.add(&results.figures));
        all
    }

    fn report(&self, args: &Args, clock: &CampaignStop) -> FuzzReport {
        let all = self.figures();
        let options = args.options();
        FuzzReport {
            schema: schema::SCHEMA,
            seed: args.seed,
            settings: options.to_string(),
            jobs: args.jobs.count() as u64,
            corpus: self.corpus.as_ref().map(|(results, _)| results.figures.clone()),
            smith: self.smith.as_ref().map(|results| results.figures.clone()),
            generated: self.generated.as_ref().map(|results| results.figures.clone()),
            oracles: fuzz::by_oracle(&all),
            below_floors: self.below_floors(options.nans),
            failures: self.failures(args, &options, clock),
            transitions: all.transitions(),
            all,
            interrupted: clock.interrupt.is_raised(),
            seconds: clock.started.elapsed().as_secs_f64(),
        }
    }

    /// The figures below their floors.
    fn below_floors(&self, nans: Nans) -> Vec<String> {
        let Some(results) = &self.generated else { return Vec::new() };
        let mut below = results.figures.below_floors();
        if nans == Nans::Platform {
            below.extend(results.figures.below_nan_floor());
        }
        below
    }

    /// All failures, each with the command that reproduces it. The first one of generated programs
    /// also gets a test.
    fn failures(
        &self,
        args: &Args,
        options: &CampaignOptions,
        clock: &CampaignStop,
    ) -> Vec<FuzzFailure> {
        let mut failures = Vec::new();
        let engine = if args.engine == FuzzEngine::Jit { " --engine jit" } else { "" };
        if let Some((results, commands)) = &self.corpus {
            let stdin = args
                .stdin
                .as_ref()
                .map(|path| format!(" --stdin '{}'", path.display()))
                .unwrap_or_default();
            let rest = format!("--seed {}{stdin} {options}", options.seed);
            for (failure, command) in results.failures.iter().zip(commands) {
                failures.push(described(
                    failure,
                    format!("osier fuzz{engine} --corpus '{command}' {rest}"),
                    None,
                ));
            }
        }
        for failure in self.smith.iter().flat_map(|r| &r.failures) {
            let seed = options.seed.wrapping_add(failure.number);
            failures.push(described(
                failure,
                format!("osier fuzz{engine} --seed {seed} --smith 1 {options}"),
                None,
            ));
        }
        for failure in self.generated.iter().flat_map(|r| &r.failures) {
            let seed = options.seed.wrapping_add(failure.number);
            let reproduce = format!("osier fuzz{engine} --seed {seed} --programs 1 {options}");
            // Only the first failure becomes a test: reduction runs the oracles many times.
            let as_it_is =
                args.no_reduce || clock.is_over() || native::is_out_of_time(&failure.findings[0]);
            let test = failures.is_empty().then(|| {
                let case = options.generated(seed);
                if as_it_is {
                    fuzz::as_test(&case, &failure.findings[0], &reproduce)
                } else {
                    small_test(args.engine, case, failure, &reproduce, clock)
                }
            });
            failures.push(described(failure, reproduce, test));
        }
        failures
    }

    fn text(&self, report: &FuzzReport) -> String {
        let mut text =
            format!("seed          {}\nsettings      {}\n", report.seed, report.settings);
        for (title, results) in [
            ("corpus", self.corpus.as_ref().map(|(r, _)| r)),
            ("smith", self.smith.as_ref()),
            ("generated", self.generated.as_ref()),
        ] {
            text += &results.map(|r| fuzz::text(title, &r.figures)).unwrap_or_default();
        }
        text + &fuzz::oracles_text(&self.figures())
    }

    /// Reports all failures. Fails if there are any, or if `--floors` is set and a figure is below
    /// its floor.
    fn verdict(&self, args: &Args, report: &FuzzReport) -> Result<(), CommandFailure> {
        for failure in &report.failures {
            tell(&format!("{}\nreproduce: {}", failure.message, failure.reproduce));
            if let Some(test) = &failure.test {
                tell(&format!("as a test:\n{test}"));
            }
        }
        if !report.failures.is_empty() {
            return Err(CommandFailure::Program(format!(
                "{} programs with findings",
                report.failures.len()
            )));
        }
        if args.floors && !report.below_floors.is_empty() {
            return Err(CommandFailure::Program(report.below_floors.join("; ")));
        }
        Ok(())
    }
}

/// Reduces the case of a failure and returns it as a test. If the campaigns end early, the test is
/// the smallest case found so far.
fn small_test(
    engine: FuzzEngine,
    case: Case,
    failure: &fuzz::FailedCase,
    origin: &str,
    clock: &CampaignStop,
) -> String {
    let finding = &failure.findings[0];
    tell("reducing the failing program");
    let judge = |case: &Case| match engine {
        FuzzEngine::Interp => fuzz::judge(case).findings,
        FuzzEngine::Jit => native::judge_apart(case).unwrap_or_else(|error| {
            clock.end_broken(native::no_process(&error));
            Vec::new()
        }),
    };
    // After the end no candidate shows the failure, so the reducer keeps its current case and stops
    // soon.
    let found =
        |case: &Case| if clock.is_over() { None } else { judge(case).first().map(|f| f.oracle) };
    let small = fuzz::reduce(&case, finding.oracle, &found);
    let judged = judge(&small);
    fuzz::as_test(&small, judged.first().unwrap_or(finding), origin)
}

fn described(failure: &fuzz::FailedCase, reproduce: String, test: Option<String>) -> FuzzFailure {
    let oracle = failure.findings.first().map_or(FuzzOracle::Panic, |f| f.oracle).name();
    let message = failure.findings.iter().map(|f| f.to_string()).collect::<Vec<_>>().join("\n");
    FuzzFailure { oracle, message, reproduce, test }
}

/// Runs one campaign within the limits of the command.
fn run(
    args: &Args,
    kind: SourceKind,
    source: &dyn CaseSource,
    cases: u64,
    transitions: u64,
    clock: &CampaignStop,
) -> Results {
    let time = args.time.map(|seconds| Duration::from_secs(seconds.into()));
    let stop = || clock.is_over() || time.is_some_and(|time| clock.started.elapsed() >= time);
    let budget = CampaignLimits { cases, transitions, failures: FAILURES, stop: &stop };
    let last = Mutex::new(Instant::now());
    let say = |figures: &Figures| {
        let mut last = last.lock().expect("telling does not panic");
        if last.elapsed() >= TELL_EVERY {
            *last = Instant::now();
            tell(&format!("{} programs, {} transitions", figures.programs, figures.transitions()));
        }
    };
    match args.engine {
        FuzzEngine::Interp => campaign(source, args.jobs.count(), &budget, &say),
        FuzzEngine::Jit => {
            let judge = |numbers: std::ops::Range<u64>| {
                let end = numbers.end.min(cases);
                let (results, last, error) =
                    native::batch(kind, numbers.start..end.max(numbers.start), &stop);
                if let Some(error) = error {
                    clock.end_broken(native::no_process(&error));
                }
                (results, last || end < numbers.end)
            };
            campaign_by(&judge, args.jobs.count(), &budget, &say)
        }
    }
}

/// Writes the speed to standard error. Times differ from run to run, so they stay out of the text
/// on standard output, which goldens compare.
fn tell_speed(report: &FuzzReport) {
    let speed = report.transitions as f64 / report.seconds.max(1e-9);
    tell(&format!(
        "{} transitions in {:.2} seconds, {speed:.0} a second with {} threads",
        report.transitions, report.seconds, report.jobs
    ));
}
