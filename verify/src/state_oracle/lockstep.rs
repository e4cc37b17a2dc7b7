//! Lockstep: both versions run from anchor to anchor, and the records of each gap are compared.

use super::Oracle;
use super::plan::{EntryPlan, OperandPlace, StepPlan};
use super::record::{AnchorStop, GapWatcher, Plans, Sampler, Visit};
use super::report::{Difference, Divergence, StopText};
use crate::end::{RunEnd, ended_alike, is_exhausted};
use crate::prng::Prng;
use check::{CheckedEntry, Unproved};
use interp::{Host, Machine, Outcome, Run};
use ir::{Func, Inst, Opcode, Point, Value, eval};
use transition::{Pair, Side};

/// The end of an advance.
pub(super) enum Advance {
    /// Before an anchor.
    Stopped(AnchorStop),
    Ended(Outcome),
    /// At a failing assumption whose exit did not fire; the failure is reported.
    Stuck,
}

impl Advance {
    /// Whether a limit of the machine ended the run. Such an end says nothing about the program.
    fn is_exhausted(&self) -> bool {
        matches!(self, Advance::Ended(outcome) if is_exhausted(outcome))
    }
}

/// A copy of a machine at a visit, from which the copy continues.
struct Copied<H> {
    side: Side,
    /// The index of the visit in the records of its side.
    visit: usize,
    machine: Machine,
    host: H,
}

/// A run that made a transition and has ended. It is compared once the run without a transition has
/// ended.
struct WentOn {
    entry: EntryKey,
    visit: u64,
    end: RunEnd,
}

/// An entry: its function, the side of its source version, and its index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct EntryKey {
    pub(super) func: Func,
    pub(super) side: Side,
    pub(super) index: u32,
}

/// The run of one input in both versions.
pub(super) struct Lockstep<'o, 'a, H> {
    pub(super) oracle: &'o mut Oracle<'a>,
    pub(super) machines: Pair<Machine>,
    pub(super) hosts: Pair<H>,
    args: &'o [u64],
    /// The anchor at which both runs last stopped.
    before: Option<(Func, Inst)>,
    /// Copies taken in this gap.
    copied: Vec<Copied<H>>,
    /// Runs with a transition in this call.
    went_on: Vec<WentOn>,
    /// The last exit taken at a failing assumption in this call, with the number of its visit.
    pub(super) left: Option<(EntryKey, u64)>,
    /// Whether an exit was taken in this gap.
    pub(super) left_in_gap: bool,
    /// Whether the entries of this gap have fired.
    compared: bool,
    /// Whether an assumption ended a run where no entry makes its memory right.
    pub(super) lacks_memory: bool,
    /// Results of the steps of the current entry, and the values it provides. Kept between entries
    /// to spare allocations.
    results: Vec<u64>,
    provided: Vec<(Value, u64)>,
}

/// Implements [`Oracle::run`].
pub(super) fn run<H: Host + Clone>(oracle: &mut Oracle<'_>, func: Func, args: &[u64], host: &H) {
    let start = oracle.pristine.before.start_function();
    // The number of the run goes into the seed, so that each run takes other samples.
    let prng = Prng::new(oracle.options.seed).fork(2 + oracle.report.runs);
    for side in Side::BOTH {
        let sampler = Sampler::new(prng.fork(side as u64), oracle.options.going_on);
        oracle.recordings[side].restart(sampler);
    }
    oracle.report.runs += 1;
    let machines = oracle.pristine.clone();
    let hosts = Pair::from_fn(|_| host.clone());
    let (copied, went_on) = (Vec::new(), Vec::new());
    let (results, provided) = (Vec::new(), Vec::new());
    let mut lockstep = Lockstep {
        oracle,
        machines,
        hosts,
        args,
        before: None,
        copied,
        went_on,
        left: None,
        left_in_gap: false,
        compared: false,
        lacks_memory: false,
        results,
        provided,
    };
    // A start function that does not return ends the program before the call.
    if start.is_none_or(|start| lockstep.call(start, &[])) {
        lockstep.call(func, args);
    }
}

