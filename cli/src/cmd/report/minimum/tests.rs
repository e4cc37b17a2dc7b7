//! Tests of `cli::report::minimum`.

use super::*;
use osier::schema::ReportedProgram;

#[test]
fn lists_are_read() {
    let minima = Minima::parse("avail=99.5,live_e=0,dynamic").expect("a list");
    assert_eq!(minima, Minima { shares: vec![(4, 99.5), (2, 0.0)], dynamic: true });
}

#[test]
fn wrong_lists_are_rejected_by_their_part() {
    for (list, part) in [
        ("", "``"),
        ("dynamic", "no level"),
        ("avail", "`avail`"),
        ("avail=99,,live=1", "``"),
        ("full=1", "`full`"),
        ("Avail=1", "`Avail`"),
        ("avail=100.1", "`100.1`"),
        ("avail=-1", "`-1`"),
        ("avail=NaN", "`NaN`"),
        ("avail=inf", "`inf`"),
        ("avail=", "``"),
        ("avail=1,avail=2", "avail occurs twice"),
    ] {
        let error = Minima::parse(list).expect_err(list);
        assert!(error.contains(part), "{list}: {error}");
    }
}

#[test]
fn an_interrupted_report_never_passes() {
    let path = "p".to_owned();
    let program = ReportedProgram { path, functions: 0, instructions: 0, left_out: Vec::new() };
    let mut report = osier::report::report(program, Vec::new(), Level::Avail, Vec::new());
    let minima = [Minima::parse("avail=0").expect("a list")];
    compare(&minima, [MeasuredShares::of(&report)]).verdict().expect("nothing is below");
    report.interrupted = true;
    compare(&[], [MeasuredShares::of(&report)]).verdict().expect("nothing was asked");
    let failed =
        compare(&minima, [MeasuredShares::of(&report)]).verdict().expect_err("it was interrupted");
    assert!(matches!(failed, CommandFailure::Program(_)), "{failed:?}");
}

#[test]
fn a_small_lack_shows() {
    assert_eq!(shown(98.0, 99.0), ["98.0", "1.0"].map(str::to_owned));
    assert_eq!(shown(98.9996, 99.0), ["98.9996", "0.0004"].map(str::to_owned));
}
