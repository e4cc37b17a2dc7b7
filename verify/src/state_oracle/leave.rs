//! Transitions of the machines themselves: where an assumption fails, and on copies.

use super::lockstep::{Advance, Continued, EntryKey, Lockstep};
use super::record::{AnchorStop, Partner, Visit};
use super::report::Difference;
use super::watch::Innermost;
use super::{FunctionPair, Oracle};
use crate::end::{RunEnd, is_exhausted};
use crate::waiting::Waiting;
use check::CheckedEntry;
use interp::{
    FireError, FrameView, Host, Machine, NoObserver, Outcome, Run, TransferError, VersionId, View,
};
use ir::{Func, Inst, Point, Value};
use smallvec::SmallVec;
use transition::Side;
use transition::mapping::Entry;

/// The entry at which a machine is paused.
#[derive(Clone)]
pub(super) struct WayOut<'a> {
    pub(super) key: EntryKey,
    pub(super) entry: &'a Entry,
    /// The version of each activation that it lands in, the innermost first.
    to: SmallVec<[VersionId; 2]>,
}

/// A failing assumption of the version after, at which a run is paused.
struct Failed<'a> {
    /// The entry to the version before, if any.
    exit: Option<WayOut<'a>>,
    /// Whether both versions make the assumption.
    is_common: bool,
}

/// The reason why a machine made no transition.
pub(super) enum NotFired {
    /// There is no room for the activations.
    NoRoom,
    Refused(Difference),
}

impl WayOut<'_> {
    /// Makes the transition.
    ///
    /// # Errors
    /// When the machine refuses it.
    pub(super) fn fire(&self, machine: &mut Machine) -> Result<(), NotFired> {
        let view = machine.view().expect("a run is paused");
        let point = Point::before(view.inst());
        let to = *self.to.last().expect("an entry has a landing");
        let [source, target] = [view.version(), to].map(|version| machine.code(version).key());
        let entry = CheckedEntry::unproved(source, target, point, self.entry);
        match machine.fire(&self.to, entry) {
            Ok(_) => Ok(()),
            Err(FireError::Transfer(TransferError::StackOverflow)) => Err(NotFired::NoRoom),
            Err(error) => Err(NotFired::Refused(Difference::Refused(error.to_string()))),
        }
    }

    /// The function and the place of each activation that the run lands in, the innermost first.
    pub(super) fn places(&self) -> impl Iterator<Item = (Func, Inst)> + '_ {
        let inner = self.entry.inner.iter().map(|frame| frame.func);
        inner.chain([self.key.func]).zip(self.entry.places().map(|place| place.inst()))
    }
}

/// How the innermost activations of a run differ from these places and values.
pub(super) fn difference(
    view: &View<'_>,
    places: impl Iterator<Item = (Func, Inst)>,
    mut values: impl Iterator<Item = (usize, Value, u64)>,
) -> Option<Difference> {
    let mut frames = view.frames();
    let mut real: SmallVec<[FrameView<'_>; 4]> = SmallVec::new();
    for (frame, place) in places.enumerate() {
        match frames.next() {
            Some(one) if (one.func(), one.inst()) == place => real.push(one),
            _ => return Some(Difference::OtherActivation { frame }),
        }
    }
    values.find_map(|(frame, value, found)| {
        let expected = real[frame].try_value(value).unwrap_or_default();
        (expected != found).then_some(Difference::Value { frame, value, expected, found })
    })
}

impl<'a> Oracle<'a> {
    /// The entry at the next instruction of a run, if there is one.
    pub(super) fn entry_at(&self, view: &View<'_>) -> Option<(EntryKey, &'a Entry)> {
        let (func, version) = (view.func(), view.version());
        let number = func.as_u32() as usize;
        let (ids, plan) = (self.versions[number]?, self.plans[number].as_ref()?);
        let side = Side::BOTH.into_iter().find(|side| ids[*side] == version)?;
        let plan = &plan.sides[side];
        let index = plan.points[plan.point_at(0, view.inst())? as usize].entry?;
        Some((EntryKey { func, side, index }, plan.entries[index as usize].entry))
    }

    /// The same, with the versions that it leads to.
    pub(super) fn way(&self, view: &View<'_>) -> Option<WayOut<'a>> {
        let (key, entry) = self.entry_at(view)?;
        let ids = self.versions[key.func.as_u32() as usize]?;
        let inner = entry.inner.iter().filter_map(|frame| {
            let ids = self.versions.get(frame.func.as_u32() as usize).copied().flatten();
            ids.map(|ids| ids.before)
        });
        let to = inner.chain([ids[key.side.other()]]).collect();
        Some(WayOut { key, entry, to })
    }

    /// Finds the failing assumption at which a machine is paused. `None` in the version before, and
    /// in a function without a pair: no exit leads out of them.
    fn failed(&self, machine: &Machine) -> Option<Failed<'a>> {
        let view = machine.view().expect("a run is paused at a failing assumption");
        let number = view.func().as_u32() as usize;
        self.versions[number].filter(|ids| ids.after == view.version())?;
        let plan = &self.plans[number].as_ref().expect("a function with versions").sides.after;
        let point = plan.point_at(0, view.inst()).map(|point| &plan.points[point as usize]);
        Some(Failed { exit: self.way(&view), is_common: point.is_some_and(|p| p.anchor) })
    }

    /// Runs a machine to its end, and takes the exits of failing assumptions. Returns the end, and
    /// whether its memory equals the memory of a run of the version before. `None` if there is no
    /// room for the activations of an exit.
    pub(super) fn finish(
        &self,
        machine: &mut Machine,
        host: &mut impl Host,
    ) -> Option<(Outcome, bool)> {
        loop {
            match machine.run(host, &mut NoObserver) {
                Run::Done(outcome) => return Some((outcome, true)),
                Run::Paused | Run::Called { .. } => {}
                Run::Failed { reason } => {
                    let Some(Failed { exit, .. }) = self.failed(machine) else {
                        return Some((machine.fail(reason), true));
                    };
                    // Exits lead to the version before alone, so a run cannot alternate. A refused
                    // exit ends the run, and the difference of the ends is reported.
                    match exit.as_ref().map(|exit| exit.fire(machine)) {
                        Some(Ok(())) => {}
                        Some(Err(NotFired::NoRoom)) => return None,
                        ended => return Some((machine.fail(reason), ended.is_some())),
                    }
                }
            }
        }
    }

    /// As [`Oracle::finish`], with everything about the end that can be compared.
    pub(super) fn end(&self, machine: &mut Machine, host: &mut impl Host) -> Option<RunEnd> {
        let (outcome, has_memory) = self.finish(machine, host)?;
        let end = RunEnd::of(machine, outcome, self.scope);
        Some(if has_memory { end } else { end.without_memory() })
    }

    pub(super) fn pair(&self, func: Func) -> &FunctionPair<'a> {
        self.pairs.iter().find(|p| p.func == func).expect("a planned function has a pair")
    }
}

