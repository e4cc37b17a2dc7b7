//! The search for assumptions that have exits: the assumptions to try next, their pins, and the
//! assumptions to drop.

use super::attempt::repeated;
use super::{
    Assumption, DROP_TURNS, Dropped, MAX_ASSUMPTIONS, MAX_PINS, MissingExit, PIN_TURNS, Pins,
    SpeculateError, TriedAssumption,
};
use ir::cfg::Cfg;
use ir::liveness::Liveness;
use ir::{Function, Value};
use passes::PinnedAssumption;
use std::collections::BTreeMap;

/// The assumptions to try, each with the values to pin for it, and the assumptions dropped so far.
pub(crate) struct SpeculationSearch {
    pins: Pins,
    pub(crate) made: Vec<TriedAssumption>,
    pub(crate) dropped: Vec<(Assumption, Dropped)>,
    /// The work granted, and the work of the turns so far.
    granted: u64,
    pub(crate) spent: u64,
}

impl SpeculationSearch {
    pub(crate) fn new(
        from: &Function,
        assume: &[Assumption],
        pins: Pins,
        work: u64,
    ) -> SpeculationSearch {
        let cfg = Cfg::new(from);
        let is_reached = |a: &Assumption| cfg.is_reachable(from.inst_block(a.at.inst()));
        let (mut reached, unreached): (Vec<Assumption>, Vec<Assumption>) =
            assume.iter().partition(|a| is_reached(a));
        let over = reached.split_off(reached.len().min(MAX_ASSUMPTIONS));
        let live = (pins == Pins::Live).then(|| Liveness::new(from, &cfg));
        let pinned = |a: &Assumption| match &live {
            Some(live) => live.live_before(from, a.at).iter().collect(),
            None => Vec::new(),
        };
        let unreached = unreached.into_iter().map(|a| (a, Dropped::NeverReached));
        SpeculationSearch {
            pins,
            made: reached
                .into_iter()
                .map(|a| PinnedAssumption { assumption: a, pins: pinned(&a) })
                .map(|pinned| TriedAssumption { pinned, is_repeated: false })
                .collect(),
            dropped: unreached.chain(over.into_iter().map(|a| (a, Dropped::TooMany))).collect(),
            granted: work,
            spent: 0,
        }
    }

    /// Counts the work of a turn.
    pub(crate) fn spend(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
    }

    /// Drops all assumptions if a turn of this work would exceed the granted work.
    pub(crate) fn afford(&mut self, work: u64) {
        if self.spent.saturating_add(work) > self.granted {
            let left = std::mem::take(&mut self.made).into_iter().filter(|made| !made.is_repeated);
            self.dropped.extend(left.map(|made| (made.pinned.assumption, Dropped::NoWorkLeft)));
        }
    }

    /// Pins a value for each assumption without an exit, or drops the assumption. `from` is the
    /// version speculated on.
    ///
    /// # Errors
    /// If an assumption of an earlier speculation has lost its exit, and this speculation has no
    /// assumption left to blame.
    pub(crate) fn amend<'a>(
        &mut self,
        from: &Function,
        without_exit: &'a [MissingExit],
        turn: usize,
    ) -> Result<(), SpeculateError> {
        let may_pin = self.pins == Pins::OnDemand && turn < PIN_TURNS;
        let own = |lacks: &'a MissingExit| lacks.index.map(|index| (index, lacks));
        let earlier: Vec<&MissingExit> =
            without_exit.iter().filter(|lacks| lacks.index.is_none()).collect();
        let lacking: BTreeMap<usize, &MissingExit> = without_exit.iter().filter_map(own).collect();
        if let Some(lacks) = earlier.first().filter(|_| self.made.is_empty() && !may_pin) {
            return Err(SpeculateError::LosesExit { inst: lacks.missing.point.inst() });
        }
        let repeated: Vec<TriedAssumption> = earlier
            .iter()
            .filter(|_| may_pin)
            .filter_map(|lacks| repeated(from, lacks.missing.point.inst(), &lacks.to_keep))
            .collect();
        // An earlier assumption cannot be dropped, so drop all assumptions of this plan.
        let mut room = if repeated.len() < earlier.len() {
            0
        } else if turn >= PIN_TURNS + DROP_TURNS {
            self.made.len().saturating_sub(lacking.len()) / 2
        } else {
            self.made.len()
        };
        for (index, mut kept) in std::mem::take(&mut self.made).into_iter().enumerate() {
            let lost = lacking.get(&index).copied();
            if may_pin && lost.is_some_and(|lacks| pin(&mut kept.pinned.pins, lacks, turn)) {
                self.made.push(kept);
                continue;
            }
            let why = match lost {
                Some(lacks) => self.without_exit(lacks, &kept.pinned.pins, may_pin),
                None if room == 0 => Dropped::NoTurnLeft,
                None => {
                    room -= 1;
                    self.made.push(kept);
                    continue;
                }
            };
            if !kept.is_repeated {
                self.dropped.push((kept.pinned.assumption, why));
            }
        }
        self.made.extend(repeated);
        Ok(())
    }

    /// Why an assumption without an exit is dropped: a limit, if it could keep more values.
    fn without_exit(&self, lacks: &MissingExit, pins: &[Value], may_pin: bool) -> Dropped {
        let lost = lacks.missing.why;
        let may_keep = lacks.to_keep.iter().any(|value| !pins.contains(value));
        match (self.pins, may_pin) {
            (Pins::OnDemand, true) if may_keep => Dropped::TooManyPins(lost),
            (Pins::OnDemand, false) if may_keep => Dropped::NoPinTurnLeft(lost),
            _ => Dropped::NoExit(lost),
        }
    }
}

/// Pins the values that an exit lacks, as many as fit. Returns whether it pinned a value.
fn pin(pins: &mut Vec<Value>, lacks: &MissingExit, turn: usize) -> bool {
    // A reason names one value, and others may be missing. The last turn pins all of them.
    let is_last = turn + 1 == PIN_TURNS && !lacks.to_keep.is_empty();
    let more = if is_last { &lacks.gone } else { &lacks.to_keep };
    let before = pins.len();
    for value in more {
        if pins.len() < MAX_PINS && !pins.contains(value) {
            pins.push(*value);
        }
    }
    pins.len() > before
}
