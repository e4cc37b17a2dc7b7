//! The checker: judges every entry of a mapping by its certificate.
//!
//! The checker gets two versions of a function, a certificate, mappings, and the facts for their
//! entries. For each entry it proves the claim of `transition::mapping`. Suppose that the source
//! version reaches the source point. Then the target version, started on the same input, reaches
//! the target point with the same memory and the same effects so far. The compensation code gives
//! every provided value the contents it has there. ([`Checked`] states the only exception, about
//! traps.)
//!
//! The checker trusts four things: the verifier of the IR ([`ir::verifier`]), the meaning of
//! operations ([`ir::eval`], [`ir::place`]), the rewrite rules ([`ir::rules`]), which solvers
//! prove, and its own code. It sees neither the action log, nor the passes, nor the search that
//! made the mappings. It shares no analysis with them: graph, dominators, liveness and paths are
//! its own. A certificate may be forged. Every claim in it is either checked here or never used.
//!
//! The proof goes in five steps, and each step rests on the steps before it:
//!
//! 1. *Terms* (`accept/terms.rs`, `memory.rs`). Every term belongs to its class: all terms of one
//!    class are equal for all contents of the leaves.
//! 2. *Versions* (`version.rs`, `graph.rs`). In each version alone, every value holds the contents
//!    that its term has, given the contents that this version last bound to each leaf.
//! 3. *Product* (`paths.rs`, `product.rs`). Both versions execute the same anchors in the same
//!    order. Before each anchor, a leaf in both versions holds the same contents in both. An anchor
//!    may stay unproved; the claim is then about the runs that do not execute it (`unproved.rs`).
//! 4. *Traps* (`traps.rs`). An instruction that may trap and is no anchor traps in one version only
//!    if the other version traps too, and no effect comes in between.
//! 5. *Entries* (`entry.rs`, `live.rs`). Source point and target point lie in corresponding gaps.
//!    The compensation code computes the contents of the target version, and provides every value
//!    that is live+ at the target point.
//!
//! An entry that breaks a rule which needs no proof is refuted at once, such as one that requires
//! an unavailable value. Other failures of steps 3 and 5 are tried on chosen contents of the leaves
//! (`verdict/refute.rs`). If the two computations then differ, the verdict is
//! [`Verdict::Refuted`](verdict::Verdict::Refuted), else
//! [`Verdict::Undecided`](verdict::Verdict::Undecided). Only entries with
//! [`Verdict::Holds`](verdict::Verdict::Holds) are proved.
//!
//! The folder `accept` has all modules that decide whether an entry holds, and the seal
//! ([`Checked`]) that they alone can make. `judge` and `verdict` put its results into words, and
//! distinguish refuted entries from undecided entries. A bug there can make no entry hold.
//!
//! A *side* is one of the two versions of a pair. A *path* consists of the instructions and jumps
//! from a point to the next anchor (`accept/paths.rs`). [`verdict::Check`] names every check, and
//! `check/tests/checker/wrong` has, for each check, a forgery that this check alone stops.
//! `tests/inlining/wrong` has them for copies and the steps across them.
//!
//! The checker is total: it never panics, for any input of these types, and its recursion is only a
//! few levels deep. Every step is linear, except where its documentation gives another cost.

mod accept;
mod judge;
#[cfg(test)]
mod tests;
pub mod verdict;

#[cfg(feature = "unproved")]
pub use accept::compose_without;
pub use accept::unproved::UnprovedAnchor;
pub use accept::{
    Checked, CheckedComposition, CheckedEntry, ContinuationFault, CopiedFrames, Copies, CopyError,
    FrameLanding, FrameRefusal, KnownCall, KnownCallFault, LandedVersion, LivePoints, Relation,
    RestFault, RestOf, Unproved, WithoutPoints, compose, continuation, copy, copy_without_objects,
    enter_continuation, enter_copy, known_call, leave_continuation, leave_copy, passage,
    places_in_target, stay, stay_armed,
};
pub use judge::{Accepted, accept, accept_armed, relate};
