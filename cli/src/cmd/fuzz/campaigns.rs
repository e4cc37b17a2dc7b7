//! The campaigns of one command, one after another, and their figures.

use super::corpus::{self, CorpusReader};
use super::failures::DescribedFailure;
use super::findings::SavedProgram;
use super::native::{self, ChildWatch};
use super::smith::Smith;
use super::sources::{CorpusPrograms, Generated};
use super::{Args, FuzzEngine, SourceKind};
use crate::cmd::failure::{CommandFailure, tell_progress};
use crate::cmd::interrupt::CtrlC;
use fuzz::{
    AddUp, BatchWatch, CampaignLimits, CampaignOptions, CaseEvent, CaseSource, CaseTime, CaseWatch,
    Figures, FuzzReport, Judged, Results, campaign, campaign_by,
};
use jit::Nans;
use osier::{Limits, schema};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Generated programs when the command sets no limit.
const PROGRAMS: u64 = 1000;
/// A campaign ends after this many programs with failures.
const FAILURES: usize = 10;
/// The cases of a batch. A program of the corpus takes long, so a thread takes one at a time.
const BATCH: u64 = 8;
/// The interval between progress messages of a long campaign.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The events that end a campaign before its limits, and what happened to its processes.
pub(super) struct CampaignStop {
    started: Instant,
    pub(super) interrupt: CtrlC,
    /// The error that keeps the command from judging further cases.
    broken: Mutex<Option<String>>,
    /// The number of children that others killed.
    killed: AtomicU64,
}

impl CampaignStop {
    pub(super) fn new(interrupt: CtrlC) -> CampaignStop {
        let (broken, killed) = (Mutex::default(), AtomicU64::new(0));
        CampaignStop { started: Instant::now(), interrupt, broken, killed }
    }

    pub(super) fn broken(&self) -> Option<String> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the campaigns because of an error. Later errors do not replace the first.
    pub(super) fn end_broken(&self, why: String) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Whether the campaigns must end before their limits.
    pub(super) fn is_over(&self) -> bool {
        self.interrupt.is_raised() || self.broken().is_some()
    }

    pub(super) fn count_killed(&self) {
        self.killed.fetch_add(1, Ordering::Relaxed);
    }
}

/// The sources of cases that the options select.
pub(super) struct CampaignSources {
    pub(super) corpus: Option<Arc<CorpusPrograms>>,
    pub(super) smith: Option<Arc<Smith>>,
    pub(super) generated: Arc<Generated>,
    pub(super) saved: Option<Arc<SavedProgram>>,
}

impl CampaignSources {
    /// # Errors
    /// If a folder cannot be read.
    pub(super) fn new(args: &Args) -> Result<CampaignSources, CommandFailure> {
        let options = args.options();
        let programs = corpus::programs(&args.corpus)?;
        let corpus = (!programs.is_empty())
            .then(|| Arc::new(CorpusPrograms::new(programs, &options, args.repeats_corpus())));
        let smith = args.smith.map(|modules| Arc::new(Smith { options: options.clone(), modules }));
        let saved =
            args.case.as_ref().map(|path| SavedProgram::read(path, &options)).transpose()?;
        let saved = saved.map(Arc::new);
        Ok(CampaignSources { corpus, smith, generated: Arc::new(Generated { options }), saved })
    }

    /// Reads the programs of the corpus: all, or those of some cases.
    ///
    /// # Errors
    /// If a file cannot be read or is not a program.
    pub(super) fn read(
        &self,
        args: &Args,
        cases: Option<Range<u64>>,
    ) -> Result<(), CommandFailure> {
        let Some(corpus) = &self.corpus else { return Ok(()) };
        corpus.read(cases, &CorpusReader::new(args.stdin.as_deref(), args.limits.limits())?)
    }

    pub(super) fn source(&self, kind: SourceKind) -> Option<Arc<dyn CaseSource>> {
        match kind {
            SourceKind::Corpus => self.corpus.clone().map(|source| source as _),
            SourceKind::Smith => self.smith.clone().map(|source| source as _),
            SourceKind::Generated => Some(Arc::<Generated>::clone(&self.generated) as _),
            SourceKind::Saved => self.saved.clone().map(|source| source as _),
        }
    }

