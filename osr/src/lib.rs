//! Synthesizes OSR mappings from action logs.
//!
//! [`VersionPair`] reads the log that leads from one version of a function to another.
//! [`synthesize`](fn@synthesize) makes the mappings between the two, in both directions, at one
//! [`Level`] of reconstruction. Every point without an entry is listed with a reason and the action
//! to blame.
//!
//! The mappings between several versions of a [`VersionTree`] are made together, as the edges of a
//! [`VersionGraph`]. Edges that follow each other compose ([`transition::compose()`]).
//!
//! Nothing here proves an entry. The crate `certify` writes down why entries are right, from
//! [`VersionPair::correspondence`], and the checker trusts neither the certificate nor this crate.
//! Engines that compile versions find the code on both sides of a transition in `resume`.

mod accesses;
mod anchors;
mod assumed;
mod blame;
mod carry;
mod copies;
mod cut;
mod derive;
mod entry;
mod explain;
mod facts;
mod goal;
mod graph;
mod keep;
mod known;
mod landings;
mod level;
mod live;
mod node;
mod outlook;
mod pair;
mod paired;
mod partial;
mod paths;
mod reason;
mod region;
mod run_graph;
mod scratch;
mod search;
mod source;
mod stores;
mod synthesize;
mod traps;
mod tree;

#[doc(hidden)]
pub use copies::places as places_of_copy;
pub use copies::{CopyLink, copy_claim};
pub use graph::{Edge, EdgeError, EdgeOrigin, VersionGraph};
pub use level::Level;
pub use pair::VersionPair;
pub use partial::MappingLimits;
pub use reason::{Blame, Missing, Obstacle, Reason};
pub use region::LoopRegion;
pub use synthesize::{
    Synthesis, SynthesizedMapping, synthesize, synthesize_at, synthesize_levels, synthesize_within,
};
pub use tree::{Version, VersionTree, required};
