//! The permission to run what nobody proved, claimed without the oracles' door.
use check::Unproved;

fn forge() -> Unproved {
    Unproved::claim()
}

fn main() {}
