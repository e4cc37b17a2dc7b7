//! The driver returns proved mappings only. Exported mappings read back with the same verdicts. The
//! reader or the checker rejects damaged mappings, and names the place.

mod addresses;
mod constants;
mod files;
pub(crate) mod retry;
mod rows;
mod unproved;

use check::relate;
use check::verdict::{Options, Verdict};
use ir::Module;
use ir::{Opcode, Type};
use osier::driver::{
    CheckCounts, Derived, NoObserver, ProvedMapping, Vigilance, derive, prove, prove_graph,
};
use osier::exchange::recheck;
use osier::{Format, load};
use osr::{Level, VersionGraph, VersionTree};
use std::collections::BTreeSet;
use transition::certificate::{Term, TermKind};
use transition::mapping::{Operand, Step};
use transition::{Demand, Pair, Side};
use verify::generate::{Weights, generate};

const PROGRAMS: u64 = 40;
const SIZE: u32 = 30;

fn pipeline(seed: u64) -> passes::Pipeline {
    let names = ["O1", "canonical", "canonical,O1", "licm,cse,simplify,sccp,adce,cfg_clean"];
    passes::parse(names[seed as usize % names.len()]).expect("a pipeline")
}

#[test]
fn entries_of_generated_programs_are_proved_at_every_level() {
    let mut total = CheckCounts::default();
    for seed in 0..PROGRAMS {
        let program = generate(seed, SIZE, &Weights::default());
        for (_, base) in program.module.defined() {
            let derived =
                derive(&program.module, base, &pipeline(seed), Vigilance::On, &mut NoObserver);
            let all = prove(&program.module, base, &derived, &Level::ALL, &mut NoObserver);
            for (level, made) in all.levels {
                for mapping in [&made.before, &made.after] {
                    let refuted =
                        mapping.missing.rejected().find(|(_, verdict)| verdict.is_refuted());
                    assert_eq!(refuted, None, "seed {seed}, @{}, {}", base.name(), level);
                    assert_eq!(
                        mapping.facts.len(),
                        mapping.mapping.len(),
                        "facts and entries go together"
                    );
                    total.merge(&mapping.checked());
                }
            }
        }
    }
    let dropped: u64 = total.dropped.values().sum();
    assert!(total.held > 15_000 && 50 * dropped <= total.held, "{total:?}");
}

/// The base divides twice, the optimized version once. On each path where the base has passed its
/// second division, the optimized version has passed an equal one. A check of the join alone does
/// not see that.
#[test]
fn a_division_passed_on_both_paths_bars_no_entry() {
    let text = b"func @f(%x: i32, %d: i32) -> i32 {
entry:
  br_if %d, first, join
first:
  %q = urem.i32 %x, %d
  jump second
second:
  %r = urem.i32 %x, %d
  jump join
join:
  %one = const.i32 1
  return %one
}";
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let passes = passes::parse("cse,cfg_clean").expect("passes");
    let derived = derive(&module, base, &passes, Vigilance::On, &mut NoObserver);
    let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    for mapping in [&made.levels[0].1.before, &made.levels[0].1.after] {
        assert_eq!(mapping.missing.rejected().next(), None);
    }
    let points = derived.function.all_insts().count();
    assert_eq!(made.levels[0].1.after.mapping.len(), points, "every point has a way back");
}

/// The verdicts on the dropped entries of both directions at the highest level, and the number of
/// instructions that a pipeline removes.
fn dropped(text: &str, pipeline: &str) -> (Vec<Verdict>, usize) {
    let module = load(Format::Oir, text.as_bytes()).expect("well-formed");
    let (_, base) = module.defined().next().expect("a function");
    let passes = passes::parse(pipeline).expect("passes");
    let derived = derive(&module, base, &passes, Vigilance::On, &mut NoObserver);
    let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let sides = [&made.levels[0].1.before, &made.levels[0].1.after];
    assert!(sides.iter().all(|m| !m.mapping.is_empty()), "there are entries both ways");
    let rejected =
        sides.iter().flat_map(|m| m.missing.rejected().map(|(_, verdict)| verdict)).collect();
    (rejected, base.all_insts().count() - derived.function.all_insts().count())
}

/// The value of a read of parts depends on all the memory below, so `dse` keeps the store below.
#[test]
fn a_read_of_parts_costs_no_entries() {
    let text = "memory @m 1
global @g: mut i32 = 0
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %p = load.i32 @m[%b]
  global_set.i32 @g, %a
  store8.i32 @m[%b], %a
  %t = load.i32 @m[%b]
  global_set.i32 @g, %b
  return %t
}";
    assert_eq!(dropped(text, "dse"), (Vec::new(), 0));
}

