//! Tests of `cli::fuzz::native`.

use super::*;
use std::cell::{Cell, RefCell};

/// The batch of [`judged`].
struct JudgedBatch {
    /// The share of each child.
    shares: Vec<Range<u64>>,
    heard: Heard,
    last: io::Result<bool>,
}

/// The events of a batch.
#[derive(Default)]
struct Heard {
    /// The numbers and findings of cases whose children died.
    dead: RefCell<Vec<(u64, FuzzFinding)>>,
    killed: Cell<u32>,
}

impl ChildWatch for Heard {
    fn is_over(&self) -> bool {
        false
    }

    fn tell(&self, event: CaseEvent) -> bool {
        if let CaseEvent::Judged { number, judged } = event {
            let findings = judged.findings.into_iter().map(|finding| (number, finding));
            self.dead.borrow_mut().extend(findings);
        }
        true
    }

    fn killed(&self) {
        self.killed.set(self.killed.get() + 1);
    }
}

/// Judges eight cases with children that end in the given ways, one after another.
fn judged(ends: Vec<io::Result<ChildEnd>>) -> JudgedBatch {
    let (mut ends, mut shares) = (ends.into_iter(), Vec::new());
    let mut child = |share: &CaseRange| {
        shares.push(share.cases.clone());
        ends.next().expect("no child more than that")
    };
    let heard = Heard::default();
    let last = batch_by(SourceKind::Generated, 8..16, &heard, &mut child);
    assert!(ends.next().is_none(), "a child for every end");
    JudgedBatch { shares, heard, last }
}

impl JudgedBatch {
    /// The numbers of the cases with findings.
    fn dead(&self) -> Vec<u64> {
        self.heard.dead.borrow().iter().map(|(number, _)| *number).collect()
    }

    fn is_out_of_time(&self) -> bool {
        is_out_of_time(&self.heard.dead.borrow()[0].1)
    }
}

/// If a limit ends all runs of a case, it has no native runs, but still counts of compiled
/// code.
#[test]
fn all_figures_of_a_case_survive_the_way_from_a_child() {
    let mut figures = Figures { programs: 1, pairs: 3, entries_armed: 5, ..Figures::default() };
    figures.versions.insert(4, 1);
    figures.passes.entry("sccp".to_owned()).or_default().acted = 1;
    figures.composition.not_composed = 7;
    figures.native = NativeFigures {
        points: 5,
        exhausted: 2,
        unguarded: 9,
        compile_time: Duration::from_millis(1234),
        ..NativeFigures::default()
    };
    for oracle in [FuzzOracle::Native, FuzzOracle::GoingOn] {
        figures.count_finding(oracle);
        let finding = FuzzFinding { oracle, versions: [0, 3], message: "so".to_owned() };
        let judged = Judged { figures: figures.clone(), findings: vec![finding] };
        let line = serde_json::to_string(&CaseResult::of(judged.clone())).expect("a line");
        let read: CaseResult = serde_json::from_str(&line).expect("a result");
        assert_eq!(read.judged(), judged);
        figures.findings.clear();
        figures.native.findings = 0;
    }
}

fn died(at: u64) -> io::Result<ChildEnd> {
    Ok(ChildEnd::Died(at, "so".to_owned()))
}

fn killed(at: u64) -> io::Result<ChildEnd> {
    Ok(ChildEnd::Killed(at, "so".to_owned()))
}

#[test]
fn a_dead_child_is_a_finding_and_another_child_takes_the_next_case() {
    let batch = judged(vec![died(10), Ok(ChildEnd::Source)]);
    assert_eq!((&batch.shares[..], &batch.dead()[..]), (&[8..16, 11..16][..], &[10][..]));
    assert!(!batch.is_out_of_time());
    assert!(batch.last.expect("no error"), "the source ended");
}

#[test]
fn only_a_case_that_exhausts_the_time_alone_is_a_finding() {
    let ends = vec![
        Ok(ChildEnd::OutOfTime(10)),
        Ok(ChildEnd::OutOfTime(10)),
        Ok(ChildEnd::OutOfTime(15)),
        Ok(ChildEnd::Done),
    ];
    let batch = judged(ends);
    assert_eq!(batch.shares, [8..16, 10..16, 11..16, 15..16]);
    assert_eq!(batch.dead(), [10]);
    assert!(batch.is_out_of_time());
    assert!(!batch.last.expect("no error"));
    // Raw statuses have the encoding of `wait`: the low bits are the signal that ended the
    // process.
    assert!(
        ran_out_of_time(ExitStatus::from_raw(SIGXCPU))
            && !ran_out_of_time(ExitStatus::from_raw(11))
    );
}

#[test]
fn a_child_killed_by_others_is_no_finding_and_its_case_is_judged_again() {
    let batch = judged(vec![killed(10), killed(12), Ok(ChildEnd::Done)]);
    assert_eq!((&batch.shares[..], batch.heard.killed.get()), (&[8..16, 10..16, 12..16][..], 2));
    assert!(batch.dead().is_empty() && batch.last.is_ok());
    let batch = judged(vec![killed(10), killed(10)]);
    assert!(batch.dead().is_empty());
    let error = batch.last.expect_err("nobody judged the case").to_string();
    assert!(error.contains("number 10 of generated programs"), "{error}");
    assert!(was_killed(ExitStatus::from_raw(SIGKILL)) && !was_killed(ExitStatus::from_raw(11)));
}

#[test]
fn a_child_that_cannot_start_is_no_finding() {
    let refused = io::Error::from(io::ErrorKind::NotFound);
    let batch = judged(vec![died(8), Err(refused)]);
    assert_eq!((&batch.shares[..], &batch.dead()[..]), (&[8..16, 9..16][..], &[8][..]));
    assert_eq!(batch.last.expect_err("no child").kind(), io::ErrorKind::NotFound);
}
