//! Branches past which a path continues: when it may, and when it must not.

use crate::verdicts;
use crate::wrong::{Draft, Wrong};
use check::verdict::{Check, Verdict};
use ir::Inst;
use transition::Side;
use transition::Side::{After, Before};
use transition::certificate::{By, TermKind};

/// The edge from `entry` decides the branch of `test`; the edge from `right` does not.
const BEFORE: &str = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 1\nbr_if %x, test(%k), right\n\
    right:\n%c = slt.i32 %x, %y\njump test(%c)\ntest(%p: i32):\n%t = eqz.i32 %p\nbr_if %t, no, yes\n\
    yes:\nreturn %x\nno:\nreturn %y\n}\n";

/// The same function with the edge from `entry` sent to `to`.
fn sent_to(to: &str) -> String {
    BEFORE.replace("test(%k)", to)
}

/// The terminator of a block, as an instruction that both versions may have.
fn end(draft: &Draft, side: Side, block: &str) -> Inst {
    let point = draft.at(side, block, 0);
    let f = &draft.versions[side];
    f.terminator(f.inst_block(point.inst()))
}

/// A pair of versions in which the terminators of some blocks are listed as passed.
fn passed(before: &str, after: &str, blocks: &[&str]) -> Draft {
    let mut draft = Draft::new(before, after);
    draft.passed = blocks.iter().map(|b| end(&draft, Before, b)).collect();
    draft
}

/// The verdicts on entries at all anchors but the terminator of one block.
fn elsewhere(draft: Draft, block: &str) -> Vec<Verdict> {
    let at = end(&draft, Before, block);
    let wrong = draft.done(Check::SourceReached, "entries from every anchor");
    let all = wrong.mappings.before.entries().zip(verdicts(&wrong, wrong.options));
    all.filter(|((point, _), _)| point.inst() != at).map(|(_, verdict)| verdict).collect()
}

fn holds(verdicts: &[Verdict]) {
    assert!(verdicts.len() >= 2 && verdicts.iter().all(|v| v.holds()), "{verdicts:?}");
}

fn stops(wrong: &Wrong) {
    let judged = verdicts(wrong, wrong.options);
    assert!(!judged.is_empty(), "{}: there is something to judge", wrong.what);
    for verdict in judged {
        assert_eq!(
            verdict.finding().map(|f| f.check),
            Some(wrong.check),
            "{}: {verdict}",
            wrong.what
        );
        assert!(!verdict.is_refuted(), "{}: {verdict}", wrong.what);
    }
}

#[test]
fn a_path_goes_on_past_a_branch_that_it_decides() {
    holds(&elsewhere(passed(BEFORE, &sent_to("yes"), &["test"]), "test"));
}

#[test]
fn a_path_ends_at_a_branch_that_is_not_listed() {
    stops(
        &Draft::new(BEFORE, &sent_to("yes"))
            .done(Check::AnchorNext, "an edge sent past a branch that is not listed"),
    );
}

#[test]
fn a_path_goes_on_where_the_constant_says() {
    stops(
        &passed(BEFORE, &sent_to("no"), &["test"])
            .done(Check::AnchorNext, "an edge sent the other way"),
    );
}

#[test]
fn a_path_ends_at_a_branch_that_it_does_not_decide() {
    let unknown = |text: &str| text.replace("test(%k)", "test(%y)");
    let draft = passed(&unknown(BEFORE), &sent_to("yes"), &["test"]);
    stops(&draft.done(Check::AnchorNext, "an edge sent past a branch that depends on an argument"));
}

/// The constant on this edge decides, not that on another edge.
#[test]
fn a_constant_on_another_edge_decides_nothing() {
    let turned = BEFORE.replace("test(%k)", "test(%y)").replace("test(%c)", "test(%k)");
    let draft = passed(&turned, &turned.replace("test(%y)", "yes"), &["test"]);
    stops(&draft.done(Check::AnchorNext, "an edge sent past a branch that another edge decides"));
}

