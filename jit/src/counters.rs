//! Counters of native code: the events that the interpreter counts, too ([`interp::RunCounts`]).
//!
//! A counting version ([`crate::VersionSpec::counting`]) adds to words beside its code: at
//! branches, at indirect calls, and at its start. A load, a read of a global and an argument have
//! two words, the conjunction and the disjunction of all contents. They are equal if the contents
//! never varied. This takes no branch, and no state for the first visit: conjunctions begin with
//! all bits set.

use interp::{CallTarget, CallTargets, MAX_TARGETS};
use ir::{Func, Function, Inst, Shape};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The words of one target of an indirect call: a key, and the calls.
pub(crate) const TARGET_WORDS: usize = 2;

/// The counters of one version. The version and all continuations into it share them.
///
/// Native code adds without atomicity: one machine claims the version, and one thread at a time
/// runs that machine.
#[derive(Debug)]
pub struct NativeCounts {
    words: Box<[AtomicU64]>,
    /// By instruction: its words.
    places: BTreeMap<Inst, CounterPlace>,
    arguments: usize,
}

/// The words of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CounterPlace {
    /// The index of the first word.
    pub(crate) at: usize,
    pub(crate) event: CountedEvent,
}

/// The event that an instruction counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CountedEvent {
    /// A visit of a branch target. Holds the number of targets; each target has a word.
    Side(usize),
    /// An indirect call: [`TARGET_WORDS`] for each of [`MAX_TARGETS`], and a word for the calls of
    /// other targets.
    Call,
    /// A result: the conjunction and the disjunction of all contents.
    Result,
}

impl CountedEvent {
    fn of(function: &Function, inst: Inst) -> Option<CountedEvent> {
        let data = function.inst(inst);
        match data.opcode.shape() {
            Shape::BrIf | Shape::Switch => Some(CountedEvent::Side(data.targets.len())),
            Shape::CallIndirect => Some(CountedEvent::Call),
            Shape::Load(_) | Shape::GlobalGet => Some(CountedEvent::Result),
            _ => None,
        }
    }

    /// The initial words.
    fn words(self) -> Vec<u64> {
        match self {
            CountedEvent::Side(count) => vec![0; count],
            CountedEvent::Call => vec![0; TARGET_WORDS * MAX_TARGETS + 1],
            CountedEvent::Result => vec![u64::MAX, 0],
        }
    }
}

/// Decodes the key of a call target, which is 0 without a target. Both numbers have 32 bits: a
/// table has fewer than 2^32 entries, and a machine fewer functions.
fn target_of(key: u64) -> Option<(u64, Func)> {
    let func = (key as u32).checked_sub(1)?;
    Some((key >> 32, Func::from_u32(func)))
}

impl NativeCounts {
    /// Counters at zero. Cost: linear in the function.
    pub(crate) fn new(function: &Function) -> NativeCounts {
        let arguments = function.arguments().len();
        let mut words = vec![0];
        words.extend((0..arguments).flat_map(|_| CountedEvent::Result.words()));
        let mut places = BTreeMap::new();
        for inst in function.all_insts() {
            if let Some(event) = CountedEvent::of(function, inst) {
                places.insert(inst, CounterPlace { at: words.len(), event });
                words.extend(event.words());
            }
        }
        let words = words.into_iter().map(AtomicU64::new).collect();
        NativeCounts { words, places, arguments }
    }

    /// The words of an instruction, if it counts.
    pub(crate) fn place(&self, inst: Inst) -> Option<CounterPlace> {
        self.places.get(&inst).copied()
    }

    /// The index of the two words of an argument.
    pub(crate) const fn argument(number: usize) -> usize {
        1 + 2 * number
    }

    /// The address of a word, which stays as long as the counters do.
    pub(crate) fn address(&self, word: usize) -> usize {
        std::ptr::from_ref(&self.words[word]).addr()
    }

    fn word(&self, at: usize) -> u64 {
        self.words[at].load(Ordering::Relaxed)
    }

    /// The common bits of all contents. `None` if the contents differed, or if no visit recorded
    /// any.
    fn steady(&self, at: usize) -> Option<u64> {
        let [every, some] = [self.word(at), self.word(at + 1)];
        (every == some).then_some(every)
    }

    /// The calls of the version, without transitions into it.
    pub fn calls(&self) -> u64 {
        self.word(0)
    }

    /// By argument: the bits, if they were equal in all calls. Empty without a call.
    pub fn arguments(&self) -> Vec<Option<u64>> {
        let count = if self.calls() == 0 { 0 } else { self.arguments };
        (0..count).map(|number| self.steady(NativeCounts::argument(number))).collect()
    }

    /// The visits of each target of a `br_if` or `switch`. `None` for another instruction. Cost:
    /// the number of targets.
    pub fn sides(&self, inst: Inst) -> Option<Vec<u64>> {
        match self.place(inst)? {
            CounterPlace { at, event: CountedEvent::Side(count) } => {
                Some((at..at + count).map(|word| self.word(word)).collect())
            }
            _ => None,
        }
    }

    /// The targets of an indirect call. `None` for another instruction.
    pub fn targets(&self, inst: Inst) -> Option<CallTargets> {
        let CounterPlace { at, event: CountedEvent::Call } = self.place(inst)? else { return None };
        let target = |number: usize| {
            let word = at + TARGET_WORDS * number;
            let (index, func) = target_of(self.word(word))?;
            Some(CallTarget { index, func, calls: self.word(word + 1) })
        };
        let targets = (0..MAX_TARGETS).map_while(target).collect();
        Some(CallTargets { targets, others: self.word(at + TARGET_WORDS * MAX_TARGETS) })
    }

    /// The bits that a load or read of a global gave whenever it executed. `None` if the
    /// instruction has not executed, gave different values, or is no load or read of a global.
    pub fn steady_value(&self, inst: Inst) -> Option<u64> {
        match self.place(inst)? {
            CounterPlace { at, event: CountedEvent::Result } => self.steady(at),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_steady_from_the_first_to_the_last() {
        let counters = NativeCounts {
            words: [u64::MAX, 0].map(AtomicU64::new).into(),
            places: BTreeMap::new(),
            arguments: 0,
        };
        let see = |bits: u64| {
            counters.words[0].fetch_and(bits, Ordering::Relaxed);
            counters.words[1].fetch_or(bits, Ordering::Relaxed);
            counters.steady(0)
        };
        assert_eq!(see(6), Some(6));
        assert_eq!(see(6), Some(6));
        assert_eq!(see(4), None);
        assert_eq!(see(6), None);
    }
}
