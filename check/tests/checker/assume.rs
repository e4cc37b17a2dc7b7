//! Assumptions: the classes of their results, and the landing points that they bar.

use crate::holes::stops;
use crate::verdicts;
use crate::wrong::{Draft, Wrong};
use check::verdict::Check;
use transition::Side::{After, Before};

/// Both versions make the assumption.
const BOTH: &str = "(%x: i32, %y: i32) -> i32 {\nentry:\n%w = assume.i32 %x, 7, 1\n\
    %s = add.i32 %w, %y\nreturn %s\n}\n";

fn both() -> Draft {
    Draft::new(BOTH, BOTH)
}

/// An entry of the version before at its start.
fn at_start(mut draft: Draft, check: Check, what: &'static str) -> Wrong {
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 0)];
    let assigns = [("x", draft.from(Before, "x")), ("y", draft.from(Before, "y"))];
    draft.entry(Before, points, Vec::new(), &assigns);
    draft.done(check, what)
}

fn holds(draft: Draft) {
    let wrong = at_start(draft, Check::SourceReached, "nothing");
    let judged = verdicts(&wrong, wrong.options);
    assert!(judged.len() == 1 && judged[0].holds(), "{judged:?}");
}

#[test]
fn the_result_of_a_common_assumption_is_the_constant() {
    holds(both());
}

/// With the class of the operand for the result, and the constant for it elsewhere, the operand
/// would have the constant above the assumption.
#[test]
fn an_assumption_says_nothing_above_itself() {
    let mut draft = both();
    let operand = draft.term(After, "x");
    draft.is(After, "w", operand);
    stops(&at_start(draft, Check::ValueTerm, "the operand for the result of an anchor"));

    let one = BOTH.replace("assume.i32 %x, 7, 1", "add.i32 %x, %x");
    let mut draft = Draft::new(&one, &BOTH.replace("%s = add.i32 %w", "%s = add.i32 %x"));
    let seven = draft.constant(ir::Type::I32, 7);
    draft.is(After, "w", seven);
    stops(&at_start(draft, Check::ValueTerm, "the constant for an assumption of one version"));
}

/// A common assumption with other bits is another instruction.
#[test]
fn common_assumptions_expect_the_same() {
    let mut draft = Draft::new(BOTH, &BOTH.replace("%x, 7", "%x, 8"));
    draft.term(After, "w");
    stops(&at_start(draft, Check::AnchorSame, "other bits for the same operand"));
}

/// The second round of the loop is behind the assumption of the first.
const LOOP: &str = "(%x: i32, %y: i32) -> i32 {\nentry:\njump head\n\
    head:\nbr_if %y, body, done\nbody:\n%w = OP\njump head\ndone:\nreturn %x\n}\n";

#[test]
fn what_a_loop_assumes_bars_its_next_round() {
    let (plain, assuming) =
        (LOOP.replace("OP", "add.i32 %x, %x"), LOOP.replace("OP", "assume.i32 %x, 7, 1"));
    for block in ["head", "done"] {
        let mut draft = Draft::new(&plain, &assuming);
        draft.term(After, "w");
        let points = [draft.at(Before, block, 0), draft.at(After, block, 0)];
        let assigns = [("x", draft.from(Before, "x")), ("y", draft.from(Before, "y"))];
        let count = if block == "done" { 1 } else { 2 };
        draft.entry(Before, points, Vec::new(), &assigns[..count]);
        stops(&draft.done(Check::AssumePassed, "a landing point in the reach of the assumption"));
    }
}

/// An assumption whose operand is the constant holds in every run.
#[test]
fn a_proved_assumption_bars_nothing() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 7\n%w = OP\nreturn %x\n}\n";
    let (plain, assuming) =
        (text.replace("OP", "add.i32 %x, %x"), text.replace("OP", "assume.i32 %k, 7, 1"));
    let mut draft = Draft::new(&plain, &assuming);
    draft.term(After, "w");
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 2)];
    draft.entry(Before, points, Vec::new(), &[("x", draft.from(Before, "x"))]);
    let wrong = draft.done(Check::AssumePassed, "nothing");
    let judged = verdicts(&wrong, wrong.options);
    assert!(judged.len() == 1 && judged[0].holds(), "{judged:?}");
}