/// Control may have reached the block over the edge that leads elsewhere in the other version.
#[test]
fn no_entry_leaves_the_block_of_a_passed_branch() {
    for index in [0, 1] {
        let mut draft = passed(BEFORE, &sent_to("yes"), &["test"]);
        let points = [draft.at(Before, "test", index), draft.at(After, "test", 0)];
        let copies = ["x", "y", "p"].map(|name| (name, draft.from(Before, name)));
        draft.entry(Before, points, Vec::new(), &copies);
        stops(&draft.done(Check::SourceReached, "an entry from a block whose branch is passed"));
    }
}

/// The version with the shortcut reaches the block over the other edge alone. The version without
/// it then continues in the same way.
#[test]
fn an_entry_back_lands_in_the_block_of_a_passed_branch() {
    let mut draft = passed(BEFORE, &sent_to("yes"), &["test"]);
    let points = [draft.at(After, "test", 0), draft.at(Before, "test", 0)];
    let copies = ["x", "y", "p"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, points, Vec::new(), &copies);
    let wrong = draft.done(Check::SourceReached, "nothing");
    let judged = verdicts(&wrong, wrong.options);
    assert!(judged.len() == 1 && judged[0].holds(), "{judged:?}");
}

/// As `BEFORE`, with a block on the edge from `entry` to `test`, and a version that sends this edge
/// to `yes`.
fn split() -> Draft {
    let split = BEFORE
        .replace("test(%k), right\n", "left, right\n")
        .replace("right:\n%c", "left:\njump test(%k)\nright:\n%c");
    passed(&split, &split.replace("test(%k)", "yes"), &["test"])
}

/// The landing point is after a division that the source version has ahead. Whether it is ahead on
/// this path depends on the passed branch, so the entry is neither proved nor refuted.
#[test]
fn no_landing_after_a_trap_is_refuted_where_a_passed_branch_decides() {
    let divides = |text: &str| {
        text.replace("yes:\nreturn %x", "yes:\n%d = udiv.i32 %x, %y\nreturn %x")
            .replace("test(%k), right\n", "left, right\n")
            .replace("right:\n%c", "left:\njump test(%k)\nright:\n%c")
    };
    let before = divides(BEFORE);
    let mut draft = passed(&before, &before.replace("test(%k)", "yes"), &["test"]);
    let points = [draft.at(Before, "left", 0), draft.at(After, "yes", 1)];
    draft.entry(Before, points, Vec::new(), &[("x", draft.from(Before, "x"))]);
    stops(&draft.done(Check::TrapPassed, "a target point after a division that is ahead"));
}

/// Above the block that binds the constant, every point is on the whole path.
#[test]
fn blocks_above_the_binding_of_the_constant_are_not_shared() {
    let mut draft = split();
    let points = [draft.at(Before, "left", 0), draft.at(After, "yes", 0)];
    draft.entry(Before, points, Vec::new(), &[("x", draft.from(Before, "x"))]);
    let wrong = draft.done(Check::SourceReached, "nothing");
    let judged = verdicts(&wrong, wrong.options);
    assert!(judged.len() == 1 && judged[0].holds(), "{judged:?}");
}

/// One version lacks the branch, because every edge into its block decides it.
#[test]
fn a_branch_that_one_version_lacks_is_passed() {
    let before = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 1\n%z = const.i32 0\n\
        br_if %x, test(%k), test(%z)\nyes:\nreturn %x\nno:\nreturn %y\ntest(%p: i32):\nbr_if %p, yes, no\n}\n";
    let after = before
        .replace("test(%k), test(%z)", "yes, no")
        .replace("test(%p: i32):\nbr_if %p, yes, no\n", "");
    holds(&elsewhere(passed(before, &after, &["test"]), "test"));
    let turned = before
        .replace("test(%k), test(%z)", "no, yes")
        .replace("test(%p: i32):\nbr_if %p, yes, no\n", "");
    stops(
        &passed(before, &turned, &["test"])
            .done(Check::AnchorNext, "both ways sent where the other leads"),
    );
}

