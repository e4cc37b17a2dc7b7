//! A machine that counts visits of functions and blocks.

use super::Machine;
use crate::version::VersionId;
use crate::visits::VisitCounters;
use cranelift_entity::EntityRef;
use ir::entity::{Inst, Point};

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
}
