//! Forgeries about memory that the checker once accepted, or was suspected of accepting: merged
//! reads, lone writes, replays, and addresses.

use crate::holes::{judged, stops};
use crate::wrong::Draft;
use crate::wrong::memory::{late_store, window};
use check::verdict::{Check, Verdict};
use ir::{Imm, Opcode, Type};
use transition::Side;
use transition::Side::{After, Before};
use transition::certificate::{By, NO_TERM, TermKind};

/// The read above the loop reads the memory at the start of its block. In the version before, each
/// round binds the leaf of this memory anew.
#[test]
fn memory_bound_in_one_version_alone_is_compared() {
    let text = |first: &str, last: &str, result: &str| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\njump pre\npre:\n{first}jump head\nhead:\nbr_if %x, body, out\n\
             body:\nglobal_set.i32 @g, %y\njump head\nout:\n{last}return %{result}\n}}\n"
        )
    };
    let (read, pad) = (
        |v: &str| format!("%{v} = global_get.i32 @g\n"),
        |v: &str| format!("%{v} = const.i32 0\n"),
    );
    let mut draft =
        Draft::new(&text(&pad("v"), &read("w"), "w"), &text(&read("v"), &pad("w"), "v"));
    let memory = draft.leaf("memory at head", TermKind::MemoryParam, None);
    let own = draft.leaf("memory at head, after", TermKind::MemoryParam, None);
    draft.memory_is(After, "pre", memory);
    draft.memory_is(After, "head", own);
    stops(&draft.done(Check::AnchorMemory, "a global read before the loop for one read after it"));
}

/// No version binds the memory of this read, so no version confirms the reason. That the read gives
/// one byte tells nothing about its class.
#[test]
fn a_merged_read_tells_nothing() {
    let text = |result: &str| {
        format!(
            "%k = const.i32 255\n%b = uload8.i32 @m[%y]\n%s = and.i32 %x, %k\nreturn %{result}\n"
        )
    };
    let mut draft = Draft::of_writes(&text("x"), &text("s"));
    let (x, k, read) = (draft.term(Before, "x"), draft.term(Before, "k"), draft.term(Before, "b"));
    let nowhere = draft.leaf("nowhere", TermKind::MemoryParam, None);
    let merged = draft.like(read, nowhere, x, By::Merged { reads: Default::default() });
    // Nor does the same read of that memory after a write to a disjoint place.
    let set =
        draft.op(Opcode::GlobalSet, Type::I32, Imm::Global(ir::Global::from_u32(0)), &[x, nowhere]);
    draft.like(read, set, x, By::Apart { via: [NO_TERM; 2], result: merged });
    let masked = draft.op(Opcode::And, Type::I32, Imm::None, &[x, k]);
    let masked = draft.by_rule("and-known", masked, &[], x, NO_TERM);
    draft.is(After, "s", masked);
    stops(&draft.done(Check::RuleGuard, "any number said to be one byte"));
}

/// Without lone writes, memory is the same in both versions, until the entry writes something.
#[test]
fn a_replay_without_a_write_is_rejected() {
    let text = "global_set.i32 @g, %y\nreturn %x\n";
    let mut draft = Draft::of_writes(text, text);
    let at = draft.at(Before, "entry", 0);
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, [at; 2], Vec::new(), &copies);
    let (x, memory) =
        (draft.term(Before, "x"), draft.leaf("memory", TermKind::MemoryAtEntry, None));
    let term =
        draft.op(Opcode::GlobalSet, Type::I32, Imm::Global(ir::Global::from_u32(0)), &[x, memory]);
    let x = draft.from(Before, "x");
    draft.replay(Before, at, &[x], term);
    stops(&draft.done(Check::EntryMemory, "a replay of a write that no version executes"));
}

/// The replay whose absence makes `window` wrong.
#[test]
fn a_write_of_one_version_is_replayed() {
    let mut draft = window();
    let at = draft.at(After, "entry", 0);
    let (term, x) = (draft.write(After, at), draft.from(Before, "x"));
    draft.replay(Before, at, &[x], term);
    assert_eq!(judged(&draft.done(Check::Replay, "nothing")), [Verdict::Holds]);
}

