//! The rewrites of `loop_canon` and the cases it declines.

use crate::{becomes, declines};

const TANGLED: &str = "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           br_if %a, loop(%a), side
         side:
           br_if %b, loop(%b), done(%b)
         loop(%i: i32):
           %n = sub.i32 %i, %b
           br_if %n, more, done(%n)
         more:
           br_if %b, loop(%n), again
         again:
           jump loop(%i)
         done(%r: i32):
           return %r
         }";

#[test]
fn a_loop_gets_a_preheader_one_latch_and_exits_of_its_own() {
    becomes(
        "loop_canon",
        TANGLED,
        "func @f(%a: i32, %b: i32) -> i32 {
         entry:
           br_if %a, block6(%a), side
         side:
           br_if %b, block6(%b), done(%b)
         block6(%v5: i32):
           jump loop(%v5)
         block7(%v6: i32):
           jump loop(%v6)
         loop(%i: i32):
           %n = sub.i32 %i, %b
           br_if %n, more, block8
         more:
           br_if %b, block7(%n), again
         again:
           jump block7(%i)
         block8:
           jump done(%n)
         done(%r: i32):
           return %r
         }",
    );
}

#[test]
fn a_canonical_loop_stays_as_it_is() {
    declines(
        "loop_canon",
        "func @f(%a: i32) -> i32 {
         entry:
           jump loop(%a)
         loop(%i: i32):
           %n = sub.i32 %i, %a
           br_if %n, loop(%n), done
         done:
           return %n
         }",
    );
    let (_, log) = crate::run("loop_canon,loop_canon", TANGLED);
    let (_, once) = crate::run("loop_canon", TANGLED);
    assert_eq!(log.len(), once.len(), "a second run finds nothing");
}

/// `%x` cannot move, since it is not invariant, and a constant alone does not pay for a preheader.
#[test]
fn a_preheader_that_licm_would_not_use_is_not_made() {
    declines(
        "preheaders",
        "func @f(%a: i32) -> i32 {
         entry:
           br_if %a, loop(%a), done(%a)
         loop(%i: i32):
           %one = const.i32 1
           %x = sub.i32 %i, %one
           br_if %x, loop(%x), done(%x)
         done(%r: i32):
           return %r
         }",
    );
}
