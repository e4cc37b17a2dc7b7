//! The limits of a campaign, and cases that do not end.

use super::{Seeds, clean};
use fuzz::{
    BatchWatch, CampaignLimits, CampaignOptions, CaseEvent, CaseSource, CaseTime, Clock, Drawn,
    Figures, FuzzFinding, FuzzOracle, Judged, campaign, campaign_by,
};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A source with one case. Counts the requests after its end.
struct OneCase {
    seeds: Seeds,
    asked: AtomicU64,
}

impl CaseSource for OneCase {
    fn case(&self, number: u64) -> Drawn {
        match number {
            0 => self.seeds.case(0),
            _ => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                Drawn::End
            }
        }
    }
}

#[test]
fn a_source_that_has_ended_is_not_asked_again() {
    let seeds = Seeds(CampaignOptions::default());
    let source = Arc::new(OneCase { seeds, asked: AtomicU64::new(0) });
    let limits = CampaignLimits::default();
    let results = campaign(Arc::<OneCase>::clone(&source), 4, &limits, &|_| {});
    assert!(clean(&results).transitions() > 0);
    let asked = source.asked.load(Ordering::Relaxed);
    assert!(asked <= 4, "4 threads asked {asked} times after the end, expected once each");
}

#[test]
fn a_campaign_ends_within_a_batch_when_the_time_is_up() {
    let source = Arc::new(Slow::new(2));
    let told = Arc::clone(&source.begun);
    // The time is up in the second case of the batch.
    let stop = Arc::new(move || told.load(Ordering::Relaxed) >= 2);
    let limits = CampaignLimits { stop, ..CampaignLimits::default() };
    let results = campaign(source, 1, &limits, &|_| {});
    assert_eq!(clean(&results).programs + results.unfinished.len() as u64, 2);
}

/// The thread goes on no more, and takes no time.
fn park_forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// A source whose cases from some number on are never there: a case that does not end.
struct Slow {
    seeds: Seeds,
    begun: Arc<AtomicU64>,
    ends: u64,
}

impl Slow {
    fn new(ends: u64) -> Slow {
        let seeds = Seeds(CampaignOptions::default());
        Slow { seeds, begun: Arc::default(), ends }
    }
}

impl CaseSource for Slow {
    fn case(&self, number: u64) -> Drawn {
        self.begun.fetch_add(1, Ordering::Relaxed);
        if number >= self.ends {
            park_forever();
        }
        self.seeds.case(number)
    }
}

/// Without abandoned threads, a campaign of 10 seconds ended when its longest case did.
#[test]
fn a_campaign_does_not_wait_for_a_case_that_does_not_end() {
    let source = Arc::new(Slow::new(3));
    let told = Arc::clone(&source.begun);
    let stop = Arc::new(move || told.load(Ordering::Relaxed) >= 4);
    let limits = CampaignLimits { stop, ..CampaignLimits::default() };
    let results = campaign(source, 1, &limits, &|_| {});
    assert_eq!(clean(&results).programs, 3, "the cases judged in the batch count");
    assert_eq!(results.unfinished, [3]);
}

/// The second case of eleven does not end: it is never there, or its judgment goes on for ever.
struct StuckInTheSecond {
    seeds: Seeds,
    /// Set when the case has begun.
    is_stuck: Arc<AtomicBool>,
}

impl StuckInTheSecond {
    fn new() -> StuckInTheSecond {
        StuckInTheSecond { seeds: Seeds(CampaignOptions::default()), is_stuck: Arc::default() }
    }

    /// Cases take no time until one is stuck, and then the time of all cases is up. One thread
    /// judges, so no other case is in work then.
    fn limits(&self) -> CampaignLimits {
        let is_stuck = Arc::clone(&self.is_stuck);
        let clock: Clock = Arc::new(move || match is_stuck.load(Ordering::Relaxed) {
            true => Duration::from_secs(1000),
            false => Duration::ZERO,
        });
        let case_time = Some(CaseTime { clock, most: Duration::from_secs(10) });
        CampaignLimits { case_time, ..CampaignLimits::default() }
    }

    fn stick(&self) -> ! {
        self.is_stuck.store(true, Ordering::Relaxed);
        park_forever()
    }
}

impl CaseSource for StuckInTheSecond {
    fn case(&self, number: u64) -> Drawn {
        match number {
            1 => self.stick(),
            11 => Drawn::End,
            _ => self.seeds.case(number),
        }
    }
}

#[test]
fn another_thread_continues_behind_a_case_that_cannot_be_drawn() {
    let source = StuckInTheSecond::new();
    let limits = source.limits();
    let results = campaign(Arc::new(source), 1, &limits, &|_| {});
    assert_eq!((clean(&results).programs, &results.late[..]), (10, &[1][..]));
}

#[test]
fn another_thread_continues_behind_a_case_that_takes_too_long() {
    let stuck = StuckInTheSecond::new();
    let limits = CampaignLimits { cases: 11, ..stuck.limits() };
    let judge = move |cases: Range<u64>, watch: &BatchWatch<'_>| {
        for number in cases {
            if !watch.tell(CaseEvent::Begun(number)) {
                return false;
            }
            if number == 1 {
                stuck.stick();
            }
            let figures = Figures { programs: 1, ..Figures::default() };
            let judged = Box::new(Judged { figures, findings: Vec::new() });
            if !watch.tell(CaseEvent::Judged { number, judged }) {
                return false;
            }
        }
        false
    };
    let results = campaign_by(Arc::new(judge), 1, &limits, &|_| {});
    assert_eq!((clean(&results).programs, &results.late[..]), (10, &[1][..]));
}

/// A source whose second case panics.
struct PanickingSource(Seeds);

impl CaseSource for PanickingSource {
    fn case(&self, number: u64) -> Drawn {
        assert_ne!(number, 1, "the case that panics");
        self.0.case(number)
    }
}

#[test]
#[should_panic(expected = "the case that panics")]
fn a_source_that_panics_ends_the_campaign() {
    let source = Arc::new(PanickingSource(Seeds(CampaignOptions::default())));
    campaign(source, 2, &CampaignLimits::default(), &|_| {});
}

/// A child that dies before it begins a case has judged it all the same.
#[test]
fn a_finding_in_a_case_that_never_began_is_a_failure() {
    let judge = |cases: Range<u64>, watch: &BatchWatch<'_>| {
        let finding =
            FuzzFinding { oracle: FuzzOracle::Native, versions: [0, 1], message: "so".to_owned() };
        let judged = Box::new(Judged { figures: Figures::default(), findings: vec![finding] });
        watch.tell(CaseEvent::Judged { number: cases.start, judged });
        true
    };
    let results = campaign_by(Arc::new(judge), 1, &CampaignLimits::default(), &|_| {});
    assert_eq!(results.failures.iter().map(|failure| failure.number).collect::<Vec<_>>(), [0]);
}
