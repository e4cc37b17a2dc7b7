//! Claimed logs: action logs of unknown origin, read from a file or damaged by a test.

use super::action::ActionKind;
use super::log::ActionLog;
use super::perform::perform;
use super::replay::ReplayError;
use crate::function::Function;

/// A claim about the actions between two versions.
///
/// Any code may create and change a claimed log, so no other analysis derives facts from one.
/// [`ClaimedLog::check`] decides the claim: it replays the actions and compares the result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimedLog {
    /// The claimed actions, in order, each with the stamp of the version that it was recorded on.
    pub actions: Vec<(u64, ActionKind)>,
}

impl From<&ActionLog> for ClaimedLog {
    fn from(log: &ActionLog) -> ClaimedLog {
        ClaimedLog {
            actions: log.actions().iter().map(|a| (a.stamp(), a.kind().clone())).collect(),
        }
    }
}

impl ClaimedLog {
    /// Checks that this is the log of the actions between two versions. Replaying it on `before`
    /// must give `after`, with equal ids and by the same actions. Cost: linear in both versions and
    /// the log.
    ///
    /// # Errors
    /// When the check fails; the error describes the first difference.
    pub fn check(&self, before: &Function, after: &Function) -> Result<(), ReplayError> {
        let mut function = before.clone();
        for (index, (recorded, kind)) in self.actions.iter().enumerate() {
            if *recorded != function.stamp {
                return Err(ReplayError::OutOfOrder {
                    index,
                    recorded: *recorded,
                    applied: function.stamp,
                });
            }
            perform(&mut function, kind).map_err(|fault| ReplayError::Action {
                index,
                action: kind.to_string(),
                fault,
            })?;
        }
        super::replay::same_version(&function, after)
    }
}
