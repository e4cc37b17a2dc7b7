//! The way into native code of a function: its trampoline, and the place of its results.

use crate::abi;
use crate::code::MachineCode;
use ir::Type;
use std::sync::Arc;

/// The results of code to enter.
#[derive(Clone, Copy)]
pub(super) struct EnteredResults {
    pub(super) count: usize,
    pub(super) in_registers: bool,
}

impl EnteredResults {
    pub(super) fn of(types: &[Type]) -> EnteredResults {
        EnteredResults { count: types.len(), in_registers: abi::in_registers(types) }
    }
}

/// The way in which calls from outside enter native code of a function.
pub(super) struct KnownEntrance {
    /// The table keeps it for good.
    pub(super) trampoline: Arc<MachineCode>,
    pub(super) results: EnteredResults,
}
