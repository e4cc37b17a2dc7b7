//! Shows the progress of a long command.

use super::failure::{is_quiet, tell_progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

/// Without a terminal, a message is written once per this many functions.
const EVERY: u64 = 500;

/// A bar on a terminal, plain lines elsewhere. Several threads may update it at once.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    done: AtomicU64,
    total: u64,
}

impl Progress {
    /// Progress of 0 out of `total` functions.
    pub(super) fn new(total: u64) -> Progress {
        let shown = std::io::stderr().is_terminal() && !is_quiet();
        let bar = shown.then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} functions, {msg}");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            bar.with_style(style.expect("the template is well-formed"))
        });
        Progress { bar, done: AtomicU64::new(0), total }
    }

    /// Shows the name of a function that a thread begins.
    pub(super) fn begin(&self, name: &str) {
        if let Some(bar) = &self.bar {
            // A control character in the name would corrupt the terminal.
            bar.set_message(name.chars().filter(|c| !c.is_control()).take(30).collect::<String>());
        }
    }

    /// Counts a completed function.
    pub(super) fn end(&self) {
        let done = 1 + self.done.fetch_add(1, Ordering::Relaxed);
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if done.is_multiple_of(EVERY) => {
                tell_progress(&format!("{done} of {} functions", self.total))
            }
            None => {}
        }
    }

    /// Removes the bar. Call this before writing other messages.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    /// Removes the bar when a command fails early. Its last state would otherwise precede the
    /// message.
    fn drop(&mut self) {
        self.clear();
    }
}
