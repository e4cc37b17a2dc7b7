//! Kernels of the corpus: every function in several versions, called through the exported function.

use crate::versions::chain::{Chain, Existence, Plain, grow, hop_graph};
use interp::{Limits, NoHost};
use ir::{Func, Module};
use osr::VersionTree;
use std::path::Path;
use verify::agreement::AgreementReport;
use verify::hops::{HopOptions, HopReport, Hopper};
use verify::prng::Prng;
use verify::state_oracle::{Oracle, OracleOptions, Report};

/// Kernels, each with the function to call and small arguments.
const KERNELS: &[(&str, &str, &[u64])] = &[
    ("calls", "calls", &[60, 1]),
    ("divide", "gcds", &[10, 9]),
    ("edit", "edit", &[8, 3]),
    ("hash", "hash", &[100, 5]),
    ("matmul", "matmul", &[5]),
    ("mixed", "mixed", &[20, 2]),
    ("queens", "queens", &[4]),
    ("scan", "scan", &[120, 4]),
    ("sieve", "sieve", &[200]),
    ("sort", "heap", &[60, 6]),
    ("sort", "quick", &[60, 6]),
    ("vm", "vm", &[1, 40]),
    ("words", "words", &[60, 8]),
];

fn import(kernel: &str) -> Module {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(kernel)
        .with_extension("wasm");
    let bytes = std::fs::read(path).expect("the corpus is committed");
    wasm::import(&bytes, &wasm::ImportLimits::default()).expect("a valid module")
}

fn limits() -> Limits {
    Limits { fuel: 100_000_000, ..Limits::default() }
}

#[test]
fn composed_direct_and_rebuilt_mappings_of_kernels_hold_and_agree() {
    let mut existence = Existence::default();
    let (mut judged, mut agreed) = (Report::default(), AgreementReport::default());
    for (seed, (kernel, name, args)) in (0..).zip(KERNELS) {
        let (module, again) = (import(kernel), import(kernel));
        let func = module.lookup(name).expect("an exported function");
        let funcs: Vec<Func> = module.defined().map(|(f, _)| f).collect();
        let chains: Vec<Chain> =
            funcs.iter().filter_map(|f| Chain::new(&module, *f, &again, seed)).collect();
        let graphs: Vec<_> = chains.iter().map(Chain::graph).collect();
        let ends: Vec<_> =
            chains.iter().zip(&graphs).map(|(chain, graph)| chain.ends(graph)).collect();
        chains.iter().zip(&ends).for_each(|(chain, ends)| existence.add(chain, ends));
        // All functions at once, for each of the three mappings.
        for way in 0..3 {
            let pairs: Vec<_> = ends.iter().map(|e| e.pairs()[way]).collect();
            let options = OracleOptions { limits: limits(), ..OracleOptions::for_long_runs() };
            let mut oracle =
                Oracle::new(&module, &pairs, options).expect("mappings of these versions");
            oracle.run(func, args, &NoHost);
            let report = oracle.report();
            assert_eq!(report.divergence_count, 0, "{kernel}: {}", report.divergences[0]);
            judged.add(report);
        }
        for ends in &ends {
            agreed.add(&ends.agree(&module, func, &[args.to_vec()], &NoHost, limits()));
        }
    }
    let said = format!("{existence:#?}, {judged:?}, {agreed:?}");
    assert_eq!((judged.exhausted, judged.trapped), (0, 0), "{said}");
    // The missing entries are between a lone write and its overwriting write, or before a branch
    // that the other version may have passed.
    assert!(existence.reaches(98.5, 95.0), "{said}");
    assert!(judged.total().transitions >= 10_000, "{said}");
    assert!(agreed.compared >= 100_000, "{said}");
}

#[test]
fn hop_chains_of_kernels_end_as_runs_without_hops() {
    let mut total = HopReport::default();
    for (seed, (kernel, name, args)) in (0..).zip(KERNELS) {
        let module = import(kernel);
        let func = module.lookup(name).expect("an exported function");
        let mut prng = Prng::new(seed);
        let trees: Vec<(Func, VersionTree)> = module
            .defined()
            .map(|(func, base)| (func, grow(&module, base, 4, true, &mut prng).0))
            .collect();
        let graphs: Vec<_> = trees.iter().map(|(_, tree)| hop_graph(tree, &mut prng)).collect();
        let plain: Vec<Plain<'_>> = trees
            .iter()
            .zip(&graphs)
            .map(|((func, tree), graph)| Plain::new(*func, tree, graph.edges()))
            .collect();
        let graphs: Vec<_> = plain.iter().map(Plain::graph).collect();
        let options =
            HopOptions { seed, chains: 16, hops: 64, limits: limits(), ..HopOptions::default() };
        let mut hopper =
            Hopper::new(&module, &graphs, options).expect("mappings between the versions");
        hopper.run(func, args, &NoHost);
        let report = hopper.report();
        assert_eq!(report.divergence_count, 0, "{kernel}: {}", report.divergences[0]);
        total.add(report);
    }
    assert_eq!((total.exhausted, total.trapped), (0, 0), "{total:?}");
    assert!(
        total.full_chains * 100 >= 95 * total.chains && total.hops >= 20 * total.chains,
        "{total:?}"
    );
}
