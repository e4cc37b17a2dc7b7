//! An observer that lets visits of points pass.

use interp::{Control, Observer, Scope, View};
use ir::Inst;

/// Lets a number of visits of marked points pass, then pauses the run before the next.
pub(crate) struct Waiting<F> {
    left: u64,
    /// Whether a visit counts.
    counts: F,
}

impl<F: FnMut(&View<'_>) -> bool> Waiting<F> {
    pub(crate) fn new(left: u64, counts: F) -> Waiting<F> {
        Waiting { left, counts }
    }

    /// Never pauses in practice, and counts visits.
    pub(crate) fn counting(counts: F) -> Waiting<F> {
        Waiting::new(u64::MAX, counts)
    }

    /// The visits that a counting observer has let pass.
    pub(crate) fn counted(&self) -> u64 {
        u64::MAX - self.left
    }
}

impl<F: FnMut(&View<'_>) -> bool> Observer for Waiting<F> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, _inst: Inst) -> Control {
        if !(self.counts)(view) {
            return Control::Continue;
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Control::Continue
            }
            None => Control::Pause,
        }
    }
}
