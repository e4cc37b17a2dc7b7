//! Changing a function: the editor, the action log and replay.
//!
//! A pass changes a function only through the [`Editor`], which checks, performs and records each
//! action in one step. The log contains enough to repeat the changes: [`replay()`] of the log on
//! the version before gives the version after, with equal ids. `osr` derives from the log which
//! points of two versions correspond and which values are equal. It uses no declarations by the
//! passes.

mod action;
mod claim;
mod editor;
mod fault;
mod inline;
mod log;
mod perform;
mod redirect;
mod replay;
#[cfg(test)]
mod tests;

pub use action::{Action, ActionKind, Origin};
pub use claim::ClaimedLog;
pub use editor::{Applied, Editor, Fuel, Pass, apply, apply_to, apply_without_log};
pub use fault::Fault;
pub use inline::{InlinedBody, InlinedCallee};
pub use log::ActionLog;
pub use redirect::onward;
pub use replay::{ReplayError, Replayer, check_replay, replay};