    /// The command that judges one case alone.
    pub(super) fn command(&self, args: &Args, kind: SourceKind, number: u64) -> String {
        let mut words = self.words(args, kind, number);
        if let Some(seconds) = args.case_time {
            words.splice(0..0, ["--case-time".to_owned(), seconds.to_string()]);
        }
        match (kind, &args.case) {
            (SourceKind::Generated, _) => words.extend(["--programs", "1"].map(str::to_owned)),
            (SourceKind::Smith, _) => words.extend(["--smith", "1"].map(str::to_owned)),
            (SourceKind::Saved, Some(path)) => {
                return format!("osier fuzz --replay {}", quoted(&path.display().to_string()));
            }
            _ => {}
        }
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("osier fuzz {}", words.join(" "))
    }

    /// The options under which one case is judged. They select the program itself only if it is one
    /// of the corpus.
    pub(super) fn words(&self, args: &Args, kind: SourceKind, number: u64) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if args.engine == FuzzEngine::Jit {
            add("--engine", "jit".to_owned());
        }
        let options = match (kind, &self.corpus) {
            (SourceKind::Corpus, Some(corpus)) => {
                add("--corpus", corpus.command(number).to_owned());
                if let Some(path) = &args.stdin {
                    add("--stdin", path.display().to_string());
                }
                for (option, value) in unusual_limits(&args.limits.limits()) {
                    add(option, value.to_string());
                }
                corpus.options(number)
            }
            _ => CampaignOptions { seed: args.seed.wrapping_add(number), ..args.options() },
        };
        add("--seed", options.seed.to_string());
        words.extend(options.to_string().split_whitespace().map(str::to_owned));
        words
    }
}

/// The options for the limits on reading a program that are not the usual ones, with their values.
fn unusual_limits(limits: &Limits) -> Vec<(&'static str, u64)> {
    let usual = Limits::default();
    let all = [
        ("--max-input-bytes", limits.input_bytes, usual.input_bytes),
        ("--max-function-instructions", limits.function_instructions, usual.function_instructions),
        ("--max-import-bytes", limits.import.base_bytes, usual.import.base_bytes),
    ];
    let unusual = all.into_iter().filter(|(_, value, usual)| value != usual);
    unusual.map(|(option, value, _)| (option, value)).collect()
}

/// A word of a command as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ',' | '_' | '.');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The results of one campaign.
pub(super) struct CampaignResult {
    pub(super) kind: SourceKind,
    pub(super) results: Results,
}

/// The compared transitions of the programs of the corpus that were judged, by program.
type CorpusTransitions = Arc<Mutex<BTreeMap<String, u64>>>;

/// The results of the campaigns of one command.
pub(super) struct CampaignResults {
    campaigns: Vec<CampaignResult>,
    /// The programs of the corpus of which no case compared a transition or failed.
    idle: Vec<String>,
}

impl CampaignResults {
    /// Runs the campaigns one after another.
    pub(super) fn judged(
        args: &Args,
        sources: &CampaignSources,
        stop: &Arc<CampaignStop>,
    ) -> CampaignResults {
        let mut campaigns = Vec::new();
        // Corpus and wasm-smith cases run in full, unless the corpus repeats; their transitions
        // count against the limit for generated programs.
        let mut left = args.transitions.unwrap_or(u64::MAX);
        let compared = CorpusTransitions::default();
        for kind in SourceKind::ALL {
            let (Some(source), Some(cases)) = (sources.source(kind), args.cases(sources, kind))
            else {
                continue;
            };
            let is_limited = kind == SourceKind::Generated || cases == u64::MAX;
            let limits = CampaignLimits {
                cases,
                batch: if kind == SourceKind::Corpus { 1 } else { BATCH },
                transitions: if is_limited { left } else { u64::MAX },
                failures: FAILURES,
                stop: args.stop(stop),
                case_time: args.case_limit(stop),
                on_judged: match (kind, &sources.corpus) {
                    (SourceKind::Corpus, Some(corpus)) => count_transitions(corpus, &compared),
                    _ => CampaignLimits::default().on_judged,
                },
            };
            let results = run(args, kind, source, &limits, stop);
            left = left.saturating_sub(results.figures.transitions());
            campaigns.push(CampaignResult { kind, results });
        }
        let compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = compared.iter().filter(|(_, transitions)| **transitions == 0);
        CampaignResults { campaigns, idle: idle.map(|(program, _)| program.clone()).collect() }
    }

