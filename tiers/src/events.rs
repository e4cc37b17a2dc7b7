//! The events of tiering that listeners receive.

pub use super::compiler::CodeTier;
use ir::{Func, Point};
use std::sync::Arc;

/// The code that a run has requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The function.
    pub func: Func,
    /// The loop header at which the run wants to leave the interpreter; `None` for calls of the
    /// function.
    pub at: Option<Point>,
    /// The version.
    pub tier: CodeTier,
}

/// Why an order was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderEnd {
    /// An order for a loop of the function has made the version, or the run is in another loop by
    /// now.
    Superseded,
    /// Too many orders wait, and this order saves least.
    QueueFull,
    /// The code so far has reached the limit ([`super::Tiered::with_code_limit`]).
    CodeFull,
}

/// Receives the steps of tiering ([`super::Tiered::listening`]). The thread of the run and the
/// thread of the compiler call the listener, perhaps at the same time. A call blocks its thread, so
/// a listener should be quick, and must not wait for either thread.
pub type TierListener = Arc<dyn Fn(TierEvent) + Send + Sync>;

/// A step of tiering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierEvent {
    /// The run requests code, after this number of calls of the function or visits of the loop. 0
    /// if the policy itself orders the optimized version of a function.
    Asked(Wanted, u64),
    /// The compiler begins to make the code.
    Begun(Wanted),
    /// The compiler has ended. `is_entry` says whether the loop has an entry.
    Made {
        /// The code.
        wanted: Wanted,
        /// Whether the run can enter the loop.
        is_entry: bool,
    },
    /// Calls of the function run the version from now on.
    Installed(Wanted),
    /// The run enters a loop in the middle, for the first time.
    Entered(Wanted),
    /// The order is dropped.
    Dropped(Wanted, OrderEnd),
    /// The run waits for the policy from now on.
    Paused,
    /// The run continues.
    Resumed,
}
