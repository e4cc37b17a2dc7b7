//! Mappings between more than two versions, on versions made by hand.

use super::common::{edited, function, inst, value};
use super::compose::entry;
use super::directed::{SHARED, sum_again};
use ir::edit::Editor;
use ir::{Function, InstSpec, Opcode, Point, Type};
use osier_osr::{
    EdgeError, EdgeOrigin, Level, Version, VersionGraph, VersionPair, VersionTree, synthesize,
};
use std::collections::BTreeSet;
use transition::mapping::{Entry, Mapping};
use transition::{Demand, Refusal, compose};

/// Adds a constant that nothing reads.
fn idle(ed: &mut Editor<'_>) {
    let r = inst(ed.func(), "r");
    ed.add_value(InstSpec::constant(Type::I32, 7), r);
}

/// A base with two versions derived from it. Entries from the base to the first keep a value; the
/// second differs in nothing that runs.
fn siblings() -> (VersionTree, [Version; 3]) {
    let base = function(SHARED);
    let mut tree = VersionTree::new(base.clone());
    let mut add = |edit: fn(&mut Editor<'_>)| {
        let (function, log) = edited(&base, edit).into_parts();
        tree.add(VersionTree::BASE, function, log).expect("the log of the edit")
    };
    let (keeps, same) = (add(sum_again), add(idle));
    (tree, [VersionTree::BASE, keeps, same])
}

fn last_store(f: &Function) -> Point {
    let stores = f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Store);
    Point::before(stores.last().expect("a store"))
}

#[test]
fn kept_values_of_all_mappings_that_leave_a_version_are_provided() {
    let (tree, [base, keeps, same]) = siblings();
    let point = last_store(tree.function(base));
    let l = value(tree.function(base), "l");
    let build = |pairs: &[(Version, Version)]| {
        VersionGraph::build(&tree, pairs, Level::Avail, Demand::Needed).expect("derived versions")
    };
    let (alone, together) = (build(&[(base, same)]), build(&[(base, keeps), (base, same)]));
    let back = |graph: &VersionGraph<'_>| {
        graph
            .edge(same, base)
            .and_then(|e| e.mapping.entry(point))
            .expect("the versions hardly differ")
            .clone()
    };
    let there = together
        .edge(base, keeps)
        .and_then(|e| e.mapping.entry(point))
        .expect("it may keep")
        .clone();
    assert_eq!(there.kept, [l]);
    // Only an entry to the other sibling requires the loaded value there. The mappings must be made
    // together to know it.
    assert!(!back(&alone).provides_value(l));
    assert!(back(&together).provides_value(l));
    assert_eq!((alone.lacking(), together.lacking()), (vec![], vec![]));
}

#[test]
fn siblings_compose_through_their_common_ancestor() {
    let (tree, [base, keeps, same]) = siblings();
    assert_eq!(tree.path(same, keeps), [same, base, keeps]);
    assert!(tree.log(same, keeps).is_none());
    assert!(tree.is_derived(base, keeps) && tree.is_derived(keeps, keeps));
    assert!(!tree.is_derived(same, keeps) && !tree.is_derived(keeps, base));
    let pairs = [(base, keeps), (base, same)];
    let mut graph =
        VersionGraph::build(&tree, &pairs, Level::Avail, Demand::Needed).expect("derived versions");
    let edge = graph.add_composed(&[same, base, keeps]).expect("edges to compose").clone();
    let EdgeOrigin::Composed { refused, .. } = &edge.origin else { panic!("{edge:?}") };
    assert_eq!(refused, &[]);
    assert_eq!(edge.mapping.len(), tree.function(same).inst_count());
    assert_eq!(graph.lacking(), []);
    // Made apart, the two mappings do not compose at the last store: the first does not provide the
    // loaded value.
    let apart = |before: Version, after: Version| {
        let log = tree.log(before, after).expect("derived");
        let pair = VersionPair::new(tree.function(before), tree.function(after), &log)
            .expect("the log replays");
        synthesize(&pair, Level::Avail)
    };
    let composed =
        compose(&apart(base, same).backward.mapping, &apart(base, keeps).forward.mapping)
            .expect("a chain");
    let (point, l) = (last_store(tree.function(base)), value(tree.function(base), "l"));
    assert!(
        composed.refused.contains(&(point, Refusal::NotProvided { value: l })),
        "{:?}",
        composed.refused
    );
}

