//! Hand-made counterexamples to looser rules: each test fails when the rule it names is left out.
//! `docs/osr.md` has the rules. The fuzzer tests the same rules on random programs.

mod excluded;
mod limits;
mod long;
mod stores;

use super::common::{edited, function, inst, value};
use ir::edit::{Applied, Editor};
use ir::{Block, Edge, Function, Imm, Inst, InstSpec, Opcode, Point, Type, Value};
use osier_osr::{
    Level, MappingLimits, Missing, Obstacle, Reason, Synthesis, SynthesizedMapping, VersionPair,
    synthesize, synthesize_within,
};
use transition::Demand;
use transition::mapping::{Entry, Operand};

/// A loaded value that is the operand of two operations.
pub(crate) const SHARED: &str = "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  %l = load.i32 @m[%a]
  %x = mul.i32 %l, %l
  %y = add.i32 %l, %l
  store.i32 @m[%a], %x
  store.i32 @m[%a + 4], %y
  store.i32 @m[%a + 8], %a
  %r = add.i32 %x, %y
  return %r
}";

/// Computes both operations a second time behind the stores. Entries from the base then keep the
/// loaded value, which is dead there.
pub(crate) fn sum_again(ed: &mut Editor<'_>) {
    let (l, r) = (value(ed.func(), "l"), inst(ed.func(), "r"));
    for (opcode, index) in [(Opcode::Mul, 0), (Opcode::Add, 1)] {
        let again = ed.add_value(InstSpec::new(opcode, Type::I32, Imm::None, &[l, l]), r);
        ed.replace_operand(r, index, again);
    }
}

fn mappings(base: &Function, applied: &Applied, level: Level) -> Synthesis {
    let pair = VersionPair::new(base, applied.function(), applied.log()).expect("the log replays");
    synthesize(&pair, level)
}

fn block(f: &Function, name: &str) -> Block {
    f.blocks().find(|b| f.block_name(*b) == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

fn entry(direction: &SynthesizedMapping, point: Point) -> &Entry {
    direction
        .mapping
        .entry(point)
        .unwrap_or_else(|| panic!("no entry at {point:?}: {:?}", direction.missing))
}

fn source_of(entry: &Entry, value: Value) -> Operand {
    entry
        .assigns
        .iter()
        .find(|a| a.value == value)
        .unwrap_or_else(|| panic!("{value} is not provided"))
        .from
}

fn reason(direction: &SynthesizedMapping, point: Point) -> Reason {
    direction
        .missing
        .iter()
        .find(|missing| missing.point == point)
        .unwrap_or_else(|| panic!("{point:?} is mapped"))
        .why
        .reason
}

const CSE: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %n = mul.i32 %a, %b
  %s = add.i32 %n, %a
  %o = mul.i32 %a, %b
  jump next
next:
  %t = add.i32 %o, %s
  return %t
}";

/// Replaces %o by %n.
fn cse(ed: &mut Editor<'_>) {
    let (o, n) = (value(ed.func(), "o"), value(ed.func(), "n"));
    ed.replace_all(o, n);
    let o = ed.func().defining_inst(o).expect("an instruction");
    ed.delete(o);
}

#[test]
fn a_replaced_value_is_copied_from_its_class() {
    let base = function(CSE);
    let applied = edited(&base, cse);
    let point = Point::before(inst(&base, "t"));
    let synthesis = mappings(&base, &applied, Level::Alias);
    let entry = entry(&synthesis.backward, point);
    assert_eq!(source_of(entry, value(&base, "o")), Operand::Source(value(&base, "n")));
    assert!(entry.steps.is_empty() && entry.kept.is_empty());
}

#[test]
fn below_alias_a_replaced_value_is_computed_again() {
    let base = function(CSE);
    let applied = edited(&base, cse);
    let point = Point::before(inst(&base, "t"));
    // %b is dead there. At `live` nothing can compute the product; at `live_e` the entry reads %b
    // as a kept argument.
    let live = mappings(&base, &applied, Level::Live);
    assert_eq!(reason(&live.backward, point), Reason::NotLive);
    let synthesis = mappings(&base, &applied, Level::LiveE);
    let entry = entry(&synthesis.backward, point);
    assert_eq!(entry.steps.len(), 1);
    assert_eq!(entry.steps[0].opcode, Opcode::Mul);
    assert!(entry.kept.contains(&value(&base, "b")));
}

#[test]
fn at_empty_only_points_with_nothing_to_do_have_entries() {
    let base = function(CSE);
    let applied = edited(&base, cse);
    let synthesis = mappings(&base, &applied, Level::Empty);
    for direction in [&synthesis.forward, &synthesis.backward] {
        assert!(direction.mapping.entries().all(|(_, e)| e.is_empty()));
        assert_eq!(
            direction.mapping.len() + direction.missing.len() + direction.unreachable,
            direction.points
        );
    }
    assert!(synthesis.forward.mapping.entry(Point::before(inst(&base, "n"))).is_some());
}

#[test]
fn every_level_has_the_entries_of_the_one_before() {
    let base = function(CSE);
    let applied = edited(&base, cse);
    let counts: Vec<(usize, usize)> = Level::ALL
        .iter()
        .map(|l| mappings(&base, &applied, *l))
        .map(|s| (s.forward.mapping.len(), s.backward.mapping.len()))
        .collect();
    assert!(counts.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1), "{counts:?}");
    assert_eq!(counts[4].0, base.inst_count());
}

