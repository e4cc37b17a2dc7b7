//! Osier: an OSR-aware optimizing compiler middle-end.
//!
//! This is the library that authors of JITs depend on. It re-exports the crates it is made of and holds
//! the [`driver`], the one place where they meet: loading a module, running a pipeline of passes over it
//! with every step verified, and the figures of the [`report`]. The `osier` command is a thin layer above.

pub mod driver;
pub mod listing;
pub mod report;
pub mod schema;

pub use ir;
pub use osr;
pub use passes;
pub use wasm;
