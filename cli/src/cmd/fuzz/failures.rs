//! The failures of the campaigns: each is judged again, and the first of the generated programs is
//! reduced to a test. With `--findings`, the first failure with each key is.
//!
//! The oracles run many times for that, so a budget bounds it (`--reduce-time`). When the budget is
//! spent, the smallest program found so far is the test.

use super::campaigns::{CampaignResult, CampaignSources, CampaignStop, judged_natively};
use super::native::ChildWatch;
use super::{Args, FuzzEngine, SourceKind, apart, native};
use crate::cmd::failure::tell;
use fuzz::{
    Case, CaseEvent, CaseSource, Drawn, FailedCase, FindingKey, FindingRecord, FuzzFailure,
    FuzzFinding, GuiltyRewrite, RECORD_SCHEMA, SavedCase, judge,
};
use jit::Nans;
use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The interval between messages of a reduction.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The time that a thread gets to kill its child when the budget is spent.
const GRACE: Duration = Duration::from_millis(240);

/// Whether something that runs in another thread is to end.
type IsOver = Arc<dyn Fn() -> bool + Send + Sync>;

/// A failure, and the program that shows it.
pub(super) struct DescribedFailure {
    pub(super) failure: FuzzFailure,
    kind: SourceKind,
    number: u64,
    key: FindingKey,
    /// The program, reduced if there was a test to write. `None` if the source does not make it
    /// again.
    case: Option<Case>,
}

impl DescribedFailure {
    /// The file of the finding.
    pub(super) fn record(&self, args: &Args, sources: &CampaignSources) -> FindingRecord {
        let DescribedFailure { failure, kind, number, key, case } = self;
        let count = |case: &Case| -> usize {
            case.module.defined().map(|(_, body)| body.inst_count()).sum()
        };
        let is_read = *kind == SourceKind::Corpus;
        FindingRecord {
            schema: RECORD_SCHEMA,
            key: failure.key.clone(),
            oracle: failure.oracle.to_owned(),
            guilty: failure.guilty.clone(),
            place: key.place().to_owned(),
            message: failure.message.clone(),
            reproduce: failure.reproduce.clone(),
            options: sources.words(args, *kind, *number),
            case_time: args.case_time,
            instructions: case.as_ref().map_or(0, |case| count(case) as u64),
            case: case.as_ref().filter(|_| !is_read).and_then(SavedCase::of),
            test: failure.test.clone(),
        }
    }
}

/// All failures, each with the command that reproduces it. The options decide which failures get a
/// test. Cheap answers come first: the budget may end in a reduction.
pub(super) fn failures(
    args: &Args,
    sources: &CampaignSources,
    campaigns: &[CampaignResult],
    stop: &Arc<CampaignStop>,
) -> Vec<DescribedFailure> {
    let end = Instant::now() + Duration::from_secs(args.reduce_time.into());
    let stopped = Arc::clone(stop);
    let is_over: IsOver = Arc::new(move || stopped.is_over() || Instant::now() >= end);
    let again = |kind: SourceKind| FailureRetrial { args, kind, sources, stop, is_over: &is_over };
    let all = campaigns
        .iter()
        .flat_map(|one| one.results.failures.iter().map(|failure| (again(one.kind), failure)));
    let reproduced: Vec<Option<bool>> =
        all.clone().map(|(again, failure)| again.finds(failure)).collect();
    let mut described: Vec<DescribedFailure> = all
        .clone()
        .zip(reproduced)
        .map(|((again, failure), reproduced)| again.described(failure, reproduced))
        .collect();
    let (mut generated, mut keys) = (0, BTreeSet::new());
    for ((again, failure), described) in all.zip(&mut described) {
        generated += u32::from(again.kind == SourceKind::Generated);
        let wants_test = match args.findings {
            Some(_) => keys.insert(described.key.clone()),
            None => again.kind == SourceKind::Generated && generated == 1,
        };
        if wants_test && !again.is_read_by_children() {
            again.test(failure, described);
        }
    }
    described
}

/// Judges failures again.
#[derive(Clone, Copy)]
struct FailureRetrial<'a> {
    args: &'a Args,
    kind: SourceKind,
    sources: &'a CampaignSources,
    stop: &'a Arc<CampaignStop>,
    is_over: &'a IsOver,
}

