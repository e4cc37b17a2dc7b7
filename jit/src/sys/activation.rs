//! The record that a thread keeps of each entry into native code.

use std::any::Any;
use std::cell::Cell;
use std::ptr;

use super::traps::Trap;

/// Where the innermost entry trampoline resumes when native code is left other than by returning.
///
/// A context (the structure native code gets as its first argument) begins with it: the trampoline
/// writes these three words on the way in and puts the values of the entry around it back on the
/// way out.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryState {
    /// The stack pointer of the trampoline's frame.
    pub(crate) sp: u64,
    /// The frame pointer of the trampoline's frame.
    pub(crate) fp: u64,
    /// The address of the trampoline's exception edge.
    pub(crate) pc: u64,
}

/// Byte offsets of the fields of [`EntryState`], for code that is generated or assembled.
pub(super) const ENTRY_SP: i32 = std::mem::offset_of!(EntryState, sp) as i32;
pub(super) const ENTRY_FP: i32 = std::mem::offset_of!(EntryState, fp) as i32;
pub(super) const ENTRY_PC: i32 = std::mem::offset_of!(EntryState, pc) as i32;

/// One entry into native code on this thread, from before the trampoline is called until after it
/// returned.
pub(super) struct Activation {
    /// The head of the context that the native code runs with.
    pub(super) entry: *const EntryState,
    /// Set by the signal handler.
    pub(super) trap: Cell<Option<Trap>>,
    /// Set by `guard` for a helper that panicked.
    pub(super) panic: Cell<Option<Box<dyn Any + Send>>>,
    /// The entry around this one.
    previous: *const Activation,
}

thread_local! {
    // Constant and without a destructor: the access compiles to a plain load, which is what makes
    // it fit for a signal handler.
    static CURRENT: Cell<*const Activation> = const { Cell::new(ptr::null()) };
}

/// Runs `body` with an activation for a context that begins with `entry`; takes the activation away
/// afterwards, also when `body` unwinds.
pub(super) fn with_activation<R>(
    entry: *const EntryState,
    body: impl FnOnce(&Activation) -> R,
) -> R {
    struct Pop(*const Activation);
    impl Drop for Pop {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let previous = CURRENT.get();
    let activation = Activation { entry, trap: Cell::new(None), panic: Cell::new(None), previous };
    let _pop = Pop(activation.previous);
    CURRENT.set(&activation);
    body(&activation)
}

/// Runs `body` with the innermost activation of this thread, if it has one. Async-signal-safe if
/// `body` is.
pub(super) fn with_current<R>(body: impl FnOnce(&Activation) -> R) -> Option<R> {
    let current = CURRENT.get();
    // SAFETY: the pointer is null or was set by `with_activation` of this thread, which puts the
    // one before back before its activation goes out of scope; the activation is used through
    // shared references and cells alone.
    unsafe { current.as_ref() }.map(body)
}
