//! The host where native code cannot run: every request is answered with what is missing.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use super::Unsupported;

const WHY: Unsupported = Unsupported { missing: "x86-64 Linux" };

pub(super) fn supported() -> Result<(), Unsupported> {
    Err(WHY)
}

pub(super) fn page_size() -> usize {
    // A power of two is what callers count on; no page is ever mapped here.
    4096
}

pub(super) fn map_reserved(_bytes: usize) -> io::Result<NonNull<u8>> {
    Err(WHY.into())
}

/// # Safety
///
/// None: nothing is done.
pub(super) unsafe fn allow(_start: *mut u8, _bytes: usize) -> io::Result<()> {
    Err(WHY.into())
}

/// # Safety
///
/// None: nothing is done, since nothing was mapped.
pub(super) unsafe fn unmap(_start: NonNull<u8>, _bytes: usize) {}

pub(super) fn install_handlers() -> io::Result<()> {
    Err(WHY.into())
}

pub(super) fn stack_bounds() -> io::Result<Range<usize>> {
    Err(WHY.into())
}

/// # Safety
///
/// None: there is no native code that could call it.
pub(super) unsafe extern "C" fn raise(_context: *mut u8) -> ! {
    std::process::abort()
}

/// # Safety
///
/// None: there is no native code that could call it.
pub(crate) unsafe extern "C" fn exit(_context: *mut crate::context::Context) -> i64 {
    std::process::abort()
}

/// There are no limits where native code does not run.
pub(crate) fn limit_process(_address_space: u64, _cpu_seconds: u64) -> std::io::Result<()> {
    Ok(())
}