/// A loop that constants end after one round, or never. The checks on traps and lone writes are
/// about one execution of each instruction on a path, so the pair stays undecided.
#[test]
fn a_path_enters_no_block_twice() {
    let round = |again: &str, first: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\n%z = const.i32 0\njump {first}\n\
             head(%p: i32):\nbr_if %p, body, out\nbody:\njump head({again})\nout:\nreturn %x\n}}\n"
        )
    };
    for again in ["%z", "%k"] {
        let draft = passed(&round(again, "head(%k)"), &round(again, "out"), &["head"]);
        stops(&draft.done(Check::AnchorNext, "a loop passed by as a whole"));
    }
}

/// The list is not trusted: neither its order, nor that its items are branches, exist in a version,
/// or are decided. No forged list lets anything through.
#[test]
fn wrongly_listed_branches_change_nothing() {
    let right = elsewhere(passed(BEFORE, &sent_to("yes"), &["test"]), "test");
    let all = ["test", "no", "entry", "right", "yes"];
    let mut odd = passed(BEFORE, &sent_to("yes"), &all);
    odd.passed.extend([
        Inst::from_u32(9999),
        Inst::from_u32(u32::MAX - 1),
        odd.at(Before, "test", 0).inst(),
    ]);
    odd.passed.extend(odd.passed.clone());
    assert_eq!(elsewhere(odd, "test"), right);
    let mut wrong = passed(BEFORE, &sent_to("no"), &all);
    wrong.passed.extend([Inst::from_u32(9999), wrong.at(Before, "test", 0).inst()]);
    stops(&wrong.done(Check::AnchorNext, "an edge sent the other way, and a list of everything"));
    // Equal versions hold, with any list.
    let listed = passed(BEFORE, BEFORE, &all);
    holds(&elsewhere(listed, "test"));
}

/// A lone write in a block from which paths lead to several anchors. The block does not tell which
/// anchor follows the write, so its trap cannot be compared.
#[test]
fn no_lone_write_is_accepted_where_paths_part() {
    let text = |given: &str, lone: &str| {
        format!(
            "%k = const.i32 1\nbr_if %x, {given}, right\nright:\n%c = slt.i32 %x, %y\njump test(%c)\n\
             test(%p: i32):\n{lone}\nbr_if %p, yes, no\nyes:\nglobal_set.i32 @g, %y\nreturn %x\n\
             no:\nglobal_set.i32 @g, %y\nreturn %y\n"
        )
    };
    let draft = |before: &str, after: &str| {
        let mut draft = Draft::of_writes(
            &text(before, "global_set.i32 @g, %x"),
            &text(after, "%q = const.i32 0"),
        );
        draft.passed = vec![end(&draft, Before, "test")];
        // All edges into a block bring one memory: that of the function entry; or, below the lone
        // write of the version before, that of the write.
        let start = draft.at(After, "entry", 0).inst();
        let memory = draft.memory_before(After, start);
        for (side, block) in [
            (Before, "right"),
            (Before, "test"),
            (After, "right"),
            (After, "test"),
            (After, "yes"),
            (After, "no"),
        ] {
            draft.memory_is(side, block, memory);
        }
        let lone = draft.at(Before, "test", 0);
        let memory = draft.write(Before, lone);
        draft.memory_is(Before, "yes", memory);
        draft.memory_is(Before, "no", memory);
        for block in ["yes", "no"] {
            let [own, other] = [Before, After].map(|side| draft.at(side, block, 0));
            let result = draft.write(After, other);
            let term = draft.like(result, memory, result, By::Covers { result });
            draft.write_is(Before, own, term);
        }
        draft.done(
            Check::LoneWrite,
            "a write of one version, in a block that the other passes by on some ways",
        )
    };
    let undecided = draft("test(%y)", "test(%y)");
    let judged = verdicts(&undecided, undecided.options);
    assert!(judged.iter().any(Verdict::holds), "the write is all right by itself: {judged:?}");
    stops(&draft("test(%k)", "yes"));
}