impl FailureRetrial<'_> {
    /// A failure without a test.
    fn described(self, failure: &FailedCase, reproduced: Option<bool>) -> DescribedFailure {
        let first = &failure.findings[0];
        let message = failure.findings.iter().map(|f| f.to_string()).collect::<Vec<_>>();
        let guilty = (reproduced == Some(true)).then(|| self.guilty(failure)).flatten();
        // Names of functions differ between random programs.
        let within = guilty.as_ref().filter(|_| self.kind == SourceKind::Corpus);
        let key = FindingKey::new(first, guilty.as_ref(), within.map(|g| &*g.func));
        let failure_of = FuzzFailure {
            key: key.to_string(),
            oracle: first.oracle.name(),
            message: message.join("\n"),
            reproduce: self.sources.command(self.args, self.kind, failure.number),
            reproduced,
            guilty: guilty.map(|rewrite| rewrite.to_string()),
            test: None,
        };
        DescribedFailure {
            failure: failure_of,
            kind: self.kind,
            number: failure.number,
            key,
            case: self.case(failure.number),
        }
    }

    fn case(self, number: u64) -> Option<Case> {
        match self.sources.source(self.kind)?.case(number) {
            Drawn::Case(case) => Some(*case),
            Drawn::Refused | Drawn::End => None,
        }
    }

    /// Whether children judge the program, and read its file themselves: nobody can reduce it.
    fn is_read_by_children(self) -> bool {
        self.args.engine == FuzzEngine::Jit && self.kind == SourceKind::Corpus
    }

    /// Whether the oracle of a failure finds something again; `None` without an answer in time. A
    /// case that exhausted its processor time is not judged again: that takes as long.
    fn finds(self, failure: &FailedCase) -> Option<bool> {
        let oracle = failure.findings.first().filter(|f| !native::is_out_of_time(f))?.oracle;
        let (kind, number, engine) = (self.kind, failure.number, self.args.engine);
        let (source, seconds) = (self.sources.source(kind)?, self.args.case_seconds());
        let (is_over, stop) = (Arc::clone(self.is_over), Arc::clone(self.stop));
        let findings = unless_over(&**self.is_over, move || match engine {
            FuzzEngine::Interp => Some(judged_again(&*source, number)),
            FuzzEngine::Jit => {
                let watch = OneWatch { is_over, stop: &stop, findings: Mutex::default() };
                judged_natively(kind, number..number + 1, seconds, &watch, &stop);
                watch.findings.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
        });
        Some(findings??.iter().any(|finding| finding.oracle == oracle))
    }

    /// The rewrite to blame for a failure. A child gets its case as text, which has no world of a
    /// WASI program; and with NaNs of the processor it judges another program.
    fn guilty(self, failure: &FailedCase) -> Option<GuiltyRewrite> {
        let engine = self.args.engine;
        let case = self.case(failure.number)?;
        let case = match engine {
            FuzzEngine::Interp => case,
            FuzzEngine::Jit if case.options.nans == Nans::Platform => return None,
            FuzzEngine::Jit => apart::as_sent(&case)?,
        };
        let oracle = failure.findings.first()?.oracle;
        let (is_over, stop) = (Arc::clone(self.is_over), Arc::clone(self.stop));
        let guilty = unless_over(&**self.is_over, move || {
            let fails = |case: &Case| {
                let findings = judged_apart(engine, case, &*is_over, &stop)?;
                Some(findings.first().is_some_and(|finding| finding.oracle == oracle))
            };
            fuzz::guilty(&case, &fails)
        });
        guilty.flatten()
    }

    /// Writes the case of a failure as a test, reduced if possible.
    fn test(self, failure: &FailedCase, described: &mut DescribedFailure) {
        let origin = described.failure.reproduce.clone();
        let is_reduced = described.failure.reproduced == Some(true) && !self.args.no_reduce;
        let Some(case) = &mut described.case else { return };
        let mut finding = failure.findings[0].clone();
        if is_reduced {
            (*case, finding) = self.small(case, finding, &described.failure.key);
        }
        described.failure.test = Some(fuzz::as_test(case, &finding, &origin));
    }

    /// The smallest case with the finding that the budget allows, and its finding.
    fn small(self, case: &Case, finding: FuzzFinding, key: &str) -> (Case, FuzzFinding) {
        tell(&format!("reducing the program of {key}"));
        let (case, oracle) = (case.clone(), finding.oracle);
        let best = Arc::new(Mutex::new(BestCase { case: case.clone(), finding, tried: 0 }));
        let (engine, told) = (self.args.engine, Arc::clone(&best));
        let (is_over, stop) = (Arc::clone(self.is_over), Arc::clone(self.stop));
        let judge = move |case: &Case| {
            // After the end no candidate shows the failure, so the reducer stops soon.
            if is_over() {
                return None;
            }
            let findings = judged_apart(engine, case, &*is_over, &stop)?;
            let mut best = locked(&told);
            best.tried += 1;
            let finding = findings.into_iter().next()?;
            let found = finding.oracle;
            if found == oracle {
                (best.case, best.finding) = (case.clone(), finding);
            }
            Some(found)
        };
        let last = Mutex::new(Instant::now());
        let looks = {
            let (is_over, best) = (Arc::clone(self.is_over), Arc::clone(&best));
            move || {
                tell_progress(&last, &best);
                is_over()
            }
        };
        unless_over(&looks, move || {
            fuzz::reduce(&case, oracle, &judge);
        });
        let best = locked(&best);
        (best.case.clone(), best.finding.clone())
    }
}

