//! WebAssembly front end: imports modules as IR, and hosts WASI programs.
//!
//! [`import`] translates a binary module into a [`Module`] of the IR, and [`import_wat`] does so
//! for a module in text form. The importer supports WebAssembly 2.0 without SIMD: multiple values,
//! reference types, bulk memory, saturating conversions and sign extension. It also supports
//! multiple memories and extended constants. Any other part of WebAssembly is rejected by name and
//! location. Imported functions become host functions of the module; [`wasi`] is a host for
//! programs that use WASI preview 1.
//!
//! The input is untrusted. For every input, the importer returns a module or a located error. Its
//! memory is bounded by [`ImportLimits`], and it does not recurse on the nesting of the input.

mod bodies;
mod budget;
mod constant;
mod declarations;
mod error;
mod function;
mod index;
mod limits;
mod link;
mod load;
mod module;
mod names;
mod offsets;
mod operators;
mod segments;
#[cfg(feature = "source")]
mod source;
mod text;
mod unsupported;
pub mod wasi;

pub use budget::ImportLimits;
pub use error::{ErrorKind, ImportError, Location};
pub use limits::Limits;
pub use link::Linker;
#[cfg(feature = "source")]
pub use load::load_with_source;
pub use load::{ExceededLimit, Format, LoadError, SupportedParts, load, load_parts, load_within};
pub use offsets::CodeOffsets;
#[cfg(feature = "source")]
pub use source::{SourceLine, SourceMap, SourceNote};
pub use text::import_wat;
pub use unsupported::UnsupportedBody;

use ir::Module;
use module::ImportWishes;

/// Whether these bytes start like a binary WebAssembly module.
pub fn is_wasm(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm")
}

/// Translates a binary module into IR.
///
/// A function takes its name from the name section where that is valid, and otherwise from its
/// index, such as `func12`. An imported function is named `module.field`. If a name occurs twice,
/// the later functions get a suffix.
///
/// Locals become SSA values, and only necessary control flow becomes blocks. No block parameter is
/// dead or redundant (see [`ir::FunctionBuilder`]). Unreachable code is validated and dropped.
///
/// Cost: near-linear in the size of the input and of the result.
///
/// # Errors
/// When the input is not a valid module, uses an unsupported part of WebAssembly, or needs more
/// memory than the limits allow. The error has the byte offset.
pub fn import(bytes: &[u8], limits: &ImportLimits) -> Result<Module, ImportError> {
    Ok(module::import(bytes, limits, None, ImportWishes::default())?.module)
}

/// As [`import`], and also returns the operators that the instructions come from. The module is the
/// same. Cost: as [`import`], and 4 bytes for each instruction.
///
/// # Errors
/// As [`import`].
pub fn import_with_offsets(
    bytes: &[u8],
    limits: &ImportLimits,
) -> Result<(Module, CodeOffsets), ImportError> {
    let wanted = ImportWishes { offsets: true, parts: false };
    let imported = module::import(bytes, limits, None, wanted)?;
    Ok((imported.module, imported.offsets.unwrap_or_default()))
}

/// As [`import`], for a module whose imports other modules provide. The result starts with the
/// declarations of [`Linker::modules`] and continues with the definitions of this module. Its
/// exports and its start function come from this module. A machine that holds the modules before is
/// extended with [`interp::Machine::extend`].
///
/// # Errors
/// As [`import`]; and [`ErrorKind::Unlinkable`] when an import is not provided, or has another
/// type.
pub fn import_linked(
    bytes: &[u8],
    limits: &ImportLimits,
    linker: Linker<'_>,
) -> Result<Module, ImportError> {
    Ok(module::import(bytes, limits, Some(linker), ImportWishes::default())?.module)
}
