//! Ctrl-C: the first ends the work, so that what was found so far can be told; the second ends the
//! process.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user has asked for an end.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on. To be called behind the reading of input: until then, Ctrl-C ends the
    /// process at once.
    pub(super) fn listen() -> Interrupt {
        let interrupt = Interrupt::default();
        // In this order: the first signal finds the flag lowered and raises it, the second one
        // finds it raised. Where signals cannot be listened to, Ctrl-C ends the process as it does
        // anyway.
        if flag::register_conditional_default(SIGINT, Arc::clone(&interrupt.0)).is_ok() {
            let _ = flag::register(SIGINT, Arc::clone(&interrupt.0));
        }
        interrupt
    }

    /// Whether Ctrl-C was pressed.
    pub(super) fn is_raised(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Lets the next Ctrl-C end the process at once.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
