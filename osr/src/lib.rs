//! From action log to OSR mapping.
//!
//! [`VersionPair`] reads the log that leads from one version of a function to another;
//! [`synthesize`] makes the mappings between them, in both directions, at one [`Level`] of
//! reconstruction. What has no entry is listed with the reason and the action to blame. Entries
//! compose ([`compose`]), and the mappings between any number of versions of a [`VersionTree`] are
//! made together, as the edges of a [`VersionGraph`]. [`Certifier`] writes down why entries are
//! right, for a checker that believes none of this.

mod derive;
mod entry;
mod facts;
mod graph;
mod keep;
mod level;
mod lines;
mod live;
mod pair;
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
