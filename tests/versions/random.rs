//! Random programs: composed, direct and rebuilt mappings, and chains of hops.

use crate::versions::chain::{Chain, Existence, Plain, grow, hop_graph, pairs};
use interp::{Limits, NoHost};
use osr::{Level, VersionGraph, VersionTree};
use transition::Demand;
use verify::agreement::AgreementReport;
use verify::generate::{Program, Weights, generate};
use verify::hops::{HopDifference, HopOptions, HopReport, Hopper};
use verify::prng::Prng;
use verify::state_oracle::{FunctionPair, Oracle, OracleOptions};

const SIZE: u32 = 100;

fn program(seed: u64) -> Program {
    generate(seed, SIZE, &Weights::default())
}

fn limits(program: &Program) -> Limits {
    Limits { fuel: 4 * program.steps + 1000, ..Limits::default() }
}

/// Judges mappings between two versions of the main function. Returns the number of transitions.
fn judge(program: &Program, pair: FunctionPair<'_>) -> u64 {
    let options = OracleOptions { limits: limits(program), ..OracleOptions::default() };
    let mut oracle =
        Oracle::new(&program.module, &[pair], options).expect("the mappings are of these versions");
    program.arguments.iter().for_each(|args| oracle.run(program.main, args, &NoHost));
    let report = oracle.report();
    assert_eq!(report.divergence_count, 0, "{}", report.divergences[0]);
    report.total().transitions
}

#[test]
fn composed_direct_and_rebuilt_mappings_hold_and_agree() {
    let mut existence = Existence::default();
    let (mut judged, mut agreed) = (0, AgreementReport::default());
    for seed in 0..100 {
        let program = program(seed);
        let again = generate(seed, SIZE, &Weights::default()).module;
        let Some(chain) = Chain::new(&program.module, program.main, &again, seed) else { continue };
        let graph = chain.graph();
        assert_eq!(graph.lacking(), [], "seed {seed}");
        let ends = chain.ends(&graph);
        existence.add(&chain, &ends);
        judged += ends.pairs().into_iter().map(|pair| judge(&program, pair)).sum::<u64>();
        let Program { module, main, arguments, .. } = &program;
        agreed.add(&ends.agree(module, *main, arguments, &NoHost, limits(&program)));
    }
    let said = format!("{existence:#?}, {judged} transitions judged, {agreed:?}");
    assert!(existence.chains[3..].iter().all(|chains| *chains >= 10), "{said}");
    assert!(existence.reaches(96.0, 96.0), "{said}");
    assert!(judged >= 200_000, "{said}");
    assert!(agreed.same_point >= 200_000 && agreed.compared >= 6 * agreed.same_point, "{said}");
}

/// Runs chains of hops in a graph.
fn hop<'g>(program: &Program, plain: &Plain<'g>, seed: u64) -> HopReport {
    let options = HopOptions {
        seed,
        chains: 8,
        limits: limits(program),
        divergences: 10_000,
        ..HopOptions::default()
    };
    let mut hopper = Hopper::new(&program.module, &[plain.graph()], options)
        .expect("mappings between the versions");
    program.arguments.iter().for_each(|args| hopper.run(program.main, args, &NoHost));
    hopper.report().clone()
}

/// A tree of 2 to 6 versions of the main function.
fn tree(program: &Program, prng: &mut Prng) -> (VersionTree, Vec<&'static str>) {
    let most = prng.between(2, 6);
    let base = program.module.body(program.main).expect("a body");
    grow(&program.module, base, most, true, prng)
}

#[test]
fn hop_chains_end_as_runs_without_hops() {
    let mut total = HopReport::default();
    let mut versions = 0;
    for seed in 0..150 {
        let (program, mut prng) = (program(seed), Prng::new(seed));
        let (tree, names) = tree(&program, &mut prng);
        let graph = hop_graph(&tree, &mut prng);
        let report = hop(&program, &Plain::new(program.main, &tree, graph.edges()), seed);
        assert_eq!(
            report.divergence_count, 0,
            "seed {seed}, {names:?}:\n{}",
            report.divergences[0]
        );
        versions += tree.versions().len();
        total.add(&report);
    }
    assert!(versions >= 500, "{versions} versions");
    assert_eq!(total.exhausted, 0);
    assert!(total.chains >= 7000 && total.hops >= 7 * total.chains, "{total:?}");
    assert!(total.full_chains * 100 >= 95 * total.chains, "{total:?}");
}

/// The same pairs, each synthesized by itself. One mapping then requires kept values that the other
/// mappings do not provide, and the chains of hops detect it.
#[test]
fn mappings_made_apart_leave_values_undefined() {
    let (mut lacking, mut undefined) = (0, 0);
    for seed in 0..60 {
        let (program, mut prng) = (program(seed), Prng::new(seed));
        let (tree, _) = tree(&program, &mut prng);
        let apart = |pair| {
            VersionGraph::build(&tree, &[pair], Level::Avail, Demand::Needed).expect("derived")
        };
        let graphs: Vec<VersionGraph<'_>> =
            pairs(&tree, &mut prng).into_iter().map(apart).collect();
        let edges = graphs.iter().flat_map(|g| g.edges());
        let report = hop(&program, &Plain::new(program.main, &tree, edges), seed);
        let found =
            |is: fn(&HopDifference) -> bool| report.divergences.iter().any(|d| is(&d.difference));
        let lacks = found(|d| matches!(d, HopDifference::NotProvided { .. }));
        lacking += usize::from(lacks);
        undefined += usize::from(found(|d| matches!(d, HopDifference::Undefined { .. })));
        // A run shows a difference only if some mapping lacks a value.
        assert!(lacks || report.divergence_count == 0, "seed {seed}: {}", report.divergences[0]);
    }
    assert!(
        lacking >= 10 && undefined >= 8,
        "{lacking} graphs lack a value, and a chain reads it in {undefined}"
    );
}
