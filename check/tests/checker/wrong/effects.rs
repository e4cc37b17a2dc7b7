//! Forgeries about calls of functions with declared effects: each claims more of a call than its
//! opcode says. Two checks stop a step that calls a function, `StepShape` and `StepTerm`, so it is
//! no forgery here; the mutant `StepsCallFunctions` makes such steps.

use super::draft::{Draft, Wrong};
use check::verdict::Check;
use transition::Side::{After, Before};
use transition::certificate::By;

fn of_writes(before: &str, after: &str) -> Draft {
    Draft::of_writes(before, after)
}

/// Results of two calls, claimed to be one.
fn results() -> [Wrong; 3] {
    let call =
        |callee: &str, arg: &str| format!("%v = call_pure.i32 @{callee}(%{arg})\nreturn %v\n");
    let mut callee = of_writes(&call("one", "x"), &call("other", "x"));
    let mut argument = of_writes(&call("one", "x"), &call("one", "y"));
    for draft in [&mut callee, &mut argument] {
        let term = draft.term(Before, "v");
        draft.is(After, "v", term);
    }

    let store = "store.i32 @m[%x], %y\n";
    let read = "%v = call_reads.i32 @peek(%x)\n";
    let mut memory = of_writes(
        &format!("{read}{store}%p = const.i32 0\nreturn %v\n"),
        &format!("%p = const.i32 0\n{store}{read}return %v\n"),
    );
    let before = memory.term(Before, "v");
    memory.is(After, "v", before);
    [
        callee.done(Check::ValueTerm, "a call of one pure function for that of another"),
        argument.done(Check::ValueTerm, "a pure call of another operand"),
        memory.done(Check::MemoryTerm, "a call that reads, above a store and below it"),
    ]
}

/// Calls with effects outside, treated like calls without effects.
fn outside() -> [Wrong; 2] {
    let told = |arg: &str| format!("%r = call_outside @note(%{arg})\nreturn %x\n");
    let mut dropped = of_writes(&told("x"), &told("y"));
    let call = dropped.at(Before, "entry", 0).inst();
    dropped.anchors.retain(|anchor| *anchor != call);

    // The last write of both versions covers the first write, so memory is the same behind the
    // call.
    let shown = |first: &str| {
        format!("{first}\n%r = call_outside @note(%x)\nglobal_set.i32 @g, %y\nreturn %y\n")
    };
    let mut seen = of_writes(&shown("global_set.i32 @g, %x"), &shown("%p = const.i32 0"));
    let [lone, last] = [0, 2].map(|index| seen.at(Before, "entry", index));
    let same = seen.at(After, "entry", 2);
    let (memory, result) = (seen.write(Before, lone), seen.write(After, same));
    let term = seen.like(result, memory, result, By::Covers { result });
    seen.write_is(Before, last, term);
    [
        dropped.done(Check::EffectAnchor, "a call with effects outside that is no anchor"),
        seen.done(
            Check::AnchorMemory,
            "a write that only one version has, before a call that may end the run",
        ),
    ]
}

pub(super) fn all() -> Vec<Wrong> {
    results().into_iter().chain(outside()).collect()
}
