//! The rewrites of `sccp` and the cases it declines.

use crate::{becomes, declines};

#[test]
fn a_known_condition_folds_the_branch_and_removes_the_arm() {
    becomes(
        "sccp",
        "func @f(%a: i32) -> i32 {
         entry:
           %c = const.i32 3
           %d = const.i32 4
           %lt = slt.i32 %c, %d
           br_if %lt, then, other
         then:
           %x = add.i32 %c, %d
           jump join(%x)
         other:
           jump join(%a)
         join(%p: i32):
           %r = mul.i32 %p, %a
           return %r
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %c = const.i32 3
           %d = const.i32 4
           jump then
         then:
           %v7 = const.i32 7
           jump join
         join:
           %v8 = const.i32 7
           %r = mul.i32 %v8, %a
           return %r
         }",
    );
}

/// The loop's counter is a constant only because the branch that would change it is never taken.
/// The branch is never taken only because the counter is a constant.
#[test]
fn facts_may_support_each_other_around_a_loop() {
    becomes(
        "sccp",
        "func @f(%a: i32) -> i32 {
         entry:
           %one = const.i32 1
           jump header(%one)
         header(%i: i32):
           br_if %i, same, change
         same:
           br_if %a, header(%i), done
         change:
           jump header(%a)
         done:
           return %i
         }",
        "func @f(%a: i32) -> i32 {
         entry:
           %one = const.i32 1
           jump header
         header:
           %v3 = const.i32 1
           jump same
         same:
           br_if %a, header, done
         done:
           return %v3
         }",
    );
}

#[test]
fn a_parameter_with_one_incoming_value_is_that_value() {
    becomes(
        "sccp",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump outer(%a, %b)
         outer(%p: i32, %q: i32):
           jump inner(%p, %q)
         inner(%r: i32, %s: i32):
           br_if %s, inner(%r, %a), next
         next:
           br_if %b, outer(%r, %s), done
         done:
           return %r
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump outer(%b)
         outer(%q: i32):
           jump inner(%q)
         inner(%s: i32):
           br_if %s, inner(%a), next
         next:
           br_if %b, outer(%s), done
         done:
           return %a
         }",
    );
}

/// `%o` looks like a copy of `%a` until the search sees the back edge. By then it has taken `%i`
/// and `%j` for copies of `%a` too. They are copies of `%o`.
#[test]
fn a_late_fall_does_not_hide_copies() {
    becomes(
        "sccp",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump outer(%a)
         outer(%o: i32):
           jump inner(%o)
         inner(%i: i32):
           br_if %i, pass(%i), leave(%b)
         pass(%j: i32):
           jump inner(%j)
         leave(%k: i32):
           br_if %b, outer(%k), done
         done:
           return %i
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           jump outer(%a)
         outer(%o: i32):
           jump inner
         inner:
           br_if %o, pass, leave
         pass:
           jump inner
         leave:
           br_if %b, outer(%b), done
         done:
           return %o
         }",
    );
}

#[test]
fn a_switch_takes_the_default_when_the_selector_is_too_large() {
    becomes(
        "sccp",
        "func @f() -> i32 {
         entry:
           %c = const.i32 -1
           switch %c, [a, b], default c
         a:
           %x = const.i32 1
           return %x
         b:
           %y = const.i32 2
           return %y
         c:
           %z = const.i32 3
           return %z
         }",
        "func @f() -> i32 {
         entry:
           %c = const.i32 -1
           jump c
         c:
           %z = const.i32 3
           return %z
         }",
    );
}

#[test]
fn an_operation_that_would_trap_is_never_folded() {
    declines(
        "sccp",
        "func @f() -> i32 {
         entry:
           %a = const.i32 1
           %b = const.i32 0
           %q = sdiv.i32 %a, %b
           return %q
         }",
    );
}

#[test]
fn a_division_that_cannot_trap_goes() {
    becomes(
        "sccp",
        "func @f() -> i32 {
         entry:
           %a = const.i32 7
           %b = const.i32 -2
           %q = sdiv.i32 %a, %b
           return %q
         }",
        "func @f() -> i32 {
         entry:
           %a = const.i32 7
           %b = const.i32 -2
           %v3 = const.i32 -3
           return %v3
         }",
    );
}

#[test]
fn varying_values_stay() {
    declines(
        "sccp",
        "func @f(%a: i32) -> i32 {
         entry:
           %zero = const.i32 0
           jump header(%zero)
         header(%i: i32):
           %one = const.i32 1
           %next = add.i32 %i, %one
           %more = slt.i32 %next, %a
           br_if %more, header(%next), done
         done:
           %g = global_get.i32 @g
           %r = add.i32 %g, %i
           return %r
         }",
    );
}

/// Visiting all predecessors again for each changed edge would take minutes.
#[test]
fn a_block_with_many_predecessors_costs_linear_time() {
    let ways = "join(%five), ".repeat(200_000);
    declines(
        "sccp",
        &format!(
            "func @f(%a: i32) -> i32 {{
             entry:
               %five = const.i32 5
               %six = const.i32 6
               br_if %a, many, join(%six)
             many:
               switch %a, [{}], default join(%five)
             join(%p: i32):
               return %p
             }}",
            ways.trim_end_matches(", ")
        ),
    );
}
