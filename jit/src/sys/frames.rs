//! The native frames between an entry trampoline and the stub that waits for a helper.
//!
//! Every native function keeps a frame pointer (`preserve_frame_pointers` in `engine::isa`): the
//! word at the frame pointer is the frame pointer of the caller, and the word above it is the
//! return address. So the frames form a list, from the stub to the trampoline. A jump in tail
//! position leaves no frame behind.

use super::host;

/// The native frames of one entry, while its innermost frame waits for a helper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeFrames {
    /// The frame pointer of the stub that waits.
    innermost: usize,
    /// The frame pointer of the entry trampoline.
    trampoline: usize,
}

impl NativeFrames {
    /// The frames from a stub out to the trampoline of the entry, by their frame pointers.
    ///
    /// # Safety
    ///
    /// The stub waits for a helper, the trampoline is that of the innermost entry, and the value is
    /// used only until the helper returns to the stub.
    pub(crate) unsafe fn new(innermost: u64, trampoline: u64) -> NativeFrames {
        NativeFrames { innermost: innermost as usize, trampoline: trampoline as usize }
    }

    /// Calls `visit` with each return address, the innermost first. The last one lies in the
    /// trampoline. Returns the number of addresses. Linear in the frames.
    ///
    /// # Panics
    ///
    /// If the frame pointers do not ascend, which shows wrong code.
    pub(crate) fn return_addresses(self, mut visit: impl FnMut(usize)) -> usize {
        let (mut frame, mut count) = (self.innermost, 0);
        while frame != self.trampoline {
            // SAFETY: the contract of `new` says that all frames out to the trampoline are native
            // frames that wait, so `frame` addresses two words that nobody writes meanwhile.
            let [caller, returns_to] = unsafe { host::linkage(frame) };
            visit(returns_to);
            count += 1;
            assert!(
                frame < caller && caller <= self.trampoline,
                "jit: the frame at {frame:#x} names the caller {caller:#x}"
            );
            frame = caller;
        }
        count
    }
}
