//! The option that turns the retry off.

use osier::driver::Retry;

/// Whether rewrites are given up so that entries hold.
#[derive(Debug, clap::Args)]
pub(super) struct RetryOption {
    /// Give no rewrite up where the checker drops entries
    #[arg(long)]
    no_retry: bool,
}

impl RetryOption {
    /// The bounds of the retry.
    pub(super) fn bounds(&self) -> Retry {
        if self.no_retry { Retry::OFF } else { Retry::default() }
    }
}
