//! The rewrites of `licm` and the cases it declines.

use crate::{becomes, declines};

#[test]
fn invariants_move_to_the_outermost_preheader_with_the_constants_they_need() {
    becomes(
        "licm",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump outer(%a)
         outer(%i: i32):
           %s = mul.i32 %i, %b
           jump inner(%i)
         inner(%j: i32):
           %k = const.i32 3
           %x = mul.i32 %a, %k
           %y = add.i32 %x, %b
           %z = add.i32 %s, %y
           %one = const.i32 1
           %m = sub.i32 %j, %one
           store.i32 @m[%z], %m
           br_if %m, inner(%m), next
         next:
           %n = sub.i32 %i, %y
           br_if %n, outer(%n), done
         done:
           return %n
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %k = const.i32 3
           %x = mul.i32 %a, %k
           %y = add.i32 %x, %b
           jump outer(%a)
         outer(%i: i32):
           %s = mul.i32 %i, %b
           %z = add.i32 %s, %y
           jump inner(%i)
         inner(%j: i32):
           %one = const.i32 1
           %m = sub.i32 %j, %one
           store.i32 @m[%z], %m
           br_if %m, inner(%m), next
         next:
           %n = sub.i32 %i, %y
           br_if %n, outer(%n), done
         done:
           return %n
         }",
    );
}

/// Both operations come first in the header. The load may move since the loop writes nothing.
#[test]
fn operations_that_may_trap_move_if_they_come_first() {
    becomes(
        "licm",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump loop(%a)
         loop(%i: i32):
           %x = add.i32 %i, %b
           %q = udiv.i32 %a, %b
           %l = load.i32 @m[%q]
           %late = udiv.i32 %x, %i
           %never = udiv.i32 %b, %a
           %n = sub.i32 %late, %l
           br_if %n, loop(%n), done
         done:
           return %never
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %q = udiv.i32 %a, %b
           %l = load.i32 @m[%q]
           jump loop(%a)
         loop(%i: i32):
           %x = add.i32 %i, %b
           %late = udiv.i32 %x, %i
           %never = udiv.i32 %b, %a
           %n = sub.i32 %late, %l
           br_if %n, loop(%n), done
         done:
           return %never
         }",
    );
}

#[test]
fn a_read_that_cannot_trap_moves_from_anywhere_if_the_loop_writes_nothing() {
    becomes(
        "licm",
        "func @f(%a: i32) -> i32 {
         entry:
           jump loop(%a)
         loop(%i: i32):
           br_if %i, some, next(%i)
         some:
           %g = global_get.i32 @g
           jump next(%g)
         next(%j: i32):
           br_if %j, loop(%j), done
         done:
           return %j
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %g = global_get.i32 @g
           jump loop(%a)
         loop(%i: i32):
           br_if %i, some, next(%i)
         some:
           jump next(%g)
         next(%j: i32):
           br_if %j, loop(%j), done
         done:
           return %j
         }",
    );
}

/// The loop has a division outside the header and reads although it writes. It also has an
/// operation that may trap after an immovable operation, and a constant without a moved user.
#[test]
fn observable_operations_stay() {
    declines(
        "licm",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump loop(%a)
         loop(%i: i32):
           %g = global_get.i32 @g
           %l = load.i32 @m[%a]
           %late = udiv.i32 %a, %b
           %c = const.i32 5
           br_if %i, some, next(%c)
         some:
           %q = udiv.i32 %b, %a
           global_set.i32 @g, %q
           jump next(%g)
         next(%j: i32):
           %n = sub.i32 %j, %l
           br_if %n, loop(%j), done
         done:
           return %late
         }",
    );
}

#[test]
fn without_a_preheader_nothing_moves() {
    let text = "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, loop(%a), done(%a)
         loop(%i: i32):
           %x = mul.i32 %a, %a
           %n = sub.i32 %i, %x
           br_if %n, loop(%n), done(%n)
         done(%r: i32):
           return %r
         }";
    declines("licm", text);
    becomes(
        "preheaders,licm",
        text,
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, block3, done(%a)
         block3:
           %x = mul.i32 %a, %a
           jump loop(%a)
         loop(%i: i32):
           %n = sub.i32 %i, %x
           br_if %n, loop(%n), done(%n)
         done(%r: i32):
           return %r
         }",
    );
}

#[test]
fn irreducible_loops_are_left_alone() {
    declines(
        "preheaders,licm",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, one, two
         one:
           %x = mul.i32 %a, %a
           jump two
         two:
           %y = mul.i32 %a, %a
           br_if %y, one, done
         done:
           return %y
         }",
    );
}
