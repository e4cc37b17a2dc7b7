//! Stores of a single version: windows and replays.

use super::*;

const OVERWRITTEN: &str = "
memory @m 1
func @f(%a: i32, %v: i32, %b: i32) -> i32 {
entry:
  %old = load.i32 @m[%a]
  store.i32 @m[%a], %v
  %sum = add.i32 %old, %v
  store8.i32 @m[%b], %v
  %twice = add.i32 %sum, %sum
  store.i32 @m[%a], %twice
  return %old
}";

/// The store before `%sum`, which only `base` has.
fn overwritten(base: &Function) -> Inst {
    base.prev_inst(inst(base, "sum")).expect("a store")
}

fn without_the_store(base: &Function) -> Synthesis {
    let store = overwritten(base);
    let applied = edited(base, |ed: &mut Editor<'_>| ed.delete(store));
    mappings(base, &applied, Level::Avail)
}

/// The last store has eight bytes. No access vouches for its last four bytes, so entries never
/// execute the store.
fn covered_by_a_wider_store() -> String {
    OVERWRITTEN
        .replace("store.i32 @m[%a], %twice", "store.i64 @m[%a], %wide")
        .replace("%twice = add", "%wide = uextend.i64 %v\n  %twice = add")
}

#[test]
fn no_entry_leaves_a_window_and_no_replay_is_needless() {
    let base = function(OVERWRITTEN);
    let synthesis = without_the_store(&base);
    let behind = Point::before(inst(&base, "sum"));
    assert_eq!(reason(&synthesis.forward, behind), Reason::MemoryAhead);
    // Behind the load, an anchor of both versions, there is a landing point before the store. A
    // replay would cost more.
    let back = entry(&synthesis.backward, behind);
    assert!(back.replays.is_empty());
    assert!(base.stands_before(back.target.inst(), inst(&base, "sum")));
}

#[test]
fn nothing_is_replayed_behind_a_write_that_may_overlap() {
    let base = function(OVERWRITTEN);
    let synthesis = without_the_store(&base);
    // The byte at %b may be one of the bytes at %a: replaying the store behind it would undo that
    // write. The entry executes the last store instead, which covers both, and lands behind it.
    let (behind, end) = (inst(&base, "twice"), base.terminator(base.entry()));
    for direction in [&synthesis.backward, &synthesis.forward] {
        let entry = entry(direction, Point::before(behind));
        let replayed: Vec<Inst> = entry.replays.iter().map(|r| r.inst).collect();
        assert_eq!(replayed, [base.prev_inst(end).expect("the last store")]);
        assert_eq!(entry.target.inst(), end);
    }
    // Where the last store may trap, nothing covers the first store, and there is no entry.
    let base = function(&covered_by_a_wider_store());
    let synthesis = without_the_store(&base);
    let behind = Point::before(inst(&base, "twice"));
    assert_eq!(reason(&synthesis.backward, behind), Reason::MemoryBehind);
}

#[test]
fn a_store_is_replayed_behind_a_write_elsewhere() {
    let text = covered_by_a_wider_store().replace("store8.i32 @m[%b]", "store8.i32 @m[%a + 4]");
    let base = function(&text);
    let synthesis = without_the_store(&base);
    let back = entry(&synthesis.backward, Point::before(inst(&base, "twice")));
    let replayed: Vec<Inst> = back.replays.iter().map(|r| r.inst).collect();
    assert_eq!(replayed, [overwritten(&base)]);
}

#[test]
fn windows_end_in_addresses_known_to_be_equal() {
    let base = function(
        &OVERWRITTEN
            .replace("store.i32 @m[%a], %twice", "store.i32 @m[%c], %twice")
            .replace("entry:", "entry:\n  %c = or.i32 %a, %a"),
    );
    let (store, window) = (overwritten(&base), Point::before(inst(&base, "sum")));
    let is_mapped = |synthesis: &Synthesis| {
        let end = Point::before(base.terminator(base.entry()));
        [&synthesis.forward, &synthesis.backward].map(|d| d.mapping.entry(end).is_some())
    };
    // By their text the two addresses may differ, so the last store covers nothing. No point behind
    // the first store has an entry.
    let applied = edited(&base, |ed: &mut Editor<'_>| ed.delete(store));
    let synthesis = mappings(&base, &applied, Level::Avail);
    assert_eq!(is_mapped(&synthesis), [false; 2]);
    assert_eq!(reason(&synthesis.forward, window), Reason::MemoryAhead);
    let end = Point::before(base.terminator(base.entry()));
    assert_eq!(reason(&synthesis.forward, end), Reason::MemoryAhead);
    assert_eq!(reason(&synthesis.backward, end), Reason::MemoryBehind);
    // Points before the first store have entries.
    let first = Point::before(inst(&base, "old"));
    assert!(
        synthesis.forward.mapping.entry(first).is_some()
            && synthesis.backward.mapping.entry(first).is_some()
    );

    let applied = edited(&base, |ed: &mut Editor<'_>| {
        let (a, c) = (value(ed.func(), "a"), value(ed.func(), "c"));
        ed.replace_all(c, a);
        ed.delete(store);
    });
    let synthesis = mappings(&base, &applied, Level::Avail);
    assert_eq!(is_mapped(&synthesis), [true; 2]);
    assert_eq!(reason(&synthesis.forward, window), Reason::MemoryAhead);
}

#[test]
fn points_outside_endless_windows_have_entries() {
    let base = function(
        "
memory @m 1
func @f(%a: i32, %v: i32, %b: i32) -> i32 {
entry:
  %old = load.i32 @m[%a]
  br_if %v, left, right
left:
  store.i32 @m[%a], %v
  jump join
right:
  %r = add.i32 %old, %b
  store.i32 @m[%a + 8], %r
  jump join
join:
  %t = add.i32 %old, %v
  store.i32 @m[%a], %t
  return %t
}",
    );
    let store = base.first_inst(block(&base, "left"));
    let applied = edited(&base, |ed: &mut Editor<'_>| ed.delete(store));
    let synthesis = mappings(&base, &applied, Level::Avail);
    for direction in [&synthesis.forward, &synthesis.backward] {
        entry(direction, Point::before(inst(&base, "r")));
    }
    let behind = Point::before(inst(&base, "t"));
    assert_eq!(reason(&synthesis.forward, behind), Reason::MemoryAhead);
    assert_eq!(reason(&synthesis.backward, behind), Reason::MemoryBehind);
}
