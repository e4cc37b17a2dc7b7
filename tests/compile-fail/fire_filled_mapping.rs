//! A mapping filled by hand, fired in the interpreter.
use interp::{Machine, VersionId};
use ir::{Function, Point};
use transition::mapping::{Entry, Mapping};

fn forge(machine: &mut Machine, to: VersionId, versions: [&Function; 2], at: Point, entry: Entry) {
    let mut mapping = Mapping::new(versions[0], versions[1]);
    mapping.insert(at, entry);
    machine.fire(to, mapping.entry(at).expect("it was put there"));
}

fn main() {}
