//! Composition of accepted mappings.
//!
//! The claim of an entry is about the runs of its two versions, so it composes. Let M lead from p
//! to q and N from q to r, both accepted. Suppose that p reaches a source point of M with state s.
//! By the claim of M, q reaches the landing point with the same memory and effects. M turns s into
//! the state t of q there, as far as M provides values. By the claim of N, r reaches N's landing
//! point with the same memory and effects, and N turns t into the state of r. N reads nothing of t
//! except the values that it requires. M provides all of these, so the composed code computes the
//! same.
//!
//! The argument needs four conditions, which `transition::compose` tests for each pair of entries:
//!
//! - `ComposeVersions`: q is one version. Otherwise t is no state of N's source.
//! - `ComposeProvides`: M provides every value that N requires. Agreement on live values is not
//!   enough: N may require values that are dead in q, and M need not provide dead values.
//! - `ComposeReplays`: the composed entry executes the replays of M's entry, and then the replays
//!   of N's entry. M's replays turn p's memory into q's; N's replays turn q's into r's. Steps read
//!   no memory, so N's steps may run before M's replays. Without the condition, memory would lack
//!   the writes.
//! - `ComposeSteps`: the code reads required values and earlier steps only. Entries that were
//!   accepted do (`StepOrder`). The composition of unsealed mappings shares this code, and needs
//!   the test.
//!
//! The composed entry keeps the claims on costs, too: it requires a part of the values that M
//! requires, and keeps the values among them that M keeps. It provides the values that N provides,
//! so it provides live+ with respect to the mappings that N was accepted with.

#[cfg(feature = "unproved")]
use super::checks::Check;
use super::seal::Checked;
use ir::Point;
#[cfg(feature = "unproved")]
use transition::ComposeCondition;
use transition::mapping::{Entry, Mapping};
use transition::{Composition, NotAChain, Refusal, VersionKey};

/// An accepted mapping composed with others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedComposition<R = Refusal> {
    /// From the source version of the first to the target version of the last.
    pub mapping: Checked<Mapping>,
    /// The points at which the first mapping has an entry and the composition has none, ascending,
    /// each with the reason.
    pub refused: Vec<(Point, R)>,
}

impl<R> CheckedComposition<R> {
    /// Composes the entries of a mapping one by one. In this folder alone, by the argument of a
    /// module.
    pub(super) fn of_each(
        first: &Checked<Mapping>,
        target: VersionKey,
        composed: impl Fn(&Entry) -> Result<Entry, R>,
    ) -> CheckedComposition<R> {
        let mut mapping = Mapping::between(first.source(), target);
        let mut refused = Vec::new();
        for (point, entry) in first.entries() {
            match composed(entry) {
                Ok(entry) => mapping.insert(point, entry),
                Err(refusal) => refused.push((point, refusal)),
            }
        }
        CheckedComposition { mapping: Checked::accepted(mapping), refused }
    }
}

impl CheckedComposition {
    fn of(Composition { mapping, refused }: Composition) -> CheckedComposition {
        CheckedComposition { mapping: Checked::accepted(mapping), refused }
    }
}

/// Composes two accepted mappings. Cost: as [`transition::compose`].
///
/// # Errors
/// When the second mapping does not leave from the version that the first leads to.
pub fn compose(
    first: &Checked<Mapping>,
    second: &Checked<Mapping>,
) -> Result<CheckedComposition, NotAChain> {
    transition::compose(first, second).map(CheckedComposition::of)
}

/// As [`compose`], without one of its checks: for experiments that show the need for each check.
/// Another check changes nothing.
///
/// # Errors
/// As for [`compose`], unless [`Check::ComposeVersions`] is left out.
#[cfg(feature = "unproved")]
pub fn compose_without(
    first: &Checked<Mapping>,
    second: &Checked<Mapping>,
    check: Check,
) -> Result<CheckedComposition, NotAChain> {
    let left_out = match check {
        Check::ComposeVersions => Some(ComposeCondition::Versions),
        Check::ComposeProvides => Some(ComposeCondition::Provides),
        Check::ComposeReplays => Some(ComposeCondition::Replays),
        Check::ComposeSteps => Some(ComposeCondition::Steps),
        _ => None,
    };
    transition::compose_without(first, second, left_out).map(CheckedComposition::of)
}
