//! Which mutant is switched on in this thread.

use std::cell::Cell;

/// Whether this is the copy in which all edits are applied. [`crate::copy`] writes `true` there.
pub const IS_COPY: bool = false;

thread_local! {
    static ON: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Switches back to the mutant that was on before, also when the call panics.
struct Restore(Option<u32>);

impl Drop for Restore {
    fn drop(&mut self) {
        ON.set(self.0);
    }
}

/// Whether the mutant with this id is switched on in this thread. The text `mutant("Name")` in a
/// table becomes a call of this function in the copy.
#[inline]
pub fn is_on(id: u32) -> bool {
    ON.get() == Some(id)
}

/// Calls `f` with one mutant switched on in this thread, or none.
pub fn with<T>(id: Option<u32>, f: impl FnOnce() -> T) -> T {
    let _restore = Restore(ON.replace(id));
    f()
}
