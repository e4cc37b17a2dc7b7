//! How much of a thread's stack native code may use.

use std::cell::Cell;
use std::io;
use std::ops::Range;

use super::host;

thread_local! {
    // Finding the bounds of the main thread's stack reads a file of the system.
    static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The addresses of this thread's stack.
fn bounds() -> io::Result<Range<usize>> {
    if let Some((lowest, end)) = BOUNDS.get() {
        return Ok(lowest..end);
    }
    let found = host::stack_bounds()?;
    BOUNDS.set(Some((found.start, found.end)));
    Ok(found)
}

/// The lowest stack pointer that native code of this thread may have: `reserve` bytes above the end
/// of the stack.
///
/// The reserve is what helper functions of Rust may use that native code calls at the limit, and
/// the frame of the signal handler (some 4 KiB; more where the processor has more registers) on a
/// thread without an alternate signal stack. A stack already deeper than that makes the first
/// native function trap.
///
/// # Errors
///
/// The system does not tell the bounds of the stack, the thread runs on another stack than its own
/// (a fiber's), or the host is not supported.
pub(crate) fn limit(reserve: usize) -> io::Result<usize> {
    let stack = bounds()?;
    let here = 0u8;
    if !stack.contains(&(&raw const here as usize)) {
        return Err(io::Error::other("this is not the stack of the thread"));
    }
    // Not more than an address of the stack: a prologue adds the size of its frame to the limit,
    // which must not wrap (recursion_without_end_traps_at_the_stack_limit).
    Ok(stack.start.saturating_add(reserve).min(stack.end))
}

/// The bytes of stack that this thread has left.
///
/// # Errors
///
/// As for [`limit`].
#[cfg(test)]
pub(crate) fn remaining() -> io::Result<usize> {
    let here = 0u8;
    Ok((&raw const here as usize).saturating_sub(bounds()?.start))
}
