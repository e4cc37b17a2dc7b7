//! Synthesizes OSR mappings from action logs.
//!
//! [`VersionPair`] reads the log that leads from one version of a function to another.
//! [`synthesize`] makes the mappings between the two, in both directions, at one [`Level`] of
//! reconstruction. Every point without an entry is listed with a reason and the action to blame.
//!
//! Entries compose ([`compose`]). The mappings between several versions of a [`VersionTree`] are
//! made together, as the edges of a [`VersionGraph`].
//!
//! Engines that compile versions need code on both sides of a transition:
//! [`instrument`](fn@instrument) adds OSR points to a version, and
//! [`continuation`](fn@continuation) makes a function of the code behind a landing point.
//!
//! [`Certifier`] writes down why entries are right. The checker trusts neither the certificate nor
//! this crate.

mod derive;
mod entry;
mod facts;
mod graph;
mod keep;
mod level;
mod live;
mod pair;
mod paths;
mod reason;
mod scratch;
mod search;
mod source;
mod stores;
mod synthesize;
mod traps;
mod tree;

pub use graph::{Edge, EdgeError, Origin, VersionGraph};
pub use level::Level;
pub use pair::VersionPair;
pub use reason::{Reason, Unmapped};
pub use synthesize::{Synthesis, SynthesizedMapping, synthesize, synthesize_levels};
pub use tree::{Version, VersionTree};
