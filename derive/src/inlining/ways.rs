//! The proved mappings into a version with inlined code and out of the version.

use super::row::InliningRow;
use super::{CalleeLandings, landing_points, own_landing};
use crate::driver::{
    CheckCounts, Missing, MissingPoints, Observer, ProvedGraph, ProvedMapping, Step, VersionPoints,
    Why, prove_graph_at,
};
use crate::speculate::{self, MadeExit, MissingExit};
use check::{Checked, CheckedComposition, Copies, FrameRefusal};
use ir::{FrameStates, Function, Inst, Module, Point};
use osr::{CopyLink, Level, Obstacle, Reason, Version, VersionGraph, VersionTree};
use std::collections::BTreeSet;
use transition::frames::Landing;
use transition::mapping::Mapping;
use transition::{Demand, Pair};

/// Why an entry is dropped that lands where a function has no frame state.
const NO_STATE: Why =
    Why::Obstacle(Obstacle { reason: Reason::NoLanding, value: None, inst: None, blame: None });

/// The ways, and the points without any.
pub(super) struct ProvedWays {
    pub(super) up: Checked<Mapping>,
    pub(super) down: Checked<Mapping>,
    /// As [`super::Inlined::pairs`], [`super::Inlined::missing`], [`super::Inlined::points`],
    /// [`super::Inlined::unreachable`] and [`super::Inlined::events`].
    pub(super) pairs: [Pair<ProvedMapping>; 2],
    pub(super) missing: [MissingPoints; 2],
    pub(super) points: [Vec<Point>; 2],
    pub(super) unreachable: [BTreeSet<Point>; 2],
    pub(super) events: BTreeSet<Inst>,
    pub(super) counts: CheckCounts,
    /// The assumptions without an exit.
    pub(super) without_exit: Vec<MissingExit>,
}

/// The mappings between the versions on each side of the copy.
pub(super) struct InliningWays<'t> {
    row: &'t InliningRow,
    graph: VersionGraph<'t>,
    /// The version that makes the assumptions about inlined code, and the optimized one.
    behind: [Version; 2],
    /// The edges from the base to the version inlined into, and back.
    before: [usize; 2],
    /// The edges from the copy to the optimized version, and back.
    after: [usize; 2],
}