/// Several windows follow each other. In the base, the write that covers a remaining write is
/// farther away than the search looks, and another write covers it in between.
#[test]
fn dead_stores_in_a_row_cost_no_entries() {
    for (count, apart) in [(90, 1), (9, 8), (5, 20), (4, 30), (4, 60)] {
        let mut text =
            "memory @m 1\nglobal @g: mut i32 = 0\nfunc @f(%a: i32, %b: i32, %c: i32) -> i32 {\n\
                        entry:\n  %p = load.i32 @m[%a + 60000]\n"
                .to_owned();
        for n in 0..count {
            text.push_str(&format!("  global_set.i32 @g, %{}\n", ["b", "c"][n % 2]));
            for m in 0..apart {
                text.push_str(&format!("  store.i32 @m[%a + {}], %b\n", 4 * (n * apart + m)));
            }
        }
        let (dropped, deleted) = dropped(&(text + "  return %p\n}"), "dse");
        assert_eq!(dropped, Vec::new(), "{count} writes, {apart} apart");
        assert!(deleted > 0, "{count} writes, {apart} apart");
    }
}

/// The write to replay writes the value that the covering write will write again.
#[test]
fn an_equal_store_is_replayed_as_the_first() {
    let text = |first: &str, last: &str| {
        format!(
            "memory @m 1
global @g: mut i32 = 0
func @f(%a: i32, %b: i32) -> i32 {{
entry:
  %p = load.i32 @m[%a]
  global_set.i32 @g, {first}
  store.i32 @m[%a], %b
  global_set.i32 @g, {last}
  return %p
}}"
        )
    };
    for (first, last) in [("%b", "%b"), ("%a", "%b")] {
        assert_eq!(dropped(&text(first, last), "dse"), (Vec::new(), 1));
    }
}

/// A single access above all branches proves that the first reads after them do not trap. It stands
/// above more accesses at the same address than any search examines, and most of them do not
/// dominate the reads.
#[test]
fn an_access_far_above_vouches() {
    let count = 300;
    let mut text = "memory @m 1\nglobal @g: mut i32 = 0\nfunc @f(%a: i32, %b: i32) -> i32 {\n\
                    entry:\n  %p = load.i64 @m[%a]\n"
        .to_owned();
    for n in 0..count {
        let at = 4 * n;
        text.push_str(&format!("  store.i32 @m[%a + {at}], %b\n  %c{n} = add.i32 %a, %b\n"));
        text.push_str(&format!("  br_if %c{n}, n{n}, out(%c{n})\nn{n}:\n"));
    }
    text.push_str("  jump out(%b)\nout(%o: i32):\n");
    for n in 0..count {
        text.push_str(&format!(
            "  %l{n} = load.i32 @m[%a + {}]\n  global_set.i32 @g, %l{n}\n",
            4 * n
        ));
    }
    assert_eq!(dropped(&(text + "  return %o\n}"), "dse"), (Vec::new(), 1));
}

/// At first, the certificate does not know that `%never` excludes the edge to block2. The memory
/// there is then a join that the optimized version lacks.
#[test]
fn assumptions_spoiled_by_dead_edges_are_tried_again() {
    let stored = b"memory @m 1
func @f(%n: i32) -> i64 {
block0:
  %never = const.i32 0
  br_if %never, block2, block1
block1:
  %grown = memory_grow @m, %n
  jump block2
block2:
  jump block3
block3:
  %zero = const.i32 0
  %low = load.i32 @m[%zero + 8]
  store16.i32 @m[%zero + 8], %low
  %again = load.i32 @m[%zero + 8]
  br_if %again, block3, block4
block4:
  store.i32 @m[%zero + 1], %n
  %wide = load.i64 @m[%zero + 1]
  return %wide
}";
    let read = b"memory @m 1
func @f(%n: i32) -> i32 {
block0:
  %one = const.i32 1
  br_if %one, block1, block2
block1:
  %grown = memory_grow @m, %n
  jump block2
block2:
  %zero = const.i32 0
  %first = load.i16 @m[%zero]
  %other = const.i32 0
  jump block3
block3:
  %wide = const.i64 0
  %second = load.i16 @m[%zero]
  store.i64 @m[%other + 4], %wide
  br_if %one, block5, block4
block4:
  %less = ult.i16 %first, %second
  br_if %less, block3, block3
block5:
  jump block3
}";
    for (text, pipeline) in [(&stored[..], "sccp"), (&read[..], "gvn,load_elim")] {
        let module = load(Format::Oir, text).expect("well-formed");
        let (_, base) = module.defined().next().expect("one function");
        let derived = derive(
            &module,
            base,
            &passes::parse(pipeline).expect("passes"),
            Vigilance::On,
            &mut NoObserver,
        );
        let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
        for mapping in [&made.levels[0].1.before, &made.levels[0].1.after] {
            assert_eq!(mapping.missing.rejected().next(), None, "{pipeline}");
        }
    }
}

