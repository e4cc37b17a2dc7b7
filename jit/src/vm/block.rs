//! The memory of a context. It is allocated once, written by native code, and never moved.

use crate::context::{Context, SIGNALS};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::{NonNull, addr_of_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A [`Context`], followed by the code addresses of the functions.
#[derive(Debug)]
pub(super) struct Block {
    context: NonNull<Context>,
    layout: Layout,
}

// SAFETY: the memory is not tied to a thread. Only the `Vm` that made the block follows the pointer
// to the rest of it, on the thread that runs the `Vm`; other threads reach the signals alone,
// atomically.
unsafe impl Send for Block {}
// SAFETY: the methods with `&self` access the signals alone, as atomics. `context` and `function`
// only compute addresses, and the `Vm` that made the block is the only one to access memory through
// them.
unsafe impl Sync for Block {}

impl Block {
    /// A zeroed block with room for this number of functions.
    pub(super) fn new(functions: usize) -> Arc<Block> {
        let size = size_of::<Context>() + 8 * functions;
        let layout =
            Layout::from_size_align(size, 16).expect("jit: a module has fewer than 2^60 functions");
        // SAFETY: the layout has the size of a `Context` at least, so its size is not zero.
        let memory = unsafe { alloc_zeroed(layout) }.cast();
        let Some(context) = NonNull::new(memory) else { handle_alloc_error(layout) };
        Arc::new(Block { context, layout })
    }

    pub(super) fn context(&self) -> *mut Context {
        self.context.as_ptr()
    }

    /// The address of the word that holds the code address of a function.
    ///
    /// # Safety
    /// The block was made for more than `index` functions.
    pub(super) unsafe fn function(&self, index: usize) -> *mut *const u8 {
        // SAFETY: `new` allocated one word for each function behind the context. The caller
        // guarantees that `index` is less than their number, so the address stays inside the
        // allocation.
        unsafe { self.context.add(1).cast::<*const u8>().add(index).as_ptr() }
    }

    fn signals(&self) -> [&AtomicU32; SIGNALS] {
        // SAFETY: the block is allocated as long as `self` lives, so the address of the field is
        // inside the allocation. No reference to the context is made.
        let first = unsafe { addr_of_mut!((*self.context()).signals).cast::<u32>() };
        // SAFETY: `first` points to `SIGNALS` aligned words inside the block, which lives as long
        // as `self`. Rust accesses these words as atomics alone, and native code only reads them.
        std::array::from_fn(|i| unsafe { AtomicU32::from_ptr(first.add(i)) })
    }

    /// Sets bits in all signal words.
    pub(super) fn signal(&self, bits: u32) {
        self.signals().iter().for_each(|word| _ = word.fetch_or(bits, Ordering::SeqCst));
    }

    /// Whether one of these bits is set.
    pub(super) fn is_signalled(&self, bits: u32) -> bool {
        self.signals()[0].load(Ordering::SeqCst) & bits != 0
    }

    /// Clears bits in all signal words. Returns whether one of them was set.
    pub(super) fn clear(&self, bits: u32) -> bool {
        let before = self.signals().map(|word| word.fetch_and(!bits, Ordering::SeqCst));
        before[0] & bits != 0
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout. `drop` runs when the last `Arc` is
        // gone, so no reference to the signals is left, and the `Vm` whose native code uses the
        // block has none either.
        unsafe { dealloc(self.context().cast(), self.layout) }
    }
}

/// The current block of a machine, for threads that signal from outside. Extending the machine
/// replaces its block.
#[derive(Clone, Debug)]
pub(super) struct Current(Arc<Mutex<Arc<Block>>>);

impl Current {
    pub(super) fn new(block: Arc<Block>) -> Current {
        Current(Arc::new(Mutex::new(block)))
    }

    /// Sets bits in all signal words of the current block.
    pub(super) fn signal(&self, bits: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).signal(bits);
    }

    /// Replaces the current block, and copies its signals to the new one. The lock is held
    /// meanwhile, so no signal is lost.
    pub(super) fn move_to(&self, block: Arc<Block>) -> Arc<Block> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        block.signal(current.signals()[0].load(Ordering::SeqCst));
        *current = Arc::clone(&block);
        block
    }
}
