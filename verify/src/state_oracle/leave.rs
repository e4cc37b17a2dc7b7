//! Runs that leave a version where an assumption fails.

use super::lockstep::{Advance, EntryKey, Lockstep};
use super::record::AnchorStop;
use super::report::Difference;
use super::{FunctionPair, Oracle};
use check::CheckedEntry;
use interp::{Host, Machine, NoObserver, Outcome, Run, VersionId};
use ir::Point;
use transition::Side;
use transition::mapping::Entry;

/// A failing assumption of the version after, at which a run is paused.
struct Failed<'a> {
    /// The entry to the version before, if any.
    exit: Option<(EntryKey, &'a Entry)>,
    /// The version before, in the machine.
    to: VersionId,
    /// Whether both versions make the assumption.
    is_common: bool,
}

impl<'a> Oracle<'a> {
    /// Finds the failing assumption at which a machine is paused. `None` in the version before, and
    /// in a function without a pair: no exit leads out of them.
    fn failed(&self, machine: &Machine) -> Option<Failed<'a>> {
        let view = machine.view().expect("a run is paused at a failing assumption");
        let (func, point) = (view.func(), Point::before(view.inst()));
        let number = func.as_u32() as usize;
        let ids = self.versions[number].filter(|ids| ids.after == view.version())?;
        let plan = &self.plans[number].as_ref().expect("a function with versions").after;
        let planned = plan.point_at(point.inst()).map(|index| &plan.points[index as usize]);
        let entry = planned.and_then(|p| p.entry);
        Some(Failed {
            exit: entry
                .zip(self.pair(func).backward.entry(point))
                .map(|(index, entry)| (EntryKey { func, side: Side::After, index }, entry)),
            to: ids.before,
            is_common: planned.is_some_and(|p| p.anchor),
        })
    }

    fn pair(&self, func: ir::Func) -> &FunctionPair<'a> {
        self.pairs.iter().find(|p| p.func == func).expect("a planned function has a pair")
    }
}

/// Fires an entry at the point where a machine is paused.
///
/// # Errors
/// The reason why the machine refuses it.
fn fire(machine: &mut Machine, to: VersionId, entry: &Entry) -> Result<(), String> {
    let view = machine.view().expect("a run is paused");
    let [source, target] = [view.version(), to].map(|version| machine.code(version).key());
    let entry = CheckedEntry::unproved(source, target, Point::before(view.inst()), entry);
    machine.fire(to, entry).map(drop).map_err(|error| error.to_string())
}

impl<H: Host + Clone> Lockstep<'_, '_, H> {
    /// Takes the exit at a failing assumption that the version after alone makes. The run continues
    /// in the version before. Any other failing assumption ends the run. Returns the end of the
    /// advance, or `None` if the run continues to its next anchor.
    pub(super) fn leave(&mut self, side: Side, reason: u32) -> Option<Advance> {
        let failed = self.oracle.failed(&self.machines[side]);
        let Some(Failed { exit, to, is_common }) = failed else {
            return Some(Advance::Ended(self.machines[side].fail(reason)));
        };
        let Some((key, entry)) = exit else {
            self.lacks_memory = true;
            return Some(Advance::Ended(self.machines[side].fail(reason)));
        };
        let EntryKey { func, index, .. } = key;
        let plan = self.plan(func, side);
        let view = self.machines[side].view().expect("a paused run");
        let (point, activation) = (plan.point_at(view.inst()), view.activation());
        let fault = plan.entries[index as usize].fault.clone();
        let recording = &self.oracle.recordings[side];
        let seen = point.and_then(|point| recording.visit_of(func, point, activation));
        let blamed = (key, seen.map_or(0, |visit| visit.number));
        let fired = match fault {
            Some(fault) => Err(Difference::Entry(fault)),
            None => fire(&mut self.machines[side], to, entry).map_err(Difference::Refused),
        };
        if let Err(difference) = fired {
            // The comparison of the records may know better why.
            if self.compare_gap() {
                self.diverge(Some(blamed), difference);
            }
            return Some(Advance::Stuck);
        }
        if is_common {
            // The assumption fails in the version before, too, with the memory to be compared.
            let outcome = self.machines[side].finish(&mut self.hosts[side], &mut NoObserver);
            return Some(Advance::Ended(outcome));
        }
        (self.left, self.left_in_gap) = (Some(blamed), true);
        // The observer is not called at a landing point.
        let target = self.plan(func, side.other());
        let lands_at_anchor = target
            .point_at(entry.target.inst())
            .is_some_and(|landing| target.points[landing as usize].anchor);
        let view = self.machines[side].view().expect("a run that has landed is paused");
        lands_at_anchor.then(|| Advance::Stopped(AnchorStop::of(&view)))
    }

    /// Runs a copy to its end, and takes the exits of failing assumptions. Returns the end, and
    /// whether its memory equals the memory of a run of the version before.
    pub(super) fn finish(&self, machine: &mut Machine, host: &mut H) -> (Outcome, bool) {
        loop {
            match machine.run(host, &mut NoObserver) {
                Run::Done(outcome) => return (outcome, true),
                Run::Paused | Run::Called { .. } => {}
                Run::Failed { reason } => {
                    let Some(Failed { exit, to, .. }) = self.oracle.failed(machine) else {
                        return (machine.fail(reason), true);
                    };
                    // Exits lead to the version before alone, so a run cannot alternate. A refused
                    // exit ends the run, and the difference of the ends is reported.
                    let fired = exit.map(|(_, entry)| fire(machine, to, entry));
                    if !matches!(fired, Some(Ok(()))) {
                        return (machine.fail(reason), exit.is_some());
                    }
                }
            }
        }
    }
}
