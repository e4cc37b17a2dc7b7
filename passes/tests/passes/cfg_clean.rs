//! What `cfg_clean` does and declines.

use crate::{becomes, declines};

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
           br_if %a, one, two
         one:
           jump join(%a)
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
           jump forever
         forever:
           jump forever
         }",
    );
}
