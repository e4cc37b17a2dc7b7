//! Tests of `fuzz::native::trial`.

use super::super::follow::ENDED;
use super::*;
use interp::Site;

/// The least fuel at which a starved run must end for lack of fuel.
const MUCH: u64 = 100 * STARVE;

fn site() -> Site {
    Site { func: Func::from_u32(0), function: "f".to_owned(), inst: None }
}

fn is_finding(ended: Result<(), FollowEnd>) -> bool {
    matches!(ended, Err(FollowEnd::Finding(_)))
}

#[test]
fn a_starved_run_that_fails_is_a_finding_however_little_it_needs() {
    for error in [
        RunError::Lost,
        RunError::WildAccess { address: 16 },
        RunError::Interrupted,
        RunError::Released,
    ] {
        for needed in [1, MUCH] {
            assert!(is_finding(starved(None, Err(error.clone()), needed)), "{error}, {needed}");
        }
    }
}

#[test]
fn a_difference_at_a_point_of_a_starved_run_is_a_finding() {
    let shown = || Some(FollowEnd::Finding("values differ".to_owned()));
    assert!(is_finding(starved(shown(), Err(ENDED), 1)));
    assert!(is_finding(starved(shown(), Ok(Outcome::OutOfFuel(site())), MUCH)));
    assert!(matches!(starved(Some(FollowEnd::Limit), Err(ENDED), MUCH), Err(FollowEnd::Limit)));
}

#[test]
fn a_starved_run_ends_for_lack_of_fuel_or_needs_hardly_any() {
    let ends = [
        Outcome::Returned(Vec::new()),
        Outcome::Exited(0),
        Outcome::Trapped { kind: ir::TrapKind::Unreachable, operand: None, site: site() },
    ];
    for end in ends {
        assert!(is_finding(starved(None, Ok(end.clone()), MUCH)), "{end}");
        assert!(starved(None, Ok(end), MUCH - 1).is_ok());
    }
    assert!(starved(None, Ok(Outcome::OutOfFuel(site())), MUCH).is_ok());
    assert!(matches!(
        starved(None, Ok(Outcome::StackOverflow(site())), MUCH),
        Err(FollowEnd::Limit)
    ));
}
