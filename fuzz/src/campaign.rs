//! Judges many cases on several threads. The figures do not depend on the number of threads.
//!
//! Threads take batches of consecutive cases, and the ledger adds batches in order of their
//! numbers. A budget of transitions is checked in that order too: the first batch that exhausts it
//! ends the campaign, and later batches are discarded.
//!
//! A budget is a promise. Example: the time is up, and a thread has begun a case that takes two
//! more minutes. The campaign ends without this case: it *abandons* the thread, which goes on until
//! its case or the process ends, and nobody reads what it finds. [`Results::unfinished`] counts
//! such cases. A case that takes longer than [`CaseTime`] is abandoned too ([`Results::late`]), and
//! another thread continues with the case after it.

use super::case::Case;
use super::figures::{AddUp, Figures};
use super::judge::{Judged, judge};
use super::native::Clock;
use super::oracle::FuzzFinding;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The interval at which a campaign looks at its limits.
const POLL: Duration = Duration::from_millis(20);

/// The time that threads get to end by themselves when a campaign is stopped. A judge of child
/// processes needs it to kill them.
const GRACE: Duration = Duration::from_millis(240);

/// A source of cases for a campaign.
pub trait CaseSource: Send + Sync {
    /// The case with this number. A source that returns [`Drawn::End`] for a number returns it for
    /// all higher numbers.
    fn case(&self, number: u64) -> Drawn;
}

/// The result of asking a source for a case.
pub enum Drawn {
    /// A case.
    Case(Box<Case>),
    /// The input with this number is not a program for this compiler.
    Refused,
    /// The source ends before this number.
    End,
}

/// A listener to judgments: it gets the number of a case, and the judgment.
pub type CaseWatch = dyn Fn(u64, &Judged) + Send + Sync;

/// The limits of a campaign.
#[derive(Clone)]
pub struct CampaignLimits {
    /// The number of cases.
    pub cases: u64,
    /// The number of cases that a thread takes at a time, at least 1. The campaign ends at the end
    /// of a batch unless it is stopped.
    pub batch: u64,
    /// The number of transitions after which the campaign ends, at the end of a batch.
    pub transitions: u64,
    /// The number of cases with findings, and of cases that take too long, after which the campaign
    /// ends, at the end of a batch.
    pub failures: usize,
    /// Called all the time. The campaign ends within a fraction of a second if it returns true, for
    /// example because the time is up.
    pub stop: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The limit on one case; `None` for no limit.
    pub case_time: Option<CaseTime>,
    /// Called with the number and the judgment of each case, in no order. A case behind the last
    /// batch is among them, although no figure counts it.
    pub on_judged: Arc<CaseWatch>,
}

impl Default for CampaignLimits {
    /// No limit, and a batch of 8 cases.
    fn default() -> CampaignLimits {
        CampaignLimits {
            cases: u64::MAX,
            batch: 8,
            transitions: u64::MAX,
            failures: usize::MAX,
            stop: Arc::new(|| false),
            case_time: None,
            on_judged: Arc::new(|_, _| {}),
        }
    }
}

/// The longest time of one case.
#[derive(Clone)]
pub struct CaseTime {
    /// The clock: the library reads none.
    pub clock: Clock,
    /// The time after which a case is abandoned.
    pub most: Duration,
}

/// A case with findings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedCase {
    /// The number of the case.
    pub number: u64,
    /// The findings.
    pub findings: Vec<FuzzFinding>,
}

/// The figures and failures of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// The figures of all cases.
    pub figures: Figures,
    /// The cases with findings, in ascending order of their numbers.
    pub failures: Vec<FailedCase>,
    /// The cases that were begun when the campaign was stopped, in no order.
    pub unfinished: Vec<u64>,
    /// The cases that took longer than [`CaseTime`], in ascending order of their numbers.
    pub late: Vec<u64>,
}

impl AddUp for Results {
    /// Adds the results of cases with higher numbers.
    fn add(&mut self, other: &Results) {
        self.figures.add(&other.figures);
        self.failures.extend(other.failures.iter().cloned());
        self.unfinished.extend(&other.unfinished);
        self.late.extend(&other.late);
    }
}

