//! The activations of a run: their frames, and the stack of their values.

use super::code::Code;
use super::limits::{Limits, poison};

/// One activation. Its slots start at `base` and end where the next activation's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) version: u32,
    /// The operation to execute next; in an activation that is calling, the call.
    pub(super) pc: u32,
    /// Where the pool of the caller's code lists the slots of the results.
    pub(super) results_at: u32,
    pub(super) base: usize,
    /// Slots of constants behind those of its values.
    pub(super) consts: u32,
    pub(super) activation: u64,
}

/// The activations of a run: frames, and one stack for the values of all.
#[derive(Debug)]
pub(super) struct Activations {
    pub(super) frames: Vec<Frame>,
    /// How many of the frames belong to runs that are suspended below the one under way.
    floor: usize,
    /// Never shrinks during a run: what is above the top activation is garbage.
    pub(super) stack: Vec<u64>,
    /// The end of the slots of the top activation.
    end: usize,
    /// Slots of constants of all activations, which are no values and do not count for the limit.
    pub(super) consts: usize,
    /// Slots that the stack has beyond the end, at least.
    slack: usize,
    /// Activations begun over the life of the machine.
    count: u64,
    depth_limit: usize,
    value_limit: usize,
    pub(super) poison: bool,
}

/// A copy has no garbage above the top activation.
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

    /// Whether there may be no other activation.
    pub(super) fn are_full(&self) -> bool {
        self.frames.len() >= self.depth_limit
    }

    /// The activations of the run under way.
    #[inline]
    pub(super) fn of_run(&self) -> &[Frame] {
        &self.frames[self.floor..]
    }

    #[inline]
    pub(super) fn of_run_mut(&mut self) -> &mut [Frame] {
        &mut self.frames[self.floor..]
    }

    /// How many activations belong to suspended runs.
    pub(super) fn floor(&self) -> usize {
        self.floor
    }

    /// Says that so many belong to suspended runs: another run is under way.
    pub(super) fn set_floor(&mut self, floor: usize) {
        self.floor = floor;
    }

    /// The innermost activation.
    #[inline]
    pub(super) fn top(&self) -> &Frame {
        self.frames.last().expect("interp: a run has an activation")
    }

    #[inline]
    pub(super) fn top_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("interp: a run has an activation")
    }

    /// Begins an activation at the start of a version and returns the base of its slots, or `None`
    /// when a limit is reached.
    #[inline]
    pub(super) fn push(&mut self, version: u32, code: &Code, results_at: u32) -> Option<usize> {
        let base = self.end;
        if self.are_full() || !self.reserve(base, code) {
            return None;
        }
        if self.poison {
            fill_poison(&mut self.stack[base..][..code.frame_size as usize]);
        }
        let consts = code.consts();
        self.frames.push(Frame {
            version,
            pc: 0,
            results_at,
            base,
            consts,
            activation: self.count,
        });
        self.count += 1;
        Some(base)
    }

    /// Makes room for the slots of an activation that is not counted yet; false, and nothing
    /// changed, beyond the limit.
    #[inline]
    pub(super) fn reserve(&mut self, base: usize, code: &Code) -> bool {
        let values = code.frame_size as usize;
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

    /// Makes the stack have a window of so many slots at every frame, from now on.
    pub(super) fn provide_window(&mut self, slots: usize) {
        self.slack = slots;
        if self.end + slots > self.stack.len() {
            self.lengthen(self.end + slots);
        }
    }

    #[cold]
    fn lengthen(&mut self, length: usize) {
        // Fresh zeros are committed as they are touched; those of `Vec::resize` are written.
        let mut longer = vec![0; length.max(self.stack.len() / 2 * 3)];
        longer[..self.stack.len()].copy_from_slice(&self.stack);
        self.stack = longer;
    }

    /// Ends the top activation and returns what it was.
    #[inline]
    pub(super) fn pop(&mut self) -> Frame {
        let frame = self.frames.pop().expect("interp: a run has an activation");
        self.end = frame.base;
        self.consts -= frame.consts as usize;
        frame
    }

    /// Ends the activations of the run under way.
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

/// Fills slots with bits that no program should depend on.
pub(super) fn fill_poison(slots: &mut [u64]) {
    for (value, slot) in slots.iter_mut().zip(0..) {
        *value = poison(slot);
    }
}
