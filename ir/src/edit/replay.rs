//! Replay: performing the actions of a log again.

use super::action::Action;
use super::fault::Fault;
use super::log::ActionLog;
use super::perform::perform;
use crate::function::Function;
use std::fmt;

/// The reason why a log is not the log of the changes between two versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// An action cannot be performed.
    Action {
        /// The index of the action in the log.
        index: usize,
        /// The action, printed.
        action: String,
        /// The reason.
        fault: Fault,
    },
    /// The stamp of an action does not match its position in the log.
    OutOfOrder {
        /// The index of the action in the log.
        index: usize,
        /// The stamp with which the action was recorded.
        recorded: u64,
        /// The stamp of the function that replay would apply it to.
        applied: u64,
    },
    /// The log leads to a different version. The text describes the difference.
    Result(String),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Action { index, action, fault } => {
                write!(f, "action {index} ({action}): {fault}")
            }
            ReplayError::OutOfOrder { index, recorded, applied } => {
                write!(
                    f,
                    "action {index} was recorded at stamp {recorded}, but the replay is at stamp {applied}"
                )
            }
            ReplayError::Result(difference) => {
                write!(f, "the log leads to a different version: {difference}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// Performs a log action by action, and shows the function between any two actions. The mapping
/// builder uses it to inspect the intermediate versions in which facts were recorded.
#[derive(Debug)]
pub struct Replayer<'l> {
    function: Function,
    actions: std::iter::Enumerate<std::slice::Iter<'l, Action>>,
}

impl<'l> Replayer<'l> {
    /// Starts at the version where the log starts.
    pub fn new(before: &Function, log: &'l ActionLog) -> Replayer<'l> {
        Replayer { function: before.clone(), actions: log.actions().iter().enumerate() }
    }

    /// The function before the next action.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The next action, which has not been performed yet; `None` at the end.
    pub fn peek(&self) -> Option<&'l Action> {
        self.actions.clone().next().map(|(_, action)| action)
    }

    /// Performs the next action and returns it; `None` at the end.
    ///
    /// # Errors
    /// When the action cannot be performed on the current function.
    pub fn step(&mut self) -> Result<Option<&'l Action>, ReplayError> {
        let Some((index, action)) = self.actions.next() else { return Ok(None) };
        if action.stamp != self.function.stamp {
            let (recorded, applied) = (action.stamp, self.function.stamp);
            return Err(ReplayError::OutOfOrder { index, recorded, applied });
        }
        perform(&mut self.function, &action.kind).map_err(|fault| ReplayError::Action {
            index,
            action: action.to_string(),
            fault,
        })?;
        Ok(Some(action))
    }
}

/// The version that a log leads to, with the ids of the original session.
///
/// # Errors
/// When an action cannot be performed.
pub fn replay(before: &Function, log: &ActionLog) -> Result<Function, ReplayError> {
    let mut replayer = Replayer::new(before, log);
    while replayer.step()?.is_some() {}
    Ok(replayer.function)
}

/// Checks that a log lists the changes between two versions. Cost: linear in both versions and the
/// log.
///
/// # Errors
/// When it does not; the error describes the first difference.
pub fn check_replay(
    before: &Function,
    log: &ActionLog,
    after: &Function,
) -> Result<(), ReplayError> {
    // Most passes of a second round of optimization find nothing to do.
    if log.is_empty() {
        return same_version(before, after);
    }
    same_version(&replay(before, log)?, after)
}

/// Checks that a replayed version equals the expected version.
pub(super) fn same_version(replayed: &Function, after: &Function) -> Result<(), ReplayError> {
    if replayed.stamp() != after.stamp() {
        let text = format!("stamp {} instead of {}", replayed.stamp(), after.stamp());
        return Err(ReplayError::Result(text));
    }
    replayed.same_as(after).map_err(ReplayError::Result)?;
    // A wrong action may leave no trace in the function, so the digest must agree too. The test
    // `replay_notices_an_edited_action` edits such an action.
    if replayed.history() != after.history() {
        return Err(ReplayError::Result(
            "a different sequence of actions led to this version".to_owned(),
        ));
    }
    Ok(())
}
