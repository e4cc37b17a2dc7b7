//! Ctrl-C and SIGTERM: the first signal raises a flag, so that a command can end its work and write
//! its partial results. The second signal ends the process. A service that ends a job sends
//! SIGTERM, and wants the figures so far as a user at a terminal does.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that Ctrl-C and SIGTERM raise.
#[derive(Clone, Debug, Default)]
pub(super) struct CtrlC {
    /// Raised by every signal. Its handler comes first: a signal that arrives before the other
    /// handlers are installed is not lost
    /// (`an_interrupted_report_covers_complete_functions_and_writes_no_file`).
    seen: Arc<AtomicBool>,
    /// Raised by a signal once all handlers are installed. The next signal ends the process.
    raised: Arc<AtomicBool>,
}

impl CtrlC {
    /// Installs the handlers. Call this after the input was read: until then Ctrl-C ends the
    /// process at once, even while a read blocks.
    pub(super) fn listen() -> CtrlC {
        let interrupt = CtrlC::default();
        // Handlers run in the order of registration. On the first signal the conditional default
        // finds the flag lowered, then the last handler raises it. On the second signal the
        // conditional default ends the process. If registration fails, Ctrl-C keeps its default
        // action.
        for signal in [SIGINT, SIGTERM] {
            if flag::register(signal, Arc::clone(&interrupt.seen)).is_ok()
                && flag::register_conditional_default(signal, Arc::clone(&interrupt.raised)).is_ok()
            {
                let _ = flag::register(signal, Arc::clone(&interrupt.raised));
            }
        }
        interrupt
    }

    /// Whether the flag is raised, by Ctrl-C or by [`CtrlC::end`].
    pub(super) fn is_raised(&self) -> bool {
        self.seen.load(Ordering::SeqCst) || self.raised.load(Ordering::SeqCst)
    }

    /// Raises the flag, so that the next Ctrl-C ends the process at once.
    pub(super) fn end(&self) {
        self.raised.store(true, Ordering::SeqCst);
    }
}
