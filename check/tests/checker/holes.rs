//! Forgeries that the checker once accepted, or was suspected of accepting.

use crate::verdicts;
use crate::wrong::{Draft, Wrong, all, step, unguarded};
use check::verdict::{Check, Verdict};
use ir::{Imm, Opcode, Type};
use transition::Side;
use transition::Side::{After, Before};
use transition::certificate::{By, NO_TERM, TermKind};
use transition::mapping::Operand;

/// The verdicts of the full checker on all entries.
pub(crate) fn judged(wrong: &Wrong) -> Vec<Verdict> {
    verdicts(wrong, wrong.options)
}

pub(crate) fn stops(wrong: &Wrong) {
    let judged = judged(wrong);
    assert!(!judged.is_empty(), "{}: there is something to judge", wrong.what);
    for verdict in judged {
        assert_eq!(
            verdict.finding().map(|f| f.check),
            Some(wrong.check),
            "{}: {verdict}",
            wrong.what
        );
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

/// The path binds nothing, so the far class of a step is its here class. A forged far term must
/// have no effect.
#[test]
fn a_far_term_without_a_crossing_is_not_believed() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}\n";
    let mut draft = Draft::new(text, text);
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 1)];
    let (x, y, sum) = (draft.term(Before, "x"), draft.term(Before, "y"), draft.term(Before, "s"));
    let product = draft.op(Opcode::Mul, Type::I32, Imm::None, &[x, y]);
    let multiply =
        step(Opcode::Mul, Type::I32, &[draft.from(Before, "x"), draft.from(Before, "y")]);
    draft.entry(Before, points, vec![(multiply, [product, sum])], &[("s", Operand::Step(0))]);
    stops(&draft.done(Check::AssignValue, "a product with a sum as its far term"));
}

/// A value passes from one round of the loop to the next: before, the new value; after, the value
/// of the round before. The class of `z` is claimed to depend on more leaves than it does, since it
/// is 0 for any `w`. The checker must still see that `v` is bound again.
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
    for side in Side::BOTH {
        draft.is(side, "z", z);
    }
    stops(&draft.done(Check::LeafAgrees, "a sum of this round for that of the round before"));
}

/// Both versions divide by a parameter of one leaf. At the call, only the version before still has
/// this leaf, so nothing compares the two divisors, and the trap is not settled.
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
    let mut draft = Draft::new(&before, &after);
    let memory = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    for side in Side::BOTH {
        ["k", "last"].iter().for_each(|block| draft.memory_is(side, block, memory));
    }
    stops(&draft.done(Check::TrapOrder, "two divisions by parameters of one leaf"));
}

/// In the text, the target point in `head` precedes the division in `body`. In a run, the division
/// of the previous round precedes the target point. No effect settles the divisions of a loop, so
/// the pair is rejected before its entries are looked at.
#[test]
fn a_landing_point_in_a_loop_follows_the_trap_of_the_last_round() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\njump head\nhead:\n%a = add.i32 %x, %y\nbr_if %x, body, out\n\
        body:\n%d = udiv.i32 %x, %y\njump head\nout:\n%e = udiv.i32 %x, %y\nreturn %e\n}\n";
    let mut draft = Draft::new(text, text);
    let point = draft.at(Before, "head", 0);
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, [point; 2], Vec::new(), &copies);
    stops(&draft.done(Check::TrapOrder, "a division of the round before"));
}

#[test]
fn a_leaf_is_no_rewritten_term() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\nreturn %x\n}\n";
    let mut draft = Draft::new(text, &text.replace("return %x", "return %y"));
    let x = draft.term(Before, "x");
    let y = draft.add(TermKind::Argument(1), Some(Type::I32), Some(x), By::Folding);
    draft.is(After, "y", y);
    stops(&draft.done(Check::TermShape, "an argument folded to another"));
}

const LOOP: &str = "(%x: i32, %y: i32) -> i32 {\nentry:\njump head(%x)\nhead(%p: i32):\n%c = slt.i32 %p, %y\n\
    br_if %c, body, out\nbody:\n%n = add.i32 %p, %p\njump head(%n)\nout:\nreturn %p\n}\n";

/// An entry from the end of one round into the next.
fn around(from: &str) -> Wrong {
    let mut draft = Draft::new(LOOP, LOOP);
    let points = [draft.at(Before, "body", 1), draft.at(After, "head", 0)];
    let assigns = [("p", draft.from(Before, from)), ("y", draft.from(Before, "y"))];
    draft.entry(Before, points, Vec::new(), &assigns);
    draft.done(Check::AssignValue, "a parameter as it was the round before")
}

