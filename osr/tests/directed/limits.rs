//! Limits of the knowledge about writes. Each costs the entries that need the write, and no others.

use super::*;

/// The mappings of a function and of the version without its first store.
fn without_a_store(text: &str) -> (Function, Synthesis) {
    let base = function(text);
    let is_store = |i: &Inst| matches!(base.inst(*i).opcode, Opcode::Store);
    let store = base.block_insts(base.entry()).find(is_store).expect("a store");
    let applied = edited(&base, |ed: &mut Editor<'_>| ed.delete(store));
    let synthesis = mappings(&base, &applied, Level::Avail);
    (base, synthesis)
}

/// A store, `pure` operations, and a store that covers the first.
fn window(pure: usize) -> String {
    let operations: String = (0..pure).map(|n| format!("  %p{n} = add.i32 %a, %v\n")).collect();
    format!(
        "memory @m 1\nfunc @f(%a: i32, %v: i32, %w: i32) -> i32 {{\nentry:\n  \
         %old = load.i32 @m[%a]\n  store.i32 @m[%a], %v\n{operations}  store.i32 @m[%a], %w\n  \
         return %old\n}}"
    )
}

#[test]
fn a_window_has_so_many_instructions() {
    let (base, synthesis) = without_a_store(&window(255));
    let end = Point::before(base.terminator(base.entry()));
    for direction in [&synthesis.forward, &synthesis.backward] {
        assert!(direction.mapping.entry(end).is_some());
    }
    let (base, synthesis) = without_a_store(&window(256));
    let end = Point::before(base.terminator(base.entry()));
    assert_eq!(reason(&synthesis.forward, end), Reason::MemoryAhead);
    assert_eq!(reason(&synthesis.backward, end), Reason::MemoryBehind);
    // Points before the store keep their entries.
    let first = Point::before(inst(&base, "old"));
    for direction in [&synthesis.forward, &synthesis.backward] {
        assert!(direction.mapping.entry(first).is_some());
    }
}

/// A store at the end of a chain of additions, a write behind the place of the store, and a store
/// that covers both but has no access that vouches for it.
fn sums(additions: usize) -> String {
    let chain: String =
        (1..=additions).map(|n| format!("  %a{n} = add.i32 %a{}, %four\n", n - 1)).collect();
    let behind = 4 * additions + 4;
    format!(
        "memory @m 1\nfunc @f(%a0: i32, %v: i32) -> i32 {{\nentry:\n  %four = const.i32 4\n{chain}  \
         %old = load.i32 @m[%a{additions}]\n  store.i32 @m[%a{additions}], %v\n  \
         store8.i32 @m[%a0 + {behind}], %v\n  %wide = uextend.i64 %v\n  \
         store.i64 @m[%a{additions}], %wide\n  return %old\n}}"
    )
}

#[test]
fn an_address_is_taken_apart_into_so_many_additions() {
    let point = |base: &Function| Point::before(inst(base, "wide"));
    let (base, synthesis) = without_a_store(&sums(8));
    assert_eq!(entry(&synthesis.backward, point(&base)).replays.len(), 1);
    // The two writes may overlap, for all that is known.
    let (base, synthesis) = without_a_store(&sums(9));
    assert_eq!(reason(&synthesis.backward, point(&base)), Reason::MemoryBehind);
    assert!(synthesis.backward.mapping.entry(Point::before(inst(&base, "old"))).is_some());
}
