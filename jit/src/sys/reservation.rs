//! Memory that grows in place: a reservation of address space with a usable beginning.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use super::{PageAccess, host};

// Computed in 64 bits, so that the crate compiles for shorter addresses, too. Such hosts reserve no
// memory.
/// The bytes of address space that a 32-bit index reaches.
const INDEXED: usize = (4u64 << 30) as usize;
/// The inaccessible bytes of address space behind the indexed bytes. They catch the constant offset
/// that an access adds to its index.
pub(crate) const GUARD: usize = 2 << 30;

/// Reserved address space. The first [`Reservation::bytes`] may be read and written; no byte is
/// ever executable.
///
/// An access at `base + index + offset`, with a 32-bit index and an `offset + size` of at most 2
/// GiB, stays inside the reservation, and faults behind the usable bytes. The limit is exact to the
/// byte if the length is a multiple of the page size ([`page_size`]). Otherwise the rest of the
/// last page is accessible, too.
#[derive(Debug)]
pub(crate) struct Reservation {
    base: NonNull<u8>,
    len: usize,
    max: usize,
}

// SAFETY: the mapping is not tied to a thread, and this value owns it. Native code has its address
// too, but runs on the thread that runs the `Vm`, which owns this value and moves between runs
// alone.
unsafe impl Send for Reservation {}
// SAFETY: the methods with `&self` only read, and writing needs `&mut self`. Threads that share the
// value therefore read alone.
unsafe impl Sync for Reservation {}

/// The page size of this host in bytes, a power of two.
pub(crate) fn page_size() -> usize {
    host::page_size()
}

/// Reserves 6 GiB of address space, of which no byte is usable yet and at most `max_bytes` later.
/// Costs one system call and no memory.
///
/// # Errors
///
/// If the system rejects the reservation (because of `RLIMIT_AS`, say), `max_bytes` exceeds 4 GiB,
/// or the host is not supported.
pub(crate) fn reserve(max_bytes: usize) -> io::Result<Reservation> {
    if max_bytes > INDEXED {
        let message = format!("{max_bytes} bytes exceed the {INDEXED} that a 32-bit index reaches");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let base = host::map_reserved(INDEXED + GUARD)?;
    Ok(Reservation { base, len: 0, max: max_bytes })
}

impl Reservation {
    /// The usable bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `grow` made the first `len` bytes readable before it set `len`, and the system
        // maps them as zeros, so they are initialized. Rust writes them through `&mut self` alone.
        // Native code writes them while it runs, and the `Vm` holds no reference into its memories
        // then.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// The usable bytes, for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `grow` made the first `len` bytes readable and writable before it set `len`, and
        // the system maps them as zeros. `&mut self` excludes every other reference, and native
        // code does not run while the `Vm` holds one.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Makes the first `len` bytes usable; new bytes are zero, and the base stays in place. Returns
    /// false, and changes nothing, if `len` is less than the current length or exceeds the limit
    /// given to [`reserve`], or if the system rejects the request.
    #[must_use]
    pub(crate) fn grow(&mut self, len: usize) -> bool {
        let Some(pages) = added_pages(self.len, len, self.max, page_size()) else { return false };
        if !pages.is_empty() {
            // SAFETY: `added_pages` gives whole pages between the usable bytes and `max`, at most
            // the size of the mapping, which this value owns. References from `bytes` end before
            // them.
            let allowed = unsafe {
                let start = self.base.as_ptr().add(pages.start);
                host::allow(start, pages.len(), PageAccess::Write)
            };
            if allowed.is_err() {
                return false;
            }
        }
        self.len = len;
        true
    }

    /// The address of the first byte, to which native code adds an index. It never changes.
    #[cfg(test)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// All addresses of the reservation, usable or not. An access to this memory faults at these
    /// addresses only.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.base.as_ptr() as usize;
        start..start + INDEXED + GUARD
    }
}

/// The bytes to make usable so that `now` usable bytes become `wanted`, as whole pages of `page`
/// bytes. Empty if all pages are usable already. `None` if the bytes would become fewer, or more
/// than `max`.
fn added_pages(now: usize, wanted: usize, max: usize, page: usize) -> Option<Range<usize>> {
    let grows = now <= wanted && wanted <= max;
    grows.then(|| now.next_multiple_of(page)..wanted.next_multiple_of(page))
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: `reserve` made this mapping with this size, and no other code unmaps it.
        // References into the mapping borrow this value, so no reference is left when the value
        // drops.
        unsafe { host::unmap(self.base, INDEXED + GUARD) }
    }
}

#[cfg(test)]
mod tests;
