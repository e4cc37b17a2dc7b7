//! The roots of a collection.

use super::*;
use crate::heap::collector::Collection;

impl Machine {
    /// Collects. The roots are `own`, the first `operands` operands in memory, and all that
    /// activations of the interpreter and of native code hold.
    ///
    /// # Errors
    /// If the collection frees too little space for the allocation.
    pub(crate) fn collect(
        &mut self,
        host: &mut Host<'_, '_>,
        own: &mut [Word],
        operands: u32,
    ) -> Result<(), Thrown> {
        // The machine lends its memory or its roots, so the roots come out and go in again.
        let mut natives = Vec::new();
        if let Host::Native(back) = host {
            back.roots(&mut |word| natives.push(*word));
        }
        let of = |frame: &Frame| self.program.protos[frame.proto as usize].registers as usize;
        let top = self.frames.last().map_or(0, |frame| frame.base + of(frame));
        let (mut heap, shapes) = (host.heap(), self.runtime.shapes());
        self.allocated += u64::from(heap.allocated_since());
        let mut collection = Collection::begin(&mut heap, &shapes, operands);
        let (used, free) = self.stack.split_at_mut(top);
        let closures = self.frames.iter_mut().map(|frame| &mut frame.closure);
        for word in used.iter_mut().chain(own).chain(&mut natives).chain(closures) {
            *word = collection.forward(*word);
        }
        let is_enough = collection.end();
        // A later activation must not find a word there that the collection has left behind.
        free.fill(NIL);
        let mut moved = natives.into_iter();
        if let Host::Native(back) = host {
            back.roots(&mut |word| *word = moved.next().unwrap_or(*word));
        }
        self.collections += 1;
        if is_enough { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    /// As [`Machine::execute`], behind an exit that may have made objects behind the limit of the
    /// heap: these make the collection happen that their allocations would have made. If the heap
    /// is full, the instruction throws that is about to be executed
    /// (`a_heap_that_is_full_at_an_exit_is_caught`).
    pub(crate) fn execute_behind_exit(
        &mut self,
        host: &mut Host<'_, '_>,
        floor: usize,
    ) -> Result<Word, Failed> {
        if host.heap().is_beyond_limit() {
            // An allocation of long ago is no reason to fail.
            host.heap().set_u32(header::WANTED, 0);
            if let Err(full) = self.collect(host, &mut [], 0) {
                self.frames.last_mut().expect("a frame is running").pc += 1;
                if let Err(Failed::Thrown(exception)) = self.throw_here(host, full) {
                    self.unwind(exception, floor)?;
                }
            }
        }
        self.execute(host, floor)
    }

    /// Empties the innermost activation, which continues in native code: its values would be roots
    /// as long as it runs. Returns its registers.
    pub(crate) fn leave_window(&mut self, frame: Frame) -> Vec<Word> {
        self.frames.last_mut().expect("a frame is running").closure = NIL;
        let window = &mut self.stack[frame.base..frame.base + WINDOW];
        let registers = self.program.protos[frame.proto as usize].registers;
        let left = window[..registers as usize].to_vec();
        // Behind the registers are words of activations that have ended.
        window.fill(NIL);
        left
    }

    /// Undoes [`Machine::leave_window`].
    pub(crate) fn restore_window(&mut self, frame: Frame, registers: &[Word]) {
        self.frames.last_mut().expect("a frame is running").closure = frame.closure;
        self.stack[frame.base..frame.base + registers.len()].copy_from_slice(registers);
    }
}
