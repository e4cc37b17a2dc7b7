//! A run sent to another version with values of one's own.
use interp::{Machine, VersionId};
use ir::{Point, Value};

fn forge(machine: &mut Machine, to: VersionId, at: Point, values: &[(Value, u64)]) {
    machine.transfer(to, at, values);
}

fn main() {}