#[test]
fn insertion_drops_entries_that_do_not_provide_live_plus() {
    let (tree, [base, keeps, same]) = siblings();
    let point = last_store(tree.function(base));
    let mut graph = VersionGraph::build(&tree, &[(base, keeps)], Level::Avail, Demand::Needed)
        .expect("derived");
    let log = tree.log(base, same).expect("derived");
    let pair =
        VersionPair::new(tree.function(base), tree.function(same), &log).expect("the log replays");
    let alone = synthesize(&pair, Level::Avail).backward.mapping;
    // One entry stands at a point outside the version.
    let mut damaged = alone.clone();
    let stray = inst(tree.function(keeps), "r").as_u32() + 100;
    damaged.insert(
        Point::before(ir::Inst::from_u32(stray)),
        alone.entry(point).expect("an entry").clone(),
    );
    let dropped = graph.insert(same, base, damaged, BTreeSet::new()).expect("the right versions");
    // Insertion drops the entry at the missing point, and every entry that lands where the loaded
    // value is dead but kept by another edge.
    assert!(
        dropped.contains(&(2, point))
            && dropped.contains(&(2, Point::before(ir::Inst::from_u32(stray))))
    );
    let left = &graph.edges()[2].mapping;
    assert!(left.len() + dropped.len() == alone.len() + 1 && !left.is_empty(), "{dropped:?}");
    assert_eq!(graph.lacking(), []);
    // The other way around: inserted entries keep values too, and built entries that do not provide
    // these values are dropped.
    let there = graph.edge(base, keeps).expect("built").mapping.clone();
    let mut apart =
        VersionGraph::build(&tree, &[(base, same)], Level::Avail, Demand::Needed).expect("derived");
    let dropped = apart.insert(base, keeps, there, BTreeSet::new()).expect("the right versions");
    assert!(dropped.iter().any(|(edge, at)| (*edge, *at) == (1, point)), "{dropped:?}");
    assert_eq!(apart.lacking(), []);
}

#[test]
fn an_inserted_entry_that_requires_an_unavailable_value_is_dropped() {
    let (tree, [base, _, same]) = siblings();
    let mut graph =
        VersionGraph::build(&tree, &[(base, same)], Level::Avail, Demand::Needed).expect("derived");
    let mut early = graph.edge(same, base).expect("built").mapping.clone();
    let first = Point::before(tree.function(same).first_inst(tree.function(same).entry()));
    let late = early.entry(last_store(tree.function(same))).expect("an entry").clone();
    assert!(late.requires.contains(&value(tree.function(same), "x")));
    early.insert(first, late);
    assert_eq!(graph.insert(same, base, early, BTreeSet::new()), Ok(vec![(2, first)]));
}

#[test]
fn an_inserted_entry_does_not_land_in_unreachable_code() {
    let base = function(
        "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  jump there(%a)
never:
  jump there(%b)
there(%x: i32):
  %r = add.i32 %x, %b
  return %r
}",
    );
    let mut tree = VersionTree::new(base.clone());
    let (version, log) = edited(&base, idle).into_parts();
    let after = tree.add(VersionTree::BASE, version, log).expect("the log of the edit");
    let built = [(VersionTree::BASE, after)];
    let mut graph =
        VersionGraph::build(&tree, &built, Level::Avail, Demand::Needed).expect("derived");
    let never = base.blocks().nth(1).expect("three blocks");
    let mut mapping = Mapping::new(&base, tree.function(after));
    let (point, target) = (Point::before(inst(&base, "r")), Point::before(base.first_inst(never)));
    mapping.insert(point, entry(target, Vec::new(), Vec::new(), Vec::new()));
    // The run would continue with `%b` undefined. Liveness does not show it: nothing is live in
    // unreachable code.
    let dropped = graph
        .insert(VersionTree::BASE, after, mapping, BTreeSet::new())
        .expect("the right versions");
    assert_eq!(dropped, [(2, point)]);
}

