//! Chains of hops end like runs without hops. They find faults of entries, and values that entries
//! fail to provide. Agreement finds mappings that give a value different contents.

use crate::oracles::case::{copies, identity, values};
use interp::{Limits, NoHost};
use ir::text::parse_module;
use ir::{Func, Function, Module, Point, Value};
use osier_verify::agreement::{self, Agreement};
use osier_verify::generate::{Weights, generate};
use osier_verify::hops::{
    Edge, FunctionGraph, Hop, HopDifference, HopDivergence, HopOptions, HopReport, HopSetupError,
    Hopper,
};
use osier_verify::state_oracle::EntryFault;
use std::collections::BTreeSet;
use transition::mapping::{Entry, Mapping, Operand};

/// One version three times, with the identity from each to the next and to the first.
const EDGES: [(usize, usize); 5] = [(0, 1), (1, 2), (2, 0), (1, 0), (0, 2)];

fn edges(mapping: &Mapping) -> [Edge<'_>; 5] {
    EDGES.map(|(from, to)| Edge { from, to, mapping })
}

#[test]
fn chains_of_identities_end_as_runs_without_hops() {
    let mut total = HopReport::default();
    for seed in 0..150 {
        let program = generate(seed, 30, &Weights::default());
        let bodies: Vec<(Func, &Function)> = program.module.defined().collect();
        let mappings: Vec<Mapping> = bodies.iter().map(|(_, f)| identity(f, f)).collect();
        let versions: Vec<[&Function; 3]> = bodies.iter().map(|(_, f)| [*f; 3]).collect();
        let edges: Vec<[Edge<'_>; 5]> = mappings.iter().map(edges).collect();
        let graph = |i: usize| FunctionGraph {
            func: bodies[i].0,
            versions: &versions[i],
            edges: &edges[i],
        };
        let graphs: Vec<FunctionGraph<'_>> = (0..bodies.len()).map(graph).collect();
        let options = HopOptions { seed, ..HopOptions::default() };
        let mut hopper = Hopper::new(&program.module, &graphs, options).expect("the graphs fit");
        program.arguments.iter().for_each(|args| hopper.run(program.main, args, &NoHost));
        let report = hopper.report();
        assert_eq!(report.divergence_count, 0, "seed {seed}: {}", report.divergences[0]);
        total.add(report);
    }
    assert_eq!(total.exhausted, 0);
    assert!(total.chains == 4 * total.runs && total.without_entries == 0, "{total:?}");
    assert!(
        total.full_chains * 100 >= 95 * total.chains && total.hops >= 7 * total.chains,
        "{total:?}"
    );
    assert_eq!(total.longest, u64::from(HopOptions::default().hops));
    assert!(total.trapped > 10 && total.trapped < total.runs / 2, "{total:?}");
}

/// Counts `%n` down, and stores the sum of the counters.
const LOOP: &str = "memory @m 1
func @f(%n: i32) -> i32 {
entry:
  %zero = const.i32 0
  %one = const.i32 1
  jump head(%n, %zero)
head(%i: i32, %sum: i32):
  br_if %i, body, done
body:
  %more = add.i32 %sum, %i
  %next = sub.i32 %i, %one
  store.i32 @m[%zero], %more
  jump head(%next, %more)
done:
  return %sum
}
";

/// A function with two equal versions, and a mapping to damage in each direction.
struct Case {
    module: Module,
    func: Func,
    there: Mapping,
    back: Mapping,
}

impl Case {
    fn new() -> Case {
        let module = parse_module(LOOP).unwrap_or_else(|e| panic!("{}", e[0]));
        let func = module.lookup("f").expect("an f");
        let mapping =
            identity(module.body(func).expect("a body"), module.body(func).expect("a body"));
        Case { module, func, there: mapping.clone(), back: mapping }
    }

    fn body(&self) -> &Function {
        self.module.body(self.func).expect("a body")
    }

    fn value(&self, name: &str) -> Value {
        let f = self.body();
        values(f)
            .into_iter()
            .find(|v| f.value_name(*v) == Some(name))
            .unwrap_or_else(|| panic!("no {name}"))
    }

    fn before(&self, name: &str) -> Point {
        Point::before(self.body().defining_inst(self.value(name)).expect("an instruction"))
    }

    /// Makes this entry the only one to the other version.
    fn only(&mut self, point: Point, entry: Entry) {
        self.there = Mapping::new(self.body(), self.body());
        self.there.insert(point, entry);
    }

    fn hop<T>(&self, options: HopOptions, look: impl FnOnce(Hopper<'_>) -> T) -> T {
        let versions = [self.body(); 2];
        let edges = [
            Edge { from: 0, to: 1, mapping: &self.there },
            Edge { from: 1, to: 0, mapping: &self.back },
        ];
        let graph = FunctionGraph { func: self.func, versions: &versions, edges: &edges };
        let mut hopper = Hopper::new(&self.module, &[graph], options).expect("the graph fits");
        hopper.run(self.func, &[9], &NoHost);
        look(hopper)
    }

    fn report(&self) -> HopReport {
        self.hop(HopOptions::default(), |hopper| hopper.report().clone())
    }

    fn differences(&self) -> Vec<HopDifference> {
        self.report().divergences.into_iter().map(|d| d.difference).collect()
    }

    /// The values available before `%more`, except for some.
    fn available_but(&self, left_out: &[&str]) -> Vec<Value> {
        let names = ["n", "zero", "one", "i", "sum"].into_iter().filter(|n| !left_out.contains(n));
        let mut values: Vec<Value> = names.map(|n| self.value(n)).collect();
        values.sort();
        values
    }
}

#[test]
fn a_wrong_copy_is_found_and_found_again() {
    let mut case = Case::new();
    let point = case.before("more");
    let mut wrong = copies(point, &case.available_but(&[]));
    let (i, sum) = (case.value("i"), case.value("sum"));
    wrong.assigns.iter_mut().find(|a| a.value == sum).expect("provided").from = Operand::Source(i);
    case.only(point, wrong);
    case.hop(HopOptions::default(), |hopper| {
        let divergence = &hopper.report().divergences[0];
        assert!(matches!(divergence.difference, HopDifference::End { .. }), "{divergence}");
        assert_eq!(divergence.input, [9]);
        let again = |hops: &[Hop]| hopper.replay(case.func, &[9], &NoHost, hops);
        assert_eq!(again(&divergence.hops), Some(divergence.difference.clone()));
        assert_eq!(again(&[]), None);
        // A hop that is not possible at its point ends the chain, and the run continues.
        let mut elsewhere = divergence.hops.clone();
        elsewhere[0].wait = u64::MAX;
        assert_eq!(again(&elsewhere), None);
        elsewhere[0].wait = 0;
        elsewhere[0].edge = 9;
        assert_eq!(again(&elsewhere), None);
    });
}

#[test]
fn the_landing_point_is_visited_too() {
    let mut case = Case::new();
    let point = case.before("more");
    case.only(point, copies(point, &case.available_but(&[])));
    let (i, sum) = (case.value("i"), case.value("sum"));
    let mut wrong = copies(point, &case.available_but(&[]));
    wrong.assigns.iter_mut().find(|a| a.value == sum).expect("provided").from = Operand::Source(i);
    case.back = Mapping::new(case.body(), case.body());
    case.back.insert(point, wrong);
    case.hop(HopOptions { chains: 0, ..HopOptions::default() }, |hopper| {
        let hop = |edge: usize, wait| Hop {
            func: case.func,
            edge,
            wait,
            from: edge,
            to: 1 - edge,
            point,
            target: point,
        };
        let differs = |there, back| {
            hopper.replay(case.func, &[9], &NoHost, &[hop(0, there), hop(1, back)]).is_some()
        };
        // There are nine rounds, and the wrong entry back has to fire in one of them.
        assert!(differs(8, 0) && differs(7, 0) && differs(7, 1) && differs(0, 8));
        assert!(!differs(8, 1) && !differs(7, 2) && !differs(0, 9) && !differs(9, 0));
    });
}

#[test]
fn a_hop_over_a_store_is_found() {
    let mut case = Case::new();
    let store = case
        .body()
        .next_inst(case.body().defining_inst(case.value("next")).expect("an instruction"));
    let store = store.expect("the store");
    let behind = Point::before(case.body().next_inst(store).expect("the jump"));
    let point = Point::before(store);
    let provided: Vec<Value> = values(case.body()).into_iter().collect();
    case.only(point, copies(behind, &provided));
    case.back = Mapping::new(case.body(), case.body());
    // In every round but the last, the next round overwrites the store. Many chains make it likely
    // that some hop in the last round.
    let report = case
        .hop(HopOptions { chains: 200, ..HopOptions::default() }, |hopper| hopper.report().clone());
    assert!(report.divergence_count > 0 && report.divergence_count < 200, "{report:?}");
    let is_end = |d: &HopDivergence| matches!(d.difference, HopDifference::End { .. });
    assert!(report.divergences.iter().all(is_end), "{report:?}");
}

#[test]
fn a_missing_requirement_of_a_later_entry_is_found() {
    let mut case = Case::new();
    let point = case.before("more");
    // `%n` is dead there, and no run needs it. But the entries back copy all available values.
    case.only(point, copies(point, &case.available_but(&["n"])));
    let n = case.value("n");
    let found = case.differences();
    assert_eq!(found[0], HopDifference::NotProvided { value: n });
    assert!(found.contains(&HopDifference::Undefined { value: n }), "{found:?}");
    // If no entry requires `%n`, nothing is missing.
    let live: BTreeSet<Value> =
        ["zero", "one", "i", "sum", "more", "next"].map(|n| case.value(n)).into();
    for (point, entry) in case.back.clone().entries() {
        let provided: Vec<Value> = entry.provides().filter(|v| live.contains(v)).collect();
        if case.body().inst_block(point.inst()) != case.body().entry() {
            case.back.insert(point, copies(entry.target, &provided));
        }
    }
    assert_eq!(case.report().divergence_count, 0, "{:?}", case.differences());
}

#[test]
fn values_that_the_version_reads_later_must_be_provided() {
    let mut case = Case::new();
    let point = case.before("more");
    case.only(point, copies(point, &case.available_but(&["n", "zero"])));
    case.back = Mapping::new(case.body(), case.body());
    let zero = case.value("zero");
    let found = case.differences();
    assert_eq!(found[0], HopDifference::NotProvided { value: zero });
    assert!(matches!(found[1], HopDifference::End { .. }), "{found:?}");
}

#[test]
fn a_faulty_entry_is_never_fired() {
    let mut case = Case::new();
    let (point, more) = (case.before("more"), case.value("more"));
    case.only(point, copies(point, &[more]));
    case.back = Mapping::new(case.body(), case.body());
    let report = case.report();
    let faults = report.divergences.iter().filter(|d| {
        d.difference == HopDifference::Entry(EntryFault::RequiredUnavailable { value: more })
    });
    assert_eq!(faults.count(), 1, "{report:?}");
    assert_eq!((report.hops, report.without_entries), (0, 1));
}

#[test]
fn one_seed_makes_one_run_of_chains() {
    let mut case = Case::new();
    case.only(case.before("more"), copies(case.before("next"), &case.available_but(&[])));
    case.back = Mapping::new(case.body(), case.body());
    let report = |seed| {
        case.hop(HopOptions { seed, ..HopOptions::default() }, |hopper| hopper.report().clone())
    };
    assert!(report(1).divergence_count > 1, "{:?}", report(1));
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}

#[test]
fn divergences_beyond_the_limit_are_counted() {
    let mut case = Case::new();
    case.only(case.before("more"), copies(case.before("next"), &case.available_but(&[])));
    let options = HopOptions { chains: 30, divergences: 2, ..HopOptions::default() };
    let report = case.hop(options, |hopper| hopper.report().clone());
    assert_eq!(report.divergences.len(), 2);
    assert!(report.divergence_count > 10, "{report:?}");
}

#[test]
fn graphs_that_do_not_fit_are_refused() {
    let case = Case::new();
    let versions = [case.body(); 2];
    let new = |graphs: &[FunctionGraph<'_>]| {
        Hopper::new(&case.module, graphs, HopOptions::default())
            .expect_err("a graph that does not fit")
    };
    let edges = [Edge { from: 0, to: 2, mapping: &case.there }];
    let graph = FunctionGraph { func: case.func, versions: &versions, edges: &edges };
    assert_eq!(new(&[graph]), HopSetupError::OtherVersions { func: case.func, edge: 0 });
    let graph = FunctionGraph { edges: &[], ..graph };
    assert_eq!(new(&[graph, graph]), HopSetupError::NotOneGraph { func: case.func });
    let empty = FunctionGraph { versions: &[], ..graph };
    assert_eq!(new(&[empty]), HopSetupError::NotOneGraph { func: case.func });
}

fn agreement<'a>(case: &'a Case, mappings: &[&'a Mapping]) -> agreement::AgreementReport {
    let (func, limits) = (case.func, Limits::default());
    let mut agreement = Agreement::new(&case.module, func, case.body(), mappings, limits)
        .expect("the same versions");
    agreement.run(case.func, &[9], &NoHost);
    agreement.report().clone()
}

#[test]
fn mappings_that_say_the_same_agree() {
    let mut case = Case::new();
    let point = case.before("more");
    let mut early = case.back.clone();
    early.insert(point, copies(case.before("next"), &[]));
    let report = agreement(&case, &[&case.there, &case.back, &early]);
    assert_eq!(report.disagreement_count, 0);
    // Three instructions before the loop, ten visits of the header, nine of the body, and the end.
    assert_eq!(report.visits, 3 + 10 + 9 * 4 + 1);
    // At one point, the target point of one mapping differs from the target point of the two
    // others.
    assert_eq!((report.same_point, report.other_point), (3 * report.visits - 2 * 9, 2 * 9));
    assert!(report.compared > 3 * report.same_point, "{report:?}");
    // With one entry at a point, there is nothing to compare.
    case.there = Mapping::new(case.body(), case.body());
    assert_eq!(agreement(&case, &[&case.there, &case.back]).visits, 0);
}

#[test]
fn mappings_that_say_different_things_do_not_agree() {
    let case = Case::new();
    let (point, i, sum) = (case.before("more"), case.value("i"), case.value("sum"));
    let mut wrong = case.back.clone();
    let mut entry = copies(point, &[i, sum]);
    entry.assigns.iter_mut().for_each(|a| a.from = Operand::Source(i));
    wrong.insert(point, entry);
    let report = agreement(&case, &[&case.there, &wrong]);
    assert_eq!(report.disagreement_count, 9);
    let first = &report.disagreements[0];
    assert_eq!(
        (first.point, first.value, first.bits, first.mappings),
        (point, Some(sum), [0, 9], [0, 1])
    );
    let mut failing = copies(point, &[i]);
    failing.assigns[0].from = Operand::Step(0);
    wrong.insert(point, failing);
    let report = agreement(&case, &[&case.there, &wrong]);
    assert_eq!((report.disagreement_count, report.disagreements[0].value), (9, None));
}
