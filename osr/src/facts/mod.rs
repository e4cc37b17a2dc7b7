//! Facts from the action log about two versions, grouped by the question they answer.
//!
//! [`Facts::read`] replays the log once, with a [`LogReader`]. The result is read-only:
//!
//! - [`Facts::chain`] and [`Facts::constant`]: which values are equal, and where;
//! - [`Facts::is_moved`] and [`Facts::may_trap`]: whether one instruction moved or may trap;
//! - [`Facts::control`]: the branches that it folded, the blocks that it joined, skipped or
//!   removed;
//! - [`Facts::first`]: which action to blame.

mod control;
mod equality;
mod first;
mod read;

pub(crate) use control::ControlFlow;
pub(crate) use first::FirstActions;

use equality::{Equalities, Moves};
use ir::edit::{ActionLog, ReplayError};
use ir::{Function, Inst, Type, Value};
use read::LogReader;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use transition::Side;

/// The facts of one log. See the module documentation.
#[derive(Debug)]
pub(crate) struct Facts {
    equalities: Equalities,
    moves: Moves,
    /// Instructions that some version of the log shows cannot trap: with the operands they had when
    /// they were deleted or moved, or because a constant replaced their result.
    harmless: BTreeSet<Inst>,
    /// The changes of control flow.
    pub(crate) control: ControlFlow,
    /// The first action that concerns a value, an instruction, or the order of effects.
    pub(crate) first: FirstActions,
}

impl Facts {
    /// Reads a log. Cost: near linear in the function and the log, and one dominator tree for each
    /// action that changes control flow and is followed by a question.
    ///
    /// # Errors
    /// When the log does not apply to `before`.
    pub(crate) fn read(before: &Function, log: &ActionLog) -> Result<Facts, ReplayError> {
        LogReader::new(before, log).read_all()
    }

    /// Whether an instruction of a version may trap, as far as that version and the log tell.
    ///
    /// Example: `udiv %a, %b` may trap. If the log deleted it after `%b` had become the constant 3,
    /// it traps in no version.
    pub(crate) fn may_trap(&self, f: &Function, inst: Inst) -> bool {
        f.may_trap(inst) && !self.harmless.contains(&inst)
    }

    /// Whether the log moved an instruction.
    ///
    /// Example: an instruction that was hoisted and sunk again counts as moved, though it may stand
    /// where it stood.
    pub(crate) fn is_moved(&self, inst: Inst) -> bool {
        self.moves.is_moved(inst)
    }

    /// The values that equal `value` wherever it is available in the version on `side`, nearest
    /// first, without `value` itself. Each was available in the version that recorded its link; the
    /// caller checks whether it is available where it is read.
    ///
    /// Example: after `replace_all(o, n)` and `replace_all(n, m)`, the chain of `o` is `n, m`.
    pub(crate) fn chain(&self, value: Value, side: Side) -> SmallVec<[Value; 2]> {
        self.equalities.chain(&self.moves, value, side)
    }

    /// The constant that equals `value` wherever it is available in the version on `side`, with its
    /// type. No version needs to have the constant's instruction any more.
    ///
    /// Example: after `replace_all(o, n)` with `n = const.i32 7`, the constant of `o` is 7, though
    /// a later pass may have deleted `n`.
    pub(crate) fn constant(&self, value: Value, side: Side) -> Option<(Type, u64)> {
        self.equalities.constant(&self.moves, value, side)
    }
}
