//! An accepted entry, moved to another point.
use check::CheckedEntry;
use ir::Point;

fn forge<'m>(accepted: CheckedEntry<'m>, point: Point) -> CheckedEntry<'m> {
    CheckedEntry { point, ..accepted }
}

fn main() {}
