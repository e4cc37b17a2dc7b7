//! An accepted mapping, filled with one more entry.
use check::Checked;
use ir::Point;
use transition::mapping::{Entry, Mapping};

fn forge(accepted: &mut Checked<Mapping>, point: Point, entry: Entry) {
    accepted.insert(point, entry);
}

fn main() {}
