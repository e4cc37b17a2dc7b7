//! Inputs that reach a limit of the search. Each input loses one read, and keeps the other reads.

use super::*;
use crate::paths::LivePaths;

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

/// Whether the parameter of a loop and what it is a copy of behind `count` blocks that join its
/// edges, one in front of the other, have one leaf.
fn shares_leaf_behind_joins(count: usize) -> bool {
    let f = function(
        "func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  br_if %a, left, right\nleft:\n  \
         jump head(%a)\nright:\n  jump head(%b)\nhead(%p: i32):\n  jump body(%p, %a)\n\
         body(%r: i32, %i: i32):\n  %j = sub.i32 %i, %b\n  br_if %j, body(%r, %j), latch\n\
         latch:\n  br_if %j, head(%r), done\ndone:\n  %s = add.i32 %i, %p\n  return %s\n}",
    );
    let applied = edited(&f, |ed| {
        let edges = ["left", "right"]
            .map(|name| Edge { inst: ed.func().terminator(block(ed.func(), name)), index: 0 });
        for _ in 0..count {
            ed.join_edges(&edges);
        }
    });
    let c = certified(&f, &applied);
    // The counter of the inner loop is named by itself.
    assert_eq!(class(&c, 0, value(&f, "i")), class(&c, 1, value(&f, "i")));
    class(&c, 0, value(&f, "p")) == class(&c, 1, value(&f, "p"))
}

#[test]
fn a_parameter_has_its_name_from_behind_so_many_joins() {
    assert!(shares_leaf_behind_joins(8));
    assert!(!shares_leaf_behind_joins(9));
}

/// Blocks in a row without anchors, in `rows` that an anchor ends each.
fn rows_of_blocks(rows: usize) -> String {
    let mut text = "memory @m 1\nfunc @f(%a: i32) {\nentry:\n  jump r0b0\n".to_owned();
    for row in 0..rows {
        text += &format!("r{row}b0:\n  jump r{row}b1\nr{row}b1:\n  jump r{row}b2\nr{row}b2:\n");
        text += &format!("  store.i32 @m[%a], %a\n  jump r{}b0\n", row + 1);
    }
    text + &format!("r{rows}b0:\n  return\n}}")
}

#[test]
fn paths_enter_so_many_blocks_together() {
    let f = function(&rows_of_blocks(8));
    let applied = edited(&f, |_| ());
    let pair = VersionPair::new(&f, applied.function(), applied.log()).expect("the log replays");
    let mut common = pair.correspondence();
    // Jumps of a version with itself are anchors; those of versions with other blocks are not.
    let jumps = f.all_insts().filter(|i| f.inst(*i).opcode == Opcode::Jump);
    jumps.for_each(|jump| common.anchors.set(jump.as_u32() as usize, false));
    let certifier = Certifier::new(&common);
    let version = &certifier.relation.versions[0];
    let followed = |most: usize| {
        let paths = LivePaths::within(version, &common, most);
        let ends = |block: &Block| paths.from(version, f.terminator(*block)).is_some();
        version.blocks().iter().map(ends).collect::<Vec<bool>>()
    };
    let all = followed(usize::MAX);
    assert!(all.iter().all(|has| *has), "each jump leads to a store or to the return");
    // Beyond the limit, the blocks that come last have no path but in themselves, and the others
    // keep theirs: of 3, 2, 1, 3 and 2 blocks.
    let some = followed(10);
    let mut wanted = vec![false; all.len()];
    wanted[..5].fill(true);
    wanted[all.len() - 1] = true;
    assert_eq!(some, wanted);
}

/// Levels of a dead edge around a loop, each dead because the parameter behind the loop of the
/// level before is a copy: two products are then one, and their difference decides the next branch.
fn around(levels: usize) -> Function {
    let mut text = "func @f(%n: i32) -> i32 {\nentry:\n  %one = const.i32 1\n  \
        %c0 = sub.i32 %n, %n\n  jump a0\n"
        .to_owned();
    for k in 0..levels {
        let next = k + 1;
        text += &format!(
            "a{k}:\n  br_if %c{k}, join{k}(%n, %one), arm{k}\narm{k}:\n  jump head{k}(%n)\n\
             head{k}(%x{k}: i32):\n  %y{k} = add.i32 %x{k}, %one\n  \
             %t{k} = mul.i32 %x{k}, %n\n  br_if %y{k}, head{k}(%y{k}), out{k}\nout{k}:\n  \
             jump join{k}(%x{k}, %t{k})\njoin{k}(%z{k}: i32, %w{k}: i32):\n  \
             %s{k} = mul.i32 %z{k}, %n\n  %c{next} = sub.i32 %s{k}, %w{k}\n  jump a{next}\n"
        );
    }
    function(&(text + &format!("a{levels}:\n  return %c{levels}\n}}")))
}

/// The graph is narrowed so often. Beyond it, edges found dead are not taken, but do not make more
/// blocks dominate.
#[test]
fn so_many_levels_of_dead_edges_are_found() {
    let copies = |levels: usize| {
        let f = around(levels);
        let c = alone(&f);
        let of = |name: &str, k: usize| class(&c, 0, value(&f, &format!("{name}{k}")));
        (0..levels).map(|k| of("z", k) == of("x", k)).collect::<Vec<bool>>()
    };
    assert_eq!(copies(3), [true; 3]);
    assert_eq!(copies(4), [true, true, true, false]);
    assert_eq!(copies(6), [true, true, true, false, false, false]);
}
