//! Ctrl-C and SIGTERM while a program runs: the run ends, and the command writes the profile and
//! the figures of what has run.

use super::Args;
use crate::cmd::failure::CommandFailure;
use crate::cmd::interrupt::CtrlC;
use jit::{Interrupt, Interruption};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The time between two looks at the signals.
const POLL: Duration = Duration::from_millis(20);

impl Args {
    /// Whether a signal leaves something to write. Without that, the signal ends the process at
    /// once, also in a read, and native code needs no tests for interrupts.
    pub(super) fn writes_figures(&self) -> bool {
        self.profile.is_some() || self.stats.is_some()
    }

    /// The way to end native code from outside. Fuel excludes interrupts, so with `--fuel` a signal
    /// ends the process.
    pub(super) fn interruption(&self) -> Interruption {
        match self.run_limits.limits().fuel {
            u64::MAX if self.writes_figures() => Interruption::Signal,
            u64::MAX => Interruption::Never,
            _ => Interruption::Fuel,
        }
    }
}

/// A thread that waits for a signal, and then ends the run.
pub(super) struct SignalWatch {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl SignalWatch {
    /// Begins to watch. The first signal ends the run, the second one the process.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(run: Interrupt) -> Result<SignalWatch, CommandFailure> {
        let ctrl_c = CtrlC::listen();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let watch = move || {
            while !flag.load(Ordering::Acquire) {
                // A request that arrives while a run returns has no effect, so repeat it: the call
                // of the program may follow the start function.
                if ctrl_c.is_raised() {
                    run.ask();
                }
                thread::park_timeout(POLL);
            }
            ctrl_c.end();
        };
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(watch);
        let thread = thread
            .map_err(|error| CommandFailure::input(format!("no thread for signals: {error}")))?;
        Ok(SignalWatch { ended, thread })
    }

    /// Ends the watch. Afterwards, the next signal ends the process.
    pub(super) fn end(self) {
        self.ended.store(true, Ordering::Release);
        self.thread.thread().unpark();
        if let Err(panic) = self.thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