#[test]
fn a_parameter_of_the_round_before_is_stale() {
    stops(&around("p"));
    assert_eq!(judged(&around("n")), [Verdict::Holds]);
}

/// Each edge of the branch is compared with the only edge of the jump.
#[test]
fn a_branch_folded_to_the_wrong_side_is_noticed() {
    let text = |first: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n{first}\nleft:\njump join(%x)\nright:\njump join(%y)\n\
             join(%p: i32):\nreturn %p\n}}\n"
        )
    };
    let draft = Draft::new(&text("br_if %x, left, right"), &text("jump right"));
    stops(&draft.done(Check::LeafAgrees, "one side of a branch whose condition is any number"));
}

/// The version after divides, and may trap, where the version before may run forever.
#[test]
fn a_trap_does_not_end_a_loop_that_has_no_end() {
    let text = |first: &str, last: &str, result: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n{first}\njump head\nhead:\nbr_if %x, head, out\nout:\n{last}\n\
             return %{result}\n}}\n"
        )
    };
    let (divide, pad) =
        (|v: &str| format!("%{v} = udiv.i32 %x, %y"), |v: &str| format!("%{v} = const.i32 0"));
    let draft =
        Draft::new(&text(&pad("a"), &divide("d"), "d"), &text(&divide("d"), &pad("a"), "d"));
    stops(&draft.done(Check::TrapOrder, "a division moved above a loop that may never end"));
}

/// A value that only the mapping back requires has to be provided.
#[test]
fn values_that_armed_entries_require_are_live() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%s = add.i32 %x, %y\nreturn %s\n}\n";
    let mut draft = Draft::new(text, text);
    let point = draft.at(Before, "entry", 1);
    draft.entry(Before, [point; 2], Vec::new(), &[("s", draft.from(Before, "s"))]);
    let back = ["x", "s"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, [point; 2], Vec::new(), &back);
    let verdicts = judged(&draft.done(Check::LivePlus, "an argument that the entry back reads"));
    assert_eq!(verdicts[0].finding().map(|f| f.check), Some(Check::LivePlus));
    assert_eq!(verdicts[1], Verdict::Holds);
}

/// If the common store traps, one version has written a global and the other version has not. In
/// the version before, that store cannot trap any more, since the lone store above it has passed.
/// The lone store can, and has to see the same memory as the other version.
#[test]
fn a_trap_shows_a_write_of_the_other_version() {
    let last = "store.i32 @m[%x], %y\nglobal_set.i32 @g, %y\nreturn %x\n";
    let before = format!("store.i32 @m[%x], %x\n%p = const.i32 0\n{last}");
    let after = format!("%p = const.i32 0\nglobal_set.i32 @g, %x\n{last}");
    let mut draft = Draft::of_writes(&before, &after);
    let at = |side, index| (side, index);
    let [own, other] =
        [at(Before, 0), at(After, 1)].map(|(side, index)| draft.at(side, "entry", index));
    let stores = [Before, After].map(|side| draft.at(side, "entry", 2));
    let sets = [Before, After].map(|side| draft.at(side, "entry", 3));
    let memory = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    let (own, _) = (draft.write(Before, own), draft.write(After, other));
    let (x, y) = (draft.term(Before, "x"), draft.term(Before, "y"));
    let imm = draft.versions.before.inst(stores[0].inst()).imm;
    let plain = draft.op(Opcode::Store, Type::I32, imm, &[x, y, memory]);
    let term = draft.like(plain, own, plain, By::Covers { result: plain });
    draft.write_is(Before, stores[0], term);
    let result = draft.write(Before, sets[0]);
    let behind = draft.write(After, stores[1]);
    let term = draft.like(result, behind, result, By::Covers { result });
    draft.write_is(After, sets[1], term);
    stops(
        &draft.done(
            Check::LoneWrite,
            "a trap behind a write that the other version has not executed",
        ),
    );
}

