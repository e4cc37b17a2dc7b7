//! Counters of visits, which pause a run.
//!
//! An engine that compiles hot code wants a pause after so many calls of a function, and after so
//! many iterations of a loop. Until then the run should be as fast as an unobserved one. So both
//! loops count by themselves: calls at the entry of a function, visits at the first instruction of
//! a block. A counter that reaches zero pauses the run.
//!
//! In fast code a counted block has one more operation, [`FastOpCode::Poll`]. All jumps to the
//! block go there first. The fall from the operation above into the block does not count.

use super::code::Code;
use super::fast;
use super::fast::data::Fast;
use super::fast::poll::with_polls;
use super::host::Host;
use super::machine::Machine;
use super::run::{Run, execute_to_visit};
use super::version::VersionId;
use cranelift_entity::EntityRef;
use ir::entity::{Inst, Point};
use std::sync::atomic::{AtomicU32, Ordering};

/// Words that other threads set to request a pause of a run ([`Machine::run_to_visit`]).
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

    fn visits(&self) -> u64 {
        self.passed + u64::from(self.set.wrapping_sub(self.left))
    }

    fn set(&mut self, visits: u32) {
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
    fn counter(&mut self, version: usize, pc: u32) -> Option<&mut VisitCounter> {
        if pc == 0 {
            return self.calls.get_mut(version);
        }
        let blocks = &self.versions.get(version)?.blocks;
        let at = blocks.binary_search_by_key(&pc, |(pc, _)| *pc).ok()?;
        self.blocks.get_mut(blocks[at].1 as usize)
    }

    /// Adds counters of blocks to a version.
    fn add_blocks(&mut self, version: usize, code: &Code, blocks: &[(u32, u32)]) {
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

impl Machine {
    /// Lets [`Machine::run_to_visit`] count calls, from zero. The first call of each function
    /// pauses the run; [`Machine::pause_after`] and [`Machine::count_blocks`] set the later pauses.
    /// Cost: linear in the versions.
    pub fn count_visits(&mut self) {
        self.visits = VisitCounters { is_on: true, ..VisitCounters::default() };
        self.versions.iter().for_each(|_| self.visits.add_version());
    }

    /// Whether runs count visits.
    pub fn counts_visits(&self) -> bool {
        self.visits.is_on
    }

    /// Counts visits of the blocks of a version that begin with these instructions. Each pauses the
    /// run at the visit with the given number, at least 1. The first instruction of a function has
    /// the counter of calls, so this function skips it. It also skips instructions that have a
    /// counter, and instructions that the version lacks. No effect unless runs count. Cost: linear
    /// in the code of the version.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn count_blocks(
        &mut self,
        version: VersionId,
        blocks: impl IntoIterator<Item = (Inst, u32)>,
    ) {
        if !self.visits.is_on {
            return;
        }
        let index = version.index();
        let code = &self.versions[index].code;
        let pc = |(inst, visits): (Inst, u32)| Some((code.pc_of(Point::before(inst))?, visits));
        let known = |pc: u32| self.visits.is_counted(index, pc as usize);
        let new: Vec<(u32, u32)> =
            blocks.into_iter().filter_map(pc).filter(|(pc, _)| !known(*pc)).collect();
        self.visits.add_blocks(index, code, &new);
    }

    /// Pauses the run at a later visit of an instruction: the next for 1. The instruction is the
    /// first of the function, or of a counted block; no effect on others. Constant cost, but for a
    /// search among the counted blocks.
    pub fn pause_after(&mut self, version: VersionId, inst: Inst, visits: u32) {
        let pc = self.versions[version.index()].code.pc_of(Point::before(inst));
        if let Some(counter) = pc.and_then(|pc| self.visits.counter(version.index(), pc)) {
            counter.set(visits.max(1));
        }
    }

    /// The visits of an instruction so far, as [`Machine::pause_after`] names it; zero for others.
    pub fn visits(&mut self, version: VersionId, inst: Inst) -> u64 {
        let pc = self.versions[version.index()].code.pc_of(Point::before(inst));
        let counter = pc.and_then(|pc| self.visits.counter(version.index(), pc));
        counter.map_or(0, |counter| counter.visits())
    }

    /// Whether the run has paused because a counter reached zero.
    pub fn is_due(&self) -> bool {
        self.visits.is_due
    }

    /// Makes the live values of the innermost activation readable ([`Machine::view`]) after
    /// [`Machine::run_to_visit`] has paused. The fast loop has live values in places of its own
    /// until then, and loses dead values. Cost: linear in the code of the version.
    pub fn show_live_values(&mut self) {
        fast::show_top(self);
    }

    /// Whether the innermost activation of a paused run has its dead values, too: the exact loop
    /// alone has executed it.
    pub fn has_dead_values(&self) -> bool {
        let top = self.activations.of_run().last();
        !self.state.fast && top.is_some_and(|top| !top.settled)
    }

    /// Continues the current run until it ends, calls an external function, or pauses: when a
    /// counter reaches zero, or at the next counted visit after a word of `attention` is set. The
    /// pause is before the first instruction of the function or block. The fast loop executes the
    /// run under the conditions under which it executes unobserved runs; a run whose events are
    /// counted ([`Machine::count`]) stays in the exact loop.
    ///
    /// # Panics
    /// As [`Machine::run`].
    pub fn run_to_visit(&mut self, host: &mut dyn Host, attention: Attention<'_>) -> Run {
        self.visits.is_due = false;
        let run = execute_to_visit(self, host, attention);
        self.state.asked |= run == Run::Paused;
        run
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
