//! Trees of versions, the mappings between the ends of a chain, and statistics about them.

use interp::{Host, Limits};
use ir::edit::{Action, ActionKind, ActionLog};
use ir::{Func, Function, Module, Point};
use osier::driver::{Derived, NoObserver, Vigilance, derive};
use osr::{
    Edge, EdgeOrigin, Level, Synthesis, Version, VersionGraph, VersionPair, VersionTree, synthesize,
};
use passes::Pipeline;
use passes::registry::{PASSES, parse};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use transition::{Demand, Refusal, VersionKey};
use verify::agreement::{Agreement, AgreementReport};
use verify::hops::{self, FunctionGraph};
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// A version derived by one random pass that changes something, with that pass; `None` if many
/// tries find no such pass.
fn step(module: &Module, from: &Function, prng: &mut Prng) -> Option<(Derived, Pipeline)> {
    (0..24).find_map(|_| {
        let pipeline = parse(PASSES[prng.index(PASSES.len())].name()).expect("a known pass");
        let derived = derive(module, from, &pipeline, Vigilance::On, &mut NoObserver);
        (!derived.log.is_empty()).then_some((derived, pipeline))
    })
}

/// A tree of up to `most` versions, with the names of the passes. One pass derives each version
/// from the previous one, or with `siblings` from any.
pub(crate) fn grow(
    module: &Module,
    base: &Function,
    most: u32,
    siblings: bool,
    prng: &mut Prng,
) -> (VersionTree, Vec<&'static str>) {
    let mut tree = VersionTree::new(base.clone());
    let mut names = Vec::new();
    for _ in 1..most {
        let versions: Vec<Version> = tree.versions().collect();
        let parent = if siblings { prng.pick(&versions) } else { versions[versions.len() - 1] };
        let Some((derived, pipeline)) = step(module, tree.function(parent), prng) else { break };
        names.extend(pipeline.names());
        tree.add(parent, derived.function, derived.log).expect("the driver has replayed the log");
    }
    (tree, names)
}

/// The actions of a log without the numbers of their rewrites, which count from the first pass of a
/// pipeline.
fn unnumbered(log: &ActionLog) -> Vec<(&ActionKind, u64, [&str; 2])> {
    let of = |action: &Action| (action.stamp(), [action.origin().pass(), action.origin().rule()]);
    let actions = log.actions().iter().map(|action| (action, of(action)));
    actions.map(|(action, (stamp, names))| (action.kind(), stamp, names)).collect()
}

/// A chain of versions, and the mappings between its ends.
pub(crate) struct Chain {
    pub(crate) func: Func,
    pub(crate) tree: VersionTree,
    /// The mappings between the ends, from a log recorded in one go.
    pub(crate) direct: Synthesis,
}

impl Chain {
    /// A chain of 3 to 6 versions of a function; `None` if fewer than two passes change anything.
    /// `again` is the same module, generated again, so that its functions belong to different
    /// families.
    pub(crate) fn new(module: &Module, func: Func, again: &Module, seed: u64) -> Option<Chain> {
        let mut prng = Prng::new(seed);
        let most = prng.between(3, 6);
        let (tree, names) = grow(module, body(module, func), most, false, &mut prng);
        let last = tree.versions().last().expect("the base is there");
        let log = tree.log(VersionTree::BASE, last).expect("a chain");
        let pipeline = parse(&names.join(",")).expect("known passes");
        let direct = derive(again, body(again, func), &pipeline, Vigilance::On, &mut NoObserver);
        // The log of all passes in a row is the concatenation of their logs, wherever the pipeline
        // is cut. So the mappings between the ends are the same.
        assert_eq!(unnumbered(&direct.log), unnumbered(&log), "seed {seed}, {names:?}");
        assert_eq!(VersionKey::of(&direct.function), VersionKey::of(tree.function(last)));
        let pair = VersionPair::new(body(again, func), &direct.function, &direct.log)
            .expect("a log just recorded");
        let direct = synthesize(&pair, Level::Avail);
        (names.len() >= 2).then_some(Chain { func, tree, direct })
    }

    pub(crate) fn versions(&self) -> Vec<Version> {
        self.tree.versions().collect()
    }

