//! The steps that the ways into a version with inlined code and out of it are composed of.

use super::Inlined;
use crate::driver::{CertifiedGraph, EntryVerdict};
use crate::export::{ACROSS, DIRECTIONS, ExportedParts, PAIR_NAMES};
use certify::Certifier;
use check::verdict::Verdict;
use check::{Checked, FrameRefusal};
use ir::Point;
use osr::{EdgeOrigin, Unmapped, Version, VersionGraph, VersionPair};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Pair, Refusal, Side};

/// Points into a version and out of it at which the first step has an entry and the composition
/// has none, ascending.
pub type RefusedPoints = (Vec<(Point, Refusal)>, Vec<(Point, FrameRefusal)>);

/// The steps around an inlining.
#[derive(Clone, Debug)]
pub struct InlinedSteps {
    /// Between the base and the cleaned version, and between the copy and the optimized one. The
    /// forward mapping leaves the version before.
    pub pairs: [Pair<MappedStep>; 2],
    /// The points of the base, and those of the optimized version, at which the first step has an
    /// entry and the composition has none, ascending.
    pub refused: RefusedPoints,
    /// The points of the base, and those of the optimized version, that the checker has proved
    /// never to be reached. They need no entry.
    pub unreachable: [BTreeSet<Point>; 2],
}

/// The mapping of one step, and the points without an entry.
#[derive(Clone, Debug)]
pub struct MappedStep {
    /// The accepted entries.
    pub mapping: Checked<Mapping>,
    /// The reachable points for which synthesis found no entry, ascending. Of the copy, points in
    /// inlined code are left out: no entry leaves from them.
    pub unmapped: Vec<Unmapped>,
    /// The points whose entry the checker did not accept, ascending, with its verdicts.
    pub rejected: Vec<(Point, Verdict)>,
}

impl InlinedSteps {
    /// The steps of a certified graph, whose edges on each side of the copy lead forward and back.
    /// Cost: linear in the points without an entry.
    pub(super) fn new(
        graph: &VersionGraph<'_>,
        certified: &CertifiedGraph,
        [before, after]: [[usize; 2]; 2],
        refused: RefusedPoints,
        unreachable: [BTreeSet<Point>; 2],
    ) -> InlinedSteps {
        let step = |index: usize| {
            let unmapped = match &graph.edges()[index].origin {
                EdgeOrigin::Built { unmapped, .. } => unmapped.clone(),
                EdgeOrigin::Composed { .. } | EdgeOrigin::Inserted => Vec::new(),
            };
            let rejected = certified.rejected.get(&index).cloned().unwrap_or_default();
            MappedStep { mapping: certified.mappings[index].clone(), unmapped, rejected }
        };
        let pairs = [before, after].map(|[forward, back]| Pair::new(step(forward), step(back)));
        InlinedSteps { pairs, refused, unreachable }
    }

    /// The verdicts on the entries of the pairs, dropped ones included, and on those across the
    /// copy, in the order of a file of mappings. Cost: near linear in the entries.
    pub fn verdicts(&self, made: &Inlined) -> Vec<EntryVerdict> {
        let mut all = Vec::new();
        for (pair, steps) in PAIR_NAMES.into_iter().zip(&self.pairs) {
            for (direction, step) in DIRECTIONS.into_iter().zip([&steps.before, &steps.after]) {
                let place = (Some(pair), direction);
                all.extend(EntryVerdict::of_mapping(place, &step.mapping, &step.rejected));
            }
        }
        let into = made.up.entries().map(|(point, _)| (ACROSS[0], point));
        let out = made.down.entries().map(|(point, _)| (ACROSS[1], point));
        let across = into.chain(out);
        all.extend(across.map(|(way, point)| EntryVerdict::new((None, way), point, None)));
        all
    }

    /// The certificates of the two pairs, each with the accepted entries of both directions and
    /// their facts. Cost: that of two certificates; they are made anew.
    ///
    /// # Panics
    /// If the steps are those of another inlining, or of one that assumes: then they have no
    /// certificates of their own.
    pub fn parts(&self, made: &Inlined) -> [ExportedParts; 2] {
        let count = made.tree.versions().len();
        assert_eq!(
            count, 4,
            "inlining that assumes has more versions, and no certificate for each"
        );
        let part = |at: usize, [before, after]: [Version; 2]| {
            let log = made.tree.log(before, after).expect("the version was derived");
            let versions = [before, after].map(|version| made.tree.function(version));
            let pair = VersionPair::new(versions[0], versions[1], &log);
            let pair = pair.expect("the tree has replayed its logs");
            let common = pair.correspondence();
            let mut certifier = Certifier::new(&common);
            let mappings = Side::BOTH.map(|side| {
                let mapping: &Mapping = &self.pairs[at][side].mapping;
                (mapping.clone(), certifier.facts(side, mapping))
            });
            (certifier.into_certificate(), mappings)
        };
        [part(0, [osr::VersionTree::BASE, made.cleaned]), part(1, [made.copy, made.optimized])]
    }
}
