//! Counters of visits, which pause a run.
//!
//! An engine that compiles hot code wants a pause after so many calls of a function, and after so
//! many iterations of a loop. Until then the run should be as fast as an unobserved one. So both
//! loops count by themselves: calls at the entry of a function, visits at the first instruction of
//! a block. A counter that reaches zero pauses the run.
//!
//! In fast code a counted block has one more operation, `FastOpCode::Poll`. All jumps to the
//! block go there first. The fall from the operation above into the block does not count.

use super::decoded::Decoded;
use super::fast::code::Fast;
use super::fast::poll::with_polls;
use std::sync::atomic::{AtomicU32, Ordering};

/// Words that other threads set to request a pause of a run ([`crate::Machine::run_to_visit`]).
pub type Attention<'a> = [&'a AtomicU32; 2];

/// Whether one of the words is set.
#[inline(always)]
pub(super) fn is_asked(attention: Attention<'_>) -> bool {
    attention[0].load(Ordering::Relaxed) | attention[1].load(Ordering::Relaxed) != 0
}

/// A counter, which runs decrement.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisitCounter {
    left: u32,
    /// The value of `left` that was set last, modulo 2^32: 0 after it has reached zero.
    set: u32,
    /// The visits before that.
    passed: u64,
}

impl VisitCounter {
    fn after(visits: u32) -> VisitCounter {
        VisitCounter { left: visits, set: visits, passed: 0 }
    }

    /// Counts one visit. Returns whether the counter has reached zero.
    #[inline(always)]
    pub(super) fn visit(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        let is_due = self.left == 0;
        if is_due {
            self.begin_again();
        }
        is_due
    }

    /// Notes the visits up to zero, and counts the next 2^32. Without this, a place with more
    /// visits than that would seem to have few (`visits_beyond_a_word_are_counted`).
    #[cold]
    fn begin_again(&mut self) {
        self.passed += if self.set == 0 { 1 << 32 } else { u64::from(self.set) };
        self.set = 0;
    }

    /// The visits so far.
    pub(super) fn visits(&self) -> u64 {
        self.passed + u64::from(self.set.wrapping_sub(self.left))
    }

    /// Lets the visit with this number be the next that reaches zero.
    pub(super) fn set(&mut self, visits: u32) {
        *self = VisitCounter { passed: self.visits(), ..VisitCounter::after(visits) };
    }
}

/// The counted blocks of one version.
#[derive(Clone, Debug, Default)]
pub(super) struct VersionVisits {
    /// The pcs of the counted blocks, ascending, each with the index of its counter.
    pub(super) blocks: Vec<(u32, u32)>,
    /// By pc, as bits: whether the exact loop counts there.
    is_counted: Vec<u64>,
    /// The fast code with polls. `None` without counted blocks or without fast code.
    pub(super) fast: Option<Box<Fast>>,
}

/// All counters of a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct VisitCounters {
    /// Whether runs count. The lists are empty otherwise.
    pub(super) is_on: bool,
    /// Whether the run has paused because a counter has reached zero.
    pub(super) is_due: bool,
    /// The counters of calls, by version.
    pub(super) calls: Vec<VisitCounter>,
    /// The counters of blocks.
    pub(super) blocks: Vec<VisitCounter>,
    /// By version.
    pub(super) versions: Vec<VersionVisits>,
}

impl VisitCounters {
    /// Adds a version, if runs count. Its first call pauses the run.
    pub(super) fn add_version(&mut self) {
        if self.is_on {
            self.calls.push(VisitCounter::after(1));
            self.versions.push(VersionVisits::default());
        }
    }

    /// Whether the exact loop counts at a pc.
    #[inline(always)]
    pub(super) fn is_counted(&self, version: usize, pc: usize) -> bool {
        let words = &self.versions[version].is_counted;
        pc == 0 || words.get(pc / 64).is_some_and(|word| word >> (pc % 64) & 1 == 1)
    }

    /// Counts a visit of a counted pc. Returns whether the run is to pause.
    pub(super) fn visit(&mut self, version: usize, pc: usize) -> bool {
        let blocks = &self.versions[version].blocks;
        let found = blocks.binary_search_by_key(&(pc as u32), |(pc, _)| *pc);
        let is_due = match found {
            _ if pc == 0 => self.calls[version].visit(),
            Ok(at) => self.blocks[blocks[at].1 as usize].visit(),
            Err(_) => false,
        };
        self.is_due |= is_due;
        is_due
    }

    /// The counter at a pc, if there is one.
    pub(super) fn counter(&mut self, version: usize, pc: u32) -> Option<&mut VisitCounter> {
        if pc == 0 {
            return self.calls.get_mut(version);
        }
        let blocks = &self.versions.get(version)?.blocks;
        let at = blocks.binary_search_by_key(&pc, |(pc, _)| *pc).ok()?;
        self.blocks.get_mut(blocks[at].1 as usize)
    }

    /// Adds counters of blocks to a version.
    pub(super) fn add_blocks(&mut self, version: usize, code: &Decoded, blocks: &[(u32, u32)]) {
        let of = &mut self.versions[version];
        for (pc, visits) in blocks {
            of.blocks.push((*pc, self.blocks.len() as u32));
            self.blocks.push(VisitCounter::after(*visits));
            let word = *pc as usize / 64;
            of.is_counted.resize(of.is_counted.len().max(word + 1), 0);
            of.is_counted[word] |= 1 << (pc % 64);
        }
        of.blocks.sort_unstable();
        let fast = code.fast.as_ref().filter(|_| !of.blocks.is_empty());
        of.fast = fast.map(|fast| Box::new(with_polls(fast, &of.blocks)));
    }
}

#[cfg(test)]
mod tests {
    use super::VisitCounter;

    #[test]
    fn visits_beyond_a_word_are_counted() {
        let whole = 1 << 32;
        let mut counter = VisitCounter::after(3);
        assert_eq!([counter.visit(), counter.visit(), counter.visit()], [false, false, true]);
        assert!(!counter.visit());
        assert_eq!(counter.visits(), 4);
        // As after all but the last of the next 2^32 visits.
        counter.left = 1;
        assert!(counter.visit());
        assert_eq!(counter.visits(), 3 + whole);
        counter.set(2);
        assert!(!counter.visit());
        assert_eq!(counter.visits(), 4 + whole);
    }
}