/// The store below accesses an address of this round, which only the store above has accessed
/// before.
#[test]
fn an_access_of_the_round_before_vouches_for_nothing() {
    let text = |first: &str| {
        format!(
            "%k = const.i32 4\njump head(%x)\nhead(%i: i32):\nbr_if %y, body, out\nbody:\n{first}\n\
             global_set.i32 @g, %i\nstore.i32 @m[%i], %y\n%n = add.i32 %i, %k\njump head(%n)\nout:\nreturn %x\n"
        )
    };
    let mut draft = Draft::of_writes(&text("store.i32 @m[%i], %x"), &text("%p = const.i32 0"));
    let [between, last, same] =
        [(Before, 1), (Before, 2), (After, 2)].map(|(side, index)| draft.at(side, "body", index));
    let (memory, result) = (draft.write(Before, between), draft.write(After, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(Before, last, term);
    stops(
        &draft.done(Check::LoneWrite, "a store that may trap in each round, in front of a write"),
    );
}

/// The target version has stored there already, and would have trapped if the next store did.
#[test]
fn a_store_that_may_trap_is_not_replayed() {
    let draft = late_store();
    stops(&draft.done(Check::Replay, "a store at an address that has not been accessed"));
}

#[test]
fn memory_that_one_arm_of_one_version_writes_is_not_merged() {
    let text = |first: &str| {
        format!(
            "br_if %x, left, right\nleft:\n{first}\njump join\nright:\njump join\njoin:\n\
             %r = call @ask(%y)\nreturn %r\n"
        )
    };
    let draft = Draft::of_writes(&text("global_set.i32 @g, %y"), &text("%p = const.i32 0"));
    stops(&draft.done(Check::LeafAgrees, "a write in one arm that the call behind the join sees"));
}

/// A lone store on one of two arms. An access above both arms vouches for it, and an access on the
/// other arm does not, in either order of the arms.
#[test]
fn an_access_on_another_arm_vouches_for_nothing() {
    let draft = |above: &str, ways: &str| {
        let text = |first: &str| {
            format!(
                "{above}br_if %y, {ways}\nbeside:\n%b = load.i32 @m[%x]\nreturn %b\n\
                 here:\n{first}\nglobal_set.i32 @g, %y\nstore.i32 @m[%x], %y\nreturn %x\n"
            )
        };
        let mut draft = Draft::of_writes(&text("store.i32 @m[%x], %x"), &text("%p = const.i32 0"));
        // Accesses of both versions are anchors, even if they write nothing.
        draft.anchors.extend(["entry", "beside"].map(|block| draft.at(Before, block, 0).inst()));
        draft.anchors.sort_unstable();
        draft.anchors.dedup();
        let [between, last, same] = [(Before, 1), (Before, 2), (After, 2)]
            .map(|(side, index)| draft.at(side, "here", index));
        let (memory, result) = (draft.write(Before, between), draft.write(After, same));
        let term = draft.like(result, memory, result, By::Covers { result });
        draft.write_is(Before, last, term);
        draft
            .done(Check::LoneWrite, "a store that may trap, where an access on another way has not")
    };
    for ways in ["beside, here", "here, beside"] {
        stops(&draft("", ways));
        let vouched = judged(&draft("%a = load.i32 @m[%x]\n", ways));
        assert!(vouched.iter().any(Verdict::holds), "{ways}: {vouched:?}");
    }
}

/// The window of a lone write has no entry to the version that has not executed the write.
#[test]
fn memory_cannot_be_unwritten() {
    let mut draft = window();
    let points = [After, Before].map(|side| draft.at(side, "entry", 1));
    let copies = ["x", "y"].map(|name| (name, draft.from(After, name)));
    draft.entry(After, points, Vec::new(), &copies);
    let verdicts = judged(
        &draft.done(Check::EntryMemory, "an entry to a point where a write has not executed"),
    );
    for verdict in verdicts {
        assert!(verdict.is_refuted(), "a global holds something else: {verdict}");
    }
}

/// As `window`, with a write of another global after the lone write.
#[test]
fn a_write_is_replayed_behind_one_that_is_apart() {
    let text = |first: &str| {
        format!(
            "{first}\nglobal_set.i32 @h, %y\n%q = const.i32 0\nglobal_set.i32 @g, %y\nreturn %x\n"
        )
    };
    let mut draft = Draft::of_writes(&text("%p = const.i32 0"), &text("global_set.i32 @g, %x"));
    let [lone, apart, last] = [0, 1, 3].map(|index| draft.at(After, "entry", index));
    let same = [1, 3].map(|index| draft.at(Before, "entry", index));
    let (memory, result) = (draft.write(After, apart), draft.write(Before, same[1]));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(After, last, term);
    let points = [Before, After].map(|side| draft.at(side, "entry", 2));
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, points, Vec::new(), &copies);
    let (inner, before, x) =
        (draft.write(After, lone), draft.write(Before, same[0]), draft.from(Before, "x"));
    let term =
        draft.like(inner, before, memory, By::Swaps { via: [NO_TERM; 2], inner, result: memory });
    draft.replay(Before, lone, &[x], term);
    assert_eq!(judged(&draft.done(Check::EntryMemory, "nothing")), [Verdict::Holds]);
}

/// The next access is in another block. It traps in both versions where the lone store would.
#[test]
fn a_write_of_one_version_may_trap_in_front_of_a_jump() {
    let text =
        |first: &str| format!("{first}\njump next\nnext:\nstore.i32 @m[%x], %y\nreturn %x\n");
    let mut draft = Draft::of_writes(&text("store.i32 @m[%x], %x"), &text("%p = const.i32 0"));
    let [last, same] = [Before, After].map(|side| draft.at(side, "next", 0));
    let first = draft.at(Before, "entry", 0);
    let (memory, result) = (draft.write(Before, first), draft.write(After, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(Before, last, term);
    let verdicts = judged(&draft.done(Check::LoneWrite, "nothing"));
    // All entries except entries from after the lone write to a point where it has not executed.
    let held = verdicts.iter().filter(|verdict| verdict.holds()).count();
    assert_eq!((held, verdicts.len()), (1, 2), "{verdicts:?}");
}

/// A store that ends above 2^32 always traps. Claimed to cover the store below it, and to be
/// covered in turn, it would let a run land behind it (`docs/osr.md`: every run reaches its target
/// point).
#[test]
fn no_write_covers_one_that_always_traps() {
    let text = |insts: [&str; 3]| {
        let lines = insts.join("\n");
        format!("%l = load.i32 @m[%x]\n{lines}\n%b = load.i32 @m[%x + 4294967296]\nreturn %b\n")
    };
    let pad = |name: &str| format!("%{name} = const.i32 0");
    let (near, far) = ("store.i32 @m[%x], %y", "store.i32 @m[%x + 4294967296], %y");
    let mut draft = Draft::of_writes(&text([near, &pad("p"), &pad("q")]), &text([near, far, near]));
    let at = [0, 1, 2, 3, 4].map(|index| draft.at(After, "entry", index));
    draft.anchors.retain(|anchor| *anchor != at[1].inst());
    draft.anchors.extend([at[0].inst(), at[4].inst()]);
    draft.anchors.sort_unstable();
    let (x, y) = (draft.term(After, "x"), draft.term(After, "y"));
    let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    let first = draft.write(After, at[1]);
    let imm = draft.versions.after.inst(at[2].inst()).imm;
    let alone = draft.op(Opcode::Store, Type::I32, imm, &[x, y, entry]);
    let second = draft.like(alone, first, alone, By::Covers { result: alone });
    draft.write_is(After, at[2], second);
    let third = draft.like(first, alone, first, By::Covers { result: first });
    draft.write_is(After, at[3], third);
    let points = [draft.at(Before, "entry", 1), at[4]];
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, points, Vec::new(), &copies);
    draft.replay(Before, at[1], &[copies[0].1, copies[1].1], first);
    stops(&draft.done(Check::MemoryRule, "a landing point behind a store that always traps"));
}

/// Such a store has no term for the memory after it, not even as an anchor.
#[test]
fn a_store_above_every_memory_is_no_write() {
    let text = "store.i32 @m[%x + 4294967293], %y\nreturn %x\n";
    let mut draft = Draft::of_writes(text, text);
    for side in Side::BOTH {
        let store = draft.at(side, "entry", 0);
        let (x, y) = (draft.term(side, "x"), draft.term(side, "y"));
        let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
        let imm = draft.versions[side].inst(store.inst()).imm;
        let term = draft.op(Opcode::Store, Type::I32, imm, &[x, y, entry]);
        draft.write_is(side, store, term);
    }
    stops(&draft.done(Check::MemoryTerm, "a term for memory after a store that always traps"));
}

/// A merged read of a memory that neither version binds: no version has checked its reason.
#[test]
fn a_merged_read_has_a_binder() {
    let text = "(%x: i32, %y: i32) -> i32 {\nentry:\nreturn %x\n}\n";
    let mut draft = Draft::new(text, text);
    let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    let nowhere = draft.leaf("memory of no block", TermKind::MemoryParam, None);
    let global = Imm::Global(ir::Global::from_u32(0));
    let read = draft.op(Opcode::GlobalGet, Type::I32, global, &[entry]);
    draft.like(read, nowhere, read, By::Merged { reads: [read].into_iter().collect() });
    stops(&draft.done(Check::MemoryMerge, "a merged read of a memory of no block"));
}

/// The hint for a distance comes later in the table than the read that names it.
#[test]
fn a_sum_that_comes_later_is_not_believed() {
    let text = "%k = const.i32 4\n%a = add.i32 %x, %k\n%w = load.i32 @m[%x]\nstore.i32 @m[%a], %y\n\
        %v = load.i32 @m[%x]\n";
    let mut draft = Draft::of_writes(&format!("{text}return %w\n"), &format!("{text}return %v\n"));
    let (result, address) = (draft.term(After, "w"), draft.term(After, "a"));
    let zero = draft.constant(Type::I32, 0);
    let read = draft.at(After, "entry", 4).inst();
    let memory = draft.memory_before(After, read);
    let later = draft.terms.len() as u32 + 1;
    let term = draft.like(result, memory, result, By::Apart { via: [NO_TERM, later], result });
    let rule = ir::rules::RULES.iter().position(|r| r.name == "add-zero").expect("a rule") as u32;
    let by = By::Rule { rule, swapped: 0, inner: Default::default(), result: NO_TERM };
    let args = [address, zero].into_iter().collect();
    let sum = TermKind::Op { opcode: Opcode::Add, ty: Type::I32, imm: Imm::None, args };
    assert_eq!(draft.add(sum, Some(Type::I32), Some(address), by), later);
    draft.is(Before, "v", term);
    draft.is(After, "v", term);
    stops(&draft.done(Check::MemoryRule, "a distance shown by a term that comes later"));
}

/// Two versions of a join that shows memory. Each names the memory at the start of `join` by a leaf
/// of its own.
fn joined(left: [&str; 2], join: [&str; 2]) -> Draft {
    let text = |version: usize| {
        format!(
            "br_if %x, left, right\nleft:\n{}\njump join\nright:\n%a = call @ask(%x)\njump join\n\
             join:\n{}\n%r = call @ask(%y)\nreturn %r\n",
            left[version], join[version]
        )
    };
    let mut draft = Draft::of_writes(&text(0), &text(1));
    let other = draft.leaf("memory at join, after", TermKind::MemoryParam, None);
    draft.memory_is(After, "join", other);
    draft
}

/// Memory is compared on each path, in terms of its start. A lone write on the path changes it.
#[test]
fn memory_before_a_call_is_compared_on_each_path() {
    let write = "global_set.i32 @g, %x";
    let [pad, other] = ["%k = const.i32 0", "%l = const.i32 0"];
    // The anchors are proved. The entry in the join stays undecided: it compares the leaves.
    let same = judged(&joined([pad; 2], [other; 2]).done(Check::AnchorMemory, "nothing"));
    let failed: Vec<_> = same.iter().filter_map(|v| v.finding()).map(|f| f.check).collect();
    assert_eq!(failed, [Check::EntryMemory], "{same:?}");
    for (left, join) in [([write, pad], [other; 2]), ([pad; 2], [write, other])] {
        for turned in [false, true] {
            let turn = |[a, b]: [&'static str; 2]| if turned { [b, a] } else { [a, b] };
            let draft = joined(turn(left), turn(join));
            stops(&draft.done(Check::AnchorMemory, "a write of one version on the way to a call"));
        }
    }
}
