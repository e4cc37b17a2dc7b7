//! A mapping filled by hand, sealed through the oracles' door, which is shut here.
use check::Checked;
use transition::mapping::Mapping;

fn forge(mapping: Mapping) -> Checked<Mapping> {
    Checked::unproved(mapping)
}

fn main() {}
