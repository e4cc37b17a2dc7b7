//! The rewrites of `adce` and the cases it declines.

use crate::{becomes, declines, run};

#[test]
fn values_that_only_dead_values_use_are_dead() {
    becomes(
        "adce",
        "func @f(%a: i32) -> i32 {
         entry:
           %x = add.i32 %a, %a
           %y = mul.i32 %x, %x
           %z = global_get.i32 @g
           jump next(%y, %a)
         next(%p: i32, %q: i32):
           return %q
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           jump next(%a)
         next(%q: i32):
           return %q
         }",
    );
}

#[test]
fn values_that_only_feed_each_other_around_a_loop_are_dead() {
    let before = "func @f(%a: i32) -> i32 {
         entry:
           %one = const.i32 1
           jump outer(%a, %one, %one)
         outer(%i: i32, %p: i32, %self: i32):
           jump inner(%p)
         inner(%q: i32):
           %r = add.i32 %q, %one
           br_if %a, inner(%r), next
         next:
           %d = sub.i32 %i, %one
           br_if %d, outer(%d, %r, %self), done
         done:
           return %i
         }";
    becomes(
        "adce",
        before,
        "func @f(%a: i32) -> i32 {
         entry:
           %one = const.i32 1
           jump outer(%a)
         outer(%i: i32):
           jump inner
         inner:
           br_if %a, inner, next
         next:
           %d = sub.i32 %i, %one
           br_if %d, outer(%d), done
         done:
           return %i
         }",
    );
    let (_, log) = run("adce", before);
    let names: Vec<&str> = log.actions().iter().map(|a| a.kind().name()).collect();
    assert_eq!(names, ["remove_block_param", "remove_dead"], "single removals where they do");
}

#[test]
fn effects_traps_and_control_stay() {
    declines(
        "adce",
        "func @f(%a: i32, %b: i32) -> () {
         entry:
           %unused = load.i32 @m[%a]
           %quotient = udiv.i32 %a, %b
           store.i32 @m[%a], %b
           %more = slt.i32 %a, %b
           br_if %more, loop, done
         loop:
           br_if %b, loop, done
         done:
           return
         }",
    );
}

#[test]
fn a_division_by_a_constant_that_cannot_trap_is_dead() {
    becomes(
        "adce",
        "func @f(%a: i32) -> () {
         entry:
           %c = const.i32 10
           %q = sdiv.i32 %a, %c
           return
         }",
        "func @f(%a: i32) -> () {
         entry:
           return
         }",
    );
}
