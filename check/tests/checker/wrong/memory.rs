//! Forgeries about memory: wrong reasons for reads and writes, lone writes that show, and wrong
//! replays.

use super::draft::{Draft, Wrong};
use check::verdict::Check;
use ir::{Opcode, Type};
use transition::Side::{After, Before};
use transition::certificate::{By, NO_TERM, TermId, TermKind};

const NONE: [TermId; 2] = [NO_TERM; 2];

/// The version before returns a read above a store (`%w`), the version after a read below it
/// (`%v`). The certificate claims that both give the same, because the store is apart. `via` makes
/// the hints for the distance of the two addresses.
fn apart(what: &'static str, text: &str, via: impl Fn(&mut Draft) -> [TermId; 2]) -> Wrong {
    let mut draft = Draft::of_writes(&format!("{text}return %w\n"), &format!("{text}return %v\n"));
    let result = draft.term(After, "w");
    let v = draft.value(After, "v");
    let read = draft.versions.after.defining_inst(v).expect("a read");
    let (memory, via) = (draft.memory_before(After, read), via(&mut draft));
    let term = draft.like(result, memory, result, By::Apart { via, result });
    draft.is(Before, "v", term);
    draft.is(After, "v", term);
    draft.done(Check::MemoryRule, what)
}

/// A read after a store, claimed to give the value stored, although it reads other bytes.
fn stored(what: &'static str, store: &str, read: &str) -> Wrong {
    let text = format!("{store}\n%v = {read}\n");
    let mut draft = Draft::of_writes(&format!("{text}return %y\n"), &format!("{text}return %v\n"));
    let y = draft.term(After, "y");
    let natural = draft.term(After, "v");
    let memory = draft.at(After, "entry", 0);
    let memory = draft.write(After, memory);
    let term = draft.like(natural, memory, y, By::Stored { via: NONE });
    draft.is(Before, "v", term);
    draft.is(After, "v", term);
    draft.done(Check::MemoryRule, what)
}