/// A loop that swaps its two carried values.
const SWAP: &str = "
func @f(%a: i32, %b: i32, %n: i32) -> i32 {
entry:
  jump head(%n, %a, %b)
head(%i: i32, %x: i32, %y: i32):
  br_if %i, body, done
body:
  %one = const.i32 1
  %next = sub.i32 %i, %one
  jump head(%next, %y, %x)
done:
  %r = sub.i32 %x, %y
  return %r
}";

/// Splits the back edge.
fn split_back_edge(ed: &mut Editor<'_>) {
    let edge = Edge { inst: ed.func().terminator(block(ed.func(), "body")), index: 0 };
    ed.split_edge(edge);
}

#[test]
fn from_a_block_on_a_back_edge_parameters_are_bound_by_the_jump_first() {
    // A pool formed before the jump would copy %x to %x: the last iteration's value.
    let base = function(SWAP);
    let applied = edited(&base, split_back_edge);
    let added = applied
        .function()
        .all_insts()
        .find(|i| !base.has_inst(*i))
        .expect("the split block's jump");
    let synthesis = mappings(&base, &applied, Level::Live);
    let entry = entry(&synthesis.backward, Point::before(added));
    assert_eq!(entry.target, Point::before(base.first_inst(block(&base, "head"))));
    let (x, y) = (value(&base, "x"), value(&base, "y"));
    assert_eq!(
        (source_of(entry, x), source_of(entry, y)),
        (Operand::Source(y), Operand::Source(x))
    );
    assert_eq!(source_of(entry, value(&base, "i")), Operand::Source(value(&base, "next")));
}

/// A loop that carries a value read only at its end, and computes a value equal to the carried one
/// before that.
const READ_LAST: &str = "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  %zero = const.i32 0
  jump head(%a)
head(%i: i32):
  br_if %i, body, done
body:
  %v = add.i32 %i, %zero
  %y = memory_size @m
  jump head(%y)
done:
  return %i
}";

/// Gives the body another jump back, and links %v with the parameter that it equals.
fn link_and_renew_the_jump(ed: &mut Editor<'_>) {
    let (v, i) = (value(ed.func(), "v"), value(ed.func(), "i"));
    ed.replace_all(v, i);
    split_back_edge(ed);
    ed.merge_blocks(block(ed.func(), "body"));
}

#[test]
fn an_equation_with_a_parameter_ends_at_the_jump_that_binds_it() {
    // %v equals %i of the last iteration. The jump hands on %y, which the source version has not
    // computed yet.
    let base = function(READ_LAST);
    let applied = edited(&base, link_and_renew_the_jump);
    let backward = mappings(&base, &applied, Level::Avail).backward;
    let body = block(&base, "body");
    let jump = Point::before(applied.function().terminator(body));
    assert_eq!(
        source_of(entry(&backward, jump), value(&base, "i")),
        Operand::Source(value(&base, "y"))
    );
    assert_eq!(backward.mapping.entry(Point::before(inst(&base, "v"))), None);
}

#[test]
fn a_block_on_a_back_edge_is_no_landing_point() {
    let base = function(SWAP);
    let applied = edited(&base, split_back_edge);
    let synthesis = mappings(&base, &applied, Level::Avail);
    let split = applied.function().blocks().find(|b| !base.has_block(*b)).expect("the split block");
    let lands_there = |e: &Entry| applied.function().inst_block(e.target.inst()) == split;
    assert!(!synthesis.forward.mapping.is_empty());
    assert!(!synthesis.forward.mapping.entries().any(|(_, e)| lands_there(e)));
}

/// A division that the version after executes earlier.
const DIVIDE: &str = "
func @f(%a: i32, %b: i32) -> i32 {
entry:
  %s = add.i32 %a, %b
  %d = udiv.i32 %a, %b
  %r = add.i32 %s, %d
  return %r
}";

