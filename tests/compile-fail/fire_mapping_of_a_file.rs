//! A mapping read from a file, fired in the interpreter without the checker.
use interp::{Machine, VersionId};
use ir::{Function, Point};

fn forge(machine: &mut Machine, to: VersionId, versions: [&Function; 2], at: Point, text: &str) {
    let exported = osier::exchange::read(text).expect("it reads");
    let mapping = exported.functions[0].parts(versions).expect("it fits").mappings.before;
    machine.fire(to, mapping.entry(at).expect("it has one"));
}

fn main() {}