/// An event of a batch.
pub enum CaseEvent {
    /// The judgment of the case with this number begins.
    Begun(u64),
    /// The case with this number has figures and findings.
    Judged {
        /// The number of the case.
        number: u64,
        /// The judgment.
        judged: Box<Judged>,
    },
    /// The judgment of the case begun last was cut off.
    Unfinished,
    /// An input is not a program for this compiler, whether its judgment has begun or not.
    Refused,
    /// The case begun last does not exist: the source has ended.
    Dropped,
}

/// A judge of the cases in a range, one after another. It tells its events to a [`BatchWatch`], and
/// returns early if this says so. The result says whether the source ended in the range.
pub type BatchJudge = dyn Fn(Range<u64>, &BatchWatch<'_>) -> bool + Send + Sync;

/// The campaign, as the judge of a batch sees it.
pub struct BatchWatch<'a> {
    campaign: &'a RunningCampaign,
    batch: &'a Mutex<BatchInWork>,
}

impl BatchWatch<'_> {
    /// Whether the judge is to return at once.
    pub fn is_over(&self) -> bool {
        self.campaign.is_over() || locked(self.batch).is_abandoned
    }

    /// Tells an event. The answer says whether the judge goes on.
    pub fn tell(&self, event: CaseEvent) -> bool {
        let mut batch = locked(self.batch);
        if batch.is_abandoned {
            return false;
        }
        // Test at each event, not once per batch: a batch of large programs may take minutes
        // (`a_campaign_ends_within_a_batch_when_the_time_is_up`).
        let is_over = self.campaign.is_over();
        match event {
            CaseEvent::Begun(_) if is_over => {}
            CaseEvent::Begun(number) => {
                let limit = self.campaign.limits.case_time.as_ref();
                batch.begun = Some((number, limit.map(|l| (l.clock)()).unwrap_or_default()));
                batch.rest.start = number + 1;
            }
            CaseEvent::Unfinished => {
                let cut = batch.begun.take().map(|(number, _)| number);
                batch.results.unfinished.extend(cut);
            }
            CaseEvent::Refused => {
                batch.begun = None;
                batch.results.figures.refused += 1;
            }
            CaseEvent::Dropped => batch.begun = None,
            CaseEvent::Judged { number, judged } => {
                batch.begun = None;
                batch.rest.start = number + 1;
                (self.campaign.limits.on_judged)(number, &judged);
                batch.results.figures.add(&judged.figures);
                if !judged.findings.is_empty() {
                    batch.results.failures.push(FailedCase { number, findings: judged.findings });
                }
            }
        }
        !is_over
    }
}

/// The batches that threads handed in, and the sum of those added so far.
#[derive(Default)]
struct Ledger {
    results: Results,
    /// The number of the next batch to add.
    next: u64,
    /// Batches that wait for an earlier one, and whether the source ended in each.
    waiting: BTreeMap<u64, (Results, bool)>,
    spent: bool,
}

impl Ledger {
    /// Takes a batch and adds all batches that are now consecutive. `last` says whether the source
    /// ended in this batch.
    fn hand_in(&mut self, batch: u64, results: Results, last: bool, limits: &CampaignLimits) {
        self.waiting.insert(batch, (results, last));
        // Adding in order makes the figures, and the batch that exhausts the budget, independent of
        // timing.
        while let Some((results, last)) = self.waiting.remove(&self.next) {
            if self.spent {
                return;
            }
            self.next += 1;
            self.results.add(&results);
            self.spent = last
                || self.results.figures.transitions() >= limits.transitions
                || self.results.failures.len() + self.results.late.len() >= limits.failures;
        }
    }
}

/// The batch of one thread.
#[derive(Default)]
struct BatchInWork {
    number: u64,
    /// The cases not begun yet.
    rest: Range<u64>,
    results: Results,
    /// The number of the case in work, and the time of its beginning if cases have a limit.
    begun: Option<(u64, Duration)>,
    /// Nobody reads the events of the thread any more.
    is_abandoned: bool,
}