impl<H: Host + Clone> Lockstep<'_, '_, H> {
    /// Runs a function in both versions, and compares them. Returns whether both returned.
    fn call(&mut self, func: Func, args: &[u64]) -> bool {
        self.went_on.clear();
        (self.before, self.left, self.lacks_memory) = (None, None, false);
        self.machines.as_mut().into_iter().for_each(|m| m.start(func, args));
        loop {
            let (before, after) = self.gap();
            if matches!(after, Advance::Stuck) {
                return false;
            }
            // First: a limit may end one version earlier than the other, and that is no difference
            // of the versions.
            if before.is_exhausted() || after.is_exhausted() {
                self.oracle.report.exhausted += 1;
                return false;
            }
            // A wrong exit sends the run astray, so it is compared before the runs are.
            if self.left_in_gap && !self.compare_gap() {
                return false;
            }
            match (before, after) {
                (Advance::Stopped(a), Advance::Stopped(b))
                    if (a.func, a.inst) == (b.func, b.inst) =>
                {
                    if !self.stopped(a, b) {
                        return false;
                    }
                }
                (Advance::Ended(a), Advance::Ended(b)) if ended_alike(&a, &b) => {
                    self.compare_gap();
                    return self.ended(a, b);
                }
                (Advance::Ended(a), Advance::Stopped(_)) if a.trap().is_some() => {
                    return self.trapped_early(Pair::new(Some(a), None));
                }
                (Advance::Stopped(_), Advance::Ended(b)) if b.trap().is_some() => {
                    return self.trapped_early(Pair::new(None, Some(b)));
                }
                (before, after) => {
                    let [before, after] = [before, after].map(|stop| self.stop_text(stop));
                    self.diverge(self.left, Difference::Stops { before, after });
                    return false;
                }
            }
        }
    }

    /// Advances both runs to their next anchors, the version before first.
    fn gap(&mut self) -> (Advance, Advance) {
        self.oracle.report.gaps += 1;
        self.copied.clear();
        (self.left_in_gap, self.compared) = (false, false);
        // Both runs must record the same gaps. The gate decides at the first watched point of the
        // version before, and the version after follows.
        let spent = self.oracle.report.total().transitions >= self.oracle.options.transitions;
        self.oracle.recordings.before.next_gap(spent.then_some(false));
        let before = self.advance(Side::Before);
        let decided = self.oracle.recordings.before.on;
        // If the version before met no watched point, there was no decision. The version after then
        // records, so that an entry whose target point is in another gap is found.
        self.oracle.recordings.after.next_gap(Some(decided.unwrap_or(true)));
        (before, self.advance(Side::After))
    }

    /// Advances one run to its next anchor or its end.
    fn advance(&mut self, side: Side) -> Advance {
        loop {
            let oracle = &mut *self.oracle;
            let mut watcher = GapWatcher {
                plans: &oracle.plans,
                versions: &oracle.versions,
                side,
                recording: &mut oracle.recordings[side],
                gate: &mut oracle.gate,
                before: self.before,
            };
            let run = self.machines[side].run(&mut self.hosts[side], &mut watcher);
            match run {
                Run::Done(outcome) => return Advance::Ended(outcome),
                Run::Failed { reason } => match self.leave(side, reason) {
                    Some(advance) => return advance,
                    None => continue,
                },
                Run::Paused | Run::Called { .. } => {}
            }
            let recording = &mut self.oracle.recordings[side];
            // The machine pauses at a sampled visit, too. It is copied in this state, and then the
            // advance continues.
            if let Some(visit) = recording.sampled.take() {
                let (machine, host) = (self.machines[side].clone(), self.hosts[side].clone());
                self.copied.push(Copied { side, visit, machine, host });
            }
            if let Some(stop) = recording.stop {
                return Advance::Stopped(stop);
            }
        }
    }

