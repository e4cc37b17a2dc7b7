//! Entry into native code, and its exits: a return, a trap, or a helper that fails or panics.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use super::activation::Activation;
#[cfg(test)]
pub(crate) use super::activation::EntryState;
use super::traps::CaughtTrap;
use super::{activation, host};

/// The entry code of one signature (see [`super::trampoline::build`]). Returns 0 after a return of
/// the native code, and 1 after a jump to the exception edge.
pub(crate) type Trampoline = unsafe extern "C" fn(
    context: *mut u8,
    code: *const u8,
    args: *const u64,
    results: *mut u64,
) -> u64;

/// The reason why native code stopped without returning.
#[derive(Debug)]
pub(crate) enum NativeStop {
    /// An instruction trapped.
    Trap(CaughtTrap),
    /// A helper returned [`HelperStatus::Raise`], and has left its reason with the state behind the
    /// context.
    Helper,
    /// A helper panicked. The payload is for `std::panic::resume_unwind`, once the caller has
    /// cleaned up.
    Panic(Box<dyn Any + Send>),
}

/// The answer of a helper to the native code that called it.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelperStatus {
    /// Native code continues.
    Continue = 0,
    /// Native code must call the function at [`raise_address`].
    Raise = 1,
}

/// Enters native code through a trampoline. `args` addresses one word for each argument, `results`
/// the room for one word for each result. They may be equal: all arguments are read before the
/// first result is written.
///
/// # Errors
///
/// [`NativeStop`] if a trap or a helper stopped the native code. No result is written then.
///
/// # Safety
///
/// - `context` points to a structure that begins with an [`EntryState`], is aligned to 8 bytes, may
///   be written, and stays in place until this function returns. While native code may write to it,
///   no mutable reference to it is alive, and shared ones use cells and atomics alone.
/// - `code` is the address of a finished `CallConv::Tail` function with the signature that
///   `trampoline` was built for. The function accesses only memory that its context allows. Its
///   code, and all code that it may reach, stays mapped and registered
///   ([`super::registry::register`]) as long as control may reach it or return to it.
/// - `args` may be read for as many words as the signature has parameters, and `results` may be
///   written for as many as it has results.
/// - Every Rust function that the native code calls returns without unwinding ([`guard`]). It
///   enters native code with this context only through this function, and with other contexts also
///   by [`SharedActivation::within`].
#[inline]
pub(crate) unsafe fn enter(
    trampoline: Trampoline,
    context: *mut u8,
    code: *const u8,
    args: *const u64,
    results: *mut u64,
) -> Result<(), NativeStop> {
    activation::with_activation(context.cast_const().cast(), |activation| {
        // SAFETY: the caller guarantees that context, code and words fit the trampoline and outlive
        // the call. The activation names this context, so a trap during the call finds the
        // exception edge.
        let raised = unsafe { trampoline(context, code, args, results) };
        if raised == 0 { Ok(()) } else { Err(stop_of(activation)) }
    })
}

/// [`enter`] with arguments and results in the same words.
///
/// # Safety
///
/// As [`enter`].
#[cfg(test)]
pub(crate) unsafe fn enter_in_place(
    trampoline: Trampoline,
    context: *mut u8,
    code: *const u8,
    values: &mut [u64],
) -> Result<(), NativeStop> {
    let words = values.as_mut_ptr();
    // SAFETY: the contract of this function is that of `enter`.
    unsafe { enter(trampoline, context, code, words, words) }
}

/// The reason why native code has jumped to the exception edge of an activation.
fn stop_of(activation: &Activation) -> NativeStop {
    match (activation.panic.take(), activation.trap.take()) {
        (Some(payload), _) => NativeStop::Panic(payload),
        (None, Some(trap)) => NativeStop::Trap(trap),
        (None, None) => NativeStop::Helper,
    }
}

/// An activation that several entries with one context use, one after the other.
pub(crate) struct SharedActivation<'a>(&'a Activation);

impl SharedActivation<'_> {
    /// Runs `entry`, which enters native code through a typed trampoline
    /// ([`super::trampoline::build_typed`]) and does not unwind.
    ///
    /// The activation is the innermost one of this thread for this time alone: between two entries,
    /// the thread may enter native code of other contexts.
    #[inline]
    pub(crate) fn within<R>(&self, entry: impl FnOnce() -> R) -> R {
        let before = activation::exchange(self.0);
        let result = entry();
        activation::exchange(before);
        result
    }

    /// The reason why the last entry has ended without a return.
    pub(crate) fn stop(&self) -> NativeStop {
        stop_of(self.0)
    }
}

/// Runs `body` with an activation for entries with a context.
pub(crate) fn with_shared<R>(context: *mut u8, body: impl FnOnce(&SharedActivation<'_>) -> R) -> R {
    body(&SharedActivation(&Activation::of(context.cast_const().cast())))
}

/// The address of the function that jumps to the exception edge of the innermost entry. Native code
/// calls it after a helper returned [`HelperStatus::Raise`]. Its type is `extern "C" fn(context)`,
/// and it does not return.
///
/// Only native code may call it, with the context that it was entered with. The jump discards the
/// frames between the caller and the edge without running anything in them. They are native frames,
/// which have nothing to clean up.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "native code may also leave by a trap, which costs a signal")
)]
pub(crate) fn raise_address() -> *const u8 {
    host::raise as unsafe extern "C" fn(*mut u8) -> ! as *const u8
}

/// Runs the body of a helper that native code calls, and catches its panics: a panic cannot unwind
/// through native frames.
///
/// A panic becomes [`HelperStatus::Raise`], and the code that entered gets [`NativeStop::Panic`].
/// Outside of any entry, the panic passes.
pub(crate) fn guard(body: impl FnOnce() -> HelperStatus) -> HelperStatus {
    // Unwind safety: only the receiver of `NativeStop::Panic` can see state that the panic left
    // half done, and the receiver knows of the panic.
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(status) => status,
        Err(payload) => {
            let mut payload = Some(payload);
            let noted = activation::with_current(|activation| activation.panic.set(payload.take()));
            match (noted, payload) {
                (None, Some(payload)) => panic::resume_unwind(payload),
                _ => HelperStatus::Raise,
            }
        }
    }
}