/// Two parameters of a block. On each round, the one that decides receives the contents that the
/// other had before.
#[test]
fn a_binding_after_the_argument_decides_nothing() {
    let text = |again: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%z = const.i32 0\nbr_if %x, head(%x, %y), out\n\
             head(%p: i32, %q: i32):\nbr_if %p, body, out\nbody:\n%r = call @ask(%x)\njump {again}\n\
             out:\nreturn %x\n}}\n"
        )
    };
    let draft = |given: &str| {
        let mut draft = passed(&text(given), &text("out"), &["head"]);
        // One leaf in both versions, although the version after has no loop.
        let memory = draft.leaf("memory at head", TermKind::MemoryParam, None);
        draft.memory_is(After, "head", memory);
        draft
    };
    stops(
        &draft("head(%q, %z)")
            .done(Check::AnchorNext, "an exit decided by the argument of the next round"),
    );
    holds(&elsewhere(draft("head(%z, %q)"), "head"));
}

/// The branch of `test` depends on its own argument and on that of `first`, in either order. Paths
/// part between the two blocks.
#[test]
fn no_entry_leaves_between_two_deciding_blocks() {
    for operands in ["%b, %a", "%a, %b"] {
        let before = format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\nbr_if %x, first(%k), right\n\
             right:\n%c = slt.i32 %x, %y\njump first(%c)\nfirst(%a: i32):\njump middle\nmiddle:\njump test(%k)\n\
             test(%b: i32):\n%t = and.i32 {operands}\nbr_if %t, yes, no\nyes:\nreturn %x\nno:\nreturn %y\n}}\n"
        );
        let pair = || passed(&before, &before.replace("first(%k)", "yes"), &["test"]);
        holds(&elsewhere(pair(), "test"));
        for block in ["first", "middle"] {
            let mut draft = pair();
            let points = [Before, After].map(|side| draft.at(side, block, 0));
            let copies = ["x", "y", "k", "a"].map(|name| (name, draft.from(Before, name)));
            draft.entry(Before, points, Vec::new(), &copies);
            stops(
                &draft.done(Check::SourceReached, "an entry from between two blocks that decide"),
            );
        }
    }
}

/// The condition is 1 on one edge and another constant on the other edge, and only one version has
/// the branch. No certificate states the condition after the branch. So contents chosen for it
/// must refute neither the pair nor an entry.
fn decided_on_both_edges(other: u32, ways: &str, yes: [&str; 2]) -> Draft {
    let text = |yes: &str, ways: &str, test: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\n%z = const.i32 {other}\nbr_if %x, {ways}\n\
             yes:\n%s = add.i32 %x, {yes}\nreturn %s\nno:\nreturn %y\n{test}}}\n"
        )
    };
    let test = "test(%p: i32):\nbr_if %p, yes, no\n";
    passed(&text(yes[0], "test(%k), test(%z)", test), &text(yes[1], ways, ""), &["test"])
}

#[test]
fn no_pair_is_refuted_behind_a_passed_branch() {
    let draft = decided_on_both_edges(0, "yes, no", ["%p", "%k"]);
    let wrong = draft.done(Check::AnchorOperands, "a sum with the condition, which is 1 there");
    let judged = verdicts(&wrong, wrong.options);
    let undecided = judged.iter().filter_map(|v| v.finding()).map(|f| f.check);
    assert!(undecided.eq([Check::AnchorOperands; 2]), "{judged:?}");
    assert!(!judged.iter().any(Verdict::is_refuted), "{judged:?}");
}

#[test]
fn no_value_is_refuted_behind_a_passed_branch() {
    let mut draft = decided_on_both_edges(0, "yes, no", ["%k", "%k"]);
    let points = [Before, After].map(|side| draft.at(side, "yes", 0));
    let copies = [("x", draft.from(Before, "x")), ("k", draft.from(Before, "p"))];
    draft.entry(Before, points, Vec::new(), &copies);
    stops(&draft.done(Check::AssignValue, "the condition given for 1, which it is there"));
}

