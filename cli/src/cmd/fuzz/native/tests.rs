//! Tests of `cli::fuzz::native`.

use super::*;
use std::time::Duration;

/// Judges eight cases with children that end in the given ways, one after another. Returns the
/// share of each child and the results of the batch.
fn judged(ends: Vec<io::Result<ChildEnd>>) -> (Vec<Range<u64>>, Results, bool, Option<io::Error>) {
    let (mut ends, mut shares) = (ends.into_iter(), Vec::new());
    let mut child = |share: &CaseRange, _: &mut Results| {
        shares.push(share.cases.clone());
        ends.next().expect("no child more than that")
    };
    let (results, last, error) = batch_by(SourceKind::Generated, 8..16, &|| false, &mut child);
    assert!(ends.next().is_none(), "a child for every end");
    (shares, results, last, error)
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

#[test]
fn a_dead_child_is_a_finding_and_another_child_takes_the_next_case() {
    let (shares, results, last, error) =
        judged(vec![Ok(ChildEnd::Died(10, "so".to_owned())), Ok(ChildEnd::Source)]);
    assert_eq!(shares, [8..16, 11..16]);
    assert!(last && error.is_none());
    assert_eq!(results.failures.iter().map(|f| f.number).collect::<Vec<_>>(), [10]);
    assert!(!is_out_of_time(&results.failures[0].findings[0]));
}

#[test]
fn only_a_case_that_exhausts_the_time_alone_is_a_finding() {
    let ends = vec![
        Ok(ChildEnd::OutOfTime(10)),
        Ok(ChildEnd::OutOfTime(10)),
        Ok(ChildEnd::OutOfTime(15)),
        Ok(ChildEnd::Done),
    ];
    let (shares, results, _, error) = judged(ends);
    assert_eq!(shares, [8..16, 10..16, 11..16, 15..16]);
    assert!(error.is_none());
    assert_eq!(results.failures.iter().map(|f| f.number).collect::<Vec<_>>(), [10]);
    assert!(is_out_of_time(&results.failures[0].findings[0]));
    // Raw statuses have the encoding of `wait`: the low bits are the signal that ended the
    // process.
    assert!(
        ran_out_of_time(ExitStatus::from_raw(SIGXCPU))
            && !ran_out_of_time(ExitStatus::from_raw(11))
    );
}

#[test]
fn a_child_that_cannot_start_is_no_finding() {
    let refused = io::Error::from(io::ErrorKind::NotFound);
    let (shares, results, last, error) =
        judged(vec![Ok(ChildEnd::Died(8, "so".to_owned())), Err(refused)]);
    assert_eq!(shares, [8..16, 9..16]);
    assert!(!last && error.is_some_and(|e| e.kind() == io::ErrorKind::NotFound));
    assert_eq!(results.failures.len(), 1);
}