/// The data that the threads of a campaign share. Abandoned threads outlive the campaign.
struct RunningCampaign {
    judge: Arc<BatchJudge>,
    limits: CampaignLimits,
    next: AtomicU64,
    over: AtomicBool,
    ledger: Mutex<Ledger>,
    /// Signalled when a batch is handed in.
    handed_in: Condvar,
}

/// Ends the campaign when its thread panics. Without this, the batches of other threads would wait
/// for the batch of the thread that panicked (`a_source_that_panics_ends_the_campaign`).
struct EndOnPanic<'a>(&'a RunningCampaign);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.over.store(true, Ordering::Relaxed);
        }
    }
}

/// A thread of a campaign.
struct CampaignThread {
    batch: Arc<Mutex<BatchInWork>>,
    thread: JoinHandle<()>,
}

/// Judges cases from number 0 on until a limit is reached. Calls `tell` with the figures so far,
/// many times a second. Cost: the sum over the cases. Memory: one batch for each thread, and the
/// batches that wait for an earlier batch.
///
/// # Panics
/// If the source panics.
pub fn campaign(
    source: Arc<dyn CaseSource>,
    jobs: usize,
    limits: &CampaignLimits,
    tell: &dyn Fn(&Figures),
) -> Results {
    let judge = Arc::new(move |cases: Range<u64>, watch: &BatchWatch<'_>| {
        judge_batch(&*source, cases, watch)
    });
    campaign_by(judge, jobs, limits, tell)
}

/// Like [`campaign()`], for cases that another judge judges, such as one in child processes.
///
/// # Panics
/// If the judge panics.
pub fn campaign_by(
    judge: Arc<BatchJudge>,
    jobs: usize,
    limits: &CampaignLimits,
    tell: &dyn Fn(&Figures),
) -> Results {
    let campaign = Arc::new(RunningCampaign {
        judge,
        limits: limits.clone(),
        next: AtomicU64::new(0),
        over: AtomicBool::new(false),
        ledger: Mutex::default(),
        handed_in: Condvar::new(),
    });
    let mut workers: Vec<CampaignThread> =
        (0..jobs.max(1)).map(|_| campaign.worker(None)).collect();
    loop {
        campaign.wait(tell);
        if campaign.over.load(Ordering::Relaxed) || (limits.stop)() {
            break;
        }
        if let Some(limit) = &limits.case_time {
            workers.iter_mut().for_each(|worker| campaign.replace_late(worker, limit));
        }
        if workers.iter().all(|worker| worker.thread.is_finished()) {
            break;
        }
    }
    campaign.over.store(true, Ordering::Relaxed);
    for _ in 0..GRACE.as_millis() / POLL.as_millis() {
        if !workers.iter().all(|worker| worker.thread.is_finished()) {
            std::thread::sleep(POLL);
        }
    }
    campaign.finish(workers)
}

