//! Exits that runs take by chance, although the assumption holds.

use super::directed::{SCALED, at_start, behind};
use super::native::tiered_as;
use crate::speculation::support::parsed;
use ir::Function;
use osier::jit::{Config, Exits};
use osier::speculate::Assumption;
use osier::tiers::TableUse;
use std::num::NonZeroU32;

fn assume(base: &Function) -> Vec<Assumption> {
    vec![at_start(base, "scale", 3), behind(base, "tag", 0)]
}

/// The assumptions hold in all rounds of 20 calls, so each exit is one by chance, and results stay
/// the same. Without rows, each exit is counted.
#[test]
fn an_exit_is_taken_although_its_assumption_holds() {
    let calls = [&[400_u64, 3, 5000][..]; 20];
    for exits in [Exits::Stored, Exits::Described] {
        let often =
            |one_in| Config { fails_one_in: NonZeroU32::new(one_in), exits, ..Config::default() };
        let made =
            |one_in, places| tiered_as(&parsed(SCALED), assume, &calls, often(one_in), places);
        assert_eq!(made(0, TableUse::Nowhere).failures, 0);
        let rare = made(1000, TableUse::Nowhere).failures;
        // About 8,000 tests, and a first failure.
        assert!((4..=16).contains(&rare), "{rare} failures");
        let made = made(30, TableUse::Everywhere);
        assert!(made.failures > 0 && !made.linked.is_empty(), "{made:?}");
    }
}
