//! The host on which native code cannot run: requests for resources fail and name the host that
//! native code needs.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use super::debugger::DebuggerList;
use super::{PageAccess, Unsupported};

const WHY: Unsupported = Unsupported { missing: "x86-64 Linux" };

pub(super) fn supported() -> Result<(), Unsupported> {
    Err(WHY)
}

pub(super) fn page_size() -> usize {
    // Callers rely on a power of two. No page is ever mapped here.
    4096
}

pub(super) fn map_reserved(_bytes: usize) -> io::Result<NonNull<u8>> {
    Err(WHY.into())
}

/// # Safety
///
/// None: the function does nothing.
pub(super) unsafe fn allow(_start: *mut u8, _bytes: usize, _access: PageAccess) -> io::Result<()> {
    Err(WHY.into())
}

/// # Safety
///
/// None: no page is mapped, and none is replaced.
pub(super) unsafe fn hide(_start: *mut u8, _bytes: usize) -> io::Result<()> {
    Err(WHY.into())
}

/// # Safety
///
/// None: nothing is written.
pub(super) unsafe fn write_through(_start: usize, _bytes: &[u8]) -> io::Result<()> {
    Err(WHY.into())
}

pub(super) fn limits_address_space() -> bool {
    true
}

/// # Safety
///
/// None: the function does nothing, and [`map_reserved`] never returns a mapping.
pub(super) unsafe fn unmap(_start: NonNull<u8>, _bytes: usize) {}

pub(super) fn map_file(_file: &std::fs::File) -> io::Result<NonNull<u8>> {
    Err(WHY.into())
}

/// The list of a host without native code, which no debugger reads.
static mut DEBUGGER_LIST: DebuggerList = DebuggerList::EMPTY;

pub(super) fn debugger_list() -> *mut DebuggerList {
    &raw mut DEBUGGER_LIST
}

/// # Safety
///
/// None: the function returns at once, and no debugger has a breakpoint in it.
pub(super) unsafe fn debugger_stops_here() {}

pub(super) fn install_handlers() -> io::Result<()> {
    Err(WHY.into())
}

pub(super) fn stack_bounds() -> io::Result<Range<usize>> {
    Err(WHY.into())
}

/// # Safety
///
/// None: this host has no native frames.
pub(super) unsafe fn linkage(_frame: usize) -> [usize; 2] {
    std::process::abort()
}

/// # Safety
///
/// None: this host has no native code that could call the function.
pub(super) unsafe extern "C" fn raise(_context: *mut u8) -> ! {
    std::process::abort()
}

/// # Safety
///
/// None: only described exits call the function, and this host has no native code.
pub(crate) unsafe extern "C" fn exit(_context: *mut crate::context::Context) -> i64 {
    std::process::abort()
}

/// Sets no limits, since no native code runs here.
pub(crate) fn limit_process(_address_space: u64, _cpu_seconds: u64) -> std::io::Result<()> {
    Ok(())
}
