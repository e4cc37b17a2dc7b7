//! How far a long command has come.

use super::failure::tell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Without a terminal, a line is written each time this many functions are done.
const EVERY: u64 = 500;

/// A bar on a terminal, plain lines elsewhere.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    done: u64,
    total: u64,
}

impl Progress {
    /// Nothing done of `total` functions.
    pub(super) fn new(total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} functions, {msg}");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            bar.with_style(style.expect("the template is well-formed"))
        });
        Progress { bar, done: 0, total }
    }

    /// Begins a function.
    pub(super) fn begin(&self, name: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(name.chars().filter(|c| !c.is_control()).take(30).collect::<String>());
        }
    }

    /// Ends a function.
    pub(super) fn end(&mut self) {
        self.done += 1;
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if self.done.is_multiple_of(EVERY) => tell(&format!("{} of {} functions", self.done, self.total)),
            None => {}
        }
    }
}

impl Drop for Progress {
    /// Clears the bar, also when the command fails midway: its last state would stand before the message.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
