//! WebAssembly in: modules to IR, and WASI for programs that read and print.
//!
//! [`import`] turns a binary module into a [`Module`] of the IR, [`import_wat`] one in text form.
//! Supported is WebAssembly 2.0 without SIMD: several values, reference types, bulk memory,
//! saturating conversions, sign extension; and several memories and extended constants. Anything
//! else is refused by name and place. Imported functions become host functions of the module;
//! [`wasi`] is a host for programs written for WASI preview 1.
//!
//! The input is untrusted: whatever it is, the answer is a module or a located error, in memory
//! bounded by [`ImportLimits`] and without recursion on its nesting.

mod budget;
mod constant;
mod error;
mod function;
mod index;
mod link;
mod module;
mod names;
mod operators;
mod text;
pub mod wasi;

pub use budget::ImportLimits;
pub use error::{ErrorKind, ImportError, Location};
pub use link::Linker;
pub use text::import_wat;

use ir::Module;

/// Whether these bytes start like a binary WebAssembly module.
pub fn is_wasm(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm")
}

/// Turns a binary module into IR. Functions are named by the name section where it is valid, and
/// `func12` by their index otherwise; imported ones `module.field`. Of names that are used twice
/// the later ones get a suffix.
///
/// Locals become SSA values, and blocks only what control needs: no parameter is dead or redundant
/// (see [`ir::FunctionBuilder`]), and code that cannot be reached is checked and dropped.
///
/// Cost: near-linear in the size of the input and of the result.
///
/// # Errors
/// When the input is not a valid module, uses what is not supported, or needs more than the limits
/// allow; with the byte offset.
pub fn import(bytes: &[u8], limits: &ImportLimits) -> Result<Module, ImportError> {
    module::import(bytes, limits, None)
}

/// As [`import`], of a module that imports what other modules provide: the result begins like
/// [`Linker::modules`] and continues with what the module defines, and its exports and start
/// function are those of the module. A machine of the modules before takes it up with
/// [`interp::Machine::extend`].
///
/// # Errors
/// As [`import`]; and [`ErrorKind::Unlinkable`] when something imported is not provided, or of
/// another type.
pub fn import_linked(
    bytes: &[u8],
    limits: &ImportLimits,
    linker: Linker<'_>,
) -> Result<Module, ImportError> {
    module::import(bytes, limits, Some(linker))
}