    /// Compares the gap before an anchor. Returns whether the runs continue.
    fn stopped(&mut self, a: AnchorStop, b: AnchorStop) -> bool {
        // The same instruction, but of another activation: one version called a function that the
        // other did not.
        if (a.activation, a.depth) != (b.activation, b.depth) {
            let [before, after] = [a, b].map(|stop| self.stop_text(Advance::Stopped(stop)));
            self.diverge(self.left, Difference::Stops { before, after });
            return false;
        }
        // Before the entries: if the versions themselves differ, entries are not to blame.
        if a.effects != b.effects {
            self.diverge(self.left, Difference::LockstepEffects);
            return false;
        }
        self.compare_gap();
        self.before = Some((a.func, a.inst));
        true
    }

    /// One version has trapped earlier than the other version. Runs the other version to its end,
    /// which must be the same trap. An entry at a point on the way has no state to compare with,
    /// and `compare_gap` reports it. Always returns `false`.
    fn trapped_early(&mut self, mut ends: Pair<Option<Outcome>>) -> bool {
        self.compare_gap();
        let late = if ends.before.is_some() { Side::After } else { Side::Before };
        while ends[late].is_none() {
            self.oracle.report.gaps += 1;
            self.copied.clear();
            (self.left_in_gap, self.compared) = (false, false);
            // The records of the run that has ended are emptied in each gap, too. An old record
            // could else be taken for the partner of an entry.
            for recording in self.oracle.recordings.as_mut() {
                recording.next_gap(Some(true));
            }
            match self.advance(late) {
                Advance::Stopped(stop) => self.before = Some((stop.func, stop.inst)),
                Advance::Ended(outcome) => ends[late] = Some(outcome),
                Advance::Stuck => return false,
            }
            self.compare_gap();
        }
        let Pair { before: Some(a), after: Some(b) } = ends else {
            unreachable!("the loop ends when both runs have ended")
        };
        if is_exhausted(&a) || is_exhausted(&b) {
            self.oracle.report.exhausted += 1;
        } else if ended_alike(&a, &b) {
            self.ended(a, b);
        } else {
            let [before, after] = [a, b].map(|end| self.stop_text(Advance::Ended(end)));
            self.diverge(self.left, Difference::Stops { before, after });
        }
        false
    }

    /// Compares the ends of both runs, and of the runs that continued. Returns whether the runs
    /// returned.
    fn ended(&mut self, a: Outcome, b: Outcome) -> bool {
        self.oracle.report.trapped += u64::from(a.trap().is_some());
        let returned = a.returned().is_some();
        let (a, b) = (RunEnd::of(&self.machines.before, a), RunEnd::of(&self.machines.after, b));
        let b = if self.lacks_memory { b.without_memory() } else { b };
        // Versions first. The runs that continued are compared with the version before, which makes
        // sense only if both versions agree.
        if a.effects != b.effects {
            self.diverge(self.left, Difference::LockstepEffects);
            return false;
        }
        if !a.same_memory(&b) {
            self.diverge(self.left, Difference::FinalMemory);
            return false;
        }
        for went_on in std::mem::take(&mut self.went_on) {
            self.compare_end(&went_on, &a);
        }
        returned
    }

    /// Fires every entry whose source point was visited in this gap, unless that is done. Returns
    /// whether all of them are right.
    pub(super) fn compare_gap(&mut self) -> bool {
        if std::mem::replace(&mut self.compared, true) {
            return true;
        }
        let before = self.oracle.report.divergence_count;
        self.fire_all();
        self.oracle.report.divergence_count == before
    }

    fn fire_all(&mut self) {
        // If a point has two visits in a gap, the claim of an entry does not tell which one is
        // meant.
        if let Some((side, (func, point, number))) = self.ambiguous() {
            let entry = self.plan(func, side).points[point as usize].entry;
            let entry = entry.map(|index| (EntryKey { func, side, index }, number));
            self.diverge(entry, Difference::Ambiguous);
            return;
        }
        for side in Side::BOTH {
            for index in 0..self.oracle.recordings[side].visits.len() {
                let visit = self.oracle.recordings[side].visits[index];
                let Some(entry) = self.plan(visit.func, side).points[visit.point as usize].entry
                else {
                    continue;
                };
                let key = EntryKey { func: visit.func, side, index: entry };
                // A run goes on from correct entries alone; another would be reported twice.
                match self.fire(key, &visit) {
                    Ok(()) => self.go_on(key, index, &visit),
                    Err(difference) => self.diverge(Some((key, visit.number)), difference),
                }
            }
        }
    }

