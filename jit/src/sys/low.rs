//! Words at addresses below 2 GiB, which native code has as constants of four bytes.

use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU32;

use super::host;

/// Words of one mapping.
#[derive(Debug)]
pub(crate) struct LowWords {
    start: NonNull<AtomicU32>,
    count: usize,
}

// SAFETY: the mapping is not tied to a thread, and this value owns it.
unsafe impl Send for LowWords {}
// SAFETY: the words are atomic, and nothing else of the mapping changes.
unsafe impl Sync for LowWords {}

impl LowWords {
    /// Maps words that are 0. Costs one system call.
    ///
    /// # Errors
    ///
    /// If the system has no such range, or the host is not supported.
    pub(crate) fn new(count: usize) -> io::Result<LowWords> {
        let start = host::map_low(count * size_of::<AtomicU32>())?.cast();
        Ok(LowWords { start, count })
    }

    /// The words.
    pub(crate) fn words(&self) -> &[AtomicU32] {
        // SAFETY: `new` mapped this number of words, and the mapping is page-aligned, zeroed and
        // stays as long as `self`. All accesses to it are atomic, those of native code included:
        // aligned loads of four bytes.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for LowWords {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping with this size, and nothing else unmaps it. References
        // into it borrow this value, and code with the address of a word keeps this value alive.
        unsafe { host::unmap(self.start.cast(), self.count * size_of::<AtomicU32>()) }
    }
}
