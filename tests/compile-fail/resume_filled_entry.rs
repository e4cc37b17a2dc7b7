//! An entry made by hand, made a continuation.
use ir::Function;
use transition::mapping::Entry;

fn forge(source: &Function, target: &Function, entry: &Entry) {
    resume::continuation("forged", source, &[target], entry);
}

fn main() {}
