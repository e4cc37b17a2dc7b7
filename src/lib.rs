//! Osier: an OSR-aware optimizing compiler middle-end.
//!
//! This is the library that authors of JITs depend on. It re-exports the crates it is made of and
//! holds the [`driver`], the one place where they meet: loading a module, running a pipeline of
//! passes over it with every step verified, the figures of the [`report`], and what there is to
//! [`explain`] about one point. [`fuzz`] puts all of it to the judges of [`verify`] on random
//! programs. The `osier` command is a thin layer above.

mod blame;
pub mod driver;
pub mod explain;
pub mod export;
mod limits;
pub mod listing;
#[cfg(feature = "native")]
pub mod native;
pub mod report;
pub mod schema;
mod table;

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
pub use wasm;
