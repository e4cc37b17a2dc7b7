//! The record that a thread keeps of each entry into native code.

use std::any::Any;
use std::cell::Cell;
use std::ptr;

use super::traps::CaughtTrap;

/// The exception edge of the innermost entry trampoline: the state at which control resumes when
/// native code stops without returning.
///
/// A context (the structure that native code takes as its first argument) begins with this state.
/// Each trampoline writes these three words on entry. The one of [`super::enter::enter`] restores
/// the words of the enclosing entry on exit; a typed trampoline has no enclosing entry with its
/// context, and leaves its own words there.
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

/// Byte offsets of the fields of [`EntryState`], for generated and assembled code.
pub(super) const ENTRY_SP: i32 = std::mem::offset_of!(EntryState, sp) as i32;
pub(super) const ENTRY_FP: i32 = std::mem::offset_of!(EntryState, fp) as i32;
pub(super) const ENTRY_PC: i32 = std::mem::offset_of!(EntryState, pc) as i32;

/// One entry into native code on this thread, or all entries of a session, one after the other
/// ([`super::enter::SharedActivation`]). It lives from before the call of the first trampoline
/// until after the return of the last.
pub(super) struct Activation {
    /// The head of the context that the native code runs with.
    pub(super) entry: *const EntryState,
    /// The trap that the signal handler recorded.
    pub(super) trap: Cell<Option<CaughtTrap>>,
    /// The panic of a helper that `guard` caught.
    pub(super) panic: Cell<Option<Box<dyn Any + Send>>>,
}

thread_local! {
    // The value is constant and has no destructor. An access therefore compiles to a plain load,
    // which is async-signal-safe.
    static CURRENT: Cell<*const Activation> = const { Cell::new(ptr::null()) };
}

impl Activation {
    /// An activation for a context that begins with `entry`, which is not current.
    pub(super) fn of(entry: *const EntryState) -> Activation {
        Activation { entry, trap: Cell::new(None), panic: Cell::new(None) }
    }
}

/// Makes an activation the innermost one of this thread. Returns the one before. The caller makes
/// that one the innermost again before `activation` ends.
pub(super) fn exchange(activation: *const Activation) -> *const Activation {
    CURRENT.replace(activation)
}

/// Runs `body` inside a new activation for a context that begins with `entry`. Removes the
/// activation afterwards, also if `body` unwinds.
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
    let activation = Activation::of(entry);
    let _pop = Pop(exchange(&activation));
    body(&activation)
}

/// Runs `body` with the innermost activation of this thread. Returns `None` without one.
/// Async-signal-safe if `body` is.
pub(super) fn with_current<R>(body: impl FnOnce(&Activation) -> R) -> Option<R> {
    let current = CURRENT.get();
    // SAFETY: the pointer is null, or `exchange` set it on this thread to an activation on a frame.
    // `Pop`, or a second `exchange`, resets the pointer before that frame ends. All access goes
    // through shared references and cells, so a signal handler may hold a second reference.
    unsafe { current.as_ref() }.map(body)
}
