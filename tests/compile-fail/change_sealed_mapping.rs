//! Adding an entry to a mapping under seal.

use check::Checked;
use ir::Point;
use transition::mapping::{Entry, Mapping};

fn main() {}

fn insert(mapping: &mut Checked<Mapping>, point: Point, entry: Entry) {
    mapping.insert(point, entry);
}

fn replace(mapping: &mut Checked<Mapping>, other: Mapping) {
    **mapping = other;
}
