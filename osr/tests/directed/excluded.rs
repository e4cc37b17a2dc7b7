//! Values that only excluded code reads: code that constants exclude from runs.

use super::*;

/// A number carried around a loop. Only one arm reads it, and a constant excludes that arm.
const ONLY_READ_BY_DEAD_CODE: &str = "
memory @m 1
func @f(%a: i32, %n: i32) -> i32 {
entry:
  %one = const.i32 1
  %w = mul.i32 %a, %a
  jump head(%w)
head(%carried: i32):
  %old = load.i32 @m[%a]
  br_if %one, good(%old), bad
bad:
  jump good(%carried)
good(%stored: i32):
  store.i32 @m[%a + 4], %stored
  br_if %n, head(%stored), out
out:
  return %old
}";

#[test]
fn values_read_by_excluded_code_alone_are_not_provided() {
    let base = function(ONLY_READ_BY_DEAD_CODE);
    let applied = edited(&base, |ed| {
        let f = ed.func();
        let (head, bad, branch) =
            (block(f, "head"), block(f, "bad"), f.terminator(block(f, "head")));
        let (w, one) = (inst(f, "w"), inst(f, "one"));
        ed.fold_branch(branch, 0);
        ed.remove_unreachable(&[bad]);
        ed.remove_block_param(head, 0);
        ed.delete(w);
        ed.delete(one);
    });
    let carried = value(&base, "carried");
    let synthesis = mappings(&base, &applied, Level::Avail);
    assert_eq!((synthesis.forward.unreachable, synthesis.backward.unreachable), (1, 0));
    assert!(synthesis.backward.missing.is_empty(), "{:?}", synthesis.backward.missing);
    assert!(synthesis.backward.mapping.entries().all(|(_, e)| !e.provides_value(carried)));
    // With `Demand::Live`, entries must provide the number too, and the version after has lost it.
    let (after, log) = applied.into_parts();
    let pair =
        VersionPair::new(&base, &after, &log).expect("the log replays").providing(Demand::Live);
    let all = synthesize(&pair, Level::Avail).backward;
    assert_eq!(reason(&all, Point::before(inst(&base, "old"))), Reason::Parameter);
}

/// A product with zero, which is zero for any other factor. The version after may read the loaded
/// number as that factor.
const READ_BACK: &str = "
memory @m 1
func @f(%a: i32, %n: i32) -> i32 {
entry:
  %one = const.i32 1
  %w = load.i32 @m[%a]
  store.i32 @m[%n], %w
  store.i32 @m[%n + 4], %n
  store.i32 @m[%n + 8], %n
  br_if %one, good, bad
good:
  %zero = const.i32 0
  %none = mul.i32 %a, %zero
  return %none
bad:
  return %w
}";

#[test]
fn values_that_entries_read_are_provided_though_only_excluded_code_reads_them() {
    // Behind the last store the version after still reads the loaded value. Entries to it take the
    // value from the base, where only excluded code reads it: live in the text, dead in runs. So
    // entries to the base must provide it.
    let base = function(READ_BACK);
    let applied = edited(&base, |ed| {
        let f = ed.func();
        let (branch, bad) = (f.terminator(f.entry()), block(f, "bad"));
        let (w, none) = (value(f, "w"), inst(f, "none"));
        ed.fold_branch(branch, 0);
        ed.remove_unreachable(&[bad]);
        ed.replace_operand(none, 0, w);
    });
    let w = value(&base, "w");
    let synthesis = mappings(&base, &applied, Level::Avail);
    let (there, back) = (&synthesis.forward.mapping, &synthesis.backward.mapping);
    let branch = Point::before(base.terminator(base.entry()));
    let reader = there.entry(branch).expect("an entry from the branch");
    assert!(reader.requires.contains(&w) && !reader.kept.contains(&w), "{reader:?}");
    let stores: Vec<Inst> =
        base.all_insts().filter(|i| base.inst(*i).opcode == Opcode::Store).collect();
    for store in &stores[1..] {
        let entry = back.entry(Point::before(*store)).expect("an entry from each store");
        assert!(entry.provides_value(w), "{entry:?}");
    }
}
