//! Osier: an OSR-aware optimizing compiler middle-end.
//!
//! Authors of JITs depend on this library. It re-exports the crates of the project and holds the
//! [`driver`], which connects them: it loads modules, runs pipelines of passes with every step
//! verified, and makes checked mappings. `report` computes figures about mappings, and
//! `explain` explains a single point. The `osier` command (package `osier-cli`) and the fuzzer
//! (package `osier-fuzz`) depend on the library.

#[cfg(feature = "report")]
mod blame;
pub mod driver;
#[cfg(feature = "report")]
pub mod explain;
pub mod export;
pub mod inlining;
#[cfg(feature = "wasm")]
mod limits;
pub mod listing;
#[cfg(feature = "native")]
pub mod native;
pub mod profile;
#[cfg(feature = "report")]
pub mod report;
#[cfg(feature = "report")]
pub mod schema;
pub mod source;
pub mod speculate;
#[cfg(feature = "report")]
mod table;

#[cfg(feature = "wasm")]
pub use limits::Limits;

pub use certify;
pub use check;
pub use interp;
pub use ir;
#[cfg(feature = "native")]
pub use jit;
pub use osr;
pub use passes;
#[cfg(feature = "native")]
pub use resume;
pub use transition;
#[cfg(feature = "wasm")]
pub use wasm;