/// The version before has a store that the version after lacks, as its second instruction. The last
/// write of both versions is claimed to cover it.
fn covered(what: &'static str, lone: &str, last: &str) -> Wrong {
    let text = |lone: &str| format!("store.i32 @m[%x + 4], %y\n{lone}\n{last}\nreturn %x\n");
    let mut draft = Draft::of_writes(&text(lone), &text("%p = const.i32 0"));
    let lone = draft.at(Before, "entry", 1);
    let [point, same] = [Before, After].map(|side| draft.at(side, "entry", 2));
    let (memory, result) = (draft.write(Before, lone), draft.write(After, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(Before, point, term);
    draft.done(Check::MemoryRule, what)
}

/// Two writes, claimed to commute. `terms` gets the second write on the memory before both and on
/// the memory after the first. It returns two terms: the second write below the first, and the
/// memory on which the first write then stands.
fn swapped(
    what: &'static str,
    writes: [&str; 2],
    terms: impl Fn(&mut Draft, [TermId; 2]) -> [TermId; 2],
) -> Wrong {
    let text = format!("{}\nreturn %x\n", writes.join("\n"));
    let mut draft = Draft::of_writes(&text, &text);
    let [one, two] = [0, 1].map(|index| draft.at(Before, "entry", index));
    let (first, natural) = (draft.write(Before, one), draft.write(Before, two));
    let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    let plain = draft.on(natural, entry);
    let [inner, below] = terms(&mut draft, [plain, natural]);
    let result = draft.on(first, below);
    let term = draft.like(natural, first, result, By::Swaps { via: NONE, inner, result });
    draft.write_is(Before, two, term);
    draft.write_is(After, two, term);
    draft.done(Check::MemoryRule, what)
}

fn swaps() -> [Wrong; 5] {
    let right = |_: &mut Draft, [plain, _]: [TermId; 2]| [plain, plain];
    let apart = ["store.i32 @m[%x + 4], %x", "store.i32 @m[%x], %y"];
    [
        swapped(
            "a store two bytes further on, first",
            ["store.i32 @m[%x + 2], %x", "store.i32 @m[%x], %y"],
            right,
        ),
        swapped("a store anywhere, first", ["store.i32 @m[%y], %x", "store.i32 @m[%x], %y"], right),
        swapped("a write of another value, first", apart, |draft, [plain, _]| {
            let y = draft.term(Before, "y");
            let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
            let imm = draft.versions.before.inst(draft.at(Before, "entry", 1).inst()).imm;
            let x = draft.term(Before, "x");
            assert_ne!(x, y);
            let other = draft.op(Opcode::Store, Type::I32, imm, &[x, x, entry]);
            assert_ne!(other, plain);
            [other, other]
        }),
        swapped("a write that comes twice", apart, |_, [_, natural]| [natural, natural]),
        swapped("a write left out", apart, |draft, [plain, _]| {
            [plain, draft.leaf("memory", TermKind::MemoryAtEntry, None)]
        }),
    ]
}

/// Reasons for reads and writes, each wrong in another way.
pub(super) fn rules() -> Vec<Wrong> {
    reads_and_covers().into_iter().chain(swaps()).collect()
}

fn reads_and_covers() -> [Wrong; 8] {
    let classes = |_: &mut Draft| NONE;
    let around = |write: &str| format!("%w = load.i32 @m[%x]\n{write}\n%v = load.i32 @m[%x]\n");
    let with = |k: i32, access: &str| {
        format!(
            "%k = const.i32 {k}\n%a = add.i32 %x, %k\n{}",
            access.replace("READ", "load.i32 @m[%y]")
        )
    };
    [
        apart("a store of the last two bytes read", &around("store.i32 @m[%x + 2], %y"), classes),
        apart("a store anywhere", &around("store.i32 @m[%y], %y"), classes),
        apart(
            "an address said to be a sum that it is not",
            &with(4, "%w = READ\nstore.i32 @m[%x], %x\n%v = READ\n"),
            |draft| [draft.term(After, "a"), NO_TERM],
        ),
        apart(
            "a store that overlaps the first bytes read",
            &with(-2, &around("store.i32 @m[%a], %y")),
            |draft| [NO_TERM, draft.term(After, "a")],
        ),
        stored(
            "four bytes stored said to be the one read",
            "store.i32 @m[%x], %y",
            "uload8.i32 @m[%x]",
        ),
        stored(
            "a store said to be read four bytes below",
            "store.i32 @m[%x + 4], %y",
            "load.i32 @m[%x]",
        ),
        covered("a store two bytes further on", "store.i32 @m[%x], %x", "store.i32 @m[%x + 2], %y"),
        covered("a store of one byte", "store.i32 @m[%x], %x", "store8.i32 @m[%x], %y"),
    ]
}

/// A loop that may write the global which is read above it (`%v`) and below it (`%w`).
const LOOP: &str = "%v = global_get.i32 @g\njump head\nhead:\nbr_if %x, body, out\nbody:\nglobal_set.i32 @g, %y\n\
    jump head\nout:\n%w = global_get.i32 @g\n";

pub(super) fn merges() -> [Wrong; 2] {
    let mut edge = Draft::of_writes(&format!("{LOOP}return %v\n"), &format!("{LOOP}return %w\n"));
    let (read, memory) =
        (edge.term(Before, "v"), edge.leaf("memory at head", TermKind::MemoryParam, None));
    let term = edge.like(read, memory, read, By::Merged { reads: [read].into_iter().collect() });
    edge.is(Before, "w", term);
    edge.is(After, "w", term);

    // Each round stores to the address at which the next round reads.
    let rounds = "%k = const.i32 4\njump head(%x)\nhead(%i: i32):\n%w = load.i32 @m[%i]\nbr_if %w, body, out\n\
        body:\n%n = add.i32 %i, %k\nstore.i32 @m[%n], %y\njump head(%n)\nout:\nreturn %w\n";
    let mut address = Draft::of_writes(rounds, rounds);
    let [_, i, n] = ["y", "i", "n"].map(|name| address.term(Before, name));
    let (first, memory) = (
        address.leaf("memory", TermKind::MemoryAtEntry, None),
        address.leaf("memory at head", TermKind::MemoryParam, None),
    );
    let imm = address.versions.before.inst(address.at(Before, "head", 0).inst()).imm;
    let at_entry = address.op(Opcode::Load, Type::I32, imm, &[i, first]);
    let (itself, back) = (address.terms.len() as TermId, address.terms.len() as TermId + 2);
    let term = address.like(
        at_entry,
        memory,
        at_entry,
        By::Merged { reads: [at_entry, back].into_iter().collect() },
    );
    assert_eq!(term, itself);
    let store = address.at(Before, "body", 1);
    let written = address.write(Before, store);
    let read =
        address.like(at_entry, written, at_entry, By::Apart { via: [NO_TERM, n], result: term });
    assert_eq!(read, back);
    address.is(Before, "w", term);
    address.is(After, "w", term);
    [
        edge.done(
            Check::MemoryMerge,
            "a read after a loop with writes, in the class of one before",
        ),
        address.done(Check::MemoryMerge, "a merged read at an address that each round binds anew"),
    ]
}

/// The word of a reference before a call (`%old`) and behind it (`%new`), where the call may have
/// collected. The version before returns `%new`, the version after `%old`.
const COLLECTED: &str = "%w = uextend.i64 %x\n%p = ref_of %w\n%v = uextend.i64 %y\n\
    %q = ref_of %v\n%old = ref_bits %p\n%other = ref_bits %q\ncall @tell()\n\
    %new = ref_bits %p\n";

fn collected(returned: [&str; 2]) -> Draft {
    let [before, after] =
        returned.map(|name| format!("{COLLECTED}%r = wrap.i32 %{name}\nreturn %r\n"));
    Draft::of_writes(&before, &after)
}

pub(super) fn references() -> [Wrong; 3] {
    let mut stale = collected(["new", "old"]);
    let old = stale.term(Before, "old");
    [Before, After].into_iter().for_each(|side| stale.is(side, "new", old));

    let mut other = collected(["other", "old"]);
    let old = other.term(Before, "old");
    [Before, After].into_iter().for_each(|side| other.is(side, "other", old));

    let mut kept = collected(["new", "new"]);
    let points = [Before, After].map(|side| kept.at(side, "entry", 8));
    kept.entry(Before, points, Vec::new(), &[("new", kept.from(Before, "old"))]);
    kept.change_entry(Before, |entry| entry.kept = entry.requires.clone());
    [
        stale.done(Check::MemoryTerm, "a word read before a call for the one behind it"),
        other.done(Check::ValueTerm, "the word of one reference for that of another"),
        kept.done(Check::AssignValue, "a kept word of a reference for the one of now"),
    ]
}

/// The version before has a lone store, which the last store of both versions covers. `passed` are
/// accesses above it, which are anchors.
fn lone_store(passed: &str) -> Draft {
    lone_store_at(passed, "@m[%x]")
}

/// The same at another place. `passed` may define constants, too.
pub(crate) fn lone_store_at(passed: &str, place: &str) -> Draft {
    let text = |first: &str| {
        format!("{passed}{first}\nglobal_set.i32 @g, %y\nstore.i32 {place}, %y\nreturn %x\n")
    };
    let store = format!("store.i32 {place}, %x");
    let mut draft = Draft::of_writes(&text(&store), &text("%p = const.i32 0"));
    let behind = passed.lines().count();
    let above = (0..behind).map(|index| draft.at(Before, "entry", index).inst());
    let before = &draft.versions.before;
    let accesses = above.filter(|inst| before.inst(*inst).opcode != Opcode::Const);
    let accesses = accesses.collect::<Vec<_>>();
    draft.anchors.extend(accesses);
    draft.anchors.sort_unstable();
    let [between, last, same] = [(Before, 1), (Before, 2), (After, 2)]
        .map(|(side, index)| draft.at(side, "entry", behind + index));
    let (memory, result) = (draft.write(Before, between), draft.write(After, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(Before, last, term);
    draft
}

pub(super) fn lone_writes() -> [Wrong; 5] {
    let call = |first: &str| format!("{first}\n%r = call @ask(%x)\nreturn %r\n");
    let seen = Draft::of_writes(&call("global_set.i32 @g, %x"), &call("%p = const.i32 0"));

    let load =
        |first: &str| format!("{first}\n%q = load.i32 @m[%x]\nglobal_set.i32 @g, %y\nreturn %y\n");
    let mut trap = Draft::of_writes(&load("global_set.i32 @g, %x"), &load("%p = const.i32 0"));
    let [lone, read, last] = [0, 1, 2].map(|index| trap.at(Before, "entry", index));
    let same = trap.at(After, "entry", 2);
    trap.anchors = [read.inst()].into_iter().chain(std::mem::take(&mut trap.anchors)).collect();
    trap.anchors.sort_unstable();
    let (memory, result) = (trap.write(Before, lone), trap.write(After, same));
    let term = trap.like(result, memory, result, By::Covers { result });
    trap.write_is(Before, last, term);
    [
        seen.done(Check::AnchorMemory, "a write that a call sees, and only one version has"),
        trap.done(Check::AnchorMemory, "a write that a trap shows, and only one version has"),
        lone_store("").done(
            Check::LoneWrite,
            "a store that may trap, and only one version has, before a write",
        ),
        lone_store("%b = uload8.i32 @m[%x]\n")
            .done(Check::LoneWrite, "the same, where one byte of four was read before"),
        lone_store_at("%c = const.i32 65533\n", "@m[%c]")
            .done(Check::LoneWrite, "the same, with the last byte behind the least size"),
    ]
}

/// The version after has a lone write. An entry leads into its window, and the versions have the
/// same memory again at the end.
pub(crate) fn window() -> Draft {
    let text =
        |first: &str| format!("{first}\n%q = const.i32 0\nglobal_set.i32 @g, %y\nreturn %x\n");
    let mut draft = Draft::of_writes(&text("%p = const.i32 0"), &text("global_set.i32 @g, %x"));
    let [lone, last] = [0, 2].map(|index| draft.at(After, "entry", index));
    let same = draft.at(Before, "entry", 2);
    let (memory, result) = (draft.write(After, lone), draft.write(Before, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(After, last, term);
    let points = [Before, After].map(|side| draft.at(side, "entry", 1));
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, points, Vec::new(), &copies);
    draft
}

/// The version after has two lone writes of `@g`, of `%x` and then of `%y`. An entry lands after
/// them. Returns the terms of the first write and of the second alone.
fn two_writes() -> (Draft, [TermId; 2]) {
    let text = |first: &str, second: &str| {
        format!("{first}\n{second}\n%q = const.i32 0\nglobal_set.i32 @g, %q\nreturn %x\n")
    };
    let mut draft = Draft::of_writes(
        &text("%p = const.i32 0", "%r = const.i32 0"),
        &text("global_set.i32 @g, %x", "global_set.i32 @g, %y"),
    );
    let [one, two, last] = [0, 1, 3].map(|index| draft.at(After, "entry", index));
    let same = draft.at(Before, "entry", 3);
    let entry = draft.leaf("memory", TermKind::MemoryAtEntry, None);
    let first = draft.write(After, one);
    let natural = draft.write(After, two);
    let second = draft.on(natural, entry);
    let term = draft.like(second, first, second, By::Covers { result: second });
    draft.write_is(After, two, term);
    let result = draft.write(Before, same);
    let term = draft.like(result, second, result, By::Covers { result });
    draft.write_is(After, last, term);
    let points = [Before, After].map(|side| draft.at(side, "entry", 2));
    let copies = ["x", "y"].map(|name| (name, draft.from(Before, name)));
    draft.entry(Before, points, Vec::new(), &copies);
    (draft, [first, second])
}

/// An entry that replays a store of the version after alone, which traps if the next store does.
pub(crate) fn late_store() -> Draft {
    late_store_at(None)
}

/// The same at a constant address, if one is given, instead of `%x`.
pub(crate) fn late_store_at(constant: Option<u32>) -> Draft {
    let define = constant.map_or(String::new(), |c| format!("%c = const.i32 {c}\n"));
    let (address, behind) = constant.map_or(("x", 0), |_| ("c", 1));
    let text = |first: &str| {
        format!("{define}{first}\n%q = const.i32 0\nstore.i32 @m[%{address}], %y\nreturn %x\n")
    };
    let store = format!("store.i32 @m[%{address}], %x");
    let mut draft = Draft::of_writes(&text("%p = const.i32 0"), &text(&store));
    let [lone, last] = [0, 2].map(|index| draft.at(After, "entry", behind + index));
    let same = draft.at(Before, "entry", behind + 2);
    let (memory, result) = (draft.write(After, lone), draft.write(Before, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(After, last, term);
    let points = [Before, After].map(|side| draft.at(side, "entry", behind + 1));
    let mut names = vec!["x", "y"];
    names.extend(constant.map(|_| "c"));
    let copies: Vec<_> = names.into_iter().map(|name| (name, draft.from(Before, name))).collect();
    draft.entry(Before, points, Vec::new(), &copies);
    let operands = [address, "x"].map(|name| draft.from(Before, name));
    draft.replay(Before, lone, &operands, memory);
    draft
}

pub(super) fn entries() -> [Wrong; 7] {
    let mut replay = window();
    let at = replay.at(After, "entry", 0);
    let (term, [x, y]) =
        (replay.write(After, at), ["x", "y"].map(|name| replay.from(Before, name)));
    replay.replay(Before, at, &[y], term);

    let mut elsewhere = window();
    elsewhere.replay(Before, at, &[x], term);
    elsewhere.change_entry(Before, |entry| {
        entry.replays[0].imm = ir::Imm::Global(ir::Global::from_u32(1))
    });

    let (mut order, [first, second]) = two_writes();
    let again = order.like(first, second, first, By::Covers { result: first });
    let [one, two] = [0, 1].map(|index| order.at(After, "entry", index));
    order.replay(Before, two, &[y], second);
    order.replay(Before, one, &[x], again);

    let (mut half, [first, _]) = two_writes();
    half.replay(Before, one, &[x], first);
    [
        replay.done(Check::Replay, "a replay of another value than the facts name"),
        elsewhere.done(Check::Replay, "a replay to another global than the facts name"),
        late_store().done(Check::Replay, "a replayed store that may trap"),
        late_store_at(Some(65533)).done(Check::Replay, "the same, behind the least size"),
        window().done(Check::EntryMemory, "a target point after a write that has not executed"),
        order.done(Check::EntryMemory, "two replays in the wrong order"),
        half.done(Check::EntryMemory, "a target point after two writes, with a replay of one"),
    ]
}
