//! Several versions of random programs: composed, direct and rebuilt mappings judged and compared, and chains of
//! hops through the graph of versions.
//!
//! Three mappings between the ends of a chain of versions: *composed*, entry by entry, along the chain;
//! *rebuilt*, an edge of the graph of all versions, made from the concatenated logs of the steps; *direct*,
//! the pair of the two ends alone, in a family of its own, from the one log of all passes run in a row.

use ir::interp::{Limits, NoHost};
use ir::mapping::{Mapping, VersionKey};
use ir::{Function, Inst};
use osier::driver::{Derived, NoObserver, Vigilance, derive};
use osr::{
    Demand, Edge, Level, Origin, Refusal, Synthesis, Version, VersionGraph, VersionPair, VersionTree, synthesize,
};
use passes::Pipeline;
use passes::registry::{PASSES, parse};
use std::collections::BTreeSet;
use verify::agreement::{Agreement, AgreementReport};
use verify::generate::{Program, Weights, generate};
use verify::hops::{self, FunctionGraph, HopOptions, HopReport, Hopper};
use verify::prng::Prng;
use verify::state_oracle::{Counts, FunctionPair, Oracle, OracleOptions};

fn base(program: &Program) -> &Function {
    program.module.body(program.main).expect("the main function has a body")
}

fn limits(program: &Program) -> Limits {
    Limits { fuel: 4 * program.steps + 1000, ..Limits::default() }
}

fn pass(prng: &mut Prng) -> Pipeline {
    parse(PASSES[prng.index(PASSES.len())].name()).expect("a known pass")
}

/// A version derived by one random pass that changes something, and that pass; `None` when none does in many
/// tries.
fn step(program: &Program, from: &Function, prng: &mut Prng) -> Option<(Derived, Pipeline)> {
    (0..24).find_map(|_| {
        let pipeline = pass(prng);
        let derived = derive(&program.module, from, &pipeline, Vigilance::On, &mut NoObserver);
        (!derived.log.is_empty()).then_some((derived, pipeline))
    })
}

/// A tree of up to `most` versions, each derived by one pass: from the one before, or with `siblings` from any.
/// With the passes.
fn grow(program: &Program, most: u32, siblings: bool, prng: &mut Prng) -> (VersionTree, Vec<&'static str>) {
    let mut tree = VersionTree::new(base(program).clone());
    let mut names = Vec::new();
    for _ in 1..most {
        let versions: Vec<Version> = tree.versions().collect();
        let parent = if siblings { prng.pick(&versions) } else { versions[versions.len() - 1] };
        let Some((derived, pipeline)) = step(program, tree.function(parent), prng) else { break };
        names.extend(pipeline.names());
        tree.add(parent, derived.function, derived.log).expect("the driver has replayed the log");
    }
    (tree, names)
}

/// Everything on the way from the base to the last version of a chain.
struct Chain {
    tree: VersionTree,
    /// The pair of the ends alone, from a log recorded in one go.
    direct: Synthesis,
}

/// Runs all passes of a chain in a row, in a family that has no other versions.
fn directly(seed: u64, size: u32, names: &[&str]) -> (Program, Derived) {
    let program = generate(seed, size, &Weights::default());
    let pipeline = parse(&names.join(",")).expect("known passes");
    let derived = derive(&program.module, base(&program), &pipeline, Vigilance::On, &mut NoObserver);
    (program, derived)
}

const SIZE: u32 = 100;

impl Chain {
    /// `None` when not even two steps change anything.
    fn new(program: &Program, seed: u64) -> Option<Chain> {
        let mut prng = Prng::new(seed);
        let most = prng.between(3, 6);
        let (tree, names) = grow(program, most, false, &mut prng);
        let last = tree.versions().last().expect("the base is there");
        let log = tree.log(VersionTree::BASE, last).expect("a chain");
        let (again, direct) = directly(seed, SIZE, &names);
        // Where the pipeline is cut leaves no trace: the log of all passes run in a row is the concatenation of
        // their logs, and so the mappings between the ends are the same.
        assert_eq!(direct.log, log, "seed {seed}, {names:?}");
        assert_eq!(VersionKey::of(&direct.function), VersionKey::of(tree.function(last)));
        let pair = VersionPair::new(base(&again), &direct.function, &direct.log).expect("a log just recorded");
        let direct = synthesize(&pair, Level::Avail);
        (names.len() >= 2).then_some(Chain { tree, direct })
    }

    fn versions(&self) -> Vec<Version> {
        self.tree.versions().collect()
    }

