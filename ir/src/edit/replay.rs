//! Replay: what a log says, done again.

use super::action::Action;
use super::log::ActionLog;
use super::perform::{Fault, perform};
use crate::function::Function;
use std::fmt;

/// Why a log is not the log of what happened between two versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// An action cannot be carried out.
    Action {
        /// Its index in the log.
        index: usize,
        /// The action, printed.
        action: String,
        /// Why not.
        fault: Fault,
    },
    /// An action was recorded at another time than it stands in the log.
    OutOfOrder {
        /// Its index in the log.
        index: usize,
        /// The stamp it was recorded with.
        recorded: u64,
        /// The stamp it would be applied at.
        applied: u64,
    },
    /// The log leads to another version.
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
                    "action {index} was recorded at stamp {recorded} and is replayed at {applied}"
                )
            }
            ReplayError::Result(difference) => {
                write!(f, "the log leads to another version: {difference}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// Carries out a log action by action, showing the function between any two of them. This is how
/// the mapping builder looks at the versions in which facts were recorded.
#[derive(Debug)]
pub struct Replayer<'l> {
    function: Function,
    actions: std::iter::Enumerate<std::slice::Iter<'l, Action>>,
}

impl<'l> Replayer<'l> {
    /// Starts at the version the log starts from.
    pub fn new(before: &Function, log: &'l ActionLog) -> Replayer<'l> {
        Replayer { function: before.clone(), actions: log.actions().iter().enumerate() }
    }

    /// The function as it stands before the next action.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The next action, not carried out yet.
    pub fn peek(&self) -> Option<&'l Action> {
        self.actions.clone().next().map(|(_, action)| action)
    }

    /// Carries out the next action and returns it; `None` at the end.
    ///
    /// # Errors
    /// When the action cannot be carried out here.
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

/// The version a log leads to from another, with ids equal to those of the run that was logged.
///
/// # Errors
/// When an action cannot be carried out.
pub fn replay(before: &Function, log: &ActionLog) -> Result<Function, ReplayError> {
    let mut replayer = Replayer::new(before, log);
    while replayer.step()?.is_some() {}
    Ok(replayer.function)
}

/// Whether a log tells what happened between two versions. Cost: linear in both versions and the
/// log.
///
/// # Errors
/// When it does not, saying where the first difference is.
pub fn check_replay(
    before: &Function,
    log: &ActionLog,
    after: &Function,
) -> Result<(), ReplayError> {
    same_version(&replay(before, log)?, after)
}

/// Whether a replayed version is the one it should be.
pub(super) fn same_version(replayed: &Function, after: &Function) -> Result<(), ReplayError> {
    if replayed.stamp() != after.stamp() {
        let text = format!("stamp {} instead of {}", replayed.stamp(), after.stamp());
        return Err(ReplayError::Result(text));
    }
    replayed.same_as(after).map_err(ReplayError::Result)?;
    // An action may be wrong and leave no trace: `replay_notices_an_edited_action` edits such a
    // one.
    if replayed.history() != after.history() {
        return Err(ReplayError::Result("the version was reached by other actions".to_owned()));
    }
    Ok(())
}
