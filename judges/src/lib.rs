//! An engine from outside, the interpreter `wasmi`, beside Osier's own interpreter.
//!
//! [`smith`] runs random modules in both and compares all that can be seen; [`speed`] runs the
//! corpus in both and compares times. With the feature `native`, `native` does the same with native
//! code and wasmtime. Nothing depends on this package.

mod arguments;
mod engine;
#[cfg(feature = "native")]
pub mod native;
pub mod smith;
pub mod speed;

#[cfg(feature = "native")]
pub use arguments::NativeArguments;
pub use arguments::{Arguments, Command, CorpusArguments, SmithArguments, SpeedArguments};