    /// The graph of neighbors and of the ends, and the composed edges between those, forward and backward.
    fn graph(&self) -> VersionGraph<'_> {
        let mut path = self.versions();
        let mut pairs: Vec<(Version, Version)> = path.windows(2).map(|w| (w[0], w[1])).collect();
        pairs.push((path[0], path[path.len() - 1]));
        let mut graph = VersionGraph::build(&self.tree, &pairs, Level::Avail, Demand::Needed).expect("a chain");
        for _ in 0..2 {
            graph.add_composed(&path).expect("neighbors have edges");
            path.reverse();
        }
        graph
    }
}

/// How often the mappings between the ends exist, over the reachable points of the source, both directions.
#[derive(Default, Debug)]
struct Existence {
    points: usize,
    composed: usize,
    direct: usize,
    rebuilt: usize,
    all: usize,
    none: usize,
    composed_and_direct: usize,
    composed_and_rebuilt: usize,
    /// Of those, that land at the same point.
    composed_lands_as_direct: usize,
    composed_lands_as_rebuilt: usize,
    composed_alone: usize,
    no_second_entry: usize,
}

impl Existence {
    fn add(&mut self, source: &Function, [composed, direct, rebuilt]: [&Mapping; 3], unreachable: usize) {
        self.points += source.inst_count() - unreachable;
        for inst in source.all_insts() {
            let entries = [composed, direct, rebuilt].map(|m| m.entry(ir::Point::before(inst)));
            let [c, d, r] = entries.map(|e| e.is_some());
            let same = |a: usize, b: usize| entries[a].zip(entries[b]).is_some_and(|(a, b)| a.target == b.target);
            for (count, is) in [
                (&mut self.composed, c),
                (&mut self.direct, d),
                (&mut self.rebuilt, r),
                (&mut self.all, c && d && r),
                (&mut self.composed_and_direct, c && d),
                (&mut self.composed_and_rebuilt, c && r),
                (&mut self.composed_lands_as_direct, same(0, 1)),
                (&mut self.composed_lands_as_rebuilt, same(0, 2)),
                (&mut self.composed_alone, c && !r),
            ] {
                *count += usize::from(is);
            }
            self.none += usize::from(!c && !d && !r);
        }
        self.none -= unreachable;
    }
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all as f64
}

/// Judges a mapping and the one back.
fn judge(program: &Program, after: &Function, anchors: &BTreeSet<Inst>, [forward, backward]: [&Mapping; 2]) -> Counts {
    let pair = FunctionPair { func: program.main, before: base(program), after, anchors, forward, backward };
    let options = OracleOptions { limits: limits(program), ..OracleOptions::default() };
    let mut oracle = Oracle::new(&program.module, &[pair], options).expect("the mappings are of these versions");
    program.arguments.iter().for_each(|args| oracle.run(program.main, args, &NoHost));
    let report = oracle.report();
    assert_eq!(report.divergence_count, 0, "{}", report.divergences[0]);
    report.total()
}

/// Compares mappings that leave a version of the main function for the same other one.
fn agree(program: &Program, version: &Function, mappings: &[&Mapping]) -> AgreementReport {
    let mut agreement = Agreement::new(&program.module, (program.main, version), mappings, limits(program))
        .expect("mappings between the same versions");
    program.arguments.iter().for_each(|args| agreement.run(program.main, args, &NoHost));
    let report = agreement.report();
    assert_eq!(report.disagreement_count, 0, "{}", report.disagreements[0]);
    report.clone()
}

fn refused(edge: &Edge) -> &[(ir::Point, Refusal)] {
    match &edge.origin {
        Origin::Composed { refused, .. } => refused,
        _ => panic!("a composed edge"),
    }
}

fn unreachable(edge: &Edge) -> usize {
    match &edge.origin {
        Origin::Built { unreachable, .. } => *unreachable,
        _ => panic!("a built edge"),
    }
}