impl<H: Host + Clone> Lockstep<'_, '_, H> {
    /// Takes the exit at a failing assumption that the version after alone makes. The run continues
    /// in the version before. Any other failing assumption ends the run. Returns the end of the
    /// advance, or `None` if the run continues to its next anchor.
    pub(super) fn leave(&mut self, side: Side, reason: u32) -> Option<Advance> {
        let failed = self.oracle.failed(&self.machines[side]);
        let Some(Failed { exit, is_common }) = failed else {
            return Some(Advance::Ended(self.machines[side].fail(reason)));
        };
        let Some(way) = exit else {
            if self.oracle.has_inlined() {
                self.diverge(None, Difference::NoExit);
                return Some(Advance::Stuck);
            }
            self.lacks_memory = true;
            return Some(Advance::Ended(self.machines[side].fail(reason)));
        };
        self.cut_short[side] = true;
        let EntryKey { func, index, .. } = way.key;
        let visit = self.visit_here(side);
        let blamed = (way.key, visit.map_or(0, |visit| visit.number));
        let fault = self.plan(func, side).entries[index as usize].fault.clone();
        let fired = match fault {
            Some(fault) => Err(NotFired::Refused(Difference::Entry(fault))),
            None => way.fire(&mut self.machines[side]),
        };
        match fired {
            Ok(()) => {}
            Err(NotFired::NoRoom) => {
                self.oracle.report.without_room += 1;
                return Some(Advance::Stuck);
            }
            Err(NotFired::Refused(difference)) => {
                // The comparison of the records may know better why.
                if self.compare_gap() {
                    self.diverge(Some(blamed), difference);
                }
                return Some(Advance::Stuck);
            }
        }
        (self.left, self.left_in_gap) = (Some(blamed), true);
        if self.oracle.has_inlined() {
            let made = visit.and_then(|visit| self.misses(&self.machines[side], &way, &visit));
            if let Some(difference) = made {
                self.diverge(Some(blamed), difference);
            }
            return Some(Advance::Left);
        }
        if is_common {
            // The assumption fails in the version before, too, with the memory to be compared.
            let outcome = self.machines[side].finish(&mut self.hosts[side], &mut NoObserver);
            return Some(Advance::Ended(outcome));
        }
        // The observer is not called at a landing point.
        let target = self.plan(func, side.other());
        let landing =
            target.point_at(0, way.entry.target.inst()).map(|at| &target.points[at as usize]);
        let view = self.machines[side].view().expect("a run that has landed is paused");
        let stop =
            |point| AnchorStop::new(&view, point, &Innermost::plain(&view), self.oracle.scope);
        landing.filter(|point| point.anchor).map(|point| Advance::Stopped(stop(point)))
    }

