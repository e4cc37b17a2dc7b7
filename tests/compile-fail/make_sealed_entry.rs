//! Moving an accepted entry to another point.

use check::CheckedEntry;
use ir::Point;

fn main() {}

fn elsewhere<'m>(entry: CheckedEntry<'m>, point: Point) -> CheckedEntry<'m> {
    CheckedEntry { point, ..entry }
}