    /// The graph of the edges between neighbors and between the ends, with composed edges between
    /// the ends, forward and backward.
    pub(crate) fn graph(&self) -> VersionGraph<'_> {
        let mut path = self.versions();
        let mut pairs: Vec<(Version, Version)> = path.windows(2).map(|w| (w[0], w[1])).collect();
        pairs.push((path[0], path[path.len() - 1]));
        let mut graph =
            VersionGraph::build(&self.tree, &pairs, Level::Avail, Demand::Needed).expect("a chain");
        for _ in 0..2 {
            graph.add_composed(&path).expect("neighbors have edges");
            path.reverse();
        }
        graph
    }

    /// The three mappings between the ends, in both directions.
    pub(crate) fn ends<'c>(&'c self, graph: &'c VersionGraph<'c>) -> Ends<'c> {
        let versions = self.versions();
        let (first, last) = (versions[0], versions[versions.len() - 1]);
        let rebuilt = [graph.edge(first, last), graph.edge(last, first)].map(|e| e.expect("built"));
        let [.., there, back] = graph.edges() else { panic!("two composed edges") };
        Ends {
            func: self.func,
            versions: [first, last].map(|v| self.tree.function(v)),
            composed: [there, back],
            direct: [&self.direct.forward.mapping, &self.direct.backward.mapping],
            rebuilt,
        }
    }
}

pub(crate) fn body(module: &Module, func: Func) -> &Function {
    module.body(func).expect("a function with a body")
}

