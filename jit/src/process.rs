//! Limits of the process, for those who run native code that may be wrong.

use crate::sys;
use std::io;

/// What a process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Bytes of address space.
    pub address_space: u64,
    /// Seconds of processor time; then a signal ends it.
    pub cpu_seconds: u64,
}

/// Limits this process from now on, and keeps it from leaving a core file. Limits are only ever
/// lowered.
///
/// # Errors
/// When the system refuses.
pub fn limit(resources: &Resources) -> io::Result<()> {
    sys::limit_process(resources.address_space, resources.cpu_seconds)
}
