//! Limits on reading and running a program, in one structure for the library and the command.
//!
//! Exceeding a limit is an outcome, never a panic: the loader rejects a file with a message, and a
//! run ends with an [`interp::Outcome`] that names the limit. `docs/oir.md` lists the limits
//! with the options that set them. Nesting needs no limit, since no code recurses on it.

use crate::ImportLimits;

/// Limits on reading and running a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes of an input.
    pub input_bytes: u64,
    /// The most instructions of one function, constants and terminators included.
    pub function_instructions: u64,
    /// Limits on importing WebAssembly.
    pub import: ImportLimits,
    /// Limits on a run.
    pub run: interp::Limits,
}

impl Default for Limits {
    /// 256 MiB, 2^24 instructions, and the defaults of the importer and the interpreter.
    fn default() -> Limits {
        Limits {
            input_bytes: 256 << 20,
            function_instructions: 1 << 24,
            import: ImportLimits::default(),
            run: interp::Limits::default(),
        }
    }
}
