//! Versions of functions, and the proved ways between them.
//!
//! - [`driver`]: runs pipelines, and makes mappings that the checker accepts.
//! - [`speculate`]: versions that are right under assumptions, and the ways out of these versions.
//! - [`inlining`]: versions with the code of other functions, and the ways into and out of these
//!   versions.

pub mod driver;
pub mod inlining;
pub mod speculate;
