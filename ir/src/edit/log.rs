//! The action log.

use super::action::Action;

/// The actions that lead from one version of a function to another, in order.
///
/// The log is append-only, and the editor alone appends to it. A log therefore lists exactly the
/// changes that happened. The log does not show that the changes were legal; a judge that distrusts
/// the log decides legality.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionLog {
    start: u64,
    actions: Vec<Action>,
}

impl ActionLog {
    /// The empty log for a function with this stamp.
    pub(super) fn starting_at(start: u64) -> ActionLog {
        ActionLog { start, actions: Vec::new() }
    }

    /// The empty log for this version.
    pub fn empty_for(version: &crate::Function) -> ActionLog {
        ActionLog::starting_at(version.stamp())
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// The stamp of the version that the first action applies to.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The stamp of the version that the log leads to.
    pub fn end(&self) -> u64 {
        self.start + self.actions.len() as u64
    }

    /// The actions, in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The number of actions.
    pub fn len(&self) -> usize {
        self.actions.len()
    }

    /// Whether the log has no actions.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Appends the log of the next pass. The log of a pipeline is the concatenation of the logs of
    /// its passes.
    ///
    /// # Panics
    /// When `next` does not start where this log ends.
    pub fn extend(&mut self, next: ActionLog) {
        assert!(
            next.start == self.end(),
            "a log starting at {} cannot follow one ending at {}",
            next.start,
            self.end()
        );
        self.actions.extend(next.actions);
    }

    #[cfg(test)]
    pub(super) fn actions_mut(&mut self) -> &mut Vec<Action> {
        &mut self.actions
    }
}
