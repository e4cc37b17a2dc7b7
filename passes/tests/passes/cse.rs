//! The rewrites of `cse` and the cases it declines.

use crate::{becomes, declines, run};

#[test]
fn equal_operations_on_equal_operands_are_one() {
    becomes(
        "cse",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = add.i32 %a, %b
           %y = add.i32 %b, %a
           %p = mul.i32 %x, %a
           br_if %a, next, done(%p)
         next:
           %q = mul.i32 %y, %a
           %r = mul.i32 %a, %x
           %s = sub.i32 %q, %r
           jump done(%s)
         done(%t: i32):
           return %t
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = add.i32 %a, %b
           %p = mul.i32 %x, %a
           br_if %a, next, done(%p)
         next:
           %s = sub.i32 %p, %p
           jump done(%s)
         done(%t: i32):
           return %t
         }",
    );
}

#[test]
fn a_division_goes_when_an_equal_one_has_not_trapped() {
    becomes(
        "cse",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = sdiv.i32 %a, %b
           br_if %x, next, next
         next:
           %y = sdiv.i32 %a, %b
           return %y
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %x = sdiv.i32 %a, %b
           br_if %x, next, next
         next:
           return %x
         }",
    );
}

#[test]
fn parameters_that_receive_the_same_are_one() {
    becomes(
        "cse",
        "func @f(%a: i32) -> i32 {
         entry:
           %x = add.i32 %a, %a
           %y = add.i32 %a, %a
           jump loop(%x, %a, %y, %x)
         loop(%p: i32, %i: i32, %q: i32, %r: i32):
           %n = sub.i32 %i, %p
           br_if %n, loop(%p, %n, %q, %n), done
         done:
           %s = sub.i32 %q, %r
           return %s
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %x = add.i32 %a, %a
           jump loop(%x, %a, %x)
         loop(%p: i32, %i: i32, %r: i32):
           %n = sub.i32 %i, %p
           br_if %n, loop(%p, %n, %n), done
         done:
           %s = sub.i32 %p, %r
           return %s
         }",
    );
}

#[test]
fn operations_that_differ_or_do_not_dominate_stay() {
    declines(
        "cse",
        "func @f(%a: i32, %b: i64) -> i32 {
         entry:
           br_if %a, left, right
         left:
           %x = sub.i32 %a, %a
           jump join(%x)
         right:
           %y = sub.i32 %a, %a
           jump join(%y)
         join(%p: i32):
           %z = sub.i32 %p, %a
           %w = sub.i32 %a, %p
           %c = const.i32 0
           %d = const.i64 0
           %e = ne.i64 %b, %d
           %f = eqz.i32 %c
           %g = load.i32 @m[%a]
           %h = load.i32 @m[%a]
           %i = global_get.i32 @g
           %j = global_get.i32 @g
           return %w
         }",
    );
}

/// The pass removes users from the front of the user list of `%a`, and, between others, from the
/// user list of `%b`. A linear search for each removal would make the pass quadratic.
#[test]
fn values_with_many_users_lose_them_at_a_low_cost() {
    let mut text =
        "func @f(%a: i32, %b: i32) -> i32 {\nentry:\n  %s0 = sub.i32 %b, %a\n".to_owned();
    for n in 1..=50_000 {
        text += &format!(
            "  %x{n} = mul.i32 %a, %a\n  %y{n} = mul.i32 %b, %b\n  %s{n} = sub.i32 %b, %s{}\n",
            n - 1
        );
    }
    let (after, log) = run("cse", &format!("{text}  return %s50000\n}}"));
    assert_eq!((after.matches("mul.i32").count(), after.matches("sub.i32").count()), (2, 50_001));
    assert_eq!(log.len(), 4 * 49_999);
}