/// Lone writes, each in a function that once lost every entry. In the first, the trap of a store
/// has passed to an access after a jump. In the second, a store ends where an address is known to
/// be equal. In the third, the transition replays it after a disjoint store. In the fourth, reads
/// are merged in a version with a narrowed graph, and the other version has no such leaf. In the
/// fifth, a division moves in a function that has such a store elsewhere.
const LONE_STORES: [(&str, &str); 5] = [
    (
        "cfg_clean,dse",
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  store.i32 @m[%a + 1], %b
  jump next
next:
  store.i32 @m[%a + 1], %a
  return %b
}",
    ),
    (
        "sccp,cse,dse",
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  %also = const.i32 0
  %same = rotl.i32 %zero, %also
  %old = load.i32 @m[%zero + 4]
  store8.i32 @m[%same + 4], %old
  store16.i32 @m[%zero + 4], %a
  %sum = add.i32 %a, %b
  store.i32 @m[%same + 4], %old
  return %sum
}",
    ),
    (
        "dse",
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %old = load.i32 @m[%a + 4]
  store.i32 @m[%a], %b
  store.i32 @m[%a + 4], %b
  %zero = const.i32 0
  store.i32 @m[%a], %zero
  return %old
}",
    ),
    (
        "sccp,dse",
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %zero = const.i32 0
  %half = const.i16 0
  store.i16 @m[%zero + 1], %half
  store.i16 @m[%zero + 1], %half
  %one = const.i32 1
  br_if %one, grow, on
grow:
  %r = memory_grow @m, %zero
  jump on
on:
  jump head(%zero)
head(%i: i32):
  %old = load.i16 @m[%zero + 4]
  store.i16 @m[%zero], %old
  %next = sub.i32 %i, %one
  br_if %next, head(%next), out
out:
  return %zero
}",
    ),
    (
        "preheaders,licm,dse",
        "func @f(%a: i32, %b: i32) -> i32 {
entry:
  %old = load.i32 @m[%a]
  store.i32 @m[%a], %b
  store.i32 @m[%a], %a
  jump head(%a)
head(%i: i32):
  %d = udiv.i32 %b, %a
  %next = sub.i32 %i, %d
  br_if %next, head(%next), out
out:
  return %old
}",
    ),
];

#[test]
fn entries_around_stores_of_one_version_are_proved() {
    for (pipeline, text) in LONE_STORES {
        let module =
            load(Format::Oir, format!("memory @m 1\n{text}").as_bytes()).expect("a module");
        let (_, base) = module.defined().next().expect("@f is defined");
        let passes = passes::parse(pipeline).expect("passes");
        let derived = derive(&module, base, &passes, Vigilance::On, &mut NoObserver);
        let stores = |f: &ir::Function| {
            f.all_insts().filter(|i| f.inst(*i).opcode.name().starts_with("store")).count()
        };
        assert!(stores(&derived.function) < stores(base), "{pipeline} deletes a store");
        for (_, made) in prove(&module, base, &derived, &[Level::Avail], &mut NoObserver).levels {
            for mapping in [&made.before, &made.after] {
                let checked = mapping.checked();
                assert!(checked.dropped.is_empty() && checked.held > 0, "{pipeline}: {checked:?}");
            }
        }
    }
}

