//! The process that runs native code: its limits on resources, and the mark by which a profiler
//! finds a file.

use crate::sys;
use std::fs::File;
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

/// A page of a file, mapped as if it were code. `perf record` notes such mappings, so `perf inject
/// --jit` finds the file ([`crate::perf::JitDump`]). Nothing reads or executes the page.
#[derive(Debug)]
pub struct ExecutableView {
    _page: sys::FileMapping,
}

impl ExecutableView {
    /// Maps the first page of a file that is open for reading, until the value is dropped.
    ///
    /// # Errors
    /// The error of the system; an error on hosts without native code.
    pub fn new(file: &File) -> io::Result<ExecutableView> {
        Ok(ExecutableView { _page: sys::FileMapping::new(file)? })
    }
}
