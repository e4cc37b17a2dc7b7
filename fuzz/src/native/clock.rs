//! The clock that callers lend to the native oracle.

use std::sync::Arc;
use std::time::Duration;

/// Returns the time since a fixed moment. The library reads no clock.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;