/// Nothing reads `%y` in a run: both edges decide the branch for a target that does not read it.
#[test]
fn no_value_left_out_is_refuted_where_a_passed_branch_decides() {
    let mut draft = decided_on_both_edges(2, "yes, yes", ["%k", "%k"]);
    let points = [After, Before].map(|side| draft.at(side, "entry", 2));
    let copies = ["x", "k", "z"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, points, Vec::new(), &copies);
    stops(
        &draft
            .done(Check::LivePlus, "a value read after an edge that is never taken, not provided"),
    );
}

/// Both versions continue alike, the target version past its branch. Other edges lead to that block
/// as well, so the entry is not proved.
#[test]
fn no_landing_is_refuted_where_a_passed_branch_decides() {
    let mut draft = split();
    let points = [After, Before].map(|side| draft.at(side, "left", 0));
    let copies = ["x", "y", "k"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, points, Vec::new(), &copies);
    stops(&draft.done(Check::TargetPoint, "a target point whose path continues past a branch"));
}

/// `test` receives 1 from `entry`, `%c` from `right`, and a value of choice from `left`. The
/// version after has no edge from `entry`, and branches on `%c`.
fn one_condition(left: &str, order: &str) -> Draft {
    let text = |first: &str, condition: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 1\n%c = slt.i32 %x, %y\n\
             br_if %x, {first}, other\nother:\nbr_if %y, {order}\nleft:\njump test({left})\n\
             right:\njump test(%c)\ntest(%p: i32):\nbr_if {condition}, yes, no\n\
             yes:\nreturn %x\nno:\nreturn %y\n}}\n"
        )
    };
    passed(&text("test(%k)", "%p"), &text("yes", "%c"), &["test"])
}

/// Both paths that end at the branch bind the condition to `%c`.
#[test]
fn a_branch_with_one_way_left_is_proved() {
    holds(&elsewhere(one_condition("%c", "left, right"), "test"));
}

/// The path from `left` brings something else. No run through it is proved, whichever path the
/// checker follows first.
#[test]
fn each_path_to_a_branch_is_asked_for_its_condition() {
    for order in ["left, right", "right, left"] {
        let draft = one_condition("%y", order);
        stops(&draft.done(Check::AnchorOperands, "another condition on one path"));
    }
}

/// `test` receives 1 from `entry`, and the parameter of `left` from there. The version after has no
/// edge from `entry`, and `test` has no parameter. The version before has the leaf where the path
/// starts, and not where it ends, because `left` does not dominate `test`.
#[test]
fn a_condition_is_compared_where_the_path_starts() {
    let before = "(%x: i32, %y: i32) -> i32 {\nentry:\n%k = const.i32 1\nbr_if %x, test(%k), right\n\
        right:\nbr_if %y, left(%x), left(%k)\nleft(%c: i32):\n%d = udiv.i32 %x, %c\n\
        jump test(%c)\ntest(%p: i32):\nbr_if %p, yes, no\nyes:\nreturn %x\nno:\nreturn %y\n}\n";
    let draft = |condition: &str| {
        let after = before
            .replace("test(%k)", "yes")
            .replace("test(%c)", "test")
            .replace("test(%p: i32)", "test")
            .replace("br_if %p", &format!("br_if {condition}"));
        let mut draft = passed(before, &after, &["test"]);
        // An anchor, so that a path starts there.
        let divides = draft.at(Before, "left", 0).inst();
        draft.anchors.push(divides);
        draft.anchors.sort_unstable();
        draft
    };
    holds(&elsewhere(draft("%c"), "test"));
    stops(&draft("%y").done(Check::AnchorOperands, "a condition that the path does not bring"));
}

/// One version branches on the parameter of this round, the other on the one that becomes it in the
/// next round. The path binds both anew.
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
    crate::holes::stops(&draft.done(Check::AnchorOperands, "the condition of the next round"));
    let same = Draft::new(&text("%p"), &text("%p")).done(Check::AnchorOperands, "nothing");
    holds(&verdicts(&same, same.options));
}
