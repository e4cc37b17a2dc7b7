//! Judges many cases on several threads. The figures do not depend on the number of threads.
//!
//! Threads take batches of consecutive cases, and the ledger adds batches in order of their
//! numbers. A budget of transitions is checked in that order too: the first batch that exhausts it
//! ends the campaign, and later batches are discarded.

use super::case::Case;
use super::figures::{AddUp, Figures};
use super::judge::judge;
use super::oracle::FuzzFinding;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of cases that a thread takes at a time.
const BATCH: u64 = 8;

/// A source of cases for a campaign.
pub trait CaseSource: Sync {
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

/// The limits of a campaign.
pub struct CampaignLimits<'a> {
    /// The number of cases.
    pub cases: u64,
    /// The number of transitions after which the campaign ends, at the end of a batch.
    pub transitions: u64,
    /// The number of cases with findings after which the campaign ends, at the end of a batch.
    pub failures: usize,
    /// Called before each case. The campaign ends if it returns true, for example because the time
    /// is up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
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
    fn hand_in(&mut self, batch: u64, results: Results, last: bool, budget: &CampaignLimits<'_>) {
        self.waiting.insert(batch, (results, last));
        // Adding in order makes the figures, and the batch that exhausts the budget, independent of
        // timing.
        while let Some((results, last)) = self.waiting.remove(&self.next) {
            if self.spent {
                return;
            }
            self.next += 1;
            self.results.figures.add(&results.figures);
            self.results.failures.extend(results.failures);
            let figures = &self.results.figures;
            self.spent = last
                || figures.transitions() >= budget.transitions
                || self.results.failures.len() >= budget.failures;
        }
    }
}

/// Judges cases from number 0 on until the budget is exhausted. Calls `tell` with the figures so
/// far after each batch. Cost: the sum over the cases. Memory: one batch per thread, and the
/// batches that wait for an earlier batch.
pub fn campaign(
    source: &dyn CaseSource,
    jobs: usize,
    budget: &CampaignLimits<'_>,
    tell: &(dyn Fn(&Figures) + Sync),
) -> Results {
    campaign_by(&|cases| judge_batch(source, cases, budget), jobs, budget, tell)
}

/// A function that judges the cases of a range. Returns the results, and whether the source or the
/// budget ended in the range.
pub type Batch<'a> = dyn Fn(Range<u64>) -> (Results, bool) + Sync + 'a;

/// Like [`campaign()`], for cases that another judge judges, such as one in child processes.
pub fn campaign_by(
    judge: &Batch<'_>,
    jobs: usize,
    budget: &CampaignLimits<'_>,
    tell: &(dyn Fn(&Figures) + Sync),
) -> Results {
    let (next, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let ledger = Mutex::new(Ledger::default());
    let work = || {
        while !over.load(Ordering::Relaxed) && !(budget.stop)() {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            let (results, last) = judge(batch * BATCH..(batch + 1) * BATCH);
            let mut ledger = ledger.lock().expect("judging catches panics");
            ledger.hand_in(batch, results, last, budget);
            over.fetch_or(ledger.spent, Ordering::Relaxed);
            tell(&ledger.results.figures);
            // All later batches are empty. Without this line the thread would take them in a busy
            // loop while another thread finishes a long batch
            // (`a_source_that_has_ended_is_not_asked_again`).
            if last {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        (1..jobs).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    finished(ledger.into_inner().expect("judging catches panics"))
}

/// Adds the batches that still wait. If the time ended the campaign, an earlier batch may never
/// arrive, but the work done is not discarded.
fn finished(mut ledger: Ledger) -> Results {
    if !ledger.spent {
        for (results, _) in std::mem::take(&mut ledger.waiting).into_values() {
            ledger.results.figures.add(&results.figures);
            ledger.results.failures.extend(results.failures);
        }
    }
    ledger.results
}

/// Judges the cases of a batch. Returns the results, and whether the source or the budget ended in
/// the batch.
fn judge_batch(
    source: &dyn CaseSource,
    cases: Range<u64>,
    budget: &CampaignLimits<'_>,
) -> (Results, bool) {
    let mut results = Results::default();
    for number in cases {
        if number >= budget.cases {
            return (results, true);
        }
        // Test before each case, not once per batch: a batch of large programs may take minutes
        // (`a_campaign_ends_within_a_batch_when_the_time_is_up`).
        if (budget.stop)() {
            return (results, false);
        }
        match source.case(number) {
            Drawn::End => return (results, true),
            Drawn::Refused => results.figures.refused += 1,
            Drawn::Case(case) => {
                let judged = judge(&case);
                results.figures.add(&judged.figures);
                if !judged.findings.is_empty() {
                    results.failures.push(FailedCase { number, findings: judged.findings });
                }
            }
        }
    }
    (results, false)
}