    pub(super) fn campaigns(&self) -> &[CampaignResult] {
        &self.campaigns
    }

    fn results(&self, kind: SourceKind) -> Option<&Results> {
        self.campaigns.iter().find(|one| one.kind == kind).map(|one| &one.results)
    }

    fn all(&self) -> Results {
        let mut all = Results::default();
        self.campaigns.iter().for_each(|one| all.add(&one.results));
        all
    }

    pub(super) fn report(
        &self,
        args: &Args,
        sources: &CampaignSources,
        stop: &Arc<CampaignStop>,
        failures: &[DescribedFailure],
    ) -> FuzzReport {
        let all = self.all().figures;
        let options = args.options();
        let figures = |kind| self.results(kind).map(|results| results.figures.clone());
        let commands = |of: fn(&Results) -> &[u64]| -> Vec<String> {
            let command = |one: &CampaignResult| {
                let command = |number: &u64| sources.command(args, one.kind, *number);
                of(&one.results).iter().map(command).collect::<Vec<_>>()
            };
            self.campaigns.iter().flat_map(command).collect()
        };
        FuzzReport {
            schema: schema::SCHEMA,
            seed: args.seed,
            settings: options.to_string(),
            jobs: args.jobs.count() as u64,
            corpus: figures(SourceKind::Corpus),
            smith: figures(SourceKind::Smith),
            generated: figures(SourceKind::Generated),
            oracles: fuzz::by_oracle(&all),
            below_floors: self.below_floors(&options),
            idle: self.idle.clone(),
            late: commands(|results| &results.late),
            unfinished: commands(|results| &results.unfinished),
            killed: stop.killed.load(Ordering::Relaxed),
            failures: failures.iter().map(|one| one.failure.clone()).collect(),
            transitions: all.transitions(),
            all,
            interrupted: stop.interrupt.is_raised(),
            broken: stop.broken(),
            seconds: stop.started.elapsed().as_secs_f64(),
        }
    }

    /// The figures below their floors.
    fn below_floors(&self, options: &CampaignOptions) -> Vec<String> {
        let idle = self.idle.iter();
        let mut below: Vec<String> =
            idle.map(|program| format!("no transition compared: {program}")).collect();
        let Some(results) = self.results(SourceKind::Generated) else { return below };
        below.extend(results.figures.below_floors());
        if options.nans == Nans::Platform {
            below.extend(results.figures.below_nan_floor());
        }
        below
    }

    pub(super) fn text(&self, report: &FuzzReport) -> String {
        let mut text =
            format!("seed          {}\nsettings      {}\n", report.seed, report.settings);
        for CampaignResult { kind, results } in &self.campaigns {
            text += &fuzz::text(kind.name(), &results.figures);
        }
        text += &fuzz::oracles_text(&self.all().figures);
        for program in &report.idle {
            text += &format!("not judged    {program}: no transition compared\n");
        }
        for command in &report.unfinished {
            text += &format!("unfinished    {command}\n");
        }
        if report.killed > 0 {
            text += &format!("killed        {} programs, judged again\n", report.killed);
        }
        text
    }
}

impl Args {
    /// The number of cases of one kind; `None` without a campaign of this kind.
    fn cases(&self, sources: &CampaignSources, kind: SourceKind) -> Option<u64> {
        match kind {
            SourceKind::Corpus => sources.corpus.as_ref().map(|corpus| corpus.len()),
            SourceKind::Smith => self.smith,
            SourceKind::Generated => self.generates().then(|| self.most_programs()),
            SourceKind::Saved => self.case.is_some().then_some(1),
        }
    }

