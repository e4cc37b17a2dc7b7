//! The activations of a run: one frame each, and one stack that holds the values of all frames.

use super::decoded::Decoded;
use super::limits::{Limits, poison};

/// One activation. Its slots start at `base` and end where the next activation's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActivationFrame {
    pub(super) version: u32,
    /// The pc of the next operation to execute. In an activation that waits for a callee, this is
    /// the pc of the call.
    pub(super) pc: u32,
    /// Index into the caller's pool at which the slots of the results are listed.
    pub(super) results_at: u32,
    pub(super) base: usize,
    /// Number of constant slots, which follow the value slots.
    pub(super) consts: u32,
    pub(super) activation: u64,
    /// Whether a transition began the activation: values that it did not assign are poison.
    pub(super) landed: bool,
    /// Whether the fast loop has executed the activation since then: slots of dead values may hold
    /// other contents.
    pub(super) settled: bool,
}

/// The activations of a machine: their frames, and one stack for the values of all of them.
#[derive(Debug)]
pub(super) struct Activations {
    pub(super) frames: Vec<ActivationFrame>,
    /// Number of frames that belong to suspended runs, which lie below the frames of the current
    /// run.
    floor: usize,
    /// Never shrinks during a run. Contents above the top activation are garbage.
    pub(super) stack: Vec<u64>,
    /// The end of the slots of the top activation.
    end: usize,
    /// Constant slots of all activations. They hold no IR values and do not count toward
    /// `value_limit`.
    pub(super) consts: usize,
    /// Number of slots the stack has beyond `end`, at least.
    slack: usize,
    /// Activations begun over the life of the machine.
    count: u64,
    depth_limit: usize,
    value_limit: usize,
    pub(super) poison: bool,
}

/// A copy drops the garbage above the top activation.
impl Clone for Activations {
    fn clone(&self) -> Activations {
        Activations {
            frames: self.frames.clone(),
            stack: self.stack[..self.end].to_vec(),
            slack: 0,
            ..*self
        }
    }
}

impl Activations {
    pub(super) fn new(limits: &Limits, poison: bool) -> Activations {
        Activations {
            frames: Vec::new(),
            floor: 0,
            stack: Vec::new(),
            end: 0,
            consts: 0,
            slack: 0,
            count: 0,
            depth_limit: limits.call_depth as usize,
            value_limit: usize::try_from(limits.stack_values).unwrap_or(usize::MAX),
            poison,
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Whether the call depth limit forbids another activation.
    pub(super) fn are_full(&self) -> bool {
        self.frames.len() >= self.depth_limit
    }

    /// The frames of the current run, outermost first. Suspended runs are not included.
    #[inline]
    pub(super) fn of_run(&self) -> &[ActivationFrame] {
        &self.frames[self.floor..]
    }

    #[inline]
    pub(super) fn of_run_mut(&mut self) -> &mut [ActivationFrame] {
        &mut self.frames[self.floor..]
    }

    /// Number of frames that belong to suspended runs.
    pub(super) fn floor(&self) -> usize {
        self.floor
    }

    /// Sets the number of frames that belong to suspended runs; the frames above are the current
    /// run.
    pub(super) fn set_floor(&mut self, floor: usize) {
        self.floor = floor;
    }

    /// The innermost activation.
    #[inline]
    pub(super) fn top(&self) -> &ActivationFrame {
        self.frames.last().expect("interp: a run has an activation")
    }

    #[inline]
    pub(super) fn top_mut(&mut self) -> &mut ActivationFrame {
        self.frames.last_mut().expect("interp: a run has an activation")
    }

    /// Pushes an activation at the start of a version and returns the base of its slots. Returns
    /// `None` when the depth limit or the value limit is reached.
    #[inline]
    pub(super) fn push(&mut self, version: u32, code: &Decoded, results_at: u32) -> Option<usize> {
        let base = self.end;
        if self.are_full() || !self.reserve(base, code) {
            return None;
        }
        if self.poison {
            fill_poison(&mut self.stack[base..][..code.frame_size as usize]);
        }
        let consts = code.consts();
        self.frames.push(ActivationFrame {
            version,
            pc: 0,
            results_at,
            base,
            consts,
            activation: self.count,
            landed: false,
            settled: false,
        });
        self.count += 1;
        Some(base)
    }

    /// Whether activations of these codes fit in the place of the top activation.
    pub(super) fn have_room_for<'c>(
        &self,
        codes: impl ExactSizeIterator<Item = &'c Decoded>,
    ) -> bool {
        let top = self.top();
        let fits_depth = self.frames.len() - 1 + codes.len() <= self.depth_limit;
        let below = top.base - (self.consts - top.consts as usize);
        let values: usize = codes.map(|code| code.frame_size as usize).sum();
        fits_depth && below + values <= self.value_limit
    }

    /// Reserves the slots of an activation at `base` and counts its constants. Returns false, and
    /// changes nothing, when the frame exceeds the value limit.
    #[inline]
    pub(super) fn reserve(&mut self, base: usize, code: &Decoded) -> bool {
        let values = code.frame_size as usize;
        // `base` counts the constants of the activations below, and the limit does not.
        if base - self.consts + values > self.value_limit {
            return false;
        }
        let end = base + values + code.consts() as usize;
        if end + self.slack > self.stack.len() {
            self.lengthen(end + self.slack);
        }
        self.end = end;
        self.consts += code.consts() as usize;
        true
    }

    /// From now on, keeps at least `slots` slots on the stack above the end of every frame.
    pub(super) fn provide_window(&mut self, slots: usize) {
        self.slack = slots;
        if self.end + slots > self.stack.len() {
            self.lengthen(self.end + slots);
        }
    }

    #[cold]
    fn lengthen(&mut self, length: usize) {
        // The system commits fresh zeros page by page as the program touches them. `Vec::resize`
        // would write its zeros, and thereby commit all of them at once. Twice the length: the
        // first activation would otherwise copy the window of a new machine, and thereby commit it
        // (`a_first_activation_copies_no_window`).
        let mut longer = vec![0; 2 * length];
        longer[..self.stack.len()].copy_from_slice(&self.stack);
        self.stack = longer;
    }

    /// Pops the top activation and returns its frame.
    #[inline]
    pub(super) fn pop(&mut self) -> ActivationFrame {
        let frame = self.frames.pop().expect("interp: a run has an activation");
        self.end = frame.base;
        self.consts -= frame.consts as usize;
        frame
    }

    /// Pops all activations of the current run.
    pub(super) fn drop_run(&mut self) {
        while self.frames.len() > self.floor {
            self.pop();
        }
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.floor = 0;
        self.end = 0;
        self.consts = 0;
    }
}

/// Fills slots with [`poison`], a pattern on which no correct program depends.
pub(super) fn fill_poison(slots: &mut [u64]) {
    for (value, slot) in slots.iter_mut().zip(0..) {
        *value = poison(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::Activations;
    use crate::Limits;

    #[test]
    fn a_first_activation_copies_no_window() {
        let mut activations = Activations::new(&Limits::default(), false);
        activations.provide_window(1 << 16);
        let window = activations.stack.as_ptr();
        activations.provide_window((1 << 16) + 100);
        assert_eq!(activations.stack.as_ptr(), window);
    }
}
