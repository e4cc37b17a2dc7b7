//! The memory of a context. It is allocated once, written by native code, and never moved.

use crate::context::{Context, FLAGS, Helpers, SIGNAL_BITS, SIGNAL_FLAG, SIGNAL_INTERRUPT};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A [`Context`], between the words of flags and the code addresses of the functions.
#[derive(Debug)]
pub(crate) struct ContextBlock {
    context: NonNull<Context>,
    /// The words of flags: [`FLAGS`], or none.
    flags: usize,
    functions: usize,
    layout: Layout,
}

// SAFETY: the memory is not tied to a thread. The block owns it, and the values in it are numbers
// and addresses whose owners move together with the `Vm` that made the block.
unsafe impl Send for ContextBlock {}
// SAFETY: other threads than the thread of the `Vm` access the block through `Current` alone, which
// accesses only the atomics in `signals` and the words of flags. The cells of the context, and the
// words behind it, belong to the thread that runs the `Vm`.
unsafe impl Sync for ContextBlock {}

impl ContextBlock {
    /// A block with room for this number of functions, whose words are zero, and with the table of
    /// helpers that native code calls. It has words of flags if code tests them.
    pub(super) fn new(functions: usize, has_flags: bool, helpers: Helpers) -> Arc<ContextBlock> {
        let flags = if has_flags { FLAGS } else { 0 };
        let before = size_of::<AtomicU32>() * flags;
        let size = before + size_of::<Context>() + 8 * functions;
        let layout =
            Layout::from_size_align(size, 16).expect("jit: a module has fewer than 2^60 functions");
        // SAFETY: the layout has the size of a `Context` at least, so its size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { handle_alloc_error(layout) };
        // SAFETY: the allocation has `before` bytes, and behind them those of a `Context` at least.
        let context = unsafe { memory.add(before) }.cast::<Context>();
        // SAFETY: the address has the alignment of a `Context`, since `before` is a multiple of 16
        // (asserted below), and nothing has been written there yet.
        unsafe { context.write(Context::new(helpers)) };
        let block = ContextBlock { context, flags, functions, layout };
        block.quiet();
        Arc::new(block)
    }

    /// The functions that the block has room for.
    pub(super) fn room(&self) -> usize {
        self.functions
    }

    /// Whether the block has room for this number of functions.
    pub(super) fn has_room(&self, functions: usize) -> bool {
        functions <= self.functions
    }

    /// A block with more room, in which calls of functions run the same code.
    ///
    /// # Panics
    /// If it would have less room.
    pub(super) fn larger(&self, functions: usize) -> Arc<ContextBlock> {
        assert!(self.functions <= functions, "jit: {functions} of {} functions", self.functions);
        let block = ContextBlock::new(functions, self.flags > 0, self.context().helpers);
        // SAFETY: a block has a word for each function behind its context. The assertion shows that
        // the new block has words for all functions of this block. Words of both blocks are read
        // and written on this thread alone, while no native code runs.
        unsafe {
            let words = self.context.add(1).cast::<*const u8>();
            let to = block.context.add(1).cast::<*const u8>();
            to.copy_from_nonoverlapping(words, self.functions);
        }
        block
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

    /// The addresses behind the context.
    #[cfg(test)]
    pub(super) fn words_of_functions(&self) -> Vec<usize> {
        let words = (0..self.functions).map(|function| {
            // SAFETY: as for `point_at`, which writes such a word; `new` has made all of them zero.
            unsafe { self.context.add(1).cast::<*const u8>().add(function).read() }.addr()
        });
        words.collect()
    }

    /// The interrupt words: the word of the interpreter, the words that native code polls, and the
    /// words of its flags.
    fn words(&self) -> impl Iterator<Item = &AtomicU32> {
        let context = self.context();
        [&context.attention].into_iter().chain(&context.signals).chain(self.flags())
    }

    /// The words of the flags.
    fn flags(&self) -> &[AtomicU32] {
        // SAFETY: `new` has allocated this number of zeroed words in front of the context, which
        // stay as long as `self` lives. Native code and all threads access them as atomics alone.
        unsafe {
            let first = self.context.cast::<AtomicU32>().sub(self.flags);
            std::slice::from_raw_parts(first.as_ptr(), self.flags)
        }
    }

    /// Makes the words for interrupts quiet.
    fn quiet(&self) {
        let address = self.address().addr() as u32;
        self.context().signals.iter().for_each(|word| word.store(address, Ordering::SeqCst));
    }

    /// A word that is zero unless an interrupt was requested.
    pub(super) fn attention(&self) -> &AtomicU32 {
        &self.context().attention
    }

    /// Whether an interrupt was requested.
    pub(super) fn is_interrupted(&self) -> bool {
        self.attention().load(Ordering::SeqCst) & SIGNAL_INTERRUPT != 0
    }
}

impl Drop for ContextBlock {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the memory with this layout. `drop` runs when the last `Arc` is
        // gone, so no reference to the context is left, and no native code runs with it: the `Vm`
        // holds an `Arc` as long as it runs. A `Context` has nothing to drop.
        unsafe {
            let first = self.context.cast::<AtomicU32>().sub(self.flags);
            dealloc(first.as_ptr().cast(), self.layout)
        }
    }
}

const _: () = assert!((size_of::<AtomicU32>() * FLAGS).is_multiple_of(16));

/// The current block of a machine, for threads that signal from outside. Extending the machine
/// may replace its block. Every change of a word holds the lock.
#[derive(Clone, Debug)]
pub(crate) struct Current(Arc<Mutex<Arc<ContextBlock>>>);

impl Current {
    pub(super) fn new(block: Arc<ContextBlock>) -> Current {
        Current(Arc::new(Mutex::new(block)))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ContextBlock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests an interrupt. Linear in the words.
    pub(super) fn interrupt(&self) {
        // Set the first word first: `forget_interrupts` looks at that word to drop a request that a
        // run has seen in any word.
        self.lock().words().for_each(|word| _ = word.fetch_or(SIGNAL_INTERRUPT, Ordering::SeqCst));
    }

    /// Drops a request for an interrupt. Constant cost without a request, else linear in the words.
    pub(super) fn forget_interrupts(&self) {
        let block = self.lock();
        if block.is_interrupted() {
            let clear = |word: &AtomicU32| _ = word.fetch_and(!SIGNAL_INTERRUPT, Ordering::SeqCst);
            block.words().for_each(clear);
        }
    }

    /// Sets or clears the word of a flag. Constant cost.
    ///
    /// # Panics
    /// If the context has no such word.
    pub(crate) fn show_flag(&self, index: usize, is_set: bool) {
        let block = self.lock();
        let word = &block.flags()[index];
        if is_set {
            word.fetch_or(SIGNAL_FLAG, Ordering::SeqCst);
        } else {
            word.fetch_and(!SIGNAL_FLAG, Ordering::SeqCst);
        }
    }

    /// Replaces the current block, and copies its interrupt and its flags to the new one. The lock
    /// is held meanwhile, so no signal is lost.
    pub(super) fn move_to(&self, block: Arc<ContextBlock>) -> Arc<ContextBlock> {
        let mut current = self.lock();
        for (new, old) in block.words().zip(current.words()) {
            new.fetch_or(old.load(Ordering::SeqCst) & SIGNAL_BITS, Ordering::SeqCst);
        }
        *current = Arc::clone(&block);
        block
    }
}
