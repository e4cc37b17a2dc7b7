//! From action log to OSR mapping.
//!
//! [`VersionPair`] reads the log that leads from one version of a function to another; [`synthesize`]
//! makes the mappings between them, in both directions, at one [`Level`] of reconstruction. What has no
//! entry is listed with the reason and the action to blame.

mod derive;
mod entry;
mod facts;
mod keep;
mod level;
mod lines;
mod pair;
mod reason;
mod scratch;
mod source;
mod synthesize;
mod traps;

pub use level::Level;
pub use pair::{Demand, Heading, VersionPair};
pub use reason::{Reason, Unmapped};
pub use synthesize::{Direction, Synthesis, synthesize};
