//! Transitions between versions of a function, as data.
//!
//! The floor below makers and judges: both speak of versions, points, entries and certificates in
//! these types, and share nothing else. [`mapping`] holds the entries, [`certificate`] the evidence
//! for them; [`VersionKey`] names versions, [`Side`] the two of a pair, and [`Correspondence`] what
//! the log shows of both.

pub mod certificate;
mod compose;
mod correspondence;
mod demand;
pub mod mapping;
mod side;
mod version;

pub use compose::{ComposeCondition, Composition, NotAChain, Refusal, compose, compose_without};
pub use correspondence::Correspondence;
pub use demand::Demand;
pub use side::{Pair, Side};
pub use version::VersionKey;