/// A value that an assumption keeps says nothing about the assumed value.
#[test]
fn a_kept_value_proves_nothing() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 7\n%w = OP\nreturn %x\n}\n";
    let [plain, assuming] =
        ["add.i32 %x, %x", "assume.i32 %x, 7, 1, %k"].map(|op| text.replace("OP", op));
    let mut draft = Draft::new(&plain, &assuming);
    draft.term(After, "w");
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 2)];
    draft.entry(Before, points, Vec::new(), &[("x", draft.from(Before, "x"))]);
    stops(&draft.done(Check::AssumePassed, "a landing point behind an assumption that keeps 7"));
}

/// A branch on a value, and a branch on a test of the value.
fn branches(test: &str) -> Draft {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%z = const.i32 0\n%k = const.i32 1\n%t = OP\n\
                br_if %C, one, two\none:\nreturn %x\ntwo:\nreturn %y\n}\n";
    let text = text.replace("OP", test);
    let mut draft = Draft::new(&text.replace("%C", "%x"), &text.replace("%C", "%t"));
    draft.term(After, "t");
    draft
}

#[test]
fn a_branch_may_ask_whether_a_value_differs_from_zero() {
    holds(branches("ne.i32 %x, %z"));
    holds(branches("ne.i32 %z, %x"));
}

#[test]
fn another_test_of_the_value_is_another_branch() {
    for test in ["ne.i32 %x, %k", "eq.i32 %x, %z", "ne.i32 %y, %z"] {
        stops(&at_start(branches(test), Check::AnchorOperands, "a branch on another test"));
    }
    // A call reads all bits of its operand.
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%z = const.i32 0\n%t = ne.i32 %x, %z\n\
                %r = call @ask(%C)\nreturn %r\n}\n";
    let mut draft = Draft::new(&text.replace("%C", "%x"), &text.replace("%C", "%t"));
    draft.term(After, "t");
    stops(&at_start(draft, Check::AnchorOperands, "a call with a test of its operand"));
}

/// Case 3 of the design: the source version has the operand, which has the class of the result. It
/// is no witness that the assumption has held.
#[test]
fn the_operand_is_no_witness_of_its_assumption() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%w = OP\n%s = add.i32 %y, %x\nreturn %s\n}\n";
    let [plain, assuming] =
        ["add.i32 %x, %y", "assume.i32 %x, 7, 1"].map(|op| text.replace("OP", op));
    let mut draft = Draft::new(&plain, &assuming);
    draft.term(After, "w");
    let points = [draft.at(Before, "entry", 1), draft.at(After, "entry", 1)];
    let assigns = [("x", draft.from(Before, "x")), ("y", draft.from(Before, "y"))];
    draft.entry(Before, points, Vec::new(), &assigns);
    stops(&draft.done(Check::AssumePassed, "a landing point behind an assumption of one version"));
}

/// Case 7: of two equal assumptions, each was deleted because of the other assumption.
#[test]
fn equal_assumptions_do_not_replace_each_other() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\nA\nB\nreturn %x\n}\n";
    let assuming =
        text.replace('A', "%w = assume.i32 %x, 7, 1").replace('B', "%z = assume.i32 %x, 7, 1");
    let plain = text.replace('A', "%w = add.i32 %x, %x").replace('B', "%z = add.i32 %x, %x");
    // The version after the log has neither assumption, and the version before has both.
    let mut draft = Draft::new(&assuming, &plain);
    draft.term(Before, "w");
    draft.term(Before, "z");
    let points = [draft.at(After, "entry", 2), draft.at(Before, "entry", 2)];
    draft.entry(After, points, Vec::new(), &[("x", draft.from(After, "x"))]);
    stops(&draft.done(Check::AssumePassed, "a landing point behind two deleted assumptions"));
}
