//! What reading and running a program may use: one structure, for the library and the command.
//!
//! Reaching a limit is an outcome of its own everywhere, never a panic: a file is refused with a
//! message, a run ends with an [`interp::Outcome`] that says which limit it was. `docs/oir.md`
//! lists the limits with the options that set them. Nesting has none: nothing here recurses on it.

use interp;
use wasm::ImportLimits;

/// What reading and running a program may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a file.
    pub input_bytes: u64,
    /// Instructions of one function, constants and terminators included.
    pub function_instructions: u64,
    /// What importing WebAssembly may use.
    pub import: ImportLimits,
    /// What a run may use.
    pub run: interp::Limits,
}

impl Default for Limits {
    /// 256 MiB, 2^24 instructions, and the defaults of importer and interpreter.
    fn default() -> Limits {
        Limits {
            input_bytes: 256 << 20,
            function_instructions: 1 << 24,
            import: ImportLimits::default(),
            run: interp::Limits::default(),
        }
    }
}
