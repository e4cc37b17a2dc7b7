//! Calls through fixed tables and calls of their targets.

use crate::holes::stops;
use crate::verdicts;
use crate::wrong::{Draft, Wrong};
use check::verdict::Check;
use transition::Side::{After, Before};

/// A call in each version, with this constant as `%k`, and an entry at the start.
fn resolved(index: u64, calls: [&str; 2], check: Check, what: &'static str) -> Wrong {
    let [before, after] = calls.map(|call| {
        format!(
            "(%x: i32, %y: i32) -> i32 {{\nentry:\n%k = const.i32 {index}\n%r = {call}\n\
             return %r\n}}\n"
        )
    });
    let mut draft = Draft::new(&before, &after);
    draft.term(After, "r");
    let points = [draft.at(Before, "entry", 0), draft.at(After, "entry", 0)];
    let assigns = [("x", draft.from(Before, "x")), ("y", draft.from(Before, "y"))];
    draft.entry(Before, points, Vec::new(), &assigns);
    draft.done(check, what)
}

const THROUGH: &str = "call_indirect @fixed (i32) -> i32 [%k](%x)";
const DIRECT: &str = "call @ask(%x)";

#[test]
fn a_call_through_a_fixed_table_is_a_call_of_its_target() {
    for calls in [[THROUGH, DIRECT], [DIRECT, THROUGH]] {
        let wrong = resolved(0, calls, Check::SourceReached, "nothing");
        let judged = verdicts(&wrong, wrong.options);
        assert!(judged.len() == 1 && judged[0].holds(), "{judged:?}");
    }
}

#[test]
fn another_call_is_another_anchor() {
    let (loose, chosen) = (THROUGH.replace("@fixed", "@loose"), THROUGH.replace("[%k]", "[%y]"));
    let other = "call @f(%x, %y)";
    let cases = [
        (0, [&loose, DIRECT], Check::AnchorSame, "a table that code may write"),
        (0, [&chosen, DIRECT], Check::AnchorSame, "an index that runs choose"),
        (1, [THROUGH, DIRECT], Check::AnchorSame, "a target of another signature"),
        (2, [THROUGH, DIRECT], Check::AnchorSame, "a null entry"),
        (3, [THROUGH, DIRECT], Check::AnchorSame, "an entry that no segment writes"),
        (4, [THROUGH, DIRECT], Check::AnchorSame, "an index beyond the table"),
        (0, [THROUGH, other], Check::AnchorSame, "another function"),
        (0, [THROUGH, "call @ask(%y)"], Check::AnchorOperands, "another argument"),
    ];
    for (index, calls, check, what) in cases {
        stops(&resolved(index, calls, check, what));
    }
}
