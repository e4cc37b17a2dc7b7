//! A few random programs in every mode, as `osier-ebpf random` compares them.

use osier_ebpf::fuzz::{Counts, compare};

#[test]
fn random_programs_agree() {
    let mut counts = Counts::default();
    for seed in 1..=60 {
        compare(seed, &mut counts).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    assert!(counts.faults > 0 && counts.exits > 0 && counts.entries > 0, "{counts:?}");
}
