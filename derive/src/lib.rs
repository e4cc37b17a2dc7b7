//! Versions of functions, and the proved ways between them.
//!
//! - [`driver`]: runs pipelines, and makes mappings that the checker accepts.
//! - [`speculate`]: versions that are right under assumptions, and the ways out of these versions.
//! - [`landing`]: code behind a point of a base, and its versions that assume.
//! - [`inlining`]: versions with the code of other functions, and the ways into and out of these
//!   versions.
//!
//! A recipe returns one of four records: [`driver::Derived`] is a version alone,
//! [`driver::Secured`] a version with its proved mappings, [`speculate::Speculative`] a version
//! that assumes, and [`inlining::Inlined`] a version with inlined code. Their mappings are proved.
//! A reachable point without an entry is a [`driver::Missing`], and its reason a [`driver::Why`].

pub mod driver;
mod handover;
pub mod inlining;
pub mod landing;
pub mod speculate;
pub mod tables;
