//! The optimization passes of Osier and the registry of pipelines.
//!
//! One module per pass. The header of a module describes the changes that the pass makes, its
//! preconditions, its guarantees and its cost. [`registry`] turns names into pipelines, and
//! [`ir::edit::apply`] runs a pass.

pub mod adce;
pub mod cfg_clean;
pub mod cse;
pub mod dse;
mod edges;
pub mod gvn;
pub mod hoist;
pub mod inline;
pub mod licm;
pub mod load_elim;
pub mod loop_canon;
pub mod objects;
pub mod ranges;
pub mod refine;
pub mod registry;
mod resolve;
mod row_paths;
pub mod sccp;
mod scopes;
pub mod simplify;
pub mod sink;
pub mod speculate;

pub use adce::Adce;
pub use cfg_clean::CfgClean;
pub use cse::Cse;
pub use dse::Dse;
pub use gvn::Gvn;
pub use hoist::Hoist;
pub use inline::{CallCounts, Callers, Inline, InlinePolicy};
pub use licm::Licm;
pub use load_elim::LoadElim;
pub use loop_canon::LoopCanon;
pub use objects::{ObjectPlaces, ObjectPlan, RemoveObjects};
pub use ranges::Ranges;
pub use refine::Refine;
pub use registry::{Pipeline, UnknownPass, parse};
pub use resolve::ResolveCalls;
pub use sccp::Sccp;
pub use simplify::Simplify;
pub use sink::Sink;
pub use speculate::{Assumption, Expected, PinnedAssumption, Speculate};
