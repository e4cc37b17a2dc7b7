//! A small campaign of `osier-judges smith`.

use osier_judges::smith::campaign;

#[test]
fn random_modules_do_the_same_in_both_engines() {
    let (counts, findings) =
        campaign(1, 300, 2, true).expect("native code is supported where it is tested");
    assert_eq!(findings, []);
    // With fewer, there was little to compare.
    assert!(counts.modules > 250, "{counts:?}");
    assert!(counts.returned > 500 && counts.valued > 100, "{counts:?}");
    assert!(counts.traps.len() > 3, "{counts:?}");
    assert!(counts.optimized < counts.instructions, "{counts:?}");
    assert!(counts.unfinished * 100 < counts.calls, "{counts:?}");
}

#[test]
fn counts_do_not_depend_on_threads() {
    assert_eq!(campaign(77, 40, 1, true), campaign(77, 40, 3, true));
}
