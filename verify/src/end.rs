//! The ends of runs: everything about an end that can be compared.

use interp::{Machine, Outcome, Trace};

/// Whether a limit of the machine ended the run. Such an end depends on the limit, so nothing
/// follows from it about the program.
pub(crate) fn is_exhausted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_))
}

/// The effects of a run that another run has, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EffectScope {
    All,
    /// All but calls and returns inside the program: inlined code makes fewer.
    Outer,
}

impl EffectScope {
    /// The effects so far: the number of all effects or 0, and the digest.
    #[inline]
    pub(crate) fn of(self, trace: &Trace) -> (u64, u64) {
        match self {
            EffectScope::All => (trace.count(), trace.digest()),
            EffectScope::Outer => (0, trace.outer_digest()),
        }
    }
}

/// Whether two runs ended the same way. The instruction that traps may differ, because passes move
/// it, but not its function.
pub(crate) fn ended_alike(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (Outcome::Returned(a), Outcome::Returned(b)) => a == b,
        (
            Outcome::Trapped { kind: a, operand: v, site: x },
            Outcome::Trapped { kind: b, operand: w, site: y },
        ) => (a, v, x.func) == (b, w, y.func),
        (Outcome::Left { point: a, values: x, .. }, Outcome::Left { point: b, values: y, .. }) => {
            (a, x) == (b, y)
        }
        (Outcome::Failed { reason: a, .. }, Outcome::Failed { reason: b, .. }) => a == b,
        (Outcome::Exited(a), Outcome::Exited(b)) => a == b,
        (Outcome::HostFailed { error: a, .. }, Outcome::HostFailed { error: b, .. }) => a == b,
        _ => false,
    }
}

/// The end of a run on a machine.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RunEnd {
    pub(crate) outcome: Outcome,
    /// A digest of all memories and globals. `None` if an assumption without an entry ended the
    /// run: the memory may lack stores that only an exit replays.
    pub(crate) memory: Option<u64>,
    /// The effects of the run, as [`EffectScope::of`] gives them.
    pub(crate) effects: (u64, u64),
}

impl RunEnd {
    pub(crate) fn of(machine: &Machine, outcome: Outcome, scope: EffectScope) -> RunEnd {
        let effects = scope.of(machine.trace());
        RunEnd { outcome, memory: Some(machine.memory_digest()), effects }
    }

    /// The same end, without its memory.
    pub(crate) fn without_memory(self) -> RunEnd {
        RunEnd { memory: None, ..self }
    }

    /// Whether the memories are equal, as far as they are known.
    pub(crate) fn same_memory(&self, other: &RunEnd) -> bool {
        self.memory.zip(other.memory).is_none_or(|(a, b)| a == b)
    }

    pub(crate) fn same(&self, other: &RunEnd) -> bool {
        ended_alike(&self.outcome, &other.outcome)
            && self.same_memory(other)
            && self.effects == other.effects
    }

    pub(crate) fn text(&self) -> String {
        let RunEnd { outcome, memory, effects: (count, digest) } = self;
        let memory = memory.map_or_else(|| "unknown".to_owned(), |digest| format!("{digest:#x}"));
        format!("[{outcome}; memory {memory}; {count} effects, {digest:#x}]")
    }
}