fn hoist_division(ed: &mut Editor<'_>) {
    let (d, s) = (inst(ed.func(), "d"), inst(ed.func(), "s"));
    ed.hoist(d, s);
}

#[test]
fn no_entry_lands_behind_a_trap_that_was_not_reached() {
    let base = function(DIVIDE);
    let applied = edited(&base, hoist_division);
    let synthesis = mappings(&base, &applied, Level::Avail);
    // Before the division in the base, only the point before the hoisted division may be landed at.
    // Behind it, the version after may have trapped on this input.
    for name in ["s", "d"] {
        let entry = entry(&synthesis.forward, Point::before(inst(&base, name)));
        assert_eq!(entry.target, Point::before(inst(&base, "d")), "from before %{name}");
    }
    // In the other direction the source version has always passed the division.
    assert!(synthesis.backward.missing.is_empty(), "{:?}", synthesis.backward.missing);
}

/// Two multiplications that are equal only where the branch says so.
const CONDITIONAL: &str = "
memory @m 1
func @f(%a: i32, %b: i32, %c: i32) -> i32 {
entry:
  %o = mul.i32 %a, %c
  %n = mul.i32 %b, %c
  %e = eq.i32 %a, %b
  br_if %e, then, else
then:
  store.i32 @m[%a], %o
  return %n
else:
  store.i32 @m[%b], %n
  return %n
}";

/// Sinks %o below the branch that makes it equal to %n, and replaces it there.
fn sink_then_replace(ed: &mut Editor<'_>) {
    let (o, n) = (value(ed.func(), "o"), value(ed.func(), "n"));
    let to = ed.func().first_inst(block(ed.func(), "then"));
    let inst = ed.func().defining_inst(o).expect("an instruction");
    ed.sink(inst, to);
    ed.replace_all(o, n);
    ed.delete(inst);
}

#[test]
fn a_link_is_not_used_where_the_replaced_value_had_left() {
    // Above the branch %o and %n differ, so the link must not serve there.
    let base = function(CONDITIONAL);
    let applied = edited(&base, sink_then_replace);
    let synthesis = mappings(&base, &applied, Level::Avail);
    let (o, n) = (value(&base, "o"), value(&base, "n"));
    for (point, entry) in synthesis.backward.mapping.entries() {
        if entry.provides_value(o) {
            assert_ne!(source_of(entry, o), Operand::Source(n), "at {point:?}");
        }
    }
    let store = Point::before(base.first_inst(block(&base, "then")));
    assert!(entry(&synthesis.backward, store).provides_value(o));
}

/// A value used late, whose operand dies early.
const KEPT: &str = "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  %l = load.i32 @m[%a]
  %u = add.i32 %l, %a
  %v = mul.i32 %u, %u
  store.i32 @m[%a], %a
  store.i32 @m[%u], %a
  return %v
}";

#[test]
fn values_kept_by_the_other_direction_are_provided() {
    // Entries from the base keep %l, which is dead there. So entries to the base must provide it,
    // wherever they land before those points.
    let base = function(SHARED);
    let applied = edited(&base, sum_again);
    let synthesis = mappings(&base, &applied, Level::Avail);
    let (there, back) = (&synthesis.forward.mapping, &synthesis.backward.mapping);
    let cfg = ir::cfg::Cfg::new(&base);
    let plain = ir::liveness::Liveness::of_needed(&base, &cfg, &Default::default());
    let mut provided_though_dead = 0;
    for (kept_at, keeper) in there.entries() {
        for kept in &keeper.kept {
            for (from, entry) in back.entries() {
                let target = entry.target;
                let before = target == kept_at || base.stands_before(target.inst(), kept_at.inst());
                let defined =
                    base.defining_inst(*kept).is_none_or(|d| base.stands_before(d, target.inst()));
                if before && defined {
                    assert!(entry.provides_value(*kept), "{kept} is not provided from {from:?}");
                    provided_though_dead +=
                        usize::from(!plain.live_before(&base, target).contains(*kept));
                }
            }
        }
    }
    assert!(
        provided_though_dead > 0,
        "no entry had to provide more than what is live without the other direction"
    );
}