/// Like in Lua's interpreter loop, only arms that constants exclude read some numbers carried
/// around the loop. Synthesis, checker and version graph agree that these numbers are not needed.
#[test]
fn values_read_by_excluded_arms_alone_bar_no_entry() {
    let text = b"memory @m 1
func @f(%a: i32, %x: f64) -> i32 {
entry:
  %none = const.f64 0.0
  jump head(%a, %none, %none)
head(%p: i32, %left: f64, %right: f64):
  %tag = load.i32 @m[%p]
  switch %tag, [number, integer], default out
number:
  %n = load.f64 @m[%p + 8]
  %one = const.i32 1
  %yes = and.i32 %one, %one
  br_if %yes, have(%n), next(%n, %right)
integer:
  %zero = const.i32 0
  %unit = const.i32 1
  %no = and.i32 %zero, %unit
  %not = eqz.i32 %no
  br_if %not, next(%left, %right), have(%left)
have(%v: f64):
  %sum = fadd.f64 %v, %x
  store.f64 @m[%p + 16], %sum
  jump next(%v, %sum)
next(%l: f64, %r: f64):
  %size = const.i32 24
  %q = add.i32 %p, %size
  jump head(%q, %l, %r)
out:
  return %p
}";
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    for passes in ["O1", "O2", "sccp,adce"] {
        let pipeline = passes::parse(passes).expect("passes");
        let derived = derive(&module, base, &pipeline, Vigilance::On, &mut NoObserver);
        let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
        for mapping in [&made.levels[0].1.before, &made.levels[0].1.after] {
            assert_eq!(mapping.missing[..], [], "{passes}");
        }
        let params = |f: &ir::Function| f.blocks().map(|b| f.block_params(b).len()).sum::<usize>();
        assert!(params(&derived.function) + 4 <= params(base), "{passes} leaves the numbers there");
        let mut tree = VersionTree::new(base.clone());
        let after = tree
            .add(VersionTree::BASE, derived.function, derived.log)
            .expect("the log leads to it");
        let ends = (VersionTree::BASE, after);
        let mut graph =
            VersionGraph::build(&tree, &[ends], Level::Avail, Demand::Needed).expect("derived");
        assert_eq!(graph.lacking(), vec![], "{passes}");
        let checked = prove_graph(&module, &mut graph, &mut NoObserver).counts;
        assert_eq!((checked.refuted, checked.dropped.len()), (0, 0), "{passes}: {checked:?}");
    }
}

/// The checker does not refute an entry for reads after writes, lone writes or replayed stores if
/// the memories are equal.
#[test]
fn right_memory_is_never_refuted() {
    let (mut replays, mut held) = (0, 0);
    for seed in 0..2 * PROGRAMS {
        let program = generate(seed, SIZE, &Weights::default());
        for (_, base) in program.module.defined() {
            let passes =
                passes::parse(["load_elim,dse", "canonical,load_elim,dse"][seed as usize % 2])
                    .expect("passes");
            let derived = derive(&program.module, base, &passes, Vigilance::On, &mut NoObserver);
            for (_, made) in
                prove(&program.module, base, &derived, &[Level::Avail], &mut NoObserver).levels
            {
                for mapping in [&made.before, &made.after] {
                    let refuted =
                        mapping.missing.rejected().find(|(_, verdict)| verdict.is_refuted());
                    assert_eq!(refuted, None, "seed {seed}, @{}", base.name());
                    held += mapping.checked().held;
                    replays += mapping
                        .mapping
                        .entries()
                        .filter(|(_, entry)| !entry.replays.is_empty())
                        .count();
                }
            }
        }
    }
    assert!(held > 10_000 && replays >= 20, "{held} held, {replays} with stores to execute");
}

#[test]
fn a_version_graph_keeps_what_is_proved_and_composes_it() {
    let (mut held, mut dropped, mut composed) = (0, 0, 0);
    for seed in 0..12 {
        let program = generate(seed, SIZE, &Weights::default());
        for (_, base) in program.module.defined() {
            let mut tree = VersionTree::new(base.clone());
            let mut at = VersionTree::BASE;
            for passes in ["sccp,simplify", "cse,licm", "loop_canon,licm,adce,cfg_clean"] {
                let pipeline = passes::parse(passes).expect("passes");
                let next = derive(
                    &program.module,
                    tree.function(at),
                    &pipeline,
                    Vigilance::On,
                    &mut NoObserver,
                );
                at = tree.add(at, next.function, next.log).expect("the log leads to it");
            }
            let chain: Vec<_> = tree.versions().collect();
            let pairs: Vec<_> = chain.windows(2).map(|ends| (ends[0], ends[1])).collect();
            let mut graph =
                VersionGraph::build(&tree, &pairs, Level::Avail, Demand::Needed).expect("a chain");
            graph.add_composed(&chain).expect("a path");
            let certified = prove_graph(&program.module, &mut graph, &mut NoObserver);
            let same = graph
                .edges()
                .iter()
                .map(|e| &e.mapping)
                .eq(certified.mappings.iter().map(|m| &*m.mapping));
            assert!(same, "seed {seed}: the sealed mappings are those of the edges");
            let checked = certified.counts;
            assert_eq!(checked.refuted, 0, "seed {seed}: {checked:?}");
            held += checked.held;
            dropped += checked.dropped.values().sum::<u64>();
            let kept: usize =
                graph.edges()[..2 * pairs.len()].iter().map(|e| e.mapping.len()).sum();
            assert_eq!(
                kept as u64, checked.held,
                "seed {seed}: entries that do not hold are dropped"
            );
            composed += graph.edges()[2 * pairs.len()].mapping.len();
        }
    }
    assert!(
        held > 5_000 && composed > 500 && 20 * dropped < held,
        "{held} held, {dropped} dropped, {composed} composed"
    );
}

