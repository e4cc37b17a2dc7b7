//! Optimistic value numbering: the terms, rules and rounds that the pass `gvn` and the certifier
//! share.
//!
//! Both number the values of a function in the same way, so that the certifier finds a reason for
//! every replacement that the pass makes. The pass needs classes alone; the certifier also keeps
//! the reason for each membership ([`TermForm`]). The checker does not use this crate: it follows
//! the reasons with code of its own.
//!
//! - [`ClassTable`] holds each operation once, in the class that folding and the rules of
//!   [`ir::rules`] give it ([`apply`] matches a rule, [`match_declared`] one of the embedder).
//! - [`Homes`] finds the deepest block on which a class depends.
//! - [`FlowGraph`] orders the blocks, and finds the regions that edges lead back into.
//! - [`RangeAnalysis`] bounds integers, for the pass `ranges` and for certificates.
//! - [`NumberingRound`] walks over the blocks with assumptions about copies, each region in turns,
//!   and [`CopyAssumptions`] weakens assumptions that an edge contradicts.

mod copies;
mod declared;
mod dense;
mod features;
mod flow;
mod homes;
mod live;
mod matcher;
mod operands;
mod ranges;
mod rewind;
mod round;
mod table;
#[cfg(test)]
mod tests;

pub use copies::{CopyAssumptions, IncomingClasses};
pub use declared::{DeclaredMatch, RuleRoot, match_declared};
pub use dense::Dense;
pub use features::OperandFeatures;
pub use flow::FlowGraph;
pub use homes::{Home, Homes};
pub use live::{LiveEdges, LiveTargets};
pub use matcher::{AppliedRule, Operands, RightSide, RuleIndex, apply};
pub use ranges::{RangeAnalysis, RangeClasses, RangeFact, RangeOperation};
pub use rewind::HomesMark;
pub use round::{MAX_AGAIN, MAX_TURNS, NumberingRound, ValueClasses};
pub use table::{ClassArgs, ClassOperation, ClassSum, ClassTable, OperationRef, TermForm, TermKey};

/// The number of a term in its table. A class is numbered by its first term.
pub type TermIndex = u32;

/// The number that stands for "no term".
pub const NO_TERM: TermIndex = u32::MAX;

/// Terms of a class that are tried for one inner operation of a pattern, or compared as sums: a
/// bound on cost.
pub const MAX_MEMBERS: usize = 16;
