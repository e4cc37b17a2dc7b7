//! What happens in tiering, as listeners hear of it.

pub use super::compiler::CodeTier;
use ir::{Func, Point};
use std::sync::Arc;

/// The code that a run has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The function.
    pub func: Func,
    /// The loop header that the run wants to leave the interpreter at; `None` for calls of the
    /// function.
    pub at: Option<Point>,
    /// The version.
    pub tier: CodeTier,
}

/// Why nobody needs ordered code any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderEnd {
    /// A loop of the function has brought the version along, or the run is in another loop by now.
    Superseded,
    /// Too many orders wait, and this one saves least.
    QueueFull,
    /// The code so far has reached the limit ([`super::Tiered::with_code_limit`]).
    CodeFull,
}

/// Hears of the steps of tiering ([`super::Tiered::listening`]). The thread of the run and that of
/// the compiler call it, perhaps at the same time. Both wait meanwhile, so it should be quick, and
/// it must not wait for either.
pub type TierListener = Arc<dyn Fn(TierEvent) + Send + Sync>;

/// A step of tiering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TierEvent {
    /// The run asks for code, after so many calls of the function or visits of the loop. 0 visits
    /// of code that nobody asked for: the policy follows a function up.
    Asked(Wanted, u64),
    /// The compiler begins with it.
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
    /// Nobody needs it any more.
    Dropped(Wanted, OrderEnd),
    /// The run waits for the policy from now on.
    Paused,
    /// The run goes on.
    Resumed,
}