/// A program with a loop and with instructions to hoist, to fold and to merge, and the version
/// derived from it.
fn sample() -> (Module, Derived) {
    let text = include_bytes!("../../cli/tests/cli/golden/sum.oir");
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let derived =
        derive(&module, base, &passes::Pipeline::default(), Vigilance::On, &mut NoObserver);
    (module, derived)
}

/// The wrong entry is inserted by hand, at a point where the entry of the built edge between the
/// same versions holds.
#[test]
fn an_edge_is_not_vouched_for_by_another_between_its_versions() {
    let (module, derived) = sample();
    let (_, base) = module.defined().next().expect("one function");
    let mut tree = VersionTree::new(base.clone());
    let after =
        tree.add(VersionTree::BASE, derived.function, derived.log).expect("the log leads to it");
    let base_version = VersionTree::BASE;
    let pairs = [(base_version, after)];
    let mut graph =
        VersionGraph::build(&tree, &pairs, Level::Avail, Demand::Needed).expect("derived");
    let mut mapping = graph.edges()[0].mapping.clone();
    let copied = |v: Operand| matches!(v, Operand::Source(v) if base.value_type(v) == Type::I32);
    let assigns = |e: &transition::mapping::Entry| e.assigns.iter().position(|a| copied(a.from));
    let found = mapping.entries().find_map(|(p, e)| Some((p, e.clone(), assigns(e)?)));
    let (point, mut entry, at) = found.expect("an entry that copies a value");
    entry.assigns[at].from = Operand::Step(entry.steps.len() as u32);
    let (ty, args) = (Type::I32, Vec::new().into());
    entry.steps.push(Step { opcode: Opcode::Const, ty, operand_ty: ty, bits: 12_345, args });
    mapping.insert(point, entry);
    assert_eq!(graph.insert(base_version, after, mapping, BTreeSet::new()), Ok(vec![]));
    let checked = prove_graph(&module, &mut graph, &mut NoObserver).counts;
    assert_eq!(checked.dropped.values().sum::<u64>(), 1, "{checked:?}");
    let has = |edge: usize| graph.edges()[edge].mapping.entry(point).is_some();
    assert_eq!((has(0), has(2)), (true, false));
}

/// Two leaves of one version may be equal, so their difference refutes nothing.
#[test]
fn leaves_of_one_version_refute_nothing() {
    let text =
        b"func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  br_if %a, left, right\nleft:\n  jump join(%a)\nright:\n  \
                 jump join(%b)\njoin(%x: i32):\n  return %x\n}\n";
    let module = load(Format::Oir, text).expect("well-formed");
    let (_, base) = module.defined().next().expect("one function");
    let derived =
        derive(&module, base, &passes::parse("O0").expect("none"), Vigilance::On, &mut NoObserver);
    let made = prove(&module, base, &derived, &[Level::Avail], &mut NoObserver);
    let mut certificate = made.certificate.clone();
    let leaf =
        certificate.terms.iter().position(|t| t.kind == TermKind::Param).expect("x is a leaf");
    let other = certificate.terms.len() as u32;
    let term = Term { class: other, ..certificate.terms[leaf].clone() };
    certificate.terms.push(term);
    let claim = certificate.sides[1].values.iter_mut().find(|(_, term)| *term as usize == leaf);
    claim.expect("x is claimed to be the leaf").1 = other;
    let relation =
        relate(&module, Pair::new(base, &derived.function), &certificate, Options::default());
    let relation = relation.unwrap_or_else(|verdict| panic!("{verdict}"));
    // Both paths to the return bind the two leaves alike.
    assert_eq!(relation.unproved(), []);
    let ProvedMapping { mapping, facts, .. } = &made.levels[0].1.before;
    let verdicts = relation.judge(Side::Before, mapping, facts, &[]);
    assert!(verdicts.len() > 3 && verdicts.iter().any(Verdict::holds), "{verdicts:?}");
    let undecided = verdicts.iter().filter(|v| matches!(v, Verdict::Undecided(_))).count();
    let held = verdicts.iter().filter(|v| v.holds()).count();
    assert!(undecided > 0 && held + undecided == verdicts.len(), "{verdicts:?}");
}
