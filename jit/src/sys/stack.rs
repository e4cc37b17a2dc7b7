//! The limit on the stack that native code of a thread may use.

use std::cell::Cell;
use std::io;
use std::ops::Range;

use super::host;

thread_local! {
    // The first address and the end; both are 0 before the first use. Cached: the bounds of the
    // main thread's stack come from reading a file in `/proc`.
    static BOUNDS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The addresses of this thread's stack. Costs system calls the first time on each thread.
#[inline]
fn bounds() -> io::Result<Range<usize>> {
    let (start, end) = BOUNDS.get();
    if end != 0 { Ok(start..end) } else { first_bounds() }
}

#[cold]
fn first_bounds() -> io::Result<Range<usize>> {
    let found = host::stack_bounds()?;
    BOUNDS.set((found.start, found.end));
    Ok(found)
}

/// The stack pointers that native code of this thread may have: from `reserve` bytes above the
/// lowest address of the stack to its end.
///
/// Rust helpers that native code calls at the limit use the reserve. So does the frame of the
/// signal handler on a thread without an alternate signal stack: some 4 KiB, more on processors
/// with more registers. If the stack is already deeper than the limit, the first native function
/// traps.
///
/// # Errors
///
/// If the system does not report the bounds of the stack, the thread runs on a foreign stack (a
/// fiber, for example), or the host is not supported.
#[inline]
pub(crate) fn allowed(reserve: usize) -> io::Result<Range<usize>> {
    let stack = bounds()?;
    let here = 0u8;
    if !stack.contains(&(&raw const here as usize)) {
        return Err(foreign());
    }
    // At most an address of the stack: a prologue adds the size of its frame to the limit, and the
    // sum must not wrap (`recursion_without_end_traps_at_the_stack_limit`).
    Ok(stack.start.saturating_add(reserve).min(stack.end)..stack.end)
}

/// The lowest stack pointer that native code of this thread may have.
///
/// # Errors
///
/// The errors of [`allowed`].
#[cfg(test)]
pub(crate) fn limit(reserve: usize) -> io::Result<usize> {
    Ok(allowed(reserve)?.start)
}

#[cold]
fn foreign() -> io::Error {
    io::Error::other("the stack pointer is outside of the thread's own stack")
}

/// Whether the stack pointer of this thread is below a limit. Constant cost.
#[inline]
pub(crate) fn is_below(limit: usize) -> bool {
    let here = 0u8;
    (&raw const here as usize) < limit
}

/// Whether the stack pointer of this thread is below a limit, or more than `room` bytes above it:
/// on a foreign stack. Constant cost.
#[inline]
pub(crate) fn is_outside(limit: usize, room: usize) -> bool {
    let here = 0u8;
    (&raw const here as usize).wrapping_sub(limit) > room
}

/// The bytes of stack that this thread has left.
///
/// # Errors
///
/// The errors of [`allowed`].
#[cfg(test)]
pub(crate) fn remaining() -> io::Result<usize> {
    let here = 0u8;
    Ok((&raw const here as usize).saturating_sub(bounds()?.start))
}
