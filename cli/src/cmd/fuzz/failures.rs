//! The failures of the campaigns: each is judged again, and the first of the generated programs is
//! reduced to a test. With `--findings`, the smallest failure with each key is.
//!
//! The oracles run many times for that, so a budget bounds it (`--reduce-time`). When the budget is
//! spent, the smallest program found so far is the test.

use super::campaigns::{CampaignResult, CampaignSources, CampaignStop, judged_natively};
use super::native::ChildWatch;
use super::{Args, FuzzEngine, SourceKind, apart, native};
use crate::cmd::failure::tell_progress;
use fuzz::{
    Case, CaseEvent, CaseSource, Drawn, FailedCase, FindingKey, FindingRecord, FuzzFailure,
    FuzzFinding, GuiltyRewrite, RECORD_SCHEMA, SavedCase, judge,
};
use jit::Nans;
use std::collections::BTreeMap;
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
            reproduced: failure.reproduced,
            options: sources.words(args, *kind, *number),
            case_time: args.case_time,
            instructions: case.as_ref().map_or(0, |case| count(case) as u64),
            case: case.as_ref().filter(|_| !is_read).and_then(SavedCase::of),
            test: failure.test.clone(),
        }
    }
}

/// The records of failures: of each key the best one.
pub(super) fn records(
    args: &Args,
    sources: &CampaignSources,
    failures: &[DescribedFailure],
) -> Vec<FindingRecord> {
    best_of_keys(args, sources, failures).into_iter().map(|(_, record)| record).collect()
}

/// Of each key the best failure: its index, and its record.
fn best_of_keys(
    args: &Args,
    sources: &CampaignSources,
    failures: &[DescribedFailure],
) -> Vec<(usize, FindingRecord)> {
    let mut best: BTreeMap<&FindingKey, (usize, FindingRecord)> = BTreeMap::new();
    for (at, failure) in failures.iter().enumerate() {
        let record = failure.record(args, sources);
        let known = best.get(&failure.key);
        if known.is_none_or(|(_, known)| record.is_better_than(known)) {
            best.insert(&failure.key, (at, record));
        }
    }
    best.into_values().collect()
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
    let wanted = wanted_tests(args, sources, &described);
    for (at, ((again, failure), described)) in all.zip(&mut described).enumerate() {
        if wanted.contains(&at) && !again.is_read_by_children() {
            again.test(failure, described);
        }
    }
    described
}

/// The indices of the failures that get a test: with `--findings` the best failure with each key,
/// and otherwise the first of the generated programs.
fn wanted_tests(
    args: &Args,
    sources: &CampaignSources,
    failures: &[DescribedFailure],
) -> Vec<usize> {
    if args.findings.is_none() {
        let first = failures.iter().position(|one| one.kind == SourceKind::Generated);
        return Vec::from_iter(first);
    }
    best_of_keys(args, sources, failures).into_iter().map(|(at, _)| at).collect()
}

/// The end of the search for the rewrite to blame.
enum BlameSearch {
    /// The rewrite, if there is one. Also if nobody can search.
    Ended(Option<GuiltyRewrite>),
    /// The budget was spent.
    Unfinished,
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
        let search = match reproduced {
            Some(true) => self.guilty(failure),
            Some(false) => BlameSearch::Ended(None),
            None if self.is_searched(failure) => BlameSearch::Unfinished,
            None => BlameSearch::Ended(None),
        };
        let (key, guilty) = match search {
            BlameSearch::Unfinished => (FindingKey::before_the_search(first), None),
            BlameSearch::Ended(guilty) => {
                // Names of functions differ between random programs.
                let within = guilty.as_ref().filter(|_| self.kind == SourceKind::Corpus);
                (FindingKey::new(first, guilty.as_ref(), within.map(|g| &*g.func)), guilty)
            }
        };
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

    /// The case in which the rewrite to blame is searched; `None` if nobody can search. A child
    /// gets its case as text, which has no world of a WASI program; and with NaNs of the processor
    /// it judges another program.
    fn searched(self, failure: &FailedCase) -> Option<Case> {
        let case = self.case(failure.number)?;
        match self.args.engine {
            FuzzEngine::Interp => Some(case),
            FuzzEngine::Jit if case.options.nans == Nans::Platform => None,
            FuzzEngine::Jit => apart::as_sent(&case),
        }
    }

    /// Whether there is a search for the rewrite to blame if the budget suffices. The answer does
    /// not depend on the time: it is part of the key.
    fn is_searched(self, failure: &FailedCase) -> bool {
        let is_late = failure.findings.first().is_some_and(native::is_out_of_time);
        !is_late && self.searched(failure).is_some()
    }

    /// The rewrite to blame for a failure.
    fn guilty(self, failure: &FailedCase) -> BlameSearch {
        let engine = self.args.engine;
        let oracle = failure.findings[0].oracle;
        let Some(case) = self.searched(failure) else { return BlameSearch::Ended(None) };
        let (is_over, stop) = (Arc::clone(self.is_over), Arc::clone(self.stop));
        let guilty = unless_over(&**self.is_over, move || {
            let fails = |case: &Case| {
                let findings = judged_apart(engine, case, &*is_over, &stop)?;
                Some(findings.first().is_some_and(|finding| finding.oracle == oracle))
            };
            fuzz::guilty(&case, &fails)
        });
        guilty.map_or(BlameSearch::Unfinished, BlameSearch::Ended)
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
        tell_progress(&format!("reducing the program of {key}"));
        let (case, shown) = (case.clone(), finding.clone());
        let best = Arc::new(Mutex::new(BestCase { case: case.clone(), finding, tried: 0 }));
        let (engine, told) = (self.args.engine, Arc::clone(&best));
        let (is_over, stop) = (Arc::clone(self.is_over), Arc::clone(self.stop));
        let like = shown.clone();
        let judge = move |case: &Case| {
            // After the end no candidate shows the failure, so the reducer stops soon.
            if is_over() {
                return None;
            }
            let findings = judged_apart(engine, case, &*is_over, &stop)?;
            let mut best = locked(&told);
            best.tried += 1;
            let finding = findings.into_iter().next()?;
            if finding.is_like(&like) {
                (best.case, best.finding) = (case.clone(), finding.clone());
            }
            Some(finding)
        };
        let last = Mutex::new(Instant::now());
        let looks = {
            let (is_over, best) = (Arc::clone(self.is_over), Arc::clone(&best));
            move || {
                tell_best(&last, &best);
                is_over()
            }
        };
        unless_over(&looks, move || {
            fuzz::reduce(&case, &shown, &judge);
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

fn tell_best(last: &Mutex<Instant>, best: &Mutex<BestCase>) {
    let mut last = locked(last);
    if last.elapsed() >= TELL_EVERY {
        *last = Instant::now();
        let best = locked(best);
        let lines = ir::text::print_module(&best.case.module).to_string().lines().count();
        tell_progress(&format!("reducing: {lines} lines after {} attempts", best.tried));
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
