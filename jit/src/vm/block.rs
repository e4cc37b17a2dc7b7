//! The memory of a context. It is allocated once, written by native code, and never moved.

use super::helpers;
use crate::context::{Context, SIGNALS};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A [`Context`], followed by the code addresses of the functions.
#[derive(Debug)]
pub(super) struct ContextBlock {
    context: NonNull<Context>,
    functions: usize,
    layout: Layout,
}

// SAFETY: the memory is not tied to a thread. The block owns it, and the values in it are numbers
// and addresses whose owners move together with the `Vm` that made the block.
unsafe impl Send for ContextBlock {}
// SAFETY: a thread other than the one that runs the `Vm` has the block through `Current` alone,
// which calls `signal` and `signals`, and these access atomics. The cells of the context, and the
// words behind it, belong to the thread that runs the `Vm`.
unsafe impl Sync for ContextBlock {}

impl ContextBlock {
    /// A block with room for this number of functions, whose words are zero.
    pub(super) fn new(functions: usize) -> Arc<ContextBlock> {
        let size = size_of::<Context>() + 8 * functions;
        let layout =
            Layout::from_size_align(size, 16).expect("jit: a module has fewer than 2^60 functions");
        // SAFETY: the layout has the size of a `Context` at least, so its size is not zero.
        let memory = unsafe { alloc_zeroed(layout) }.cast();
        let Some(context) = NonNull::<Context>::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: the allocation has the size and the alignment of a `Context` at least, and
        // nothing has been written to it yet.
        unsafe { context.write(Context::new(helpers::TABLE)) };
        Arc::new(ContextBlock { context, functions, layout })
    }

    /// The address that native code gets as its first argument.
    pub(super) fn address(&self) -> *mut Context {
        self.context.as_ptr()
    }

    /// The fixed part. Native code may change its cells while it runs.
    pub(super) fn context(&self) -> &Context {
        // SAFETY: `new` wrote a `Context`, which stays in place as long as `self` lives. Nobody
        // makes a mutable reference to it, and all fields that native code writes are cells.
        unsafe { self.context.as_ref() }
    }

    /// Makes calls of a function run some code.
    ///
    /// # Panics
    /// If the block has no such function.
    pub(super) fn point_at(&self, function: usize, code: *const u8) {
        assert!(function < self.functions, "jit: function {function} of {}", self.functions);
        // SAFETY: `new` allocated one word for each function behind the context, and the assertion
        // shows that this is one of them. No reference to these words is ever made, and native code
        // reads them on this thread alone, while Rust waits for it.
        unsafe { self.context.add(1).cast::<*const u8>().add(function).write(code) }
    }

    fn signals(&self) -> &[AtomicU32; SIGNALS] {
        &self.context().signals
    }

    /// Sets bits in all signal words.
    pub(super) fn signal(&self, bits: u32) {
        self.signals().iter().for_each(|word| _ = word.fetch_or(bits, Ordering::SeqCst));
    }

    /// A signal word, which is zero as long as nobody signals.
    pub(super) fn attention(&self) -> &AtomicU32 {
        &self.signals()[0]
    }

    /// Whether one of these bits is set.
    pub(super) fn is_signalled(&self, bits: u32) -> bool {
        self.signals()[0].load(Ordering::SeqCst) & bits != 0
    }

    /// Clears bits in all signal words. Returns whether one of them was set.
    pub(super) fn clear(&self, bits: u32) -> bool {
        let before = self.signals().each_ref().map(|word| word.fetch_and(!bits, Ordering::SeqCst));
        before[0] & bits != 0
    }
}

impl Drop for ContextBlock {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout. `drop` runs when the last `Arc` is
        // gone, so no reference to the context is left, and no native code runs with it: the `Vm`
        // holds an `Arc` as long as it runs. A `Context` has nothing to drop.
        unsafe { dealloc(self.address().cast(), self.layout) }
    }
}

/// The current block of a machine, for threads that signal from outside. Extending the machine
/// replaces its block.
#[derive(Clone, Debug)]
pub(super) struct Current(Arc<Mutex<Arc<ContextBlock>>>);

impl Current {
    pub(super) fn new(block: Arc<ContextBlock>) -> Current {
        Current(Arc::new(Mutex::new(block)))
    }

    /// Sets bits in all signal words of the current block.
    pub(super) fn signal(&self, bits: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).signal(bits);
    }

    /// Replaces the current block, and copies its signals to the new one. The lock is held
    /// meanwhile, so no signal is lost.
    pub(super) fn move_to(&self, block: Arc<ContextBlock>) -> Arc<ContextBlock> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        block.signal(current.signals()[0].load(Ordering::SeqCst));
        *current = Arc::clone(&block);
        block
    }
}
