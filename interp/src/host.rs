//! The interface through which a program calls functions of its embedder.

use super::memory::Memories;
use ir::entity::Func;
use ir::module::ImportName;
use ir::trap::TrapKind;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a call of an imported function ended the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostError {
    /// The program requested to exit with this status.
    Exit(i32),
    /// The call traps like an instruction.
    Trap(TrapKind),
    /// The embedder could not perform the call.
    Failed(HostFailure),
}

impl HostError {
    /// The error of a call that the embedder could not perform: an error of the embedder's, or a
    /// message for people. [`super::Outcome::HostFailed`] hands it back.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> HostError {
        HostError::Failed(HostFailure(error.into().into()))
    }
}

/// An error of the embedder's that has ended a run. Copies share it. Two are equal if their
/// messages are.
#[derive(Clone, Debug)]
pub struct HostFailure(Arc<dyn Error + Send + Sync>);

impl HostFailure {
    /// The error, for example to ask for its type by `downcast_ref`. A message for people is an
    /// error of a private type.
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for HostFailure {
    fn eq(&self, other: &HostFailure) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for HostFailure {}

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
        Err(HostError::failed(format!("no host function {}.{}", import.module, import.field)))
    }
}
