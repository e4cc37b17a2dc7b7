//! Inputs that reach a limit of the search. Each input loses one read, and keeps the other reads.

use super::*;

/// Compares the class of the value named `%r` with the class of the value stored first, `%x`.
fn finds_first_store(text: &str) -> bool {
    let f = function(text);
    let c = alone(&f);
    class(&c, 0, value(&f, "r")) == class(&c, 0, value(&f, "x"))
}

/// A read behind this many stores to other places.
fn behind_stores(count: usize) -> String {
    let stores: String =
        (0..count).map(|n| format!("  store.i32 @m[%a + {}], %a\n", 8 * n + 8)).collect();
    format!(
        "memory @m 1\nfunc @f(%a: i32, %x: i32) -> i32 {{\nentry:\n  store.i32 @m[%a], %x\n{stores}  \
         %r = load.i32 @m[%a]\n  %q = load.i32 @m[%a + 8]\n  return %r\n}}"
    )
}

#[test]
fn a_read_is_traced_through_so_many_writes() {
    assert!(finds_first_store(&behind_stores(63)));
    let text = behind_stores(64);
    assert!(!finds_first_store(&text));
    // The other read is nearer to its store.
    let f = function(&text);
    let c = alone(&f);
    assert_eq!(class(&c, 0, value(&f, "q")), class(&c, 0, value(&f, "a")));
}

/// A read behind this many loops that write other places.
fn behind_loops(count: usize) -> String {
    let loops: String = (0..count)
        .map(|n| {
            format!("h{n}:\n  store.i32 @m[%a + {}], %a\n  br_if %x, h{n}, h{}\n", 8 * n + 8, n + 1)
        })
        .collect();
    format!(
        "memory @m 1\nfunc @f(%a: i32, %x: i32) -> i32 {{\nentry:\n  store.i32 @m[%a], %x\n  \
         jump h0\n{loops}h{count}:\n  %r = load.i32 @m[%a]\n  %q = load.i32 @m[%a + 8]\n  \
         return %r\n}}"
    )
}

#[test]
fn a_read_is_traced_through_the_starts_of_so_many_loops() {
    assert!(finds_first_store(&behind_loops(64)));
    assert!(!finds_first_store(&behind_loops(65)));
}

/// A row of blocks behind loops that each decide the next branch: `%p` is the deciding constant as
/// long as no other edge brings another value.
fn decided(count: usize) -> String {
    let mut text = "memory @m 1\nfunc @f(%a: i32) -> i32 {\nentry:\n  %zero = const.i32 0\n  \
        %one = const.i32 1\n  store.i32 @m[%a], %zero\n  jump b0\n"
        .to_owned();
    for n in 0..count {
        let next = n + 1;
        text += &format!(
            "b{n}:\n  %c{n} = load.i32 @m[%a]\n  br_if %c{n}, d{n}, b{next}\nd{n}:\n  \
             store.i32 @m[%a], %one\n  jump b{next}\n"
        );
    }
    text + &format!("b{count}:\n  %r = load.i32 @m[%a]\n  return %r\n}}")
}

/// Code that is dead because a read finds a constant is found in the walk, not by narrowing the
/// graph once for each branch.
#[test]
fn reads_that_decide_branches_cost_no_narrowing_each() {
    let f = function(&decided(50));
    let c = alone(&f);
    assert_eq!(constant(&c, class(&c, 0, value(&f, "r"))), Some(0));
    for n in 0..50 {
        assert!(c.sides[0].memory.iter().all(|(b, _)| *b != block(&f, &format!("d{n}"))));
    }
}

/// Whether the class of some memory leaves a covered write out, once the first `deleted` stores are
/// gone from the version after.
fn leaves_covered_out(text: &str, deleted: usize) -> bool {
    let base = function(text);
    let is_store = |i: &Inst| base.inst(*i).opcode == Opcode::Store;
    let stores: Vec<Inst> = base.block_insts(base.entry()).filter(is_store).take(deleted).collect();
    let applied = edited(&base, |ed| stores.iter().for_each(|store| ed.delete(*store)));
    certified(&base, &applied).terms.iter().any(|term| matches!(term.by, By::Covers { .. }))
}

/// This many stores to places in a row, and one more to the first place.
fn covered_behind(count: usize) -> String {
    let stores: String =
        (0..count).map(|n| format!("  store.i32 @m[%a + {}], %x\n", 4 * n)).collect();
    format!(
        "memory @m 1\nfunc @f(%a: i32, %x: i32) -> i32 {{\nentry:\n  %l = load.i32 @m[%a]\n\
         {stores}  store.i32 @m[%a], %l\n  return %l\n}}"
    )
}

#[test]
fn a_covered_write_is_found_behind_so_many_others() {
    assert!(leaves_covered_out(&covered_behind(257), 1));
    assert!(!leaves_covered_out(&covered_behind(258), 1));
}

#[test]
fn a_covered_write_is_found_among_so_many_lone_ones() {
    assert!(leaves_covered_out(&covered_behind(256), 256));
    assert!(!leaves_covered_out(&covered_behind(257), 257));
}
