//! The rewrites of `gvn` and the cases it declines.

use crate::{becomes, declines, run};

#[test]
fn parameters_that_hand_one_value_on_through_an_inner_loop_are_copies() {
    becomes(
        "gvn",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = mul.i32 %a, %b
           jump outer(%x, %a)
         outer(%p: i32, %i: i32):
           jump inner(%p, %i)
         inner(%q: i32, %j: i32):
           %k = sub.i32 %j, %q
           br_if %k, inner(%q, %k), latch
         latch:
           %y = mul.i32 %b, %a
           br_if %a, outer(%y, %k), done
         done:
           return %q
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = mul.i32 %a, %b
           jump outer(%a)
         outer(%i: i32):
           jump inner(%i)
         inner(%j: i32):
           %k = sub.i32 %j, %x
           br_if %k, inner(%k), latch
         latch:
           br_if %a, outer(%k), done
         done:
           return %x
         }",
    );
}

#[test]
fn constant_values_become_one_constant_in_each_block() {
    becomes(
        "gvn",
        "func @f(%a: i32) -> i32 {
         entry:
           %x = sub.i32 %a, %a
           %three = const.i32 3
           %y = mul.i32 %x, %three
           br_if %a, next(%x, %y), next(%y, %x)
         next(%p: i32, %q: i32):
           %z = sub.i32 %a, %p
           %w = sub.i32 %z, %q
           %v = mul.i32 %w, %w
           return %v
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %v9 = const.i32 0
           %three = const.i32 3
           br_if %a, next, next
         next:
           %v10 = const.i32 0
           %v = mul.i32 %a, %a
           return %v
         }",
    );
}

#[test]
fn an_edge_back_into_dead_code_does_not_count() {
    becomes(
        "gvn",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %c = const.i32 0
           br_if %c, dead(%b), head(%a)
         dead(%d: i32):
           jump head(%d)
         head(%p: i32):
           %m = sub.i32 %p, %a
           br_if %m, dead(%b), done
         done:
           return %p
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %c = const.i32 0
           jump head
         head:
           %m = sub.i32 %a, %a
           jump done
         done:
           return %a
         }",
    );
}

#[test]
fn values_that_differ_or_do_not_dominate_stay() {
    declines(
        "gvn",
        "func @f(%a: i32, %b: i64) -> i32 {
         entry:
           br_if %a, left, right
         left:
           %x = sub.i32 %a, %a
           %one = const.i32 1
           %y = call @f(%one, %b)
           %z = call @f(%one, %b)
           %m = memory_size @m
           %n = memory_size @m
           jump join(%y, %z)
         right:
           %u = add.i32 %a, %a
           %g = global_get.i32 @g
           %h = global_get.i32 @g
           jump join(%g, %h)
         join(%p: i32, %q: i32):
           %s = sub.i32 %p, %q
           %t = sub.i32 %q, %p
           %v = add.i32 %a, %a
           return %s
         }",
    );
}

/// The classes have thousands of terms. The pass examines few of them for each operation.
#[test]
fn a_long_chain_of_sums_is_numbered_at_a_low_cost() {
    let mut text =
        "func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  %one = const.i32 1\n  %s0 = add.i32 %a, %one\n".to_owned();
    for n in 1..=20_000 {
        text += &format!("  %s{n} = add.i32 %s{}, %one\n", n - 1);
    }
    for n in 1..=20_000 {
        text += &format!("  %t{n} = sub.i32 %s{n}, %one\n");
    }
    let sum: String = (1..=20_000).map(|n| format!("  call @use(%t{n})\n")).collect();
    let (after, _) = run(
        "gvn",
        &format!("import func @use \"host\" \"use\" (i32) -> ()\n{text}{sum}  return %a\n}}"),
    );
    assert_eq!(after.matches("sub.i32").count(), 0);
}
