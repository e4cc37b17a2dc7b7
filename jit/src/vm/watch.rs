//! The events that the interpreter watches: visits of places that it counts, news from other
//! threads, and interrupts.

use super::block::ContextBlock;
use interp::{Attention, Machine, VersionId};
use ir::{Func, Function, Inst};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A place whose visits the interpreter counts: the entry of a function, or a loop header.
#[derive(Clone, Copy, Debug)]
pub struct CountedPlace<'a> {
    /// The function.
    pub func: Func,
    /// The base of the function.
    pub body: &'a Function,
    /// The first instruction of the loop header; `None` for the entry of the function.
    pub header: Option<Inst>,
    /// An estimate of the instructions that a visit of the header executes in this loop outside
    /// inner loops, or that a call executes outside loops; at least 1. The estimate assumes that
    /// branches take all their sides equally often: a loop around a large `switch` executes few of
    /// its instructions in each round. Calls in loops of short functions count with all of their
    /// instructions: native code of the loop calls native code.
    pub instructions: usize,
}

/// Notifies a run, from any thread, of news for its [`super::Tiering`], such as code compiled in
/// another thread. Clones notify the same run.
#[derive(Clone, Debug, Default)]
pub struct Wake {
    /// Whether it was called: 0 or 1.
    called: Arc<AtomicU32>,
}

impl Wake {
    /// A wake that nobody has called.
    pub fn new() -> Wake {
        Wake::default()
    }

    /// Asks the run for a pause at the next function entry or loop header of the interpreter, where
    /// [`super::Tiering::woken`] is called. Calls before that pause count as one. Constant cost;
    /// takes no lock.
    pub fn call(&self) {
        self.called.store(1, Ordering::Release);
    }

    /// The word that a call sets.
    fn word(&self) -> &AtomicU32 {
        &self.called
    }

    /// Takes back a call: returns whether the wake was called since the last [`Wake::take`] or
    /// pause. The run does not pause for a call taken back. For policies that wait for another
    /// thread themselves. Constant cost.
    pub fn take(&self) -> bool {
        self.called.swap(0, Ordering::Acquire) != 0
    }
}

/// A word that stays zero.
static NOBODY: AtomicU32 = AtomicU32::new(0);

/// The events that the interpreter watches: visits, news from other threads, and interrupts. It
/// notices them at counted places alone.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) threshold: Option<u32>,
    /// The wake through which another thread notifies the run.
    wake: Option<Wake>,
    /// The block whose signals end the run.
    heeds: Option<Arc<ContextBlock>>,
    /// The bases whose places are counted.
    pub(super) counted: BTreeMap<VersionId, CountedBase>,
}

/// A base whose places are counted.
#[derive(Debug)]
pub(super) struct CountedBase {
    /// The first instruction of the function, then the first instruction of each loop header, each
    /// with the estimate of [`CountedPlace::instructions`].
    pub(super) places: Vec<(Inst, usize)>,
    /// The loops that turned hot.
    pub(super) asked: Vec<AskedLoop>,
}

/// A loop of the interpreter that turned hot.
#[derive(Debug)]
pub(super) struct AskedLoop {
    /// The first instruction of its header.
    inst: Inst,
    /// The visits until it turned hot for the first time.
    visits: u32,
    /// Whether it turned hot after the last failed assumption.
    is_hot: bool,
}

impl CountedBase {
    /// Notes that a loop has turned hot, which happens several times. `visits` are all its visits
    /// so far. Linear in the loops that were hot.
    pub(super) fn note_hot(&mut self, inst: Inst, visits: u64) {
        match self.asked.iter_mut().find(|known| known.inst == inst) {
            Some(known) => known.is_hot = true,
            None => {
                let visits = u32::try_from(visits).unwrap_or(u32::MAX);
                self.asked.push(AskedLoop { inst, visits, is_hot: true });
            }
        }
    }
}

impl Watch {
    pub(super) fn new(
        threshold: Option<u32>,
        wake: Option<Wake>,
        heeds: Option<Arc<ContextBlock>>,
    ) -> Watch {
        Watch { threshold, wake, heeds, counted: BTreeMap::new() }
    }

    /// Forgets that loops of a version were hot, so that they turn hot again: an assumption has
    /// failed, and the run is back in the version. Without this, it would stay in the interpreter
    /// for good (`a_loop_is_entered_again_after_an_exit`). The number of visits is that of the
    /// first time: the visits so far would double with each exit
    /// (`a_loop_turns_hot_as_soon_after_each_exit`). Cost: linear in the loops that were hot.
    pub(super) fn ask_again(&mut self, machine: &mut Machine, version: VersionId) {
        let counted = self.counted.get_mut(&version);
        let asked = counted.into_iter().flat_map(|counted| &mut counted.asked);
        for of in asked.filter(|of| of.is_hot) {
            of.is_hot = false;
            machine.pause_after(version, of.inst, of.visits);
        }
    }

    /// Sets the block whose signals end runs.
    pub(super) fn heed(&mut self, heeds: Option<Arc<ContextBlock>>) {
        self.heeds = heeds;
    }

    /// Whether the interpreter counts.
    pub(super) fn counts(&self) -> bool {
        self.threshold.is_some() || self.wake.is_some() || self.heeds.is_some()
    }

    /// The words that other threads set.
    pub(super) fn attention(&self) -> Attention<'_> {
        [
            self.wake.as_ref().map_or(&NOBODY, |wake| wake.word()),
            self.heeds.as_ref().map_or(&NOBODY, |block| block.attention()),
        ]
    }

    /// Whether an interrupt was requested.
    pub(super) fn is_interrupted(&self) -> bool {
        self.heeds.as_ref().is_some_and(|block| block.is_interrupted())
    }

    /// Whether another thread has sent news since the last call.
    pub(super) fn take_news(&self) -> bool {
        self.wake.as_ref().is_some_and(Wake::take)
    }
}

/// A place whose visits the interpreter has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VisitedPlace {
    /// The function.
    pub func: Func,
    /// See [`CountedPlace::header`].
    pub header: Option<Inst>,
    /// See [`CountedPlace::instructions`].
    pub instructions: usize,
    /// The visits.
    pub visits: u64,
}
