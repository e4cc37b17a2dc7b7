//! Two mappings composed as data, fired without the checker.
use interp::{Machine, VersionId};
use ir::Point;
use transition::mapping::Mapping;

fn forge(machine: &mut Machine, to: VersionId, first: &Mapping, second: &Mapping, at: Point) {
    let composed = transition::compose(first, second).expect("they follow each other");
    machine.fire(to, composed.mapping.checked_entry(at).expect("it has one"));
}

fn main() {}
