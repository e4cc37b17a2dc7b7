//! Osier: an OSR-aware optimizing compiler middle-end.
//!
//! Authors of JITs depend on this library, which re-exports the crates of the project under one
//! name each. `ARCHITECTURE.md` says what each of them holds.

pub use certify;
pub use check;
pub use derive::{driver, inlining, speculate};
pub use exchange;
pub use interp;
pub use ir;
#[cfg(feature = "native")]
pub use jit;
pub use osr;
pub use passes;
pub use profile;
#[cfg(feature = "report")]
pub use report;
#[cfg(feature = "report")]
pub use report::{explain, listing, schema, source};
#[cfg(feature = "native")]
pub use resume;
#[cfg(feature = "native")]
pub use tiers;
pub use transition;
#[cfg(feature = "wasm")]
pub use wasm;
#[cfg(feature = "source")]
pub use wasm::load_with_source;
#[cfg(feature = "wasm")]
pub use wasm::{Format, Limits, LoadError, load, load_within};
