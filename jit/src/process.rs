//! Resource limits of the process, for programs that run native code that may be wrong.

use crate::sys;
use std::io;

/// The limits that a process may get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resources {
    /// The limit on address space, in bytes.
    pub address_space: u64,
    /// The limit on processor time, in seconds; a signal ends the process beyond it.
    pub cpu_seconds: u64,
}

/// Limits this process from now on, and disables core files. The call only lowers limits: a limit
/// that is already lower stays. On hosts without native code it changes nothing.
///
/// # Errors
/// The error of the system call that failed.
pub fn limit(resources: &Resources) -> io::Result<()> {
    sys::limit_process(resources.address_space, resources.cpu_seconds)
}
