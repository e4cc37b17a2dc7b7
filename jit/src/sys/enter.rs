//! Entering native code and leaving it: by returning, by a trap, by a helper that failed or
//! panicked.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

#[cfg(test)]
pub(crate) use super::activation::EntryState;
use super::traps::Trap;
use super::{activation, host};

/// The entry code of one signature (see [`super::trampoline::build`]): 0 when the native code
/// returned, 1 when it raised.
pub(crate) type Trampoline =
    unsafe extern "C" fn(context: *mut u8, code: *const u8, values: *mut u64) -> u64;

/// How native code was left when it did not return.
#[derive(Debug)]
pub(crate) enum Exit {
    /// An instruction trapped.
    Trap(Trap),
    /// A helper function said [`Status::Raise`]; why is what it left in the context.
    Helper,
    /// A helper function panicked: what `std::panic::resume_unwind` takes, after everything is put
    /// in order.
    Panic(Box<dyn Any + Send>),
}

/// What a helper function tells the native code that called it.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Go on.
    Continue = 0,
    /// Call the function at [`raise_address`].
    Raise = 1,
}

/// Enters native code through a trampoline; `values` holds the arguments in, and the results out,
/// one word each.
///
/// # Errors
///
/// The native code was left by a trap or by a helper; `values` is as it was.
///
/// # Safety
///
/// - `context` points to a structure that begins with an [`EntryState`], is aligned to 8 bytes, may
///   be written and stays where it is until this returns; no reference to it is alive while native
///   code may write to it.
/// - `code` is the address of a finished `CallConv::Tail` function of the signature that
///   `trampoline` was built for; it does with memory only what its context allows. Its code, and
///   all code it may reach, stays mapped and registered ([`super::traps::register`]) until this
///   returns.
/// - `values` has as many words as the signature has parameters, and as many as it has results.
/// - Every function of Rust that the native code calls returns without unwinding ([`guard`]) and
///   enters native code only through this function.
pub(crate) unsafe fn enter(
    trampoline: Trampoline,
    context: *mut u8,
    code: *const u8,
    values: &mut [u64],
) -> Result<(), Exit> {
    activation::with_activation(context.cast_const().cast(), |activation| {
        // SAFETY: the caller's contract; an activation that names this context is in place, so that
        // a trap finds the edge.
        let raised = unsafe { trampoline(context, code, values.as_mut_ptr()) };
        if raised == 0 {
            return Ok(());
        }
        match (activation.panic.take(), activation.trap.take()) {
            (Some(payload), _) => Err(Exit::Panic(payload)),
            (None, Some(trap)) => Err(Exit::Trap(trap)),
            (None, None) => Err(Exit::Helper),
        }
    })
}

/// The address of the function that leaves native code for the exception edge of the innermost
/// entry: what native code calls when a helper said [`Status::Raise`]. `extern "C" fn(context)`,
/// which does not return.
///
/// Called by native code only, with the context that it was entered with. The frames between the
/// caller and the edge are given up without running anything of theirs: they are frames of native
/// code, which have nothing to run.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "native code may also leave by a trap, which costs a signal")
)]
pub(crate) fn raise_address() -> *const u8 {
    host::raise as unsafe extern "C" fn(*mut u8) -> ! as *const u8
}

/// The body of a helper function that native code calls: no panic leaves it, since it could not
/// unwind through native frames.
///
/// A panic becomes [`Status::Raise`], and [`Exit::Panic`] for the one who entered. Called where no
/// native code was entered, it lets the panic pass.
pub(crate) fn guard(body: impl FnOnce() -> Status) -> Status {
    // What the panic left half done is seen only by whoever takes `Exit::Panic`, who is told of it
    // by that.
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(status) => status,
        Err(payload) => {
            let mut payload = Some(payload);
            let noted = activation::with_current(|activation| activation.panic.set(payload.take()));
            match (noted, payload) {
                (None, Some(payload)) => panic::resume_unwind(payload),
                _ => Status::Raise,
            }
        }
    }
}
