//! Which mutant is switched on, in this thread or in all.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether this is the copy in which all edits are applied. [`crate::copy`] writes `true` there.
pub const IS_COPY: bool = false;

thread_local! {
    static ON: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The mutant that is switched on in all threads; 0 is the id of no mutant.
static EVERYWHERE: AtomicU32 = AtomicU32::new(0);

/// Switches back to the mutant that was on before, also when the call panics.
struct Restore(Option<u32>);

impl Drop for Restore {
    fn drop(&mut self) {
        ON.set(self.0);
    }
}

/// Whether the mutant with this id is switched on, in this thread or in all. The text `mutant("Name")` in a
/// table becomes a call of this function in the copy.
#[inline]
pub fn is_on(id: u32) -> bool {
    ON.get() == Some(id) || EVERYWHERE.load(Ordering::Relaxed) == id
}

/// Calls `f` with one mutant switched on in this thread, or without mutants.
pub fn with<T>(id: Option<u32>, f: impl FnOnce() -> T) -> T {
    let _restore = Restore(ON.replace(id));
    f()
}

/// Calls `f` with one mutant switched on in all threads, for code that starts threads itself. One
/// call at a time; a panic leaves it on.
pub fn everywhere<T>(id: u32, f: impl FnOnce() -> T) -> T {
    EVERYWHERE.store(id, Ordering::SeqCst);
    let done = f();
    EVERYWHERE.store(0, Ordering::SeqCst);
    done
}