/// The second division of the version before cannot trap, because both versions have passed the
/// first division. Where the arms join, its divisor is no longer available, which does not matter.
#[test]
fn a_trap_executed_before_the_path_is_settled() {
    let text = |again: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\nbr_if %x, left(%y), join\nleft(%p: i32):\n%d = udiv.i32 %x, %p\n\
             br_if %d, on, join\non:\n%e = {again}\njump join\njoin:\n%r = call @ask(%x)\nreturn %r\n}}\n"
        )
    };
    let draft = Draft::new(&text("udiv.i32 %x, %p"), &text("const.i32 0"));
    let verdicts = judged(&draft.done(Check::TrapOrder, "nothing"));
    assert!(!verdicts.is_empty() && verdicts.iter().all(Verdict::holds), "{verdicts:?}");
}

/// Two versions with a division that is no anchor, around writes of `@g`, the last of which covers
/// the earlier writes.
fn divided(before: &str, after: &str) -> Draft {
    let text = |body: &str| {
        let body = body.replace("DIVIDE", "%d = udiv.i32 %x, %y");
        format!(
            "{}\n",
            body.replace("LONE", "global_set.i32 @g, %x").replace("LAST", "global_set.i32 @g, %y")
        )
    };
    Draft::of_writes(&text(before), &text(after))
}

/// Claims that a write covers the lone writes of its version.
fn cover(draft: &mut Draft, side: Side, at: usize, memory: usize, same: usize) {
    let [own, other] =
        [(side, at), (side.other(), same)].map(|(side, index)| draft.at(side, "entry", index));
    let memory = draft.at(side, "entry", memory);
    let (memory, result) = (draft.write(side, memory), draft.write(side.other(), other));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(side, own, term);
}

#[test]
fn a_trap_on_the_path_shows_a_write_of_one_version() {
    // Three places for a division: right after the lone write; after an anchor that follows the
    // write; and between two lone writes, where both versions have the same memory in the end.
    let mut draft =
        divided("LONE\nDIVIDE\nLAST\nreturn %x", "%p = const.i32 0\nDIVIDE\nLAST\nreturn %x");
    cover(&mut draft, Before, 2, 0, 2);
    stops(&draft.done(Check::TrapOrder, "a division behind a write that only one version has"));

    let rest = "global_set.i32 @h, %y\nDIVIDE\nLAST\nreturn %x";
    let mut draft = divided(&format!("LONE\n{rest}"), &format!("%p = const.i32 0\n{rest}"));
    cover(&mut draft, Before, 3, 1, 3);
    stops(
        &draft
            .done(Check::TrapOrder, "a division further behind a write that only one version has"),
    );

    let mut draft = divided(
        "LONE\nDIVIDE\nLAST\n%p = const.i32 0\nreturn %x",
        "%p = const.i32 0\nDIVIDE\n%q = const.i32 0\nLAST\nreturn %x",
    );
    cover(&mut draft, Before, 2, 0, 3);
    stops(
        &draft.done(
            Check::TrapOrder,
            "a division between two writes that only one version has there",
        ),
    );
}

#[test]
fn a_trap_where_memory_is_the_same_shows_nothing() {
    let text = |first: &str| format!("DIVIDE\n%r = call @ask(%d)\n{first}\nLAST\nreturn %r");
    let mut draft = divided(&text("LONE"), &text("%p = const.i32 0"));
    cover(&mut draft, Before, 3, 2, 3);
    let verdicts = judged(&draft.done(Check::TrapOrder, "nothing"));
    // All entries except entries from after the lone write to a point where it has not executed.
    let held = verdicts.iter().filter(|verdict| verdict.holds()).count();
    assert_eq!((held, verdicts.len()), (2, 3), "{verdicts:?}");
}

/// The verdict on an entry to the branch of the block `fork` that provides the listed values alone.
/// One target of the branch reads `%y`, in an instruction and in the argument of an edge; another
/// edge leads to this target, too.
fn forked(condition: &str, provided: &[&str]) -> Verdict {
    let text = format!(
        "(%x: i32, %y: i32) -> i32 {{\nentry:\n%zero = const.i32 0\n%one = const.i32 1\nbr_if %x, fork, reader\n\
         fork:\n%v = add.i32 %x, %x\nbr_if %{condition}, other(%one), reader\n\
         reader:\n%s = mul.i32 %y, %y\njump other(%s)\nother(%p: i32):\nreturn %p\n}}\n"
    );
    let mut draft = Draft::new(&text, &text);
    let point = draft.at(Before, "fork", 0);
    let assigns: Vec<_> = provided.iter().map(|name| (*name, draft.from(Before, name))).collect();
    draft.entry(Before, [point; 2], Vec::new(), &assigns);
    judged(&draft.done(Check::LivePlus, "a value read after an undecided branch, not provided"))[0]
}

