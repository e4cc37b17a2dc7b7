//! Forgeries near an unproved anchor: entries that lead to it, and entries behind it.

use super::Draft;
use super::draft::Wrong;
use check::verdict::Check;

/// A function of two ways. The versions differ in one call, on the way `slow`.
pub(crate) fn two_ways() -> Draft {
    pair(
        "entry:\nbr_if %x, slow, fast\n\
         slow:\n%a = call @ask({})\nglobal_set.i32 @g, %y\nreturn %a\n\
         fast:\n%b = call @ask(%y)\nglobal_set.i32 @g, %b\nreturn %y\n",
    )
}

/// A loop with the call on one way through its body, and the rest of the function behind the loop.
pub(crate) fn in_a_loop() -> Draft {
    pair(
        "entry:\nbr_if %x, head, early\n\
         head:\nbr_if %y, slow, fast\n\
         slow:\n%a = call @ask({})\njump fast\n\
         fast:\n%b = call @ask(%y)\nbr_if %b, head, done\n\
         done:\nreturn %y\n\
         early:\nglobal_set.i32 @g, %y\nreturn %x\n",
    )
}

/// Two versions of a function of `%x` and `%y`. `{}` is `%x` in one version, `%y` in the other
/// version.
fn pair(body: &str) -> Draft {
    let text = |arg: &str| format!("(%x: i32, %y: i32) -> i32 {{\n{}}}\n", body.replace("{}", arg));
    Draft::new(&text("%x"), &text("%y"))
}

pub(crate) fn all() -> [Wrong; 2] {
    [
        two_ways().done(Check::AnchorsProved, "an entry in front of another call"),
        in_a_loop().done(Check::AnchorsProved, "an entry in a loop with another call"),
    ]
}