/// The smallest failing case so far.
struct BestCase {
    case: Case,
    finding: FuzzFinding,
    /// The number of cases judged.
    tried: u32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell_progress(last: &Mutex<Instant>, best: &Mutex<BestCase>) {
    let mut last = locked(last);
    if last.elapsed() >= TELL_EVERY {
        *last = Instant::now();
        let best = locked(best);
        let lines = ir::text::print_module(&best.case.module).to_string().lines().count();
        tell(&format!("reducing: {lines} lines after {} attempts", best.tried));
    }
}

/// Receives the findings of one case that a child judges.
struct OneWatch<'a> {
    is_over: IsOver,
    stop: &'a CampaignStop,
    findings: Mutex<Option<Vec<FuzzFinding>>>,
}

impl ChildWatch for OneWatch<'_> {
    fn is_over(&self) -> bool {
        (self.is_over)()
    }

    fn tell(&self, event: CaseEvent) -> bool {
        if let CaseEvent::Judged { judged, .. } = event {
            *locked(&self.findings) = Some(judged.findings);
        }
        !(self.is_over)()
    }

    fn killed(&self) {
        self.stop.count_killed();
    }
}

fn judged_again(source: &dyn CaseSource, number: u64) -> Vec<FuzzFinding> {
    match source.case(number) {
        Drawn::Case(case) => judge(&case).findings,
        Drawn::Refused | Drawn::End => Vec::new(),
    }
}

/// The findings in a case of the reducer; `None` without an answer.
fn judged_apart(
    engine: FuzzEngine,
    case: &Case,
    is_over: &dyn Fn() -> bool,
    stop: &CampaignStop,
) -> Option<Vec<FuzzFinding>> {
    match engine {
        FuzzEngine::Interp => Some(judge(case).findings),
        FuzzEngine::Jit => apart::judge_apart(case, is_over).unwrap_or_else(|error| {
            stop.end_broken(native::no_process(&error));
            None
        }),
    }
}

/// The result of `work`, unless `is_over` returns true before. The thread then gets a moment to
/// kill its child. Nobody reads its result.
///
/// # Panics
/// If `work` panics.
fn unless_over<T: Send + 'static>(
    is_over: &dyn Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // Each of many failures would wait for the moment below otherwise.
    if is_over() {
        return None;
    }
    let (sender, done) = channel();
    let thread = std::thread::spawn(move || {
        // Nobody receives after the end.
        let _ = sender.send(work());
    });
    loop {
        match done.recv_timeout(native::POLL) {
            Ok(result) => return Some(result).filter(|_| !is_over()),
            Err(RecvTimeoutError::Timeout) if is_over() => {
                let _ = done.recv_timeout(GRACE);
                return None;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
                return None;
            }
        }
    }
}
