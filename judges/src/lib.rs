//! External engines beside Osier's own: the interpreter `wasmi` and, with the feature `native`,
//! wasmtime.
//!
//! [`smith`] runs random modules in Osier and wasmi and compares everything observable. [`speed`]
//! runs the corpus in Osier and wasmi and compares times. `native` compares native code with
//! wasmtime in the same way. `engines` runs whole processes of Osier, wasmtime, node and wasmi;
//! `exec` is the process for engines without a command. No other package depends on this package.

mod arguments;
mod engine;
#[cfg(feature = "native")]
pub mod engines;
#[cfg(feature = "native")]
pub mod exec;
pub mod figures;
#[cfg(feature = "native")]
pub mod native;
// The runner of `osier-csmith`, by its file: a package cannot depend on an unpublished package, and
// `cargo package --workspace` would reject this one (`packages_need_published_crates_alone`).
#[cfg(feature = "native")]
#[path = "../csmith/src/process/mod.rs"]
pub mod process;
pub mod smith;
pub mod speed;

#[cfg(feature = "native")]
pub use arguments::{CallArguments, EnginesArguments, ExecArguments, ExecEngine, NativeArguments};
pub use arguments::{
    CorpusArguments, JudgeArguments, JudgeCommand, SmithArguments, SpeedArguments, TableFormat,
};
