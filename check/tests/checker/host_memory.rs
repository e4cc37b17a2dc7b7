//! Forgeries about host memories: distances of 64 bits, classes, and accesses that vouch.

use crate::holes::{judged, stops};
use crate::wrong::{Draft, Wrong};
use check::verdict::{Check, Verdict};
use ir::Type;
use transition::Side::{After, Before};
use transition::certificate::{By, NO_TERM, TermId};

const NONE: [TermId; 2] = [NO_TERM; 2];

/// The version before returns a read above a store (`%w`), the version after a read below it
/// (`%v`). The certificate claims that the store is apart. The hint for the address of the store is
/// `%z` where the versions have it.
fn apart(what: &'static str, write: &str, has_sum: bool) -> Wrong {
    let text = |result: &str| {
        format!(
            "%w = load.i64 @heap[%x + 8]\n{write}\n%v = load.i64 @heap[%x + 8]\nreturn %{result}\n"
        )
    };
    let mut draft = Draft::of_writes_at(Type::I64, &text("w"), &text("v"));
    let result = draft.term(After, "w");
    let v = draft.value(After, "v");
    let read = draft.versions.after.defining_inst(v).expect("a read");
    let via = [NO_TERM, if has_sum { draft.term(After, "z") } else { NO_TERM }];
    let memory = draft.memory_before(After, read);
    let term = draft.like(result, memory, result, By::Apart { via, result });
    draft.is(Before, "v", term);
    draft.is(After, "v", term);
    draft.done(Check::MemoryRule, what)
}

/// The address that is `%x` plus a constant.
fn sum(constant: &str, write: &str) -> String {
    format!("%k = const.i64 {constant}\n%z = add.i64 %x, %k\n{write}")
}

#[test]
fn a_field_is_forwarded_only_past_writes_that_are_apart() {
    let at_sum = "store.i64 @heap[%z], %y";
    stops(&apart("a store of the class at any address", "store.i64 @heap[%y], %x", false));
    stops(&apart("a store of the field itself", "store.i64 @heap[%x + 8], %y", false));
    stops(&apart("a store that reaches into the field", &sum("4", at_sum), true));
    stops(&apart(
        "a store around 2^64",
        &sum("-4294967288", "store.i64 @heap[%z + 4294967300], %y"),
        true,
    ));
    let fine = [
        apart("nothing: the next field", &sum("16", at_sum), true),
        apart("nothing: a field before", &sum("-16", at_sum), true),
        apart("nothing: 2^32 further on", &sum("4294967304", at_sum), true),
        apart("nothing: another memory", "%t = const.i32 0\nstore.i64 @m[%t], %y", false),
    ];
    for wrong in fine {
        let verdicts = judged(&wrong);
        assert!(verdicts.iter().all(Verdict::holds), "{}: {verdicts:?}", wrong.what);
    }
}

/// A read after a store, claimed to give the value stored.
fn stored(what: &'static str, write: &str, writes: usize) -> Wrong {
    let text = |result: &str| format!("{write}\n%v = load.i64 @heap[%x + 8]\nreturn %{result}\n");
    let mut draft = Draft::of_writes_at(Type::I64, &text("y"), &text("v"));
    let y = draft.term(After, "y");
    let natural = draft.term(After, "v");
    let write = draft.at(After, "entry", writes);
    let memory = draft.write(After, write);
    let term = draft.like(natural, memory, y, By::Stored { via: NONE });
    draft.is(Before, "v", term);
    draft.is(After, "v", term);
    draft.done(Check::MemoryRule, what)
}

/// The two addresses are equal modulo 2^32, the modulus of a linear memory.
#[test]
fn distances_in_a_host_memory_are_not_taken_modulo_2_to_the_32() {
    let far = sum("4294967296", "store.i64 @heap[%z + 8], %y");
    stops(&stored("a store 2^32 further on, by its address", &far, 2));
    let far = "store.i64 @heap[%x + 4294967304], %y";
    stops(&stored("a store 2^32 further on, by its offset", far, 0));
    let same = stored("nothing", "store.i64 @heap[%x + 8], %y", 0);
    assert!(judged(&same).iter().all(Verdict::holds));
}

/// A lone store, vouched for by an access above it.
fn vouched(access: &str) -> Wrong {
    let text = |first: &str| {
        format!(
            "%a = {access}\n{first}\n%n = wrap.i32 %y\nglobal_set.i32 @g, %n\n\
             store.i64 @heap[%x], %y\nreturn %x\n"
        )
    };
    let lone = text("store.i64 @heap[%x], %x");
    let mut draft = Draft::of_writes_at(Type::I64, &lone, &text("%p = const.i32 0"));
    draft.anchors.push(draft.at(Before, "entry", 0).inst());
    draft.anchors.sort_unstable();
    draft.anchors.dedup();
    let [between, last, same] =
        [(Before, 3), (Before, 4), (After, 4)].map(|(side, index)| draft.at(side, "entry", index));
    let (memory, result) = (draft.write(Before, between), draft.write(After, same));
    let term = draft.like(result, memory, result, By::Covers { result });
    draft.write_is(Before, last, term);
    draft.done(Check::LoneWrite, "a store that may trap: the bytes before those accessed")
}

/// In a linear memory, the access of the bytes behind would vouch.
#[test]
fn in_a_host_memory_an_access_does_not_vouch_for_bytes_before_it() {
    stops(&vouched("load.i64 @heap[%x + 8]"));
    stops(&vouched("load.i32 @heap[%x]"));
    let verdicts = judged(&vouched("load.i64 @heap[%x]"));
    assert!(verdicts.iter().any(Verdict::holds), "{verdicts:?}");
}