#[test]
fn behind_a_moved_store_there_are_no_entries() {
    let base = function(KEPT);
    let applied = edited(&base, |ed| {
        let entry = ed.func().entry();
        let stores: Vec<Inst> = ed
            .func()
            .block_insts(entry)
            .filter(|i| ed.func().inst(*i).opcode == Opcode::Store)
            .collect();
        ed.hoist(stores[1], stores[0]);
    });
    let synthesis = mappings(&base, &applied, Level::Avail);
    // In the end memory is the same. But no later store covers the moved store, so its window has
    // no end.
    for direction in [&synthesis.forward, &synthesis.backward] {
        let is_lost = |missing: &&Missing<Obstacle>| {
            [Reason::MemoryAhead, Reason::MemoryBehind].contains(&missing.why.reason)
        };
        assert!(direction.missing.iter().filter(is_lost).count() >= 2, "{:?}", direction.missing);
        assert!(direction.missing.iter().all(|one| one.why.blame.is_some_and(|by| by.action == 0)));
        let end = Point::before(base.terminator(base.entry()));
        assert!(direction.mapping.entry(end).is_none());
    }
}

#[test]
fn the_smallest_set_of_kept_values_is_found() {
    // Forward, before the last store, %x and %y are live and %l is not. The version after computes
    // both again from %l, so the smallest set of kept values is %l alone. Backward, %l is live, and
    // the entry computes %x and %y from it without keeping anything.
    let base = function(SHARED);
    let applied = edited(&base, sum_again);
    let synthesis = mappings(&base, &applied, Level::Avail);
    let stores: Vec<Inst> =
        base.all_insts().filter(|i| base.inst(*i).opcode == Opcode::Store).collect();
    let point = Point::before(stores[2]);
    assert_eq!(entry(&synthesis.forward, point).kept, vec![value(&base, "l")]);
    let back = entry(&synthesis.backward, point);
    assert!(back.kept.is_empty(), "{back:?}");
    assert_eq!(back.steps.len(), 2);
}

/// A branch on a constant.
const FOLD: &str = "
func @f(%a: i32) -> i32 {
entry:
  %c = const.i32 1
  br_if %c, then, else
then:
  %x = add.i32 %a, %c
  jump done(%x)
else:
  %y = sub.i32 %a, %c
  jump done(%y)
done(%r: i32):
  return %r
}";

#[test]
fn code_proved_dead_is_unreachable_and_the_rest_maps_through_the_merge() {
    let base = function(FOLD);
    let applied = edited(&base, |ed| {
        let f = ed.func();
        let (entry, then, other, done) =
            (f.entry(), block(f, "then"), block(f, "else"), block(f, "done"));
        let (r, x, branch) = (value(f, "r"), value(f, "x"), f.terminator(f.entry()));
        ed.fold_branch(branch, 0);
        ed.remove_unreachable(&[other]);
        ed.replace_all(r, x);
        ed.remove_block_param(done, 0);
        ed.merge_blocks(then);
        ed.merge_blocks(entry);
    });
    let synthesis = mappings(&base, &applied, Level::Avail);
    assert_eq!((synthesis.forward.points, synthesis.forward.unreachable), (7, 2));
    assert!(synthesis.forward.missing.is_empty(), "{:?}", synthesis.forward.missing);
    assert!(synthesis.backward.missing.is_empty(), "{:?}", synthesis.backward.missing);
    let dead = block(&base, "else");
    assert!(
        synthesis.backward.mapping.entries().all(|(_, e)| base.inst_block(e.target.inst()) != dead)
    );
}

/// Two edges to one block, with different arguments that nothing needs.
const SAME_TARGET: &str = "
memory @m 1
func @f(%a: i32) -> i32 {
entry:
  %z = const.i32 9
  br_if %a, next(%a), next(%z)
next(%x: i32):
  %y = add.i32 %x, %x
  store.i32 @m[%a], %a
  return %a
}";

#[test]
fn a_branch_folded_because_its_targets_are_the_same_does_not_tell_its_edge() {
    // The targets are equal only once the parameter is gone. The base may still take either edge.
    let base = function(SAME_TARGET);
    let applied = edited(&base, |ed| {
        let f = ed.func();
        let (y, next, branch) = (inst(f, "y"), block(f, "next"), f.terminator(f.entry()));
        ed.delete(y);
        ed.remove_block_param(next, 0);
        ed.fold_branch(branch, 0);
        let entry = ed.func().entry();
        ed.merge_blocks(entry);
    });
    let x = value(&base, "x");
    let synthesis = mappings(&base, &applied, Level::Avail);
    for entry in synthesis.backward.mapping.entries().map(|(_, e)| e) {
        assert!(!entry.provides_value(x), "nothing tells which argument %x received");
    }
    // An entry may land before the branch: the base then takes the right edge itself.
    assert!(synthesis.backward.mapping.entry(Point::before(inst(&base, "z"))).is_some());
}
