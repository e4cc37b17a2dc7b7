//! Logs that somebody claims: read from elsewhere, or damaged on purpose.

use super::action::ActionKind;
use super::log::ActionLog;
use super::perform::perform;
use super::replay::ReplayError;
use crate::function::Function;

/// What somebody says happened between two versions.
///
/// Anybody may make and change one; nothing is derived from it. It is worth something only once
/// [`ClaimedLog::check`] has carried it out and found that it leads where it should.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimedLog {
    /// The actions claimed, in order, each with the stamp of the version it was recorded on.
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
    /// Whether this is the log of what happened between two versions: carried out on `before` it
    /// gives `after`, with equal ids and by the same actions. Cost: linear in both versions and the
    /// log.
    ///
    /// # Errors
    /// When it is not, saying where the first difference is.
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