impl<'t> InliningWays<'t> {
    pub(super) fn new(
        module: &Module,
        row: &'t InliningRow,
        copies: &Copies,
        tree: &'t VersionTree,
        behind: [Version; 2],
        observer: &mut dyn Observer,
    ) -> InliningWays<'t> {
        observer.begin(Some(Step::Map));
        let first = tree.path(VersionTree::BASE, row.cleaned);
        let last = tree.path(row.copy, behind[1]);
        let steps = |line: &[Version]| line.windows(2).map(|w| (w[0], w[1])).collect::<Vec<_>>();
        let pairs = [steps(&first), steps(&last)].concat();
        let inlined = &row.claim.instances[1..];
        let callees: Vec<&Function> =
            inlined.iter().filter_map(|one| module.body(one.func)).collect();
        let states: Vec<Option<&FrameStates>> =
            inlined.iter().map(|one| row.states.get(&one.func).map(|states| &**states)).collect();
        let down_to_base: Vec<Version> = first.iter().rev().skip(1).copied().collect();
        let link = CopyLink {
            before: row.cleaned,
            after: row.copy,
            lands_by: &down_to_base,
            claim: &row.claim,
            objects: copies.all_objects(),
            callees: &callees,
            states: &states,
        };
        let (level, demand) = (Level::Avail, Demand::default());
        let mut graph = VersionGraph::build_across(tree, &pairs, &[link], level, demand)
            .expect("each version is derived from the one before");
        let mut both = |line: Vec<Version>| {
            let back: Vec<Version> = line.iter().rev().copied().collect();
            [edge_along(&mut graph, &line), edge_along(&mut graph, &back)]
        };
        let (before, after) = (both(first), both(last));
        InliningWays { row, graph, behind, before, after }
    }

    /// Drops all entries that the checker does not accept, and composes the accepted entries across
    /// the copy.
    pub(super) fn prove(
        mut self,
        module: &Module,
        copies: &Checked<Copies>,
        exits: &[MadeExit],
        landings: &CalleeLandings<'_>,
        observer: &mut dyn Observer,
    ) -> ProvedWays {
        let base = self.graph.tree().function(VersionTree::BASE);
        let landed = landing_points(base, &self.row.claim.instances);
        let asked = VersionPoints::from([(VersionTree::BASE, landed)]);
        let proved = prove_graph_at(module, &mut self.graph, &asked, observer);
        observer.begin(Some(Step::Check));
        let (up, mut down) = self.across(copies, &proved, landings);
        let without_state = self.drop_without_state(module, &mut down.mapping);
        observer.begin(None);
        let ends = [VersionTree::BASE, self.behind[1]];
        let unreachable = ends.map(|end| proved.unreachable.get(&end).cloned().unwrap_or_default());
        let points = [0, 1].map(|end: usize| self.reachable(ends[end], &unreachable[end]));
        let into = missing(&points[0], &up, &proved.mappings[self.before[0]], Why::Refused);
        let mut out = missing(&points[1], &down, &proved.mappings[self.after[1]], Why::Frames);
        out.replace(&without_state, NO_STATE);
        let events = self.events(copies);
        let without_exit = self.without_exit(exits, &down.mapping, &out, &proved.mappings);
        let step = |edge: usize| proved.mappings[edge].clone();
        let pairs = [self.before, self.after].map(|edges| Pair::from(edges.map(step)));
        ProvedWays {
            up: up.mapping,
            down: down.mapping,
            pairs,
            missing: [into, out],
            points,
            unreachable,
            events,
            counts: proved.counts,
            without_exit,
        }
    }

    /// Drops the entries with a landing at which the frame states of its function have none, and
    /// returns their points. An interpreter could not continue there, so the assumption of such an
    /// exit is given up (`an_exit_without_a_state_to_land_at_is_given_up`).
    fn drop_without_state(&self, module: &Module, down: &mut Checked<Mapping>) -> BTreeSet<Point> {
        if self.row.states.is_empty() {
            return BTreeSet::new();
        }
        let has_state = |one: Landing<'_>| self.row.has_state(module, one.func, one.at);
        let mut dropped = BTreeSet::new();
        let (func, target) = (self.row.func, down.target());
        down.retain(|point, entry| {
            let keeps = entry.landings(func, target).all(has_state);
            if !keeps {
                dropped.insert(point);
            }
            keeps
        });
        dropped
    }

    /// The entries into the optimized version, and the entries out of the version.
    fn across(
        &self,
        copies: &Checked<Copies>,
        proved: &ProvedGraph,
        landings: &CalleeLandings<'_>,
    ) -> (CheckedComposition, CheckedComposition<FrameRefusal>) {
        let own = "the versions are those of the tree";
        let mapping = |edge: usize| &proved.mappings[edge].mapping;
        let ([to_cleaned, to_base], [ahead, back]) =
            (self.before.map(mapping), self.after.map(mapping));
        let entered = check::enter_copy(to_cleaned, copies, ahead).expect(own);
        let live = proved.live.get(&VersionTree::BASE);
        let base = self.graph.tree().function(VersionTree::BASE);
        let left = check::leave_copy(back, copies, |of, key| match of == self.row.func {
            true => own_landing(base, live?, to_base, key),
            false => landings.of(of, key),
        });
        (entered, left.expect(own))
    }

    /// The anchors that the copy shares with the optimized version, and outside inlined code the
    /// original with the base.
    fn events(&self, copies: &Copies) -> BTreeSet<Inst> {
        let [own, behind] =
            [self.before[0], self.after[0]].map(|edge| &self.graph.edges()[edge].anchors);
        let is_event = |inst: &Inst| match copies.origin(*inst) {
            Some((0, at)) => own.contains(&at),
            origin => origin.is_some(),
        };
        behind.iter().copied().filter(is_event).collect()
    }

    /// The reachable points at which runs may leave a version. The checker has proved that points
    /// of `dead` are unreachable.
    fn reachable(&self, version: Version, dead: &BTreeSet<Point>) -> Vec<Point> {
        let tree = self.graph.tree();
        let (f, departures) = (tree.function(version), tree.departures(version));
        let decided = ir::decided::Decided::new(f);
        let blocks = decided.cfg().rpo();
        let points = blocks.iter().flat_map(|block| f.block_insts(*block)).map(Point::before);
        let leaves = |point: &Point| departures.is_none_or(|points| points.contains(point));
        points.filter(|point| !dead.contains(point) && leaves(point)).collect()
    }

    /// The assumptions that have no exit. `out` are the points without an entry.
    fn without_exit(
        &self,
        exits: &[MadeExit],
        down: &Mapping,
        out: &MissingPoints,
        proved: &[ProvedMapping],
    ) -> Vec<MissingExit> {
        let tree = self.graph.tree();
        let [assuming, optimized] = self.behind;
        let path = tree.path(optimized, self.row.copy);
        speculate::missing_exits(tree, [self.row.copy, assuming, optimized], exits, |_, here| {
            (!down.has_entry(here)).then(|| match out.at(here) {
                Some(why @ Why::Frames(_)) => *why,
                Some(why) if *why == NO_STATE => *why,
                _ => Why::along(&self.graph, proved, &path, here),
            })
        })
    }
}

/// The points without an entry: those at which the first step has an entry and the composition
/// across the copy has none, and the others with the reason of the first step. The checker has
/// dropped the entries of points without a reason.
fn missing<R: Copy>(
    points: &[Point],
    across: &CheckedComposition<R>,
    first: &ProvedMapping,
    refused: impl Fn(R) -> Why,
) -> MissingPoints {
    let across_at = |point: &Point| {
        let found = across.refused.binary_search_by_key(point, |(point, _)| *point).ok()?;
        Some(refused(across.refused[found].1))
    };
    let why = |point: &Point| {
        let first = || first.missing.at(*point).copied();
        across_at(point).or_else(first).unwrap_or(Why::Unproved(None))
    };
    let lost = points.iter().filter(|point| across.mapping.entry(**point).is_none());
    lost.map(|point| Missing { point: *point, why: why(point) }).collect()
}

/// The edge along a path of versions, composed if it has several steps.
fn edge_along(graph: &mut VersionGraph<'_>, path: &[Version]) -> usize {
    if let [from, to] = path {
        let leads = |edge: &osr::Edge| (edge.from, edge.to) == (*from, *to);
        return graph.edges().iter().position(leads).expect("the graph has the pair");
    }
    graph.add_composed(path).expect("the graph has the edges of the path");
    graph.edges().len() - 1
}
