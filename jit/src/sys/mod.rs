//! The part that touches the machine: reserved memory, traps, entering and leaving native code.
//!
//! Everything that depends on the operating system or the instruction set is in one of the two
//! modules called `host` here; the other modules are the same everywhere. Where the host is not
//! x86-64 Linux, the crate compiles and [`supported`] says what is missing: nothing else of this
//! module does its work there.
//!
//! How the parts fit together: native code is entered through a trampoline ([`trampoline`]) by
//! [`enter::enter`], which keeps an activation record for the thread. It is left in one of three
//! ways: it returns; it traps, and the signal handler ([`traps`]) sends the thread to the
//! trampoline's exception edge; a helper function fails or panics ([`enter::guard`]), and the
//! native code calls [`enter::raise_address`], which goes to the same edge. Only native frames lie
//! between the edge and the place that is left, so no Rust frame is skipped.

#![cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    expect(
        dead_code,
        reason = "what signal handlers and generated code use has no user where there are none"
    )
)]

pub(crate) mod enter;
#[cfg(test)]
mod maps;
pub(crate) mod region;
pub(crate) mod stack;
pub(crate) mod trampoline;
pub(crate) mod traps;

mod activation;

#[cfg_attr(all(target_os = "linux", target_arch = "x86_64"), path = "linux_x64.rs")]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), path = "other_host.rs")]
mod host;

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests;

pub(crate) use host::{exit, limit_process};

use std::fmt;

/// The registers that a call keeps, as native code had them when it called [`exit`], and behind
/// them the address it called from. Its stack begins behind this.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ExitFrame {
    /// By [`saved_register`].
    registers: [u64; 6],
    /// The address behind the call.
    pub(crate) returns_to: u64,
}

/// Where an [`ExitFrame`] has the register that the processor knows by a number; `None` for one
/// that calls do not keep.
pub(crate) fn saved_register(number: u8) -> Option<u8> {
    const SAVED: [u8; 6] = [3, 5, 12, 13, 14, 15];
    SAVED.iter().position(|saved| *saved == number).map(|at| at as u8)
}

impl ExitFrame {
    /// A register, by where it is here.
    pub(crate) fn register(&self, at: u8) -> u64 {
        self.registers[usize::from(at)]
    }

    /// A word of the caller's stack, so many bytes from its end.
    ///
    /// # Safety
    ///
    /// The frame was made by [`exit`] and is still there, and the caller's frame has the word.
    pub(crate) unsafe fn stack(frame: *const ExitFrame, offset: u32) -> u64 {
        // SAFETY: the stack pointer was behind the frame before the call, and the word lies in the
        // caller's frame.
        unsafe { frame.add(1).cast::<u8>().add(offset as usize).cast::<u64>().read_unaligned() }
    }
}

/// Why native code cannot run on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What the host would have to have.
    pub missing: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "native code needs {}, which this host ({} {}) is not",
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

/// Whether native code can run on this host.
///
/// # Errors
///
/// What is missing: the signal frames and the entry code are written for x86-64 Linux alone.
pub(crate) fn supported() -> Result<(), Unsupported> {
    host::supported()
}
