//! Forged claims about integers: each would exclude an edge that runs take.

use super::{Draft, Wrong, draft};
use check::verdict::Check;
use ir::ranges::{Interval, RangeBy};
use ir::{Block, Imm, Opcode, Type};
use transition::Side::Before;
use transition::certificate::{By, RangeClaim, TermId, TermKind};

const ONE: Interval = Interval::exactly(1);

/// Adds a claim about the version before.
fn claim(draft: &mut Draft, block: &str, term: TermId, within: Interval, by: RangeBy) {
    let block = draft.block(Before, block);
    draft.ranges.before.push(RangeClaim { block, term, within, by });
}

/// A branch on `%c`, computed by `head`, that the version after has folded to its first target.
fn folded(head: &str) -> Draft {
    let arms = "left:\nreturn %x\nright:\nreturn %y\n";
    draft(&format!("{head}br_if %c, left, right\n{arms}"), &format!("{head}jump left\n{arms}"))
}

pub(super) fn all() -> [Wrong; 8] {
    let mut nothing = folded("%c = slt.i32 %x, %y\n");
    let flag = nothing.term(Before, "c");
    claim(&mut nothing, "entry", flag, ONE, RangeBy::Operation);

    // The entry has no edges, over all of which everything would hold.
    let mut entry = folded("%z = const.i32 0\n%c = ne.i32 %x, %z\n");
    let (x, flag) = (entry.term(Before, "x"), entry.term(Before, "c"));
    claim(&mut entry, "entry", x, Interval { low: 1, high: 9 }, RangeBy::Edges);
    claim(&mut entry, "entry", flag, ONE, RangeBy::Operation);

    [
        nothing.done(Check::Range, "a comparison of arguments that always holds"),
        entry
            .done(Check::Range, "an argument that is in an interval over all edges into the entry"),
        circular(),
        from_an_arm(),
        implied_by_either(),
        overflowing(),
        last_round(),
        nowhere(),
    ]
}

/// `x + 1` is 6 because x is 5, and x is 5 because `(x + 1) - 1` is.
fn circular() -> Wrong {
    let mut draft =
        folded("%k = const.i32 1\n%a = add.i32 %x, %k\n%f = const.i32 5\n%c = eq.i32 %x, %f\n");
    let (x, a) = (draft.term(Before, "x"), draft.term(Before, "a"));
    let one = draft.constant(Type::I32, 1);
    let args = [a, one].into_iter().collect();
    let back = TermKind::Op { opcode: Opcode::Sub, ty: Type::I32, imm: Imm::None, args };
    let back = draft.add(back, Some(Type::I32), Some(x), By::Sum { result: x });
    let flag = draft.term(Before, "c");
    claim(&mut draft, "entry", back, Interval::exactly(5), RangeBy::Operation);
    claim(&mut draft, "entry", a, Interval::exactly(6), RangeBy::Operation);
    claim(&mut draft, "entry", flag, ONE, RangeBy::Operation);
    draft.done(Check::Range, "two sums that bound each other")
}

/// One arm knows that x is below y; the block behind the join does not.
fn from_an_arm() -> Wrong {
    let text = |end: &str| {
        format!(
            "%c = slt.i32 %x, %y\nbr_if %c, below, join\nbelow:\njump join\njoin:\n{end}\n\
             left:\nreturn %x\nright:\nreturn %y\n"
        )
    };
    let mut draft = draft(&text("br_if %c, left, right"), &text("jump left"));
    let (flag, below) = (draft.term(Before, "c"), draft.block(Before, "below"));
    claim(&mut draft, "below", flag, ONE, RangeBy::Edges);
    claim(&mut draft, "join", flag, ONE, RangeBy::Above(below));
    draft.done(Check::Range, "a fact of one arm behind the join")
}

/// Two edges lead to the block behind the comparison.
fn implied_by_either() -> Wrong {
    let text = |end: &str| {
        format!(
            "%c = slt.i32 %x, %y\nbr_if %c, next, next\nnext:\n%d = sle.i32 %x, %y\n{end}\n\
             left:\nreturn %x\nright:\nreturn %y\n"
        )
    };
    let mut draft = draft(&text("br_if %d, left, right"), &text("jump left"));
    let (flag, next) = (draft.term(Before, "d"), draft.block(Before, "next"));
    claim(&mut draft, "next", flag, ONE, RangeBy::Compared(next));
    draft.done(Check::Range, "a comparison taken for true behind both edges of another")
}

/// `x <= y` leaves x the largest integer, whose successor overflows.
fn overflowing() -> Wrong {
    let text = |end: &str| {
        format!(
            "%k = const.i32 1\n%c = sle.i32 %x, %y\nbr_if %c, next, right\nnext:\n\
             %o = sadd_overflows.i32 %x, %k\n{end}\nleft:\nreturn %x\nright:\nreturn %y\n"
        )
    };
    let mut draft = draft(&text("br_if %o, right, left"), &text("jump left"));
    let (x, flag) = (draft.term(Before, "x"), draft.term(Before, "o"));
    let most = i64::from(i32::MAX) - 1;
    claim(&mut draft, "next", x, Interval { low: i32::MIN.into(), high: most }, RangeBy::Edges);
    claim(&mut draft, "next", flag, Interval::exactly(0), RangeBy::Operation);
    draft.done(Check::Range, "a sum behind `sle` that cannot overflow")
}

/// A comparison on the edge into a block that the function lacks.
fn nowhere() -> Wrong {
    let mut draft = folded("%c = slt.i32 %x, %y\n");
    let flag = draft.term(Before, "c");
    claim(&mut draft, "entry", flag, ONE, RangeBy::Compared(Block::from_u32(999_999)));
    draft.done(Check::Range, "a comparison behind a block that does not exist")
}

/// A parameter that the entering edge bounds, and the edge back does not.
fn last_round() -> Wrong {
    let text = |end: &str| {
        format!(
            "%z = const.i32 0\n%k = const.i32 1\njump head(%z)\nhead(%i: i32):\n\
             %c = slt.i32 %i, %k\n{end}\nleft:\n%n = add.i32 %i, %k\n\
             br_if %x, head(%n), right\nright:\nreturn %y\n"
        )
    };
    let mut draft = draft(&text("br_if %c, left, right"), &text("jump left"));
    let (i, flag) = (draft.term(Before, "i"), draft.term(Before, "c"));
    claim(&mut draft, "head", i, Interval::exactly(0), RangeBy::Edges);
    claim(&mut draft, "head", flag, ONE, RangeBy::Operation);
    draft.done(Check::Range, "a counter that stays as it enters the loop")
}
