//! The steps that the ways into a version with inlined code and out of it are composed of.

use crate::driver::{MissingPoints, ProvedGraph};
use check::{Checked, FrameRefusal};
use ir::Point;
use osr::{EdgeOrigin, VersionGraph};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Pair, Refusal};

/// The points into a version, and out of the version, at which the first step has an entry and the
/// composition lacks one, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedPoints {
    /// The points of the base.
    pub into: Vec<(Point, Refusal)>,
    /// The points of the optimized version.
    pub out: Vec<(Point, FrameRefusal)>,
}

/// The steps around an inlining.
#[derive(Clone, Debug)]
pub struct InlinedSteps {
    /// Between the base and the cleaned version, and between the copy and the optimized one. The
    /// forward mapping leaves the version before.
    pub pairs: [Pair<MappedStep>; 2],
    /// The points of the base and of the optimized version at which the first step has an entry and
    /// the composition lacks one, ascending.
    pub refused: RefusedPoints,
    /// The points of the base and of the optimized version that are unreachable, as the checker has
    /// proved. They need no entry.
    pub unreachable: [BTreeSet<Point>; 2],
}

/// The mapping of one step, and the points without an entry.
#[derive(Clone, Debug)]
pub struct MappedStep {
    /// The accepted entries.
    pub mapping: Checked<Mapping>,
    /// The reachable points without an accepted entry. Of the copy, points in inlined code are left
    /// out: no entry leaves from them.
    pub missing: MissingPoints,
}

impl InlinedSteps {
    /// The steps of a proved graph, whose edges on each side of the copy lead forward and back.
    /// Cost: linear in the points without an entry.
    pub(super) fn new(
        graph: &VersionGraph<'_>,
        proved: &ProvedGraph,
        [before, after]: [[usize; 2]; 2],
        refused: RefusedPoints,
        unreachable: [BTreeSet<Point>; 2],
    ) -> InlinedSteps {
        let step = |index: usize| {
            let unmapped = match &graph.edges()[index].origin {
                EdgeOrigin::Built { unmapped, .. } => &unmapped[..],
                EdgeOrigin::Composed { .. } | EdgeOrigin::Inserted => &[],
            };
            let rejected = proved.rejected.get(&index).into_iter().flatten().copied();
            let missing = MissingPoints::new(unmapped.iter().cloned(), rejected);
            MappedStep { mapping: proved.mappings[index].clone(), missing }
        };
        let pairs = [before, after].map(|[forward, back]| Pair::new(step(forward), step(back)));
        InlinedSteps { pairs, refused, unreachable }
    }
}