    /// A point visited twice in this gap by the run of one side, with this side.
    fn ambiguous(&self) -> Option<(Side, (Func, u32, u64))> {
        let at = |side: Side| self.oracle.recordings[side].ambiguous.map(|visit| (side, visit));
        // A run that has left may go around a loop of the version before that the version after has
        // cut, so that no anchor is in it. The other run left, or will leave, in the first round,
        // and its entries mean the first visit (`a_loop_that_is_cut_goes_on_behind_an_exit`).
        at(Side::Before).filter(|_| self.left.is_none()).or(at(Side::After))
    }

    pub(super) fn plan(&self, func: Func, side: Side) -> &super::plan::SidePlan {
        plan_of(&self.oracle.plans, func, side)
    }

    /// Runs an entry on the record of its source point, and compares the result with the record of
    /// the other run at the target point. Leaves the provided values in `self.provided`.
    fn fire(&mut self, key: EntryKey, visit: &Visit) -> Result<(), Difference> {
        let EntryKey { func, side, index } = key;
        let oracle = &mut *self.oracle;
        let entry = &plan_of(&oracle.plans, func, side).entries[index as usize];
        if let Some(fault) = &entry.fault {
            return Err(Difference::Entry(fault.clone()));
        }
        let (source, target) = (&oracle.recordings[side], &oracle.recordings[side.other()]);
        // The other version did not visit the target point between the same anchors.
        let Some(partner) = target.visit_of(func, entry.target, visit.activation) else {
            return Err(Difference::NoPartner);
        };
        let recorded = source.values_from(visit);
        run_steps(&entry.steps, recorded, &mut self.results)?;
        let expected = target.values_from(partner);
        provide(entry, recorded, expected, &self.results, &mut self.provided)?;
        if visit.effects != partner.effects {
            return Err(Difference::Effects);
        }
        // Memory at the source point, after the stores that the entry replays.
        if visit.after_stores != Some(partner.memory) {
            return Err(Difference::Memory);
        }
        let counts = oracle.report.counts_mut(side);
        counts.transitions += 1;
        counts.with_code += u64::from(entry.has_code);
        counts.in_loops += u64::from(entry.in_loop);
        counts.compared += entry.assigns.len() as u64;
        counts.holding += u64::from(visit.holds == Some(true));
        counts.failing += u64::from(visit.holds == Some(false));
        oracle.fired[func.as_u32() as usize][side].insert(index as usize);
        if visit.holds == Some(false) {
            oracle.failing[func.as_u32() as usize][side].insert(index as usize);
        }
        Ok(())
    }

    /// If the machine was copied at this visit, makes the transition on the copy, and runs it to
    /// its end.
    fn go_on(&mut self, key: EntryKey, visit_index: usize, visit: &Visit) {
        let EntryKey { func, side, index } = key;
        let wanted = |c: &Copied<H>| c.side == side && c.visit == visit_index;
        let Some(at) = self.copied.iter().position(wanted) else { return };
        let Copied { mut machine, mut host, .. } = self.copied.swap_remove(at);
        let entry = &self.plan(func, side).entries[index as usize];
        let target = self.plan(func, side.other()).points[entry.target as usize].point;
        let to = self.oracle.versions[func.as_u32() as usize]
            .expect("a planned function has versions")[side.other()];
        // Entries with stores fire as a whole, because the machine has to execute them. Others hand
        // over the provided values, so that the run continues with exactly the values compared.
        let moved = match &entry.stores {
            Some(entry) => {
                let view = machine.view().expect("the run was copied while it was paused");
                let point = Point::before(view.inst());
                let [source, target] =
                    [view.version(), to].map(|version| machine.code(version).key());
                let claimed = CheckedEntry::unproved(source, target, point, entry);
                let fired = machine.fire(to, claimed);
                fired.map(drop).map_err(|error| error.to_string())
            }
            None => machine
                .transfer(to, target, &self.provided, Unproved::claim())
                .map_err(|error| error.to_string()),
        };
        if let Err(error) = moved {
            self.diverge(Some((key, visit.number)), Difference::Refused(error));
            return;
        }
        let (outcome, has_memory) = self.finish(&mut machine, &mut host);
        let counts = self.oracle.report.counts_mut(side);
        counts.going_on += 1;
        // A run that a limit ended has no end to compare.
        if is_exhausted(&outcome) {
            counts.going_on_exhausted += 1;
            return;
        }
        let end = RunEnd::of(&machine, outcome);
        let end = if has_memory { end } else { end.without_memory() };
        self.went_on.push(WentOn { entry: key, visit: visit.number, end });
    }

