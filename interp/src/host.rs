//! The interface through which a program calls functions of its embedder.

use super::memory::Memories;
use ir::entity::Func;
use ir::module::ImportName;
use ir::trap::TrapKind;

/// Why a call of an imported function ended the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostError {
    /// The program requested to exit with this status.
    Exit(i32),
    /// The call traps like an instruction.
    Trap(TrapKind),
    /// The embedder could not perform the call; a message for people.
    Failed(String),
}

/// Implements the imported functions of a program.
pub trait Host {
    /// Calls an imported function. `results` arrives with one zero per result of the signature. The
    /// interpreter clears bits outside the type of a result. `memories` holds the memories of the
    /// calling module in order of declaration.
    ///
    /// # Errors
    /// When the call ends the run. The contents of `results` are then ignored.
    fn call(
        &mut self,
        import: &ImportName,
        func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError>;
}

/// A host without functions: every call fails with the name of the function.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn call(
        &mut self,
        import: &ImportName,
        _func: Func,
        _args: &[u64],
        _memories: &mut Memories,
        _results: &mut [u64],
    ) -> Result<(), HostError> {
        Err(HostError::Failed(format!("no host function {}.{}", import.module, import.field)))
    }
}
