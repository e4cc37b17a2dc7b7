//! Many cases, on several threads, with figures that do not depend on how many.
//!
//! Cases are taken in batches of neighboring numbers and added up in order of their numbers. A
//! budget of transitions ends the campaign after the first batch, in that order, with which it is
//! spent; what other threads did beyond is forgotten.

use super::case::Case;
use super::figures::Figures;
use super::judge::judge;
use super::oracle::Finding;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Cases that one thread takes at a time.
const BATCH: u64 = 8;

/// Where the cases of a campaign come from.
pub trait Source: Sync {
    /// The case with this number; [`Drawn::End`] for this and all later numbers, or for none.
    fn case(&self, number: u64) -> Drawn;
}

/// What a source has for a number.
pub enum Drawn {
    /// A case.
    Case(Box<Case>),
    /// An input that is no program for this compiler.
    Refused,
    /// Nothing, nor for any later number.
    End,
}

/// When a campaign ends.
pub struct Budget<'a> {
    /// After so many cases.
    pub cases: u64,
    /// With so many transitions.
    pub transitions: u64,
    /// With so many cases in which something was found.
    pub failures: usize,
    /// Asked before each case: whether to end in any case, as when the time is up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// A case in which something was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its number.
    pub number: u64,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What a campaign did and found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// What was done.
    pub figures: Figures,
    /// The cases in which something was found, ascending.
    pub failures: Vec<Failure>,
}

/// What threads have handed in and what is added up already.
#[derive(Default)]
struct Ledger {
    results: Results,
    /// The number of the next batch to add.
    next: u64,
    /// Batches that wait for one before them.
    waiting: BTreeMap<u64, (Results, bool)>,
    spent: bool,
}

impl Ledger {
    /// Takes in a batch, and adds what has become contiguous. `last`: whether the source ended in
    /// it.
    fn hand_in(&mut self, batch: u64, results: Results, last: bool, budget: &Budget<'_>) {
        self.waiting.insert(batch, (results, last));
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

/// Judges cases from number 0 on until the budget is spent. `tell` is called with the figures so
/// far after each batch. Cost: that of the cases; memory, that of one batch for each thread.
pub fn campaign(
    source: &dyn Source,
    jobs: usize,
    budget: &Budget<'_>,
    tell: &(dyn Fn(&Figures) + Sync),
) -> Results {
    campaign_by(&|cases| judge_batch(source, cases, budget), jobs, budget, tell)
}

/// Judges the cases with some numbers, however that is done; whether the source or the budget ended
/// among them.
pub type Batch<'a> = dyn Fn(Range<u64>) -> (Results, bool) + Sync + 'a;

/// As [`campaign()`], with cases judged elsewhere: in other processes.
pub fn campaign_by(
    judge: &Batch<'_>,
    jobs: usize,
    budget: &Budget<'_>,
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
            // Behind the end are empty batches alone, without number, while another thread is at a
            // long one (`a_source_that_has_ended_is_not_asked_again`).
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

/// When the time was up, batches may be left that wait for none that will come: what was done is
/// not thrown away.
fn finished(mut ledger: Ledger) -> Results {
    if !ledger.spent {
        for (results, _) in std::mem::take(&mut ledger.waiting).into_values() {
            ledger.results.figures.add(&results.figures);
            ledger.results.failures.extend(results.failures);
        }
    }
    ledger.results
}

/// Judges the cases of a batch; whether the source or the budget ended in it.
fn judge_batch(source: &dyn Source, cases: Range<u64>, budget: &Budget<'_>) -> (Results, bool) {
    let mut results = Results::default();
    for number in cases {
        if number >= budget.cases {
            return (results, true);
        }
        // A few large programs may take minutes
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
                    results.failures.push(Failure { number, findings: judged.findings });
                }
            }
        }
    }
    (results, false)
}
