//! The native frames between an entry trampoline and the stub that waits for a helper.
//!
//! Every native function keeps a frame pointer (`preserve_frame_pointers` in `engine::isa`): the
//! word at the frame pointer is the frame pointer of the caller, and the word above it is the
//! return address. So the frames form a list, from the stub to the trampoline. A jump in tail
//! position leaves no frame behind.

use super::host;

/// A native frame that waits for a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingFrame {
    /// The address to which the call returns.
    pub(crate) returns_to: usize,
    /// The frame pointer.
    pointer: usize,
}

impl WaitingFrame {
    /// Calls `visit` with the word that lies `below` bytes below the frame pointer.
    ///
    /// # Safety
    ///
    /// [`NativeFrames::waiting`] has given the frame, whose entry still waits for the helper. The
    /// stack map of the call has the word, and nobody else has a reference to it.
    pub(crate) unsafe fn visit_word(self, below: u32, visit: &mut dyn FnMut(&mut u64)) {
        let place = std::ptr::with_exposed_provenance_mut::<u64>(self.pointer - below as usize);
        // SAFETY: the caller guarantees a live frame and a word inside the frame, which Cranelift
        // has aligned to its size and has written before the call. Native code alone accesses the
        // word, and it waits.
        visit(unsafe { &mut *place });
    }
}

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
    /// The stub waits for a helper, the trampoline belongs to the innermost entry, and the caller
    /// uses the value only until the helper returns to the stub.
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
        self.waiting(|frame| visit(frame.returns_to))
    }

    /// Calls `visit` with each frame that waits for a call, the innermost first, the trampoline
    /// last. Returns the number of frames. Linear in the frames.
    ///
    /// # Panics
    ///
    /// If the frame pointers do not ascend, which shows wrong code.
    pub(crate) fn waiting(self, mut visit: impl FnMut(WaitingFrame)) -> usize {
        let (mut frame, mut count) = (self.innermost, 0);
        while frame != self.trampoline {
            // SAFETY: the contract of `new` says that all frames out to the trampoline are native
            // frames that wait, so `frame` addresses two words that nobody writes meanwhile.
            let [caller, returns_to] = unsafe { host::linkage(frame) };
            visit(WaitingFrame { returns_to, pointer: caller });
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