#[test]
fn composed_direct_and_rebuilt_mappings_hold_and_agree() {
    let mut existence = Existence::default();
    let mut lengths = [0; 7];
    let (mut judged, mut agreed) = (0, AgreementReport::default());
    for seed in 0..100 {
        let program = generate(seed, SIZE, &Weights::default());
        let Some(chain) = Chain::new(&program, seed) else { continue };
        let versions = chain.versions();
        lengths[versions.len()] += 1;
        let (first, last) = (versions[0], versions[versions.len() - 1]);
        let graph = chain.graph();
        assert_eq!(graph.lacking(), [], "seed {seed}");
        let [there, back] = [graph.edge(first, last), graph.edge(last, first)].map(|e| e.expect("built"));
        let [.., composed, composed_back] = graph.edges() else { panic!("two composed edges") };
        // Made together, mappings compose wherever there is a second entry.
        for (_, refusal) in [composed, composed_back].into_iter().flat_map(refused) {
            assert_eq!(*refusal, Refusal::NoSecondEntry, "seed {seed}");
            existence.no_second_entry += 1;
        }
        let direct = [&chain.direct.forward.mapping, &chain.direct.backward.mapping];
        let after = chain.tree.function(last);
        let ways = [[&composed.mapping, direct[0], &there.mapping], [&composed_back.mapping, direct[1], &back.mapping]];
        existence.add(base(&program), ways[0], unreachable(there));
        existence.add(after, ways[1], unreachable(back));
        for (way, anchors) in [&composed.anchors, &there.anchors, &there.anchors].into_iter().enumerate() {
            judged += judge(&program, after, anchors, [ways[0][way], ways[1][way]]).transitions;
        }
        for (source, mappings) in [base(&program), after].into_iter().zip(ways) {
            let report = agree(&program, source, &mappings);
            agreed.visits += report.visits;
            agreed.same_point += report.same_point;
            agreed.other_point += report.other_point;
            agreed.compared += report.compared;
        }
    }
    let said = format!("{existence:#?}, chains by length {lengths:?}, {judged} transitions judged, {agreed:?}");
    assert!(lengths[3..].iter().all(|chains| *chains >= 10), "{said}");
    let Existence { points, composed, direct, rebuilt, all, .. } = existence;
    for exist in [composed, direct, rebuilt, all] {
        assert!(share(exist, points) >= 0.96, "{said}");
    }
    // Where a pair of ends has an entry that lands elsewhere, composing found another gap or another price.
    assert!(share(existence.composed_lands_as_direct, existence.composed_and_direct) >= 0.96, "{said}");
    assert!(share(existence.composed_lands_as_rebuilt, existence.composed_and_rebuilt) >= 0.96, "{said}");
    assert!(judged >= 200_000, "{said}");
    assert!(agreed.same_point >= 200_000 && agreed.compared >= 6 * agreed.same_point, "{said}");
}

/// The graph of a tree: every version with what it was derived from, the base with all, and composed edges
/// between other versions that no log joins.
fn hop_graph<'t>(tree: &'t VersionTree, prng: &mut Prng) -> VersionGraph<'t> {
    let versions: Vec<Version> = tree.versions().collect();
    let mut pairs = BTreeSet::new();
    for &version in &versions[1..] {
        pairs.insert((tree.parent(version).expect("derived"), version));
        if prng.chance(50) {
            pairs.insert((VersionTree::BASE, version));
        }
    }
    let pairs: Vec<_> = pairs.into_iter().collect();
    let mut graph = VersionGraph::build(tree, &pairs, Level::Avail, Demand::Needed).expect("derived versions");
    for _ in 0..3 {
        let path = tree.path(prng.pick(&versions), prng.pick(&versions));
        if path.len() >= 3 {
            graph.add_composed(&path).expect("derivations have edges");
        }
    }
    graph
}

/// Runs chains of hops through a graph.
fn hop(program: &Program, graph: &VersionGraph<'_>, seed: u64, chains: u32) -> HopReport {
    let versions: Vec<&Function> = graph.tree().versions().map(|v| graph.tree().function(v)).collect();
    let place = |v: Version| v.as_u32() as usize;
    let edges = graph.edges().iter().map(|e| hops::Edge { from: place(e.from), to: place(e.to), mapping: &e.mapping });
    let edges: Vec<hops::Edge<'_>> = edges.collect();
    let graph = FunctionGraph { func: program.main, versions: &versions, edges: &edges };
    let options = HopOptions { seed, chains, limits: limits(program), ..HopOptions::default() };
    let mut hopper = Hopper::new(&program.module, &[graph], options).expect("mappings between the versions");
    program.arguments.iter().for_each(|args| hopper.run(program.main, args, &NoHost));
    hopper.report().clone()
}

#[test]
fn hop_chains_end_as_runs_without_hops() {
    let mut total = HopReport::default();
    let mut versions = 0;
    for seed in 0..150 {
        let program = generate(seed, SIZE, &Weights::default());
        let mut prng = Prng::new(seed);
        let most = prng.between(2, 6);
        let (tree, names) = grow(&program, most, true, &mut prng);
        let graph = hop_graph(&tree, &mut prng);
        let report = hop(&program, &graph, seed, 8);
        assert_eq!(report.divergence_count, 0, "seed {seed}, {names:?}:\n{}", report.divergences[0]);
        versions += tree.versions().len();
        total.add(&report);
    }
    assert!(versions >= 500, "{versions} versions");
    assert_eq!(total.exhausted, 0);
    assert!(total.chains >= 7000 && total.hops >= 7 * total.chains, "{total:?}");
    assert!(share(total.full_chains as usize, total.chains as usize) >= 0.95, "{total:?}");
}
