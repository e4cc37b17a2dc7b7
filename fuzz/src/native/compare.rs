//! Compares the states of native code and of the interpreter.

use interp::{Machine, Outcome};

/// The reason why the oracle ended a run.
pub(super) enum FollowEnd {
    /// A difference between native code and the interpreter.
    Finding(String),
    /// A limit of the oracle.
    Limit,
}

impl FollowEnd {
    pub(super) fn into_text(self) -> String {
        match self {
            FollowEnd::Finding(text) => text,
            FollowEnd::Limit => "a limit of the oracle".to_owned(),
        }
    }
}

pub(super) fn finding<T>(text: String) -> Result<T, FollowEnd> {
    Err(FollowEnd::Finding(text))
}

/// Whether a limit of the machine ended a run.
pub(super) fn is_exhausted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_))
}

/// Whether two runs ended the same way in the same function. The instruction may differ: optimized
/// code may attribute a trap to an equal one at the end of another block. A comparison of
/// instructions would report that as a finding (`osier fuzz --engine jit --seed 4 --smith 1`).
pub(super) fn ended_alike(native: &Outcome, shadow: &Outcome) -> bool {
    match (native, shadow) {
        (
            Outcome::Trapped { kind: a, operand: v, site: x },
            Outcome::Trapped { kind: b, operand: w, site: y },
        ) => (a, v, x.func) == (b, w, y.func),
        (Outcome::HostFailed { error: a, .. }, Outcome::HostFailed { error: b, .. }) => a == b,
        (native, shadow) => native == shadow,
    }
}

/// Compares the state except values: effects so far, memories, globals, tables, and dropped
/// segments.
pub(super) fn compare_state(
    native: &Machine,
    shadow: &Machine,
    place: &dyn Fn() -> String,
) -> Result<(), FollowEnd> {
    let effects = |machine: &Machine| (machine.trace().count(), machine.trace().digest());
    let (found, expected) = (effects(native), effects(shadow));
    if found != expected {
        return finding(
            format!(
                "{}: {} effects in native code, {} in the interpreter",
                place(),
                found.0,
                expected.0
            ) + if found.0 == expected.0 { ", with other values" } else { "" },
        );
    }
    match native.same_memory(shadow) {
        true => Ok(()),
        false => finding(format!("{}: memory or globals differ", place())),
    }
}
