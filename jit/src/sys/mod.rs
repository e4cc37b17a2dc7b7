//! The machine-dependent part: reserved memory, traps, and the entry into and exit from native
//! code.
//!
//! Code that depends on the operating system or the instruction set lives in the two modules named
//! `host`; the other modules are the same on every host. On hosts other than x86-64 Linux the crate
//! compiles, [`supported`] names the missing host, and requests for memory, handlers and stack
//! bounds fail with the same error.
//!
//! Rust enters native code through a trampoline ([`trampoline`]), which [`enter::enter`] calls
//! after it has made an activation record for the thread. Control comes back in one of three ways:
//!
//! 1. The native code returns.
//! 2. An instruction traps. The signal handler ([`traps`]) resumes the thread at the exception edge
//!    of the trampoline.
//! 3. A helper fails or panics ([`enter::guard`]). The native code then calls
//!    [`enter::raise_address`], which jumps to the same edge.
//!
//! Only native frames lie between the edge and the instruction that stopped, so the jump skips no
//! Rust frame.

#![cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    expect(
        dead_code,
        reason = "this host has no signal handlers or generated code that use these items"
    )
)]

pub(crate) mod debugger;
pub(crate) mod enter;
pub(crate) mod frames;
#[cfg(test)]
pub(crate) mod maps;
pub(crate) mod registry;
pub(crate) mod reservation;
pub(crate) mod stack;
pub(crate) mod trampoline;
pub(crate) mod traps;
pub(crate) mod window;

mod activation;

#[cfg_attr(all(target_os = "linux", target_arch = "x86_64"), path = "linux_x64.rs")]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), path = "other_host.rs")]
mod host;

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests;

pub(crate) use host::{exit, limit_process};

use std::fs::File;
use std::ptr::NonNull;
use std::{fmt, io};

/// The callee-saved registers of native code at its call of [`exit`], followed by the return
/// address of that call. The stack of the caller begins right behind this structure.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ExitFrame {
    /// Indexed by [`saved_register`].
    registers: [u64; 6],
    /// The return address of the call.
    pub(crate) returns_to: u64,
}

/// Maps a register number of the processor to an index into [`ExitFrame`]. `None` for registers
/// that are not callee-saved.
pub(crate) fn saved_register(number: u8) -> Option<u8> {
    const SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];
    SAVED.iter().position(|saved| *saved == number).map(|at| at as u8)
}

impl ExitFrame {
    /// A frame with these registers, for a model of the stack.
    #[cfg(test)]
    pub(crate) fn of_test(registers: [u64; 6]) -> ExitFrame {
        ExitFrame { registers, returns_to: 0 }
    }

    /// The contents of a register, given its index from [`saved_register`].
    pub(crate) fn register(&self, at: u8) -> u64 {
        self.registers[usize::from(at)]
    }

    /// Reads the word of the caller's frame that lies `offset` bytes above the caller's stack
    /// pointer.
    ///
    /// # Safety
    ///
    /// [`exit`] made the frame and has not popped it, and the caller's frame contains the word.
    pub(crate) unsafe fn stack(frame: *const ExitFrame, offset: u32) -> u64 {
        // SAFETY: `exit` builds the frame directly below the caller's stack pointer, so `frame + 1`
        // is that stack pointer. The caller of this function guarantees that the frame is live and
        // that the word lies inside the caller's frame.
        unsafe { frame.add(1).cast::<u8>().add(offset as usize).cast::<u64>().read_unaligned() }
    }
}

/// A right on pages, beside reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PageAccess {
    Write,
    Execute,
}

/// The first page of a file, readable and executable. Nobody has its address.
#[derive(Debug)]
pub(crate) struct FileMapping(NonNull<u8>);

// SAFETY: the value only unmaps the page, which any thread may do.
unsafe impl Send for FileMapping {}

impl FileMapping {
    /// Maps the first page of a file that is open for reading.
    pub(crate) fn new(file: &File) -> io::Result<FileMapping> {
        host::map_file(file).map(FileMapping)
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped one page, of which nobody has the address.
        unsafe { host::unmap(self.0, host::page_size()) }
    }
}

/// The reason why native code cannot run on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The host that native code needs.
    pub missing: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "native code needs {}; this host is {} {}",
            self.missing,
            std::env::consts::ARCH,
            std::env::consts::OS
        )
    }
}

impl std::error::Error for Unsupported {}

impl From<Unsupported> for std::io::Error {
    fn from(why: Unsupported) -> Self {
        std::io::Error::new(std::io::ErrorKind::Unsupported, why)
    }
}

/// Checks whether native code can run on this host.
///
/// # Errors
///
/// [`Unsupported`] on other hosts: the signal frames and the entry code are written for x86-64
/// Linux alone.
pub(crate) fn supported() -> Result<(), Unsupported> {
    host::supported()
}
