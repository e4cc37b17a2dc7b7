//! The states of runs, apart from their activations.

use ir::entity::Func;

/// The state of a run besides its activations.
#[derive(Clone, Debug, Default)]
pub(super) struct RunState {
    /// Whether the run is paused. When it continues, the loop does not ask the observer about the
    /// first instruction: the observer has seen it, or a transition led to it.
    pub(super) asked: bool,
    /// The function that could not be started because a limit left no room for its activation.
    pub(super) refused: Option<Func>,
    /// Whether the exact loop must execute the run even without an observer. A transfer sets this,
    /// because fast code could hide a value that the transfer forgot to assign. A call of a
    /// function without fast code sets it too.
    pub(super) exact: bool,
    /// Whether the values of its activations are in the layout of fast code.
    pub(super) fast: bool,
    /// The call whose results the run waits for.
    pub(super) waiting: Option<AwaitedCall>,
}

/// A call whose results a run waits for. The top activation of the run made it. If the run has no
/// activation, the run ends with the results.
#[derive(Clone, Debug)]
pub(super) struct AwaitedCall {
    pub(super) func: Func,
    /// The arguments, if the run was started with an external function, until
    /// [`super::Machine::run`] reports them.
    pub(super) args: Option<Vec<u64>>,
}

/// A run that is suspended below a nested one.
#[derive(Clone, Debug)]
pub(super) struct Suspended {
    pub(super) state: RunState,
    pub(super) floor: usize,
}
