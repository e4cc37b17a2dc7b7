//! The action log.

use super::action::Action;

/// The actions that lead from one version of a function to another, in order.
///
/// Append-only, and only the editor appends: a log always tells what really happened. It does not
/// tell whether that was legal; whoever needs to know asks a judge that does not trust it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActionLog {
    start: u64,
    actions: Vec<Action>,
}

impl ActionLog {
    /// The log of nothing, on a function with this stamp.
    pub(super) fn starting_at(start: u64) -> ActionLog {
        ActionLog { start, actions: Vec::new() }
    }

    /// The log of nothing, on this version.
    pub fn empty_for(version: &crate::Function) -> ActionLog {
        ActionLog::starting_at(version.stamp())
    }

    pub(super) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// The stamp of the version the first action applies to.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The stamp of the version the log leads to.
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

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Appends the log of what happened next: the log of a whole pipeline is that of its passes in
    /// order.
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
