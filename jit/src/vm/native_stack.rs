//! The entries of a run into native code, and the pace at which their frames are walked.

use crate::sys::frames::{NativeFrames, WaitingFrame};

/// The number of frames whose visits one retired piece of code, and one request, pay for. A visit
/// takes a few nanoseconds; compiling the piece took some 100,000, and a request takes more than
/// 100.
const FRAMES_OF_PIECE: usize = 1024;
const FRAMES_OF_QUESTION: usize = 16;

/// The entries of a run into native code, the outermost first.
#[derive(Debug, Default)]
pub(super) struct NativeStack {
    /// The frames of each entry while its native code waits for a helper that has recorded them.
    entries: Vec<Option<NativeFrames>>,
    pub(super) pace: Pace,
}

/// Decides when the frames are walked.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The number of frames that requests have paid for since the last walk.
    paid: usize,
    /// The frames that the last walk has visited.
    visited: usize,
    /// The pieces that the last walk has left retired.
    left: usize,
}

impl Pace {
    /// Records a request while `retired` pieces exist. Returns whether to walk now.
    ///
    /// The stack may have grown since the last walk. The calls that pushed the new frames pay for
    /// visiting them.
    pub(super) fn ask(&mut self, retired: usize) -> bool {
        let new = retired.saturating_sub(self.left);
        self.paid = self.paid.saturating_add(FRAMES_OF_QUESTION);
        self.paid.saturating_add(new.saturating_mul(FRAMES_OF_PIECE)) >= self.visited
    }

    /// Records a walk.
    pub(super) fn walked(&mut self, visited: usize, left: usize) {
        *self = Pace { paid: 0, visited, left };
    }
}

impl NativeStack {
    /// Records an entry into native code.
    pub(super) fn enter(&mut self) {
        self.entries.push(None);
    }

    /// Records that the native code of the innermost entry has ended.
    pub(super) fn leave(&mut self) {
        self.entries.pop();
    }

    /// Records that the native code of the innermost entry waits for a helper.
    ///
    /// # Panics
    /// If there is no entry: native code alone calls helpers.
    pub(super) fn wait(&mut self, frames: NativeFrames) {
        *self.innermost() = Some(frames);
    }

    /// Records that the helper returns to native code.
    ///
    /// # Panics
    /// As [`NativeStack::wait`].
    pub(super) fn go_on(&mut self) {
        *self.innermost() = None;
    }

    fn innermost(&mut self) -> &mut Option<NativeFrames> {
        self.entries.last_mut().expect("jit: native code was entered")
    }

    /// Forgets all entries, at the end of a run.
    pub(super) fn clear(&mut self) {
        // The list keeps its room for the next run.
        self.entries.clear();
        self.pace = Pace::default();
    }

    /// Calls `visit` with each frame of native code that waits. Returns `None` if some frames are
    /// not known.
    pub(super) fn waiting(&self, mut visit: impl FnMut(WaitingFrame)) -> Option<()> {
        for frames in &self.entries {
            (*frames)?.waiting(&mut visit);
        }
        Some(())
    }

    /// Calls `visit` with each address to which native code returns. Returns the number of
    /// addresses, or `None` if some are not known.
    pub(super) fn return_addresses(&self, mut visit: impl FnMut(usize)) -> Option<usize> {
        let mut count = 0;
        for frames in &self.entries {
            count += (*frames)?.return_addresses(&mut visit);
        }
        Some(count)
    }
}

#[cfg(test)]
mod tests;