    /// The record of the point of the version after where a run is paused.
    fn visit_here(&self, side: Side) -> Option<Visit> {
        let recording = &self.oracle.recordings[side];
        let view = self.machines[side].view().expect("a paused run");
        let point = self.plan(view.func(), side).point_at(0, view.inst())?;
        let activation = match recording.innermost {
            Some(innermost) => innermost.activation,
            None => view.activation(),
        };
        match recording.visit_of(view.func(), point, activation) {
            Partner::One(visit) => Some(*visit),
            Partner::None | Partner::Several => None,
        }
    }

    /// How the activations that a transition has made differ from those that its entry computes.
    fn misses(&self, machine: &Machine, way: &WayOut<'_>, visit: &Visit) -> Option<Difference> {
        let EntryKey { func, side, index } = way.key;
        let recorded = self.oracle.recordings[side].values_from(visit);
        let (mut values, entry) = (Vec::new(), &self.plan(func, side).entries[index as usize]);
        let ran = entry.run(recorded, |frame, value, bits| values.push((frame, value, bits)));
        if let Err(difference) = ran {
            return Some(difference);
        }
        let view = machine.view().expect("a run that has landed is paused");
        let wrong = difference(&view, way.places(), values.into_iter());
        wrong.or_else(|| {
            let (effects, memory) = (self.oracle.scope.of(view.trace()), view.memory_digest());
            let memory = visit.after_stores != Some(memory);
            let wrong =
                [(visit.effects != effects, Difference::Effects), (memory, Difference::Memory)];
            wrong.into_iter().find_map(|(is_wrong, difference)| is_wrong.then_some(difference))
        })
    }

    /// Makes the transition at a sampled visit on a copy of the machine, and runs the copy to its
    /// end.
    pub(super) fn go_on(&mut self, side: Side, index: usize) {
        let visit = self.oracle.recordings[side].visits[index];
        let (mut machine, mut host) = (self.machines[side].clone(), self.hosts[side].clone());
        let view = machine.view().expect("the run is paused at a visit");
        let way = self.oracle.way(&view).expect("a sampled visit has an entry");
        let plan = &self.plan(visit.func, side).entries[way.key.index as usize];
        // A fault is reported when the gap is compared.
        if plan.fault.is_some() {
            return;
        }
        let end = match way.fire(&mut machine) {
            Ok(()) => match self.misses(&machine, &way, &visit) {
                Some(difference) => Err(difference),
                None => self.end_of(&mut machine, &mut host, way.key),
            },
            Err(NotFired::Refused(difference)) => Err(difference),
            Err(NotFired::NoRoom) => {
                self.oracle.report.without_room += 1;
                self.stay(side, &mut machine, &mut host)
            }
        };
        self.continued.push(Continued { side, visit: index, end });
    }

    /// The end of a run that has just made a transition. Half of the runs that have left inlined
    /// code go up again from an activation of the base, whichever it landed in: the mappings of a
    /// version were accepted together. `None` without an end.
    fn end_of(
        &mut self,
        machine: &mut Machine,
        host: &mut H,
        key: EntryKey,
    ) -> Result<Option<RunEnd>, Difference> {
        if self.oracle.has_inlined()
            && let Some(skip) = self.oracle.recordings[key.side].sampler.visits_before_up()
        {
            let ids = self.oracle.versions[key.func.as_u32() as usize].expect("it has versions");
            let up = self.oracle.pair(key.func).forward;
            let is_up = |view: &View<'_>| {
                view.version() == ids.before && up.has_entry(Point::before(view.inst()))
            };
            let mut watcher = Waiting::new(skip.into(), is_up);
            let fired = match machine.run(host, &mut watcher) {
                Run::Done(outcome) => {
                    return Ok(Some(RunEnd::of(machine, outcome, self.oracle.scope)));
                }
                // An assumption of another version fails. Its exit is taken at the end.
                Run::Failed { .. } => Err(NotFired::NoRoom),
                Run::Paused | Run::Called { .. } => {
                    let way = self.oracle.way(&machine.view().expect("it is paused"));
                    way.expect("the watcher pauses at entries").fire(machine)
                }
            };
            match fired {
                Ok(()) => self.oracle.report.up_again += 1,
                Err(NotFired::NoRoom) => {}
                Err(NotFired::Refused(difference)) => return Err(difference),
            }
        }
        Ok(self.oracle.end(machine, host))
    }

    /// A run without room for its activations stays where it is and continues unchanged. The
    /// version before may need more room than there is, so its end is compared with the end of a
    /// run without a transition.
    fn stay(
        &mut self,
        side: Side,
        machine: &mut Machine,
        host: &mut H,
    ) -> Result<Option<RunEnd>, Difference> {
        let found = self.oracle.end(machine, host);
        let (mut other, mut host) = (self.machines[side].clone(), self.hosts[side].clone());
        let expected = self.oracle.end(&mut other, &mut host);
        let Some((found, expected)) = found.zip(expected) else { return Ok(None) };
        let are_exhausted = [&found, &expected].iter().all(|end| is_exhausted(&end.outcome));
        match are_exhausted || found.same(&expected) {
            true => Ok(None),
            false => Err(Difference::going_on(&expected, &found)),
        }
    }
}