#[test]
fn retain_composes_edges_again() {
    let (tree, [base, keeps, same]) = siblings();
    let pairs = [(base, keeps), (base, same)];
    let mut graph =
        VersionGraph::build(&tree, &pairs, Level::Avail, Demand::Needed).expect("derived versions");
    let whole = graph.add_composed(&[same, base, keeps]).expect("edges to compose").mapping.clone();
    let point = last_store(tree.function(base));
    // Drops one entry at the start of a composed one, and one at the point where another lands in
    // between.
    let first = Point::before(tree.function(same).first_inst(tree.function(same).entry()));
    let landing =
        graph.edge(same, base).and_then(|e| e.mapping.entry(first)).expect("an entry").target;
    let gone = [(same, point), (base, landing)];
    graph.retain(|(_, edge), at, _| !gone.contains(&(edge.from, at)));
    let between = graph.edge(same, base).expect("built").mapping.clone();
    assert!(between.entry(point).is_none() && between.len() + 1 == whole.len());
    let composed = graph.edge(same, keeps).expect("composed");
    let EdgeOrigin::Composed { refused, .. } = &composed.origin else { panic!("{composed:?}") };
    assert!(
        !refused.is_empty() && refused.iter().all(|(_, why)| *why == Refusal::NoSecondEntry),
        "{refused:?}"
    );
    assert_eq!(composed.mapping.len() + refused.len(), between.len());
    let unchanged = |(at, entry): (Point, &Entry)| whole.entry(at) == Some(entry);
    assert!(composed.mapping.entries().all(unchanged));
    assert_eq!(graph.lacking(), []);
}

#[test]
fn impossible_edges_are_refused() {
    let (tree, [base, keeps, same]) = siblings();
    let error = VersionGraph::build(&tree, &[(keeps, same)], Level::Avail, Demand::Needed)
        .expect_err("siblings");
    assert_eq!(error, EdgeError::NotDerived { before: keeps, after: same });
    let mut graph = VersionGraph::build(&tree, &[(base, keeps)], Level::Avail, Demand::Needed)
        .expect("derived");
    assert_eq!(graph.add_composed(&[base, keeps]).expect_err("short"), EdgeError::ShortPath);
    let error = graph.add_composed(&[keeps, base, same]).expect_err("not built");
    assert_eq!(error, EdgeError::NoEdge { from: base, to: same });
    let mapping = graph.edges()[0].mapping.clone();
    assert_eq!(graph.insert(base, same, mapping, BTreeSet::new()), Err(EdgeError::OtherVersions));
    assert_eq!(graph.edges().len(), 2);
}

#[test]
fn a_version_needs_its_own_log() {
    let base = function(SHARED);
    let (function, log) = edited(&base, sum_again).into_parts();
    let mut tree = VersionTree::new(base.clone());
    assert!(tree.add(VersionTree::BASE, base, log.clone()).is_err());
    assert_eq!(tree.versions().len(), 1);
    let version = tree.add(VersionTree::BASE, function, log.clone()).expect("its own log");
    assert_eq!(
        (tree.parent(version), tree.parent(VersionTree::BASE)),
        (Some(VersionTree::BASE), None)
    );
    assert_eq!(tree.log(VersionTree::BASE, version), Some(log));
    assert_eq!(tree.path(version, version), [version]);
}
