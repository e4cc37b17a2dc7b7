//! Traps of native code: the table of instructions that may trap, and the reaction to a trap.
//!
//! A trap is a processor fault (an undefined instruction, a division, an access to a guard page) at
//! an instruction that the compiler recorded as trapping. The signal handler looks the program
//! counter up in the process-wide list of registered code ([`super::registry`]). On a hit it
//! records the trap in the activation of the thread, and resumes the thread at the exception edge
//! of its innermost entry trampoline. The handler passes every other fault to the handler that was
//! installed before.

use std::io;
use std::sync::OnceLock;

use cranelift_codegen::ir::TrapCode;

use super::activation::{self, EntryState};
use super::host;
use super::registry::look_up;

/// A trap of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CaughtTrap {
    /// The address of the instruction that trapped.
    pub(crate) pc: usize,
    /// The return address of the function that trapped. Set for [`crate::traps::HELPER`] alone, the
    /// trap behind a helper that ends the run.
    pub(crate) back: Option<usize>,
    /// The trap code that the compiler gave to the instruction.
    pub(crate) code: TrapCode,
    /// The accessed address, for a faulting access to memory; 0 if the processor does not report it
    /// (the address is not canonical). The code that entered compares it with the reserved memory.
    /// An access elsewhere shows wrong code, not a trap of the program.
    pub(crate) address: Option<usize>,
}

/// The kinds of faults that the processor distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// The instruction `ud2`, which is undefined on purpose.
    Undefined,
    /// A division without a result.
    Arithmetic,
    /// An access to memory that is unmapped or protected.
    Memory,
}

/// A fault as the signal handler sees it: its kind, the program counter, the frame pointer, and the
/// accessed address for [`FaultKind::Memory`].
pub(super) struct CpuFault {
    pub(super) kind: FaultKind,
    pub(super) pc: usize,
    pub(super) frame: usize,
    pub(super) address: Option<usize>,
}

/// The instructions of one piece of code that may trap.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrapTable {
    /// Sorted by offset. One instruction may have several codes: a division with its divisor in
    /// memory has two.
    entries: Box<[(u32, TrapCode)]>,
}

impl TrapTable {
    /// Builds the table from pairs of a byte offset into the code and a trap code, in any order.
    /// Sorts them once.
    ///
    /// The pairs come from `CompiledCode::buffer.traps()`.
    pub(crate) fn new(traps: impl IntoIterator<Item = (u32, TrapCode)>) -> Self {
        let mut entries: Box<[_]> = traps.into_iter().collect();
        entries.sort_by_key(|&(offset, _)| offset);
        TrapTable { entries }
    }

    /// A lower bound on the size of the code in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.last().map_or(0, |&(offset, _)| offset as usize + 1)
    }

    /// The code of the instruction at `offset` that fits a fault of this kind.
    ///
    /// `None` if the instruction has only codes of other kinds: such a fault shows wrong code, not
    /// a trap of the program.
    pub(super) fn code_at(&self, offset: u32, kind: FaultKind) -> Option<TrapCode> {
        let first = self.entries.partition_point(|&(other, _)| other < offset);
        let here = self.entries.get(first..)?.iter().take_while(|&&(other, _)| other == offset);
        here.map(|&(_, code)| code).find(|&code| {
            let arithmetic =
                code == TrapCode::INTEGER_DIVISION_BY_ZERO || code == TrapCode::INTEGER_OVERFLOW;
            match kind {
                FaultKind::Undefined => true,
                FaultKind::Arithmetic => arithmetic,
                FaultKind::Memory => !arithmetic,
            }
        })
    }
}

/// Installs the signal handlers, once for the process. Later calls return the first result.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), (io::ErrorKind, String)>> = OnceLock::new();
    let done = INSTALLED.get_or_init(|| {
        host::install_handlers().map_err(|error| (error.kind(), error.to_string()))
    });
    done.clone().map_err(|(kind, message)| io::Error::new(kind, message))
}

/// Checks whether a fault is a trap of native code. If so, records it in the innermost activation
/// and returns the exception edge at which the thread must resume. Returns `None` for other faults.
/// Async-signal-safe: takes no lock and allocates nothing.
pub(super) fn catch(fault: &CpuFault) -> Option<EntryState> {
    activation::with_current(|activation| {
        let code = look_up(fault.pc, fault.kind)?;
        // SAFETY: the trap HELPER stands behind the call of a helper, so its function has a frame,
        // and `preserve_frame_pointers` (`engine::isa`) makes the frame pointer address it. The
        // word above holds the return address. The frame lives until the thread resumes at the
        // edge.
        let back = (code == crate::traps::HELPER)
            .then(|| unsafe { *(fault.frame as *const usize).add(1) });
        activation.trap.set(Some(CaughtTrap { pc: fault.pc, back, code, address: fault.address }));
        // SAFETY: the fault is at an instruction of registered native code, so native code runs in
        // the innermost activation. The contract of `enter` keeps the context of that activation
        // valid and free of references until `enter` returns.
        Some(unsafe { *activation.entry })
    })?
}
