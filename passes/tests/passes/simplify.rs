//! The rewrites of `simplify` and the cases it declines.

use crate::{becomes, declines};

#[test]
fn rules_apply_to_results_of_rules() {
    becomes(
        "simplify",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %zero = const.i32 0
           %one = const.i32 1
           %less = slt.i32 %a, %b
           %low = and.i32 %less, %one
           %set = ne.i32 %low, %zero
           %not = eqz.i32 %set
           br_if %not, then, other
         then:
           %x = add.i32 %zero, %a
           return %x
         other:
           return %b
         }",
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           %zero = const.i32 0
           %one = const.i32 1
           %less = slt.i32 %a, %b
           %v9 = sge.i32 %a, %b
           br_if %v9, then, other
         then:
           return %a
         other:
           return %b
         }",
    );
}

#[test]
fn known_bits_make_masks_useless() {
    becomes(
        "simplify",
        "func @f(%a: i32) -> i64 {
         entry:
           %byte = uload8.i32 @m[%a]
           %mask = const.i32 255
           %low = and.i32 %byte, %mask
           %wide = uextend.i64 %low
           %wider = const.i64 0xffff
           %same = and.i64 %wide, %wider
           return %same
         }",
        "func @f(%a: i32) -> i64 {
         entry:
           %byte = uload8.i32 @m[%a]
           %mask = const.i32 255
           %wide = uextend.i64 %byte
           %wider = const.i64 65535
           return %wide
         }",
    );
}

/// An inner operation with other uses stays, so a new outer operation would not pay. Float
/// operations keep NaN and the sign of zero. A value that may be 2 is not a truth value.
#[test]
fn rewrites_that_do_not_pay_or_may_differ_are_declined() {
    declines(
        "simplify",
        "func @f(%a: i32, %b: i32, %x: f64) -> (i32, i32, i32, f64) {
         entry:
           %less = slt.i32 %a, %b
           %not = eqz.i32 %less
           %two = const.i32 2
           %low = and.i32 %a, %two
           %zero = const.i32 0
           %set = ne.i32 %low, %zero
           %none = const.f64 0.0
           %y = fadd.f64 %x, %none
           %z = fsub.f64 %y, %y
           return %less, %not, %set, %z
         }",
    );
}
