//! What a program may ask of its embedder.

use super::memory::Memories;
use ir::entity::Func;
use ir::module::ImportName;
use ir::trap::TrapKind;

/// How a call of an imported function ended the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostError {
    /// The program asked to end with this status.
    Exit(i32),
    /// The call traps, as an instruction does.
    Trap(TrapKind),
    /// The embedder cannot do it; a sentence for people.
    Failed(String),
}

/// The imported functions.
pub trait Host {
    /// Calls an imported function. `results` has one zero per result of its signature; bits outside
    /// the result's type are dropped. The memories are those of the calling module in order of
    /// declaration.
    ///
    /// # Errors
    /// When the run ends here; nothing of `results` is then used.
    fn call(
        &mut self,
        import: &ImportName,
        func: Func,
        args: &[u64],
        memories: &mut Memories,
        results: &mut [u64],
    ) -> Result<(), HostError>;
}

/// A host without functions: every call fails, naming what was called.
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
