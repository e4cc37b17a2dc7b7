//! The rewrites of `cfg_clean` and the cases it declines.

use crate::{becomes, declines, run};

#[test]
fn straight_lines_become_one_block() {
    becomes(
        "cfg_clean",
        "func @f(%a: i32) -> i32 {
         entry:
           jump one(%a)
         one(%p: i32):
           %x = add.i32 %p, %a
           jump two(%x, %p)
         two(%q: i32, %r: i32):
           %y = mul.i32 %q, %r
           return %y
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %x = add.i32 %a, %a
           %y = mul.i32 %x, %a
           return %y
         }",
    );
}

#[test]
fn a_branch_to_one_place_with_equal_arguments_is_a_jump() {
    becomes(
        "cfg_clean",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, one(%a), two
         one(%p: i32):
           switch %p, [join(%a), join(%p)], default join(%a)
         two:
           %y = add.i32 %a, %a
           jump join(%y)
         join(%q: i32):
           return %q
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, join(%a), two
         two:
           %y = add.i32 %a, %a
           jump join(%y)
         join(%q: i32):
           return %q
         }",
    );
}

#[test]
fn unreachable_blocks_go() {
    becomes(
        "cfg_clean",
        "func @f(%a: i32) -> i32 {
         entry:
           return %a
         one:
           %x = add.i32 %a, %a
           jump two
         two:
           br_if %x, one, two
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           return %a
         }",
    );
}

#[test]
fn joins_loops_and_blocks_on_edges_stay() {
    declines(
        "cfg_clean",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, empty, loop(%a)
         empty:
           jump loop(%a)
         loop(%p: i32):
           %x = sub.i32 %p, %a
           br_if %x, loop(%x), done
         done:
           %y = call @f(%a)
           jump forever
         forever:
           jump forever
         }",
    );
}

#[test]
fn edges_go_straight_past_empty_blocks() {
    becomes(
        "cfg_clean",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           br_if %a, one(%b), two
         two:
           switch %b, [one(%a), three], default one(%b)
         one(%p: i32):
           jump three_with(%p, %a)
         three_with(%q: i32, %r: i32):
           jump done(%r, %q)
         three:
           %c = add.i32 %a, %b
           jump done(%c, %c)
         done(%x: i32, %y: i32):
           %s = sub.i32 %x, %y
           return %s
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           br_if %a, done(%a, %b), two
         two:
           switch %b, [done(%a, %a), three], default done(%a, %b)
         three:
           %c = add.i32 %a, %b
           jump done(%c, %c)
         done(%x: i32, %y: i32):
           %s = sub.i32 %x, %y
           return %s
         }",
    );
}

#[test]
fn empty_blocks_stay_where_they_are_needed() {
    // `one` has a parameter with uses beyond it, and `meet` joins edges before a loop. `arm` is one
    // arm of a branch whose other arm is its target.
    declines(
        "cfg_clean",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           br_if %a, one(%b), one(%a)
         one(%p: i32):
           jump loop(%a)
         loop(%i: i32):
           %n = sub.i32 %i, %p
           br_if %n, loop(%n), left
         left:
           br_if %b, right, over
         right:
           %d = sub.i32 %b, %p
           br_if %d, meet(%a), meet(%b)
         over:
           %e = add.i32 %b, %p
           br_if %e, meet(%e), right
         meet(%j: i32):
           jump again(%j)
         again(%k: i32):
           %m = sub.i32 %k, %a
           br_if %m, again(%m), last
         last:
           br_if %n, arm, end
         arm:
           jump end
         end:
           return %m
         }",
    );
}

#[test]
fn cycles_of_empty_blocks_terminate() {
    becomes(
        "cfg_clean",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, one, three
         one:
           jump two
         two:
           jump three
         three:
           jump one
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, one, three
         one:
           jump three
         three:
           jump one
         }",
    );
}

/// The pass redirects each edge once, whichever order the blocks have.
#[test]
fn a_long_row_of_empty_blocks_is_passed_at_a_low_cost() {
    let count = 20_000;
    let mut text = "func @f(%a: i32) -> i32 {\nentry:\n  br_if %a, b0(%a), done(%a)\n".to_owned();
    for n in 0..count {
        text += &format!("b{n}(%p{n}: i32):\n  jump b{}(%p{n})\n", n + 1);
        text += &format!("c{n}:\n  br_if %a, b{n}(%a), c{}\n", n + 1);
    }
    text += &format!("b{count}(%r: i32):\n  jump done(%r)\ndone(%s: i32):\n  br_if %s, c0, end\n");
    text += &format!("end:\n  return %s\nc{count}:\n  return %a\n}}");
    let (after, log) = run("cfg_clean", &text);
    assert!(after.matches("jump").count() < 3, "{}", &after[..400]);
    assert!(log.len() < 6 * count, "{} actions", log.len());
}

/// Each fold makes the parameter of the next block replaceable, and that makes the next branch
/// foldable. Walking all blocks once for each fold would be quadratic.
#[test]
fn a_chain_of_folds_is_not_walked_once_for_each() {
    let count = 10_000;
    let mut text = "func @f(%a: i32) -> i32 {\nentry:\n  jump b0(%a)\n".to_owned();
    for n in 0..count {
        let next = n + 1;
        text += &format!("b{n}(%p{n}: i32):\n  br_if %a, b{next}(%p{n}), b{next}(%a)\n");
    }
    let (after, log) = run("cfg_clean", &format!("{text}b{count}(%r: i32):\n  return %r\n}}"));
    // The row is long, so its last jump stays.
    let left = format!("jump b{count}\nb{count}:\n  return %a\n}}");
    assert!(after.trim_end().ends_with(&left) && after.lines().count() == 6, "{after}");
    let named = |name: &str| log.actions().iter().filter(|a| a.kind().name() == name).count();
    assert_eq!((named("fold_branch"), named("remove_block_param")), (count, count + 1));
}

/// A search or a shift of the edge list for each edge would be quadratic.
#[test]
fn a_wide_switch_to_one_block_is_folded_at_a_low_cost() {
    let arms = "one(%a), ".repeat(300_000);
    let text = format!(
        "func @f(%a: i32) -> i32 {{
         entry:
           switch %a, [{}], default one(%a)
         one(%p: i32):
           return %p
         }}",
        arms.trim_end_matches(", ")
    );
    let (after, log) = run("cfg_clean", &text);
    assert!(after.contains("return %a") && !after.contains("switch"), "{after}");
    assert_eq!(log.len(), 4, "fold, bind (two actions) and merge");
}

/// Removing a block or an edge of the region must not walk over all other blocks.
#[test]
fn a_large_unreachable_region_goes_at_a_low_cost() {
    let mut text = "func @f(%a: i32) -> i32 {\nentry:\n  return %a\n".to_owned();
    for n in 0..100_000 {
        text += &format!("b{n}:\n  br_if %a, b{}, b0\n", (n + 1) % 100_000);
    }
    let (after, log) = run("cfg_clean", &(text + "}"));
    assert!(!after.contains("br_if"));
    assert_eq!(log.len(), 1);
}
