//! The counter of one instruction, which both loops keep while runs are counted.

/// The counter of one instruction. A branch has the visits of its first and of its second target. A
/// load or read of a global has its first value and one of the three states below. A `switch` has
/// the position of its first target in `VersionCounts::cases`. An indirect call has its position in
/// `VersionCounts::indirect`. Other instructions do not use their counter.
pub(super) type Cell = [u64; 2];

/// The instruction has not executed.
const UNSEEN: u64 = 0;
/// It gave the same value whenever it executed.
const STEADY: u64 = 1;
/// It gave different values: it is polymorphic.
const VARIED: u64 = 2;

/// Notes the value that a load or a read of a global gave.
#[inline(always)]
pub(super) fn watch(cell: &mut Cell, value: u64) {
    if cell[1] != VARIED && (cell[1] == UNSEEN || cell[0] != value) {
        note(cell, value);
    }
}

#[cold]
fn note(cell: &mut Cell, value: u64) {
    *cell = if cell[1] == UNSEEN { [value, STEADY] } else { [0, VARIED] };
}

/// The counter of two loads that watched the same instruction.
pub(super) fn joined(one: Cell, other: Cell) -> Cell {
    match (one[1], other[1]) {
        (UNSEEN, _) => other,
        (_, UNSEEN) => one,
        _ if one == other => one,
        _ => [0, VARIED],
    }
}

/// The value that a watched instruction gave whenever it executed; `None` if it has not executed or
/// gave different values.
pub(super) fn steady(cell: Cell) -> Option<u64> {
    (cell[1] == STEADY).then_some(cell[0])
}