    /// Whether the command generates programs: if a limit for generated programs is set, or if the
    /// options select neither a corpus nor wasm-smith.
    pub(super) fn generates(&self) -> bool {
        if self.case.is_some() {
            return false;
        }
        let is_limited = self.time.is_some() || self.transitions.is_some();
        self.programs.is_some()
            || (is_limited && !self.repeats_corpus())
            || (self.corpus.is_empty() && self.smith.is_none())
    }

    /// Whether the programs of the corpus are judged until the time is up: if nothing else is. A
    /// limit on transitions alone would never end with programs that make none.
    fn repeats_corpus(&self) -> bool {
        let is_alone = self.programs.is_none() && self.smith.is_none();
        self.time.is_some() && is_alone && !self.corpus.is_empty()
    }

    /// The largest number of programs to generate.
    fn most_programs(&self) -> u64 {
        let unlimited = self.time.is_some() || self.transitions.is_some();
        self.programs.unwrap_or(if unlimited { u64::MAX } else { PROGRAMS })
    }

    /// Whether the campaigns are over, for `--time` too.
    fn stop(&self, stop: &Arc<CampaignStop>) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let time = self.time.map(|seconds| Duration::from_secs(seconds.into()));
        let stop = Arc::clone(stop);
        Arc::new(move || stop.is_over() || time.is_some_and(|time| stop.started.elapsed() >= time))
    }

    /// The limit on one case of the interpreter. A child that runs native code limits itself.
    fn case_limit(&self, stop: &CampaignStop) -> Option<CaseTime> {
        let started = stop.started;
        (self.engine == FuzzEngine::Interp).then(|| CaseTime {
            clock: Arc::new(move || started.elapsed()),
            most: Duration::from_secs(self.case_seconds()),
        })
    }
}

/// Runs one campaign.
fn run(
    args: &Args,
    kind: SourceKind,
    source: Arc<dyn CaseSource>,
    limits: &CampaignLimits,
    stop: &Arc<CampaignStop>,
) -> Results {
    let last = Mutex::new(Instant::now());
    let say = |figures: &Figures| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= TELL_EVERY {
            *last = Instant::now();
            let (programs, transitions) = (figures.programs, figures.transitions());
            tell_progress(&format!("{programs} programs, {transitions} transitions"));
        }
    };
    match args.engine {
        FuzzEngine::Interp => campaign(source, args.jobs.count(), limits, &say),
        FuzzEngine::Jit => {
            let (stop, seconds) = (Arc::clone(stop), args.case_seconds());
            let judge = move |cases: Range<u64>, watch: &BatchWatch<'_>| {
                let watch = CampaignWatch { watch, stop: &stop };
                judged_natively(kind, cases, seconds, &watch, &stop)
            };
            campaign_by(Arc::new(judge), args.jobs.count(), limits, &say)
        }
    }
}

/// Counts the transitions that the cases of each program of the corpus compare. A finding counts as
/// one: it judges the program.
fn count_transitions(corpus: &Arc<CorpusPrograms>, compared: &CorpusTransitions) -> Arc<CaseWatch> {
    let (corpus, compared) = (Arc::clone(corpus), Arc::clone(compared));
    Arc::new(move |number: u64, judged: &Judged| {
        let transitions = judged.figures.transitions() + judged.findings.len() as u64;
        let mut compared = compared.lock().unwrap_or_else(PoisonError::into_inner);
        *compared.entry(corpus.command(number).to_owned()).or_default() += transitions;
    })
}

/// The campaign, as the judge of cases in children sees it.
struct CampaignWatch<'a> {
    watch: &'a BatchWatch<'a>,
    stop: &'a CampaignStop,
}

impl ChildWatch for CampaignWatch<'_> {
    fn is_over(&self) -> bool {
        self.watch.is_over()
    }

    fn tell(&self, event: CaseEvent) -> bool {
        self.watch.tell(event)
    }

    fn killed(&self) {
        self.stop.count_killed();
    }
}

/// Judges cases in children. An error ends the campaigns.
pub(super) fn judged_natively(
    kind: SourceKind,
    cases: Range<u64>,
    seconds: u64,
    watch: &dyn ChildWatch,
    stop: &CampaignStop,
) -> bool {
    native::batch(kind, cases, seconds, watch).unwrap_or_else(|error| {
        stop.end_broken(native::no_process(&error));
        false
    })
}
