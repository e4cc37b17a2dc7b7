//! Address space for code: a reservation, parts of which are executable.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use super::{PageAccess, host};

/// Reserved address space. No byte of it is accessible at first; none is ever writable and
/// executable at the same time.
#[derive(Debug)]
pub(crate) struct Window {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is not tied to a thread, and this value owns it.
unsafe impl Send for Window {}

impl Window {
    /// Reserves `wanted` bytes, or `least` where the address space of the process has a limit, and
    /// where there is not that much. `least` is a multiple of the page size. Costs one or two
    /// system calls and no memory.
    ///
    /// # Errors
    /// If the system rejects the reservation, or the host is not supported.
    pub(crate) fn reserve(least: usize, wanted: usize) -> io::Result<Window> {
        let wanted = if host::limits_address_space() { least } else { wanted.max(least) };
        let window = |bytes| Ok(Window { base: host::map_reserved(bytes)?, bytes });
        window(wanted).or_else(|error| if wanted > least { window(least) } else { Err(error) })
    }

    /// All its addresses.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.base.as_ptr() as usize;
        start..start + self.bytes
    }

    /// The pointer to an address, which is followed by so many bytes.
    ///
    /// # Panics
    /// If they do not lie in the window.
    fn at(&self, start: usize, bytes: usize) -> *mut u8 {
        let offset = start.checked_sub(self.addresses().start);
        let offset = offset.filter(|offset| bytes <= self.bytes && *offset <= self.bytes - bytes);
        self.base.as_ptr().wrapping_add(offset.expect("jit: an address of the window"))
    }

    /// Makes whole pages readable and executable, and their bytes zero if they have not been
    /// accessible since they were reserved or hidden.
    ///
    /// # Errors
    /// If the system rejects executable memory.
    pub(crate) fn make_executable(&self, pages: Range<usize>) -> io::Result<()> {
        let start = self.at(pages.start, pages.len());
        // SAFETY: `at` checks that the pages lie in the mapping that this value owns. They stay or
        // become executable.
        unsafe { host::allow(start, pages.len(), PageAccess::Execute) }
    }

    /// Takes all access rights of whole pages away, and gives their memory back.
    ///
    /// # Safety
    /// No thread executes or reads the pages.
    pub(crate) unsafe fn make_inaccessible(&self, pages: Range<usize>) -> io::Result<()> {
        let start = self.at(pages.start, pages.len());
        // SAFETY: `at` checks that the pages lie in the mapping that this value owns. The caller
        // guarantees that nobody uses them.
        unsafe { host::hide(start, pages.len()) }
    }

    /// Writes bytes of executable pages, which stay executable for other threads meanwhile. No
    /// mapping of them is writable: the kernel writes, through `/proc/self/mem`.
    ///
    /// # Errors
    /// If the system has no such file, or forbids the write.
    ///
    /// # Safety
    /// No thread executes or reads these bytes.
    pub(crate) unsafe fn write(&self, start: usize, bytes: &[u8]) -> io::Result<()> {
        self.at(start, bytes.len());
        // SAFETY: `at` checks that the bytes lie in the mapping that this value owns. The caller
        // guarantees that nobody uses them.
        unsafe { host::write_through(start, bytes) }
    }

    /// Writes bytes from the beginning of a page on. All their pages are writable meanwhile, and
    /// executable afterwards.
    ///
    /// # Errors
    /// If the system rejects writable or executable memory. The pages may be writable then, and are
    /// executable after the next success.
    ///
    /// # Safety
    /// No thread executes or reads the pages meanwhile.
    pub(crate) unsafe fn write_pages(&self, start: usize, bytes: &[u8]) -> io::Result<()> {
        let pages = bytes.len().next_multiple_of(host::page_size());
        let at = self.at(start, pages);
        // SAFETY: `at` checks that the pages lie in the mapping that this value owns, and the
        // caller guarantees that nobody uses them. So they may lose and get rights, and the bytes
        // may be written while they are writable.
        unsafe {
            host::allow(at, pages, PageAccess::Write)?;
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            host::allow(at, pages, PageAccess::Execute)
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: `reserve` made this mapping with this size, and no other code unmaps it. Whoever
        // has an address of the code keeps the arena that owns the window.
        unsafe { host::unmap(self.base, self.bytes) }
    }
}