/// A target that a constant condition excludes reads nothing (`live`).
#[test]
fn values_read_behind_an_excluded_edge_alone_are_not_live() {
    assert_eq!(forked("one", &["one"]), Verdict::Holds);
    let lacks = |verdict: Verdict| verdict.finding().map(|f| f.check);
    assert_eq!(
        lacks(forked("zero", &["zero", "one"])),
        Some(Check::LivePlus),
        "the edge that is taken counts"
    );
    assert_eq!(
        lacks(forked("x", &["x", "one"])),
        Some(Check::LivePlus),
        "either edge may be taken"
    );
    assert_eq!(forked("zero", &["zero", "y"]), Verdict::Holds);
    assert_eq!(
        lacks(forked("zero", &["y"])),
        Some(Check::LivePlus),
        "the condition of any branch is read"
    );
}

/// At a source point, a value that only excluded code reads is live, and so not kept (`live`).
#[test]
fn where_an_entry_starts_every_edge_counts() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%one = const.i32 1\nbr_if %one, left, right\n\
                left:\nreturn %x\nright:\nreturn %y\n}\n";
    let kept = |kept: bool| {
        let mut draft = Draft::new(text, text);
        let point = draft.at(Before, "entry", 1);
        let assigns = ["x", "y", "one"].map(|name| (name, draft.from(Before, name)));
        draft.entry(Before, [point; 2], Vec::new(), &assigns);
        let y = draft.value(Before, "y");
        draft.change_entry(Before, |entry| entry.kept.extend(kept.then_some(y)));
        judged(&draft.done(Check::Kept, "an argument said to be kept that the text still reads"))[0]
    };
    assert_eq!(kept(false), Verdict::Holds);
    assert_eq!(kept(true).finding().map(|f| f.check), Some(Check::Kept));
}

/// No class decides the branch in an unreachable block. Its arguments still count for nothing:
/// neither for the reachable block that it leads to, nor, through a parameter, around a loop
/// (`live`).
#[test]
fn arguments_passed_by_excluded_blocks_are_not_live() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\n%one = const.i32 1\njump head(%y)\n\
                head(%v: i32):\nbr_if %x, again, out\nagain:\njump head(%v)\nout:\nbr_if %one, last(%one), never\n\
                never:\nbr_if %x, last(%v), last(%one)\nlast(%p: i32):\nreturn %p\n}\n";
    let mut draft = Draft::new(text, text);
    let point = draft.at(Before, "head", 0);
    let assigns = ["x", "one"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, [point; 2], Vec::new(), &assigns);
    let wrong = draft.done(Check::LivePlus, "an argument passed by an unreachable block");
    assert_eq!(judged(&wrong), [Verdict::Holds]);
}

/// The version before divides by the parameter of a loop; the version after divides behind the
/// loop. The next round binds the parameter anew, so the division behind the loop has another
/// divisor.
#[test]
fn a_site_whose_leaf_is_bound_again_is_never_settled() {
    let text = |head: &str, out: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\njump head(%x)\nhead(%p: i32):\n{head}\nbr_if %p, body, out\n\
             body:\n%n = sub.i32 %p, %y\njump head(%n)\nout:\n{out}\nreturn %p\n}}\n"
        )
    };
    let (divide, pad) = ("%d = udiv.i32 %y, %p", "%k = const.i32 0");
    stops(
        &Draft::new(&text(divide, pad), &text(pad, divide))
            .done(Check::TrapOrder, "a division of each round, made once behind the loop"),
    );
}

/// One version branches on the parameter of this round, the other version on the value that becomes
/// the parameter in the next round. The path binds both anew.
#[test]
fn a_condition_of_the_next_round_is_another() {
    let text = |condition: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\njump head(%x, %x)\n\
             head(%p: i32, %q: i32):\nbr_if {condition}, body, out\n\
             body:\n%n = call @ask(%y)\njump head(%q, %n)\nout:\nreturn %y\n}}\n"
        )
    };
    let draft = Draft::new(&text("%p"), &text("%q"));
    stops(&draft.done(Check::AnchorOperands, "the condition of the next round"));
    let same = Draft::new(&text("%p"), &text("%p")).done(Check::AnchorOperands, "nothing");
    assert!(verdicts(&same, same.options).iter().all(Verdict::holds));
}
