//! The permission to run unproved code, claimed without the oracles' door.
use check::Unproved;

fn forge() -> Unproved {
    Unproved::claim()
}

fn main() {}
