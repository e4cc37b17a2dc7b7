//! The memory of a context: allocated once, written by native code, never moved.

use crate::context::{Context, SIGNALS};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A context and the code addresses of the functions behind it.
#[derive(Debug)]
pub(super) struct Block {
    context: NonNull<Context>,
    layout: Layout,
}

// SAFETY: through a shared reference only the signals are reached, which are accessed atomically;
// everything else goes through the pointer, which only the `Vm` that made the block follows, on the
// thread that runs it.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// A block of zeros with room for so many functions.
    pub(super) fn new(functions: usize) -> Arc<Block> {
        let size = size_of::<Context>() + 8 * functions;
        let layout =
            Layout::from_size_align(size, 16).expect("jit: a module has fewer than 2^60 functions");
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) }.cast();
        let Some(context) = NonNull::new(memory) else { handle_alloc_error(layout) };
        Arc::new(Block { context, layout })
    }

    pub(super) fn context(&self) -> *mut Context {
        self.context.as_ptr()
    }

    /// Where the code address of a function lies.
    ///
    /// # Safety
    /// The module has the function.
    pub(super) unsafe fn function(&self, index: usize) -> *mut *const u8 {
        // SAFETY: the block has a word for every function of the module, behind the context.
        unsafe { self.context.add(1).cast::<*const u8>().add(index).as_ptr() }
    }

    fn signals(&self) -> [&AtomicU32; SIGNALS] {
        // SAFETY: the words lie in the block, are aligned, and live as long as `self`; Rust
        // accesses them as atomics alone.
        let first = unsafe { addr_of_mut!((*self.context()).signals).cast::<u32>() };
        // SAFETY: as above, for each of the words.
        std::array::from_fn(|i| unsafe { AtomicU32::from_ptr(first.add(i)) })
    }

    /// Sets bits of all signals.
    pub(super) fn signal(&self, bits: u32) {
        self.signals().iter().for_each(|word| _ = word.fetch_or(bits, Ordering::SeqCst));
    }

    /// Whether one of these bits is set.
    pub(super) fn is_signalled(&self, bits: u32) -> bool {
        self.signals()[0].load(Ordering::SeqCst) & bits != 0
    }

    /// Clears bits of all signals. Whether one of them was set.
    pub(super) fn clear(&self, bits: u32) -> bool {
        let before = self.signals().map(|word| word.fetch_and(!bits, Ordering::SeqCst));
        before[0] & bits != 0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has a reference left.
        unsafe { dealloc(self.context().cast(), self.layout) }
    }
}

/// The block that a machine has now, for those who signal from outside: an extended machine has
/// another one.
#[derive(Clone, Debug)]
pub(super) struct Current(Arc<Mutex<Arc<Block>>>);

impl Current {
    pub(super) fn new(block: Arc<Block>) -> Current {
        Current(Arc::new(Mutex::new(block)))
    }

    /// Sets bits of all signals.
    pub(super) fn signal(&self, bits: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).signal(bits);
    }

    /// Puts another block in the place of the one there was, whose signals it takes over: none is
    /// lost that is set meanwhile.
    pub(super) fn move_to(&self, block: Arc<Block>) -> Arc<Block> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        block.signal(current.signals()[0].load(Ordering::SeqCst));
        *current = Arc::clone(&block);
        block
    }
}
