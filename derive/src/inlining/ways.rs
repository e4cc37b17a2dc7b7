//! The proved mappings into a version with inlined code and out of the version.

use super::row::InliningRow;
use super::{CalleeLandings, InlinedSteps, RefusedPoints, landing_points, own_landing};
use crate::driver::{
    CheckCounts, Observer, ProvedGraph, Step, UNPROVED, VersionPoints, prove_graph_at,
};
use crate::speculate::{EdgeLogs, Lacking, LiveThere, Lost, MadeExit};
use check::{Checked, CheckedComposition, Copies, FrameRefusal};
use ir::cfg::Cfg;
use ir::dom::DomTree;
use ir::{FrameStates, Function, Inst, Module, Point};
use osr::{CopyLink, EdgeOrigin, Level, Version, VersionGraph, VersionTree};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use transition::Demand;
use transition::mapping::Mapping;

/// The ways, and the points without any.
pub(super) struct ProvedWays {
    pub(super) up: Checked<Mapping>,
    pub(super) down: Checked<Mapping>,
    pub(super) steps: InlinedSteps,
    /// The points without an entry, of the base and of the optimized version, ascending, each with
    /// the name of the reason.
    pub(super) lost: [Vec<(Point, &'static str)>; 2],
    /// The reachable points of both.
    pub(super) points: [Vec<Point>; 2],
    /// As [`super::Inlined::events`].
    pub(super) events: BTreeSet<Inst>,
    pub(super) counts: CheckCounts,
    /// The assumptions without an exit.
    pub(super) lacking: Vec<Lacking>,
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
        let (up, down) = self.across(copies, &proved, landings);
        observer.begin(None);
        let ends = [VersionTree::BASE, self.behind[1]];
        let dead = ends.map(|end| proved.unreachable.get(&end).cloned().unwrap_or_default());
        let points = [0, 1].map(|end: usize| self.reachable(ends[end], &dead[end]));
        let up_lost = self.lost(
            &points[0],
            self.before[0],
            |p| up.mapping.entry(p).is_some(),
            up.refused.iter().map(|(point, refusal)| (*point, refusal.name())),
        );
        let down_lost = self.lost(
            &points[1],
            self.after[1],
            |p| down.mapping.entry(p).is_some(),
            down.refused.iter().map(|(point, refusal)| (*point, refusal.name())),
        );
        let (events, lacking) = (self.events(copies), self.lacking(exits, &down));
        let lost = [up_lost, down_lost];
        let edges = [self.before, self.after];
        let refused = RefusedPoints { into: up.refused, out: down.refused };
        let steps = InlinedSteps::new(&self.graph, &proved, edges, refused, dead);
        let (up, down, counts) = (up.mapping, down.mapping, proved.counts);
        ProvedWays { up, down, steps, lost, points, events, counts, lacking }
    }

    /// The entries into the optimized version, and the entries out of the version.
    fn across(
        &self,
        copies: &Checked<Copies>,
        proved: &ProvedGraph,
        landings: &CalleeLandings<'_>,
    ) -> (CheckedComposition, CheckedComposition<FrameRefusal>) {
        let own = "the versions are those of the tree";
        let mapping = |edge: usize| &proved.mappings[edge];
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

    /// The reachable points of a version. The checker has proved that points of `dead` are
    /// unreachable.
    fn reachable(&self, version: Version, dead: &BTreeSet<Point>) -> Vec<Point> {
        let f = self.graph.tree().function(version);
        let decided = ir::decided::Decided::new(f);
        let blocks = decided.cfg().rpo();
        let points = blocks.iter().flat_map(|block| f.block_insts(*block)).map(Point::before);
        points.filter(|point| !dead.contains(point)).collect()
    }

    /// The points without an entry, each with the reason of its edge, which leaves the version, or
    /// of the step across the copy. The checker has dropped the entries of the other points.
    fn lost(
        &self,
        points: &[Point],
        edge: usize,
        has_entry: impl Fn(Point) -> bool,
        refused: impl Iterator<Item = (Point, &'static str)>,
    ) -> Vec<(Point, &'static str)> {
        let mut reasons: BTreeMap<Point, &'static str> = refused.collect();
        let mut origin = &self.graph.edges()[edge].origin;
        if let EdgeOrigin::Composed { path, refused } = origin {
            reasons.extend(refused.iter().map(|(point, why)| (*point, why.name())));
            let first = self.graph.edge(path[0], path[1]).expect("it is on the path");
            origin = &first.origin;
        }
        if let EdgeOrigin::Built { unmapped, .. } = origin {
            reasons.extend(unmapped.iter().map(|one| (one.point, one.reason.name())));
        }
        let lost = points.iter().copied().filter(|point| !has_entry(*point));
        lost.map(|point| (point, reasons.get(&point).copied().unwrap_or(UNPROVED))).collect()
    }

    /// The assumptions that have no exit.
    fn lacking(&self, exits: &[MadeExit], down: &CheckedComposition<FrameRefusal>) -> Vec<Lacking> {
        let tree = self.graph.tree();
        let [assuming, optimized] = self.behind;
        let row = [self.row.copy, assuming, optimized];
        let (copy, f) = (tree.function(self.row.copy), tree.function(assuming));
        let dom = OnceCell::new();
        let live = OnceCell::new();
        let mut logs = EdgeLogs::new();
        let lacks = |MadeExit { exit, index }: &MadeExit| {
            let (inst, here) = (exit.inst, Point::before(exit.inst));
            if down.mapping.entry(here).is_some() {
                return None;
            }
            let lost = match down.refused.binary_search_by_key(&here, |(point, _)| *point) {
                Ok(found) => Lost::Frames(down.refused[found].1),
                Err(_) => {
                    let path = tree.path(optimized, self.row.copy);
                    Lost::find(&self.graph, &path, inst, &mut logs)
                }
            };
            let mut to_keep = lost.missing(copy, f);
            let dom = dom.get_or_init(|| DomTree::new(f, &Cfg::new(f)));
            to_keep.retain(|value| dom.available_at(f, *value, here));
            let gone = live.get_or_init(|| LiveThere::new(tree, row)).gone(inst);
            Some(Lacking { inst, index: *index, lost, to_keep, gone })
        };
        exits.iter().filter_map(lacks).collect()
    }
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
