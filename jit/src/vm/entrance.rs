//! The way into native code of a function: its trampoline, and the place of its results.

use crate::abi;
use crate::code::MachineCode;
use crate::sys::enter::Trampoline;
use ir::{Func, Type};
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
#[derive(Clone, Copy)]
pub(super) struct KnownEntrance {
    /// The table keeps its code for good.
    pub(super) trampoline: Trampoline,
    pub(super) params: usize,
    pub(super) results: EnteredResults,
}

/// The native code in which a function of the interpreter continues: a continuation into a version
/// of the function, whose inputs are in the buffer. [`VmState::ascend`] alone makes one.
pub(super) struct Ascent {
    pub(super) func: Func,
    pub(super) code: Arc<MachineCode>,
}

impl Ascent {
    /// The function.
    pub(super) fn func(&self) -> Func {
        self.func
    }

    /// The code.
    pub(super) fn code(&self) -> &Arc<MachineCode> {
        &self.code
    }
}