    fn compare_end(&mut self, went_on: &WentOn, reference: &RunEnd) {
        if !went_on.end.same(reference) {
            let (expected, found) = (reference.text(), went_on.end.text());
            self.diverge(
                Some((went_on.entry, went_on.visit)),
                Difference::GoingOn { expected, found },
            );
        }
    }

    fn stop_text(&self, stop: Advance) -> StopText {
        match stop {
            Advance::Stuck => StopText::Ended("an exit did not fire".to_owned()),
            Advance::Ended(outcome) => StopText::Ended(outcome.to_string()),
            Advance::Stopped(stop) => StopText::Anchor {
                function: self.oracle.module.funcs[stop.func].name.clone(),
                point: Point::before(stop.inst),
                activation: stop.activation,
            },
        }
    }

    /// Counts a divergence. Keeps it if it is the first of its entry and there is room.
    pub(super) fn diverge(&mut self, entry: Option<(EntryKey, u64)>, difference: Difference) {
        let oracle = &mut *self.oracle;
        oracle.report.divergence_count += 1;
        let is_new = entry.is_none_or(|(key, _)| oracle.blamed.insert(key));
        if !is_new || oracle.report.divergences.len() >= oracle.options.divergences {
            return;
        }
        let entry = entry.map(|(key, visit)| oracle.blamed(key, Some(visit)));
        oracle.report.divergences.push(Divergence { input: self.args.to_vec(), entry, difference });
    }
}

fn plan_of(plans: &Plans, func: Func, side: Side) -> &super::plan::SidePlan {
    let pair = plans[func.as_u32() as usize].as_ref().expect("visits are of planned functions");
    &pair[side]
}

/// Runs the steps of compensation code on a record.
#[inline]
fn run_steps(
    steps: &[StepPlan],
    recorded: &[u64],
    results: &mut Vec<u64>,
) -> Result<(), Difference> {
    results.clear();
    let mut args = [0u64; 3];
    for (index, step) in steps.iter().enumerate() {
        if step.opcode == Opcode::Const {
            results.push(step.bits);
            continue;
        }
        for (arg, place) in args.iter_mut().zip(&step.args) {
            *arg = fetch(*place, recorded, results);
        }
        let result = eval::eval(step.opcode, step.ty, step.operand_ty, &args[..step.args.len()]);
        results.push(result.map_err(|kind| Difference::Trap { step: index, kind })?);
    }
    Ok(())
}

/// Collects the values that the entry provides, and compares them with the record of the other run
/// at the target point. All bits count, for floats too (`a_nan_of_other_bits_is_found`).
#[inline]
fn provide(
    entry: &EntryPlan,
    recorded: &[u64],
    expected: &[u64],
    results: &[u64],
    provided: &mut Vec<(Value, u64)>,
) -> Result<(), Difference> {
    provided.clear();
    for assign in &entry.assigns {
        let found = fetch(assign.from, recorded, results);
        let expected = expected[assign.expected as usize];
        if found != expected {
            return Err(Difference::Value { value: assign.value, expected, found });
        }
        provided.push((assign.value, found));
    }
    Ok(())
}

#[inline]
fn fetch(place: OperandPlace, recorded: &[u64], results: &[u64]) -> u64 {
    match place {
        OperandPlace::Recorded(index) => recorded[index as usize],
        OperandPlace::Step(index) => results[index as usize],
    }
}
