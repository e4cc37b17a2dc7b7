//! Transitions between versions of a function, as data.
//!
//! This crate is below makers and judges. Both describe versions, points, entries and certificates
//! in its types, and share nothing else. [`mapping`] holds the entries, [`certificate`] the
//! evidence for them. [`VersionKey`] names versions, [`Side`] names the two versions of a pair, and
//! [`Correspondence`] holds the facts that the log shows about both.

pub mod ascending;
pub mod certificate;
mod compose;
pub mod copy;
mod correspondence;
mod demand;
pub mod frames;
mod lists;
pub mod mapping;
pub mod objects;
mod packed;
mod parts;
mod shared;
mod side;
mod version;

pub use compose::{
    ComposeCondition, Composition, NotAChain, Refusal, compose, compose_renamed, compose_without,
};
pub use correspondence::Correspondence;
pub use demand::Demand;
pub use side::{Pair, Side};
pub use version::VersionKey;
