//! The access of a run to the state of its machine.
//!
//! Rust enters native code, which calls helpers, which enter native code again or run the
//! interpreter. A helper finds the state through the context. [`RunAccess`] keeps the accesses of
//! all these frames apart: a frame borrows the state through its own [`RunAccess`], and a frame
//! that enters native code holds no such borrow meanwhile, since [`super::native`] needs the whole
//! [`RunAccess`].

use super::state::VmState;
use super::stop::RunStop;
use crate::context::Context;
use interp::{EarlyEnd, Host};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The exclusive access of a run to the state of its machine.
///
/// While native code runs, the innermost helper has the only access that is used. The accesses of
/// all frames further out wait for the native code that they have entered.
pub(super) struct RunAccess<'r> {
    state: NonNull<VmState>,
    /// The access stands for this borrow.
    borrow: PhantomData<&'r mut VmState>,
}

impl std::fmt::Debug for RunAccess<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunAccess")
    }
}

impl<'r> RunAccess<'r> {
    /// The access of a run that starts now. Helpers of the run find the state through the context,
    /// by the pointer that this access uses itself.
    pub(super) fn start(state: &'r mut VmState) -> RunAccess<'r> {
        let mut access = RunAccess { state: NonNull::from(state), borrow: PhantomData };
        let vm = access.state.as_ptr().cast();
        access.state().view.context().vm.set(vm);
        access
    }

    /// The access of a helper, until it returns to native code.
    ///
    /// # Safety
    /// Native code passes `context` to the calling helper, and was entered with it. The helper uses
    /// one such access alone.
    pub(super) unsafe fn of_helper(context: *mut Context) -> RunAccess<'r> {
        // SAFETY: the caller guarantees the context of a run, which lives as long as the run.
        // `start` has set `vm` to the state of the run before native code was entered.
        let state = unsafe { NonNull::new_unchecked((*context).vm.get().cast()) };
        RunAccess { state, borrow: PhantomData }
    }

    /// The same access, for a shorter time.
    pub(super) fn reborrow(&mut self) -> RunAccess<'_> {
        RunAccess { state: self.state, borrow: PhantomData }
    }

    /// The state.
    pub(super) fn state(&mut self) -> &mut VmState {
        // SAFETY: the state is live as long as the run, and this access is exclusive. The reference
        // borrows the access, so the frame of this access cannot enter native code while it lives.
        // All frames further out wait for native code, and hold no reference to the state either.
        unsafe { self.state.as_mut() }
    }

    /// The state, for reading.
    pub(super) fn shared(&self) -> &VmState {
        // SAFETY: the state is live as long as the run. The reference borrows the access, so
        // neither `state` nor an entry into native code can change the state while it lives.
        unsafe { self.state.as_ref() }
    }
}

/// The host of a run in progress, and the reason why the run ends. A machine has neither between
/// runs.
pub(super) struct HostedRun {
    host: NonNull<dyn Host>,
    /// The reason why native code stops. A helper leaves it, and the entry into native code takes
    /// it.
    pub(super) ending: Option<RunEnding>,
}

// SAFETY: a machine has this value only while `invoke` borrows it mutably, on one thread. The
// machine cannot move to another thread meanwhile.
unsafe impl Send for HostedRun {}

impl HostedRun {
    /// A run with this host.
    ///
    /// # Safety
    /// The value is dropped before the borrow of the host ends.
    pub(super) unsafe fn new(host: &mut dyn Host) -> HostedRun {
        let pointer: NonNull<dyn Host + '_> = NonNull::from(host);
        // SAFETY: the two types differ in the lifetime bound alone. The caller guarantees that the
        // pointer is not used after the borrow of the host has ended.
        let host = unsafe {
            std::mem::transmute::<NonNull<dyn Host + '_>, NonNull<dyn Host + 'static>>(pointer)
        };
        HostedRun { host, ending: None }
    }

    /// The host.
    pub(super) fn host(&mut self) -> &mut dyn Host {
        // SAFETY: `new` made the pointer from a mutable borrow that outlives `self`. A run is on
        // one thread and calls the host through this reference alone, which borrows `self`.
        unsafe { self.host.as_mut() }
    }
}

/// The reason why a helper ends the run.
#[derive(Debug)]
pub(super) enum RunEnding {
    /// The operation of the helper ends the run. The site is the call of the helper.
    AtHelper(EarlyEnd),
    /// An end whose site is known, or that has none.
    Known(RunStop),
}

impl From<RunStop> for RunEnding {
    fn from(stop: RunStop) -> RunEnding {
        RunEnding::Known(stop)
    }
}
