//! Memory that grows in place: address space reserved once, of which a beginning may be used.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use super::host;

// From 64 bits, so that the crate compiles where addresses are shorter; no memory is reserved
// there.
/// Bytes of address space that an index of 32 bits reaches.
const INDEXED: usize = (4u64 << 30) as usize;
/// Bytes of address space behind it, never accessible: what a constant offset adds to an index.
const GUARD: usize = 2 << 30;

/// Reserved address space of which the first [`Reservation::bytes`] may be read and written; never
/// executable.
///
/// An access at `base + index + offset`, with an index of 32 bits and an `offset + size` of at most
/// 2 GiB, falls into the reservation: behind the usable bytes it faults. That is exact to the byte
/// where the length is a multiple of the page size ([`page_size`]); else the rest of the last page
/// can be accessed too.
#[derive(Debug)]
pub(crate) struct Reservation {
    base: NonNull<u8>,
    len: usize,
    max: usize,
}

// SAFETY: the mapping belongs to this value alone; it is read through `&self` and written through
// `&mut self`.
unsafe impl Send for Reservation {}
// SAFETY: as above: `&self` gives shared reads only.
unsafe impl Sync for Reservation {}

/// Bytes of a page of this host, a power of two.
pub(crate) fn page_size() -> usize {
    host::page_size()
}

/// Reserves 6 GiB of address space, with no byte usable yet and at most `max_bytes` later. Costs
/// one system call, no memory.
///
/// # Errors
///
/// The system refuses the address space (`RLIMIT_AS`, say), `max_bytes` is more than 4 GiB, or the
/// host is not supported.
pub(crate) fn reserve(max_bytes: usize) -> io::Result<Reservation> {
    if max_bytes > INDEXED {
        let message = format!(
            "{max_bytes} bytes are more than the {INDEXED} that an index of 32 bits reaches"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let base = host::map_reserved(INDEXED + GUARD)?;
    Ok(Reservation { base, len: 0, max: max_bytes })
}

impl Reservation {
    /// The usable bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len` bytes of the mapping are readable (`grow`) and initialised (zero,
        // as the system maps them); they are written only through `&mut self` or by native code,
        // which runs while no reference is alive.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }

    /// The usable bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; and writable, and borrowed alone.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Makes the first `len` bytes usable; new ones are zero. The base stays where it is. Whether
    /// it was done: not where `len` is less than now or more than the limit given to [`reserve`],
    /// nor where the system refuses; then nothing changed.
    #[must_use]
    pub(crate) fn grow(&mut self, len: usize) -> bool {
        if len < self.len || len > self.max {
            return false;
        }
        let page = page_size();
        let usable = self.len.next_multiple_of(page);
        let wanted = len.next_multiple_of(page);
        if wanted > usable {
            // SAFETY: both ends are page boundaries inside the mapping, which is ours; no reference
            // reaches behind `usable`.
            let allowed = unsafe { host::allow(self.base.as_ptr().add(usable), wanted - usable) };
            if allowed.is_err() {
                return false;
            }
        }
        self.len = len;
        true
    }

    /// The address of the first byte, which never changes: what native code adds an index to.
    #[cfg(test)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// All addresses of the reservation, usable or not: a fault elsewhere is none of a program's
    /// access to this memory.
    pub(crate) fn addresses(&self) -> Range<usize> {
        let start = self.base.as_ptr() as usize;
        start..start + INDEXED + GUARD
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // SAFETY: the mapping that `reserve` made, of this size; no reference to it outlives this
        // value.
        unsafe { host::unmap(self.base, INDEXED + GUARD) }
    }
}
