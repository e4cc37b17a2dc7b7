//! Accesses at constant addresses: below the least size of their memory, and in front of others.
//! Drafts have a memory `@m` of one page.

use crate::holes::{judged, stops};
use crate::wrong::Draft;
use crate::wrong::memory::{late_store_at, lone_store_at};
use check::verdict::{Check, Verdict};

/// Fails unless a lone store at `place` counts as one that cannot trap exactly if `harmless`.
/// `above` are the instructions before it.
fn is_harmless(above: &str, place: &str, harmless: bool) {
    let draft: Draft = lone_store_at(above, place);
    let wrong = draft.done(Check::LoneWrite, "a store of one version that may trap");
    if harmless {
        let verdicts = judged(&wrong);
        assert!(verdicts.iter().any(Verdict::holds), "{above}{place}: {verdicts:?}");
    } else {
        stops(&wrong);
    }
}

/// One that ends a byte later may trap. The sum of constant and offset does not wrap.
#[test]
fn an_access_below_the_least_size_never_traps() {
    for (constant, offset, harmless) in [
        ("64", 0, true),
        ("65532", 0, true),
        ("65533", 0, false),
        ("0", 65532, true),
        ("0", 65533, false),
        ("4", 65528, true),
        ("4", 65529, false),
        ("-4", 0, false),
        ("-4", 4, false),
        ("-4", 68, false),
    ] {
        let place = format!("@m[%c + {offset}]");
        is_harmless(&format!("%c = const.i32 {constant}\n"), &place, harmless);
    }
}

/// Which bytes of a host memory are mapped is the embedder's matter.
#[test]
fn a_host_memory_has_no_least_size() {
    is_harmless("%c = const.i64 64\n", "@heap[%c]", false);
}

/// An access that ends at 70004 vouches for all accesses with the same or an earlier end, in any
/// spelling. Behind the least size, nothing else does.
#[test]
fn accesses_at_constants_are_compared_by_their_ends() {
    let read = |at: u32| format!("%d = const.i32 {at}\n%l = load.i32 @m[%d]\n");
    for (first, constant, offset, harmless) in [
        (70000, 70000, 0, true),
        (70000, 69000, 1000, true),
        (70000, 69000, 1001, false),
        (70000, 66000, 0, true),
        (66000, 70000, 0, false),
        // 2^32 - 4, and 8 more: no access of a sum around 2^32.
        (70000, u32::MAX - 3, 8, false),
    ] {
        let above = format!("{}%c = const.i32 {constant}\n", read(first));
        is_harmless(&above, &format!("@m[%c + {offset}]"), harmless);
    }
    // In a host memory, only an access at the same constant vouches, for its own bytes.
    let read = "%d = const.i64 64\n%l = load.i64 @heap[%d]\n";
    is_harmless(read, "@heap[%d + 4]", true);
    is_harmless(read, "@heap[%d + 5]", false);
    is_harmless(&format!("{read}%c = const.i64 68\n"), "@heap[%c]", false);
}

/// The source version has not stored there. Still, the replay cannot trap.
#[test]
fn a_store_below_the_least_size_is_replayed() {
    let verdicts = judged(&late_store_at(Some(65532)).done(Check::Replay, "nothing"));
    assert!(verdicts.iter().all(Verdict::holds) && !verdicts.is_empty(), "{verdicts:?}");
    stops(&late_store_at(Some(65533)).done(Check::Replay, "a replayed store that may trap"));
}