/// The value under a lock. A panic of the judge ends the campaign anyway, when its thread is
/// joined.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunningCampaign {
    /// Starts a thread, on the batch of an abandoned thread if there is one.
    fn worker(self: &Arc<RunningCampaign>, batch: Option<BatchInWork>) -> CampaignThread {
        let (campaign, resumes) = (Arc::clone(self), batch.is_some());
        let batch = Arc::new(Mutex::new(batch.unwrap_or_default()));
        let own = Arc::clone(&batch);
        let thread = std::thread::spawn(move || campaign.work(&own, resumes));
        CampaignThread { batch, thread }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || (self.limits.stop)()
    }

    /// Judges batches until the campaign is over.
    fn work(&self, batch: &Mutex<BatchInWork>, mut resumes: bool) {
        let _end = EndOnPanic(self);
        while !self.is_over() && (std::mem::take(&mut resumes) || self.take_batch(batch)) {
            let cases = locked(batch).rest.clone();
            let end = cases.end.min(self.limits.cases);
            let is_cut = end < cases.end;
            let watch = BatchWatch { campaign: self, batch };
            let last = (self.judge)(cases.start..end.max(cases.start), &watch);
            // The lock of the batch is held until the ledger has the results. `finish` would count
            // them twice or not at all otherwise.
            let mut done = locked(batch);
            if done.is_abandoned || (self.limits.stop)() {
                return;
            }
            let results = std::mem::take(&mut done.results);
            let mut ledger = locked(&self.ledger);
            ledger.hand_in(done.number, results, last || is_cut, &self.limits);
            self.over.fetch_or(ledger.spent, Ordering::Relaxed);
            self.handed_in.notify_all();
            // All later batches are empty. Without this line the thread would take them in a busy
            // loop while another thread finishes a long batch
            // (`a_source_that_has_ended_is_not_asked_again`).
            if last || is_cut {
                return;
            }
        }
    }

    /// Takes the next batch, unless the thread is abandoned.
    fn take_batch(&self, batch: &Mutex<BatchInWork>) -> bool {
        let mut batch = locked(batch);
        if batch.is_abandoned {
            return false;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let first = number.saturating_mul(self.limits.batch);
        let rest = first..first.saturating_add(self.limits.batch);
        *batch = BatchInWork { number, rest, ..BatchInWork::default() };
        true
    }

    /// Waits for a batch or for the next look at the limits, and tells the figures so far.
    fn wait(&self, tell: &dyn Fn(&Figures)) {
        let ledger = locked(&self.ledger);
        let waited = self.handed_in.wait_timeout(ledger, POLL);
        let (ledger, _) = waited.unwrap_or_else(PoisonError::into_inner);
        tell(&ledger.results.figures);
    }

    /// Abandons a thread whose case takes too long. Another thread takes the rest of its batch.
    fn replace_late(self: &Arc<RunningCampaign>, worker: &mut CampaignThread, limit: &CaseTime) {
        let mut batch = locked(&worker.batch);
        let is_late = |begun: Duration| (limit.clock)().saturating_sub(begun) > limit.most;
        let Some((late, _)) = batch.begun.filter(|(_, begun)| is_late(*begun)) else { return };
        batch.is_abandoned = true;
        let mut rest = BatchInWork {
            number: batch.number,
            rest: batch.rest.clone(),
            results: std::mem::take(&mut batch.results),
            ..BatchInWork::default()
        };
        rest.results.late.push(late);
        drop(batch);
        *worker = self.worker(Some(rest));
    }

    /// Abandons all threads that have not ended, and adds up: the batches that still wait, since an
    /// earlier batch may never arrive, and the cases judged in the batches in work.
    fn finish(&self, workers: Vec<CampaignThread>) -> Results {
        let mut parts: BTreeMap<u64, Results> = BTreeMap::new();
        for CampaignThread { batch, thread } in workers {
            if thread.is_finished() {
                thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
            }
            let mut batch = locked(&batch);
            batch.is_abandoned = true;
            let mut results = std::mem::take(&mut batch.results);
            results.unfinished.extend(batch.begun.map(|(number, _)| number));
            parts.entry(batch.number).or_default().add(&results);
        }
        let mut ledger = locked(&self.ledger);
        if !ledger.spent {
            for (number, (results, _)) in std::mem::take(&mut ledger.waiting) {
                parts.entry(number).or_default().add(&results);
            }
            parts.values().for_each(|part| ledger.results.add(part));
        }
        std::mem::take(&mut ledger.results)
    }
}

/// Judges the cases of a batch. Returns whether the source ended in the batch.
fn judge_batch(source: &dyn CaseSource, cases: Range<u64>, watch: &BatchWatch<'_>) -> bool {
    for number in cases {
        // Drawing a case takes time too: a generator may loop
        // (`another_thread_continues_behind_a_case_that_cannot_be_drawn`).
        if !watch.tell(CaseEvent::Begun(number)) {
            return false;
        }
        let goes_on = match source.case(number) {
            Drawn::End => {
                watch.tell(CaseEvent::Dropped);
                return true;
            }
            Drawn::Refused => watch.tell(CaseEvent::Refused),
            Drawn::Case(case) => {
                watch.tell(CaseEvent::Judged { number, judged: Box::new(judge(&case)) })
            }
        };
        if !goes_on {
            return false;
        }
    }
    false
}
