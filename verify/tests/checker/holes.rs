//! What the checker once let through, or was suspected of.

use crate::verdicts;
use crate::wrong::{Draft, Wrong, all, step, unguarded};
use ir::certificate::{By, NO_TERM, TermKind};
use ir::mapping::Operand;
use ir::{Imm, Opcode, Type};
use verify::verdict::{Check, Verdict};

/// What the full checker says of the entries.
fn judged(wrong: &Wrong) -> Vec<Verdict> {
    verdicts(wrong, wrong.options)
}

fn stops(wrong: &Wrong) {
    let judged = judged(wrong);
    assert!(!judged.is_empty(), "{}: there is something to judge", wrong.what);
    for verdict in judged {
        assert_eq!(verdict.finding().map(|f| f.check), Some(wrong.check), "{}: {verdict}", wrong.what);
    }
}

#[test]
fn a_term_does_not_vouch_for_itself() {
    stops(&unguarded());
}

#[test]
fn a_right_side_comes_first() {
    stops(all().iter().find(|w| w.check == Check::TermOrder).expect("there is one for each check"));
}

/// The line binds nothing, so that there is no far end: what the facts say of it is of no use.
#[test]
fn a_far_term_without_a_crossing_is_not_believed() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}\n";
    let mut draft = Draft::new(text, text);
    let points = [draft.at(0, "entry", 0), draft.at(1, "entry", 1)];
    let (x, y, sum) = (draft.term(0, "x"), draft.term(0, "y"), draft.term(0, "s"));
    let product = draft.op(Opcode::Mul, Type::I32, Imm::None, &[x, y]);
    let multiply = step(Opcode::Mul, Type::I32, &[draft.from(0, "x"), draft.from(0, "y")]);
    draft.entry(0, points, vec![(multiply, [product, sum])], &[("s", Operand::Step(0))]);
    stops(&draft.done(Check::AssignValue, "a product with a sum as its far term"));
}

/// Contents go from an entry of the loop to the next: before, the new ones, after, those of the round before. A
/// class that is claimed to depend on more leaves than it does (`z`, which is 0 whatever `w` holds) must still be
/// seen to be bound again.
#[test]
fn a_class_that_names_more_leaves_is_rebound() {
    let before = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 0\n%z = and.i32 %k, %k\njump head(%x, %x)\n\
        head(%p: i32, %o: i32):\n%v = add.i32 %p, %z\njump join(%v)\njoin(%q: i32):\nbr_if %y, again, out\n\
        again:\njump head(%y, %v)\nout:\nbr_if %x, deep(%x), last\ndeep(%w: i32):\nreturn %w\nlast:\nreturn %q\n}\n";
    let mut draft = Draft::new(before, &before.replace("jump join(%v)", "jump join(%o)"));
    let zero = draft.constant(Type::I32, 0);
    let w = draft.leaf("w", TermKind::Param, Some(Type::I32));
    let and = draft.op(Opcode::And, Type::I32, Imm::None, &[w, zero]);
    let known = draft.by_rule("and-zero", and, &[], zero, NO_TERM);
    let disguised = draft.op(Opcode::And, Type::I32, Imm::None, &[zero, zero]);
    let z = draft.by_rule("and-and", disguised, &[known], and, and);
    for side in [0, 1] {
        draft.is(side, "z", z);
    }
    stops(&draft.done(Check::LeafAgrees, "a sum of this round for that of the round before"));
}

/// A leaf that a parameter below the join of both arms binds in one version only is no reason to settle a trap.
#[test]
fn a_trap_is_not_settled_by_leaves_that_are_gone() {
    let head = "(%x: i32, %y: i32) -> i32 {\nentry:\n%h = const.i32 100\nbr_if %x, left, right\n";
    let before = format!(
        "{head}left:\njump k(%x)\nright:\njump k(%x)\nk(%p: i32):\n%d = udiv.i32 %h, %p\njump last\n\
         last:\n%r = call @ask(%x)\nreturn %r\n}}\n"
    );
    let after = format!(
        "{head}left:\njump k(%y)\nright:\njump last\nk(%p: i32):\n%d = udiv.i32 %h, %p\njump last\n\
         last:\n%r = call @ask(%x)\nreturn %r\n}}\n"
    );
    stops(&Draft::new(&before, &after).done(Check::TrapOrder, "two divisions by parameters of one leaf"));
}

/// The landing point comes before the division in the block, and after it on the way.
#[test]
fn what_a_landing_skips_is_decided_by_the_way_to_it() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\njump head\nhead:\n%a = add.i32 %x, %y\nbr_if %x, body, out\n\
        body:\n%d = udiv.i32 %x, %y\njump head\nout:\n%e = udiv.i32 %x, %y\nreturn %e\n}\n";
    let mut draft = Draft::new(text, text);
    let point = draft.at(0, "head", 0);
    let copies = ["x", "y"].map(|name| (name, draft.from(0, name)));
    draft.entry(0, [point; 2], Vec::new(), &copies);
    for verdict in judged(&draft.done(Check::TrapPassed, "a division of the round before")) {
        assert!(!verdict.holds(), "{verdict}");
    }
}

#[test]
fn a_leaf_is_no_rewritten_term() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\nreturn %x\n}\n";
    let mut draft = Draft::new(text, &text.replace("return %x", "return %y"));
    let x = draft.term(0, "x");
    let y = draft.add(TermKind::Argument(1), Some(Type::I32), Some(x), By::Folding);
    draft.is(1, "y", y);
    stops(&draft.done(Check::TermShape, "an argument folded to another"));
}