/// The mappings between the ends of a chain, forward and backward.
pub(crate) struct Ends<'c> {
    func: Func,
    versions: [&'c Function; 2],
    composed: [&'c Edge; 2],
    direct: [&'c Mapping; 2],
    rebuilt: [&'c Edge; 2],
}

impl<'c> Ends<'c> {
    /// The composed, direct and rebuilt mapping of a direction.
    fn mappings(&self, direction: usize) -> [&'c Mapping; 3] {
        [
            &self.composed[direction].mapping,
            self.direct[direction],
            &self.rebuilt[direction].mapping,
        ]
    }

    /// The three as pairs for the state oracle, in the same order.
    pub(crate) fn pairs(&self) -> [FunctionPair<'c>; 3] {
        let [there, back] = [0, 1].map(|direction| self.mappings(direction));
        let anchors =
            [&self.composed[0].anchors, &self.rebuilt[0].anchors, &self.rebuilt[0].anchors];
        [0, 1, 2].map(|way| FunctionPair {
            func: self.func,
            before: self.versions[0],
            after: self.versions[1],
            anchors: anchors[way],
            forward: there[way],
            backward: back[way],
            copies: None,
        })
    }

    /// Fires all three on the same states, in runs of either version.
    pub(crate) fn agree<H: Host + Clone>(
        &self,
        module: &Module,
        func: Func,
        arguments: &[Vec<u64>],
        host: &H,
        limits: Limits,
    ) -> AgreementReport {
        let mut total = AgreementReport::default();
        for direction in [0, 1] {
            let (source, mappings) = (self.versions[direction], self.mappings(direction));
            let mut agreement = Agreement::new(module, self.func, source, &mappings, limits)
                .expect("mappings between the same versions");
            arguments.iter().for_each(|args| agreement.run(func, args, host));
            let report = agreement.report();
            assert_eq!(report.disagreement_count, 0, "{}", report.disagreements[0]);
            total.add(report);
        }
        total
    }
}

/// How often the mappings between the ends of chains have an entry, over the reachable points of
/// the source version in both directions. Also, how often two of the mappings have the same landing
/// point.
#[derive(Default, Debug)]
pub(crate) struct Existence {
    pub(crate) points: usize,
    pub(crate) composed: usize,
    pub(crate) direct: usize,
    pub(crate) rebuilt: usize,
    pub(crate) all: usize,
    pub(crate) none: usize,
    pub(crate) composed_alone: usize,
    pub(crate) composed_and_direct: usize,
    pub(crate) composed_lands_as_direct: usize,
    pub(crate) composed_and_rebuilt: usize,
    pub(crate) composed_lands_as_rebuilt: usize,
    /// Chains, by the number of versions.
    pub(crate) chains: [usize; 7],
}

impl Existence {
    pub(crate) fn add(&mut self, chain: &Chain, ends: &Ends<'_>) {
        self.chains[chain.versions().len()] += 1;
        for (direction, source) in ends.versions.into_iter().enumerate() {
            // Synthesized together, mappings compose wherever the second has an entry.
            let mut refused = refused(ends.composed[direction]).iter();
            assert!(refused.all(|(_, refusal)| *refusal == Refusal::NoSecondEntry));
            self.add_points(source, ends.mappings(direction), unreachable(ends.rebuilt[direction]));
        }
    }

    fn add_points(&mut self, source: &Function, mappings: [&Mapping; 3], unreachable: usize) {
        self.points += source.inst_count() - unreachable;
        let (mut reached, mut listed) = (0, 0);
        for inst in source.all_insts() {
            let entries = mappings.map(|m| m.entry(Point::before(inst)));
            let [composed, direct, rebuilt] = entries.map(|e| e.is_some());
            let same = |other: usize| {
                entries[0].zip(entries[other]).is_some_and(|(a, b)| a.target == b.target)
            };
            for (count, is) in [
                (&mut self.composed, composed),
                (&mut self.direct, direct),
                (&mut self.rebuilt, rebuilt),
                (&mut self.all, composed && direct && rebuilt),
                (&mut self.composed_alone, composed && !direct && !rebuilt),
                (&mut self.composed_and_direct, composed && direct),
                (&mut self.composed_lands_as_direct, same(1)),
                (&mut self.composed_and_rebuilt, composed && rebuilt),
                (&mut self.composed_lands_as_rebuilt, same(2)),
                (&mut reached, composed || direct || rebuilt),
                (&mut listed, true),
            ] {
                *count += usize::from(is);
            }
        }
        self.none += listed - reached - unreachable;
    }

    /// Whether each of the three mappings has entries at `exist` percent of the points, and the
    /// landing points agree with the composed landing points at `land_alike` percent.
    pub(crate) fn reaches(&self, exist: f64, land_alike: f64) -> bool {
        let share = |part: usize, all: usize| 100.0 * part as f64 / all as f64;
        [self.composed, self.direct, self.rebuilt, self.all]
            .iter()
            .all(|n| share(*n, self.points) >= exist)
            && share(self.composed_lands_as_direct, self.composed_and_direct) >= land_alike
            && share(self.composed_lands_as_rebuilt, self.composed_and_rebuilt) >= land_alike
    }
}

fn refused(edge: &Edge) -> &[(Point, Refusal)] {
    match &edge.origin {
        EdgeOrigin::Composed { refused, .. } => refused,
        _ => panic!("a composed edge"),
    }
}

fn unreachable(edge: &Edge) -> usize {
    match &edge.origin {
        EdgeOrigin::Built { unreachable, .. } => *unreachable,
        _ => panic!("a built edge"),
    }
}

/// Pairs of a tree: every version with its parent, and some with the base.
pub(crate) fn pairs(tree: &VersionTree, prng: &mut Prng) -> Vec<(Version, Version)> {
    let mut pairs = BTreeSet::new();
    for version in tree.versions().skip(1) {
        pairs.insert((tree.parent(version).expect("derived"), version));
        if prng.chance(50) {
            pairs.insert((VersionTree::BASE, version));
        }
    }
    pairs.into_iter().collect()
}

/// The graph of such pairs, with composed edges between some versions, including siblings.
pub(crate) fn hop_graph<'t>(tree: &'t VersionTree, prng: &mut Prng) -> VersionGraph<'t> {
    let pairs = pairs(tree, prng);
    let mut graph =
        VersionGraph::build(tree, &pairs, Level::Avail, Demand::Needed).expect("derived versions");
    let versions: Vec<Version> = tree.versions().collect();
    for _ in 0..3 {
        let path = tree.path(prng.pick(&versions), prng.pick(&versions));
        if path.len() >= 3 {
            graph.add_composed(&path).expect("derivations have edges");
        }
    }
    graph
}

/// A version graph in the form that [`verify::hops`] takes.
pub(crate) struct Plain<'g> {
    func: Func,
    versions: Vec<&'g Function>,
    edges: Vec<hops::Edge<'g>>,
}

impl<'g> Plain<'g> {
    /// The edges of graphs on one tree.
    pub(crate) fn new(
        func: Func,
        tree: &'g VersionTree,
        edges: impl IntoIterator<Item = &'g Edge>,
    ) -> Plain<'g> {
        let place = |v: Version| v.as_u32() as usize;
        let plain =
            |e: &'g Edge| hops::Edge { from: place(e.from), to: place(e.to), mapping: &e.mapping };
        let versions = tree.versions().map(|v| tree.function(v)).collect();
        Plain { func, versions, edges: edges.into_iter().map(plain).collect() }
    }

    pub(crate) fn graph(&self) -> FunctionGraph<'_> {
        FunctionGraph { func: self.func, versions: &self.versions, edges: &self.edges }
    }
}
