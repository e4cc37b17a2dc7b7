//! The process-wide list of object files that a debugger reads.
//!
//! A debugger looks for two symbols: the *descriptor*, which begins the list, and a function at
//! which it sets a breakpoint. The process changes the list, writes the change into the descriptor,
//! and calls the function. Both symbols are weak (`host`): if another just-in-time compiler in the
//! program defines them, both compilers share one list.

use super::host;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One object file of the list.
#[repr(C)]
#[derive(Debug)]
pub(super) struct DebuggerEntry {
    next: *mut DebuggerEntry,
    previous: *mut DebuggerEntry,
    file: *const u8,
    bytes: u64,
}

/// The beginning of the list, and the last change.
#[repr(C)]
#[derive(Debug)]
pub(super) struct DebuggerList {
    version: u32,
    change: u32,
    changed: *mut DebuggerEntry,
    first: *mut DebuggerEntry,
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
impl DebuggerList {
    /// The list of a host that has no symbol for one.
    pub(super) const EMPTY: DebuggerList =
        DebuggerList { version: 1, change: 0, changed: ptr::null_mut(), first: ptr::null_mut() };
}

/// The values of [`DebuggerList::change`].
const ADDED: u32 = 1;
const REMOVED: u32 = 2;

/// Held while the list is changed or the debugger is told.
static LIST: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An object file in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct DebuggerFile {
    /// Made by `Box::into_raw`.
    entry: *mut DebuggerEntry,
    /// The file, which the entry points to.
    _file: Box<[u8]>,
}

// SAFETY: the value owns its entry. Any thread that holds the lock of the list may change entries,
// and the file is never changed.
unsafe impl Send for DebuggerFile {}

impl DebuggerFile {
    /// Puts an object file into the list, and tells the debugger. Constant cost without one.
    pub(crate) fn new(file: Vec<u8>) -> DebuggerFile {
        let file = file.into_boxed_slice();
        let _lock = lock();
        let descriptor = host::debugger_list();
        // SAFETY: the lock keeps other threads of this crate from the list. Every entry in it
        // belongs to a `DebuggerFile`, whose `drop` takes it out first, so `first` is null or
        // valid. A debugger accesses the list only while the process is stopped.
        unsafe {
            let next = (*descriptor).first;
            let bytes = file.len() as u64;
            let entry =
                DebuggerEntry { next, previous: ptr::null_mut(), file: file.as_ptr(), bytes };
            let entry = Box::into_raw(Box::new(entry));
            if let Some(next) = next.as_mut() {
                next.previous = entry;
            }
            (*descriptor).first = entry;
            tell(descriptor, ADDED, entry);
            DebuggerFile { entry, _file: file }
        }
    }
}

impl Drop for DebuggerFile {
    fn drop(&mut self) {
        let _lock = lock();
        let descriptor = host::debugger_list();
        // SAFETY: the lock keeps other threads from the list. `new` made the entry by
        // `Box::into_raw` and put it into the list, and this value alone takes it out. Its
        // neighbors are in the list too, so they are valid.
        unsafe {
            let (next, previous) = ((*self.entry).next, (*self.entry).previous);
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => (*descriptor).first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            tell(descriptor, REMOVED, self.entry);
            drop(Box::from_raw(self.entry));
        }
    }
}

/// Writes a change of the list into the descriptor, and calls the function at which a debugger
/// stops.
///
/// # Safety
///
/// The caller holds the lock, and the entry is valid.
unsafe fn tell(descriptor: *mut DebuggerList, change: u32, entry: *mut DebuggerEntry) {
    // SAFETY: the caller guarantees the lock. The descriptor is a static, and the function above
    // does nothing.
    unsafe {
        (*descriptor).change = change;
        (*descriptor).changed = entry;
        host::debugger_stops_here();
        (*descriptor).change = 0;
        (*descriptor).changed = ptr::null_mut();
    }
}

#[cfg(test)]
mod tests;
