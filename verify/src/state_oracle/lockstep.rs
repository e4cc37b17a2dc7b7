//! Running both versions from anchor to anchor, and comparing what they recorded.

use super::Oracle;
use super::plan::{EntryPlan, Place, StepPlan};
use super::record::{AnchorStop, Plans, Sampler, Visit, Watcher};
use super::report::{Difference, Divergence, Stop};
use crate::end::{End, ended_alike, is_exhausted};
use crate::prng::Prng;
use check::{CheckedEntry, Unproved};
use interp::{Host, Machine, NoObserver, Outcome, Run};
use ir::{Func, Inst, Opcode, Point, Value, eval};
use transition::Side;

/// Where an advance ended.
enum Advance {
    /// Before an anchor.
    Stopped(AnchorStop),
    Ended(Outcome),
}

impl Advance {
    /// Whether a limit of the machine ended the run, which says nothing about the program.
    fn is_exhausted(&self) -> bool {
        matches!(self, Advance::Ended(outcome) if is_exhausted(outcome))
    }
}

/// A copy of a machine at a visit, to go on from.
struct Copied<H> {
    side: usize,
    /// An index of the visits of the side.
    visit: usize,
    machine: Machine,
    host: H,
}

/// A run that went on in the other version, to be compared once the reference has ended.
struct WentOn {
    entry: Key,
    visit: u64,
    end: End,
}

/// An entry: function, side of its source, index.
type Key = (Func, usize, u32);

/// One input, in both versions.
struct Lockstep<'o, 'a, H> {
    oracle: &'o mut Oracle<'a>,
    machines: [Machine; 2],
    hosts: [H; 2],
    args: &'o [u64],
    /// The anchor both runs last stopped at.
    before: Option<(Func, Inst)>,
    copied: Vec<Copied<H>>,
    went_on: Vec<WentOn>,
    /// The results of steps, and what was provided, of the entry being fired.
    results: Vec<u64>,
    provided: Vec<(Value, u64)>,
}

/// See [`Oracle::run`].
pub(super) fn run<H: Host + Clone>(oracle: &mut Oracle<'_>, func: Func, args: &[u64], host: &H) {
    let start = oracle.pristine[0].start_function();
    let prng = Prng::new(oracle.options.seed).fork(2 + oracle.report.runs);
    for (side, recording) in oracle.recordings.iter_mut().enumerate() {
        recording.restart(Sampler::new(prng.fork(side as u64), oracle.options.going_on));
    }
    oracle.report.runs += 1;
    let machines = oracle.pristine.clone();
    let hosts = [host.clone(), host.clone()];
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
        results,
        provided,
    };
    if start.is_none_or(|start| lockstep.call(start, &[])) {
        lockstep.call(func, args);
    }
}

impl<H: Host + Clone> Lockstep<'_, '_, H> {
    /// Runs a function in both versions; whether both returned.
    fn call(&mut self, func: Func, args: &[u64]) -> bool {
        self.went_on.clear();
        self.before = None;
        self.machines.iter_mut().for_each(|m| m.start(func, args));
        loop {
            let (before, after) = self.gap();
            if before.is_exhausted() || after.is_exhausted() {
                self.oracle.report.exhausted += 1;
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
                    return self.trapped_early([Some(a), None]);
                }
                (Advance::Stopped(_), Advance::Ended(b)) if b.trap().is_some() => {
                    return self.trapped_early([None, Some(b)]);
                }
                (before, after) => {
                    let [before, after] = [before, after].map(|stop| self.stop_text(stop));
                    self.diverge(None, Difference::Stops { before, after });
                    return false;
                }
            }
        }
    }

    /// Advances both runs to their next anchors.
    fn gap(&mut self) -> (Advance, Advance) {
        self.oracle.report.gaps += 1;
        self.copied.clear();
        let spent = self.oracle.report.total().transitions >= self.oracle.options.transitions;
        self.oracle.recordings[0].next_gap(spent.then_some(false));
        let before = self.advance(0);
        let decided = self.oracle.recordings[0].on;
        // Without a point watched there was nothing to decide: the other run then records, so that
        // an entry whose target lies elsewhere shows.
        self.oracle.recordings[1].next_gap(Some(decided.unwrap_or(true)));
        (before, self.advance(1))
    }

    fn advance(&mut self, side: usize) -> Advance {
        let oracle = &mut *self.oracle;
        loop {
            let mut watcher = Watcher {
                plans: &oracle.plans,
                side,
                recording: &mut oracle.recordings[side],
                gate: &mut oracle.gate,
                before: self.before,
            };
            let run = self.machines[side].run(&mut self.hosts[side], &mut watcher);
            if let Run::Done(outcome) = run {
                return Advance::Ended(outcome);
            }
            let recording = &mut oracle.recordings[side];
            if let Some(visit) = recording.sampled.take() {
                let (machine, host) = (self.machines[side].clone(), self.hosts[side].clone());
                self.copied.push(Copied { side, visit, machine, host });
            }
            if let Some(stop) = recording.stop {
                return Advance::Stopped(stop);
            }
        }
    }

    /// Compares the gap that ended at an anchor; whether the runs go on.
    fn stopped(&mut self, a: AnchorStop, b: AnchorStop) -> bool {
        if (a.activation, a.depth) != (b.activation, b.depth) {
            let [before, after] = [a, b].map(|stop| self.stop_text(Advance::Stopped(stop)));
            self.diverge(None, Difference::Stops { before, after });
            return false;
        }
        if a.effects != b.effects {
            self.diverge(None, Difference::LockstepEffects);
            return false;
        }
        self.compare_gap();
        self.before = Some((a.func, a.inst));
        true
    }

    /// Takes one run, which was overtaken by a trap that the other version does earlier, to its
    /// end, which must be the same trap. An entry that starts on the way has no partner. Always
    /// false.
    fn trapped_early(&mut self, mut ends: [Option<Outcome>; 2]) -> bool {
        self.compare_gap();
        let late = usize::from(ends[0].is_some());
        while ends[late].is_none() {
            self.oracle.report.gaps += 1;
            self.copied.clear();
            for recording in &mut self.oracle.recordings {
                recording.next_gap(Some(true));
            }
            match self.advance(late) {
                Advance::Stopped(stop) => self.before = Some((stop.func, stop.inst)),
                Advance::Ended(outcome) => ends[late] = Some(outcome),
            }
            self.compare_gap();
        }
        let [Some(a), Some(b)] = ends else {
            unreachable!("the loop ends when both runs have ended")
        };
        if is_exhausted(&a) || is_exhausted(&b) {
            self.oracle.report.exhausted += 1;
        } else if ended_alike(&a, &b) {
            self.ended(a, b);
        } else {
            let [before, after] = [a, b].map(|end| self.stop_text(Advance::Ended(end)));
            self.diverge(None, Difference::Stops { before, after });
        }
        false
    }

    /// Compares how the runs ended, and with it the runs that went on; whether they returned.
    fn ended(&mut self, a: Outcome, b: Outcome) -> bool {
        self.oracle.report.trapped += u64::from(a.trap().is_some());
        let returned = a.returned().is_some();
        let [a, b] = [End::of(&self.machines[0], a), End::of(&self.machines[1], b)];
        if a.effects != b.effects {
            self.diverge(None, Difference::LockstepEffects);
            return false;
        }
        if a.memory != b.memory {
            self.diverge(None, Difference::FinalMemory);
            return false;
        }
        for went_on in std::mem::take(&mut self.went_on) {
            self.compare_end(&went_on, &a);
        }
        returned
    }

    /// Fires every entry whose source was visited.
    fn compare_gap(&mut self) {
        if let Some((side, func, point)) = self.ambiguous() {
            let number = self.oracle.recordings[side].visit_of(func, point).map_or(0, |v| v.number);
            let entry = self.plan(func, side).points[point as usize].entry;
            self.diverge(entry.map(|e| ((func, side, e), number)), Difference::Ambiguous);
            return;
        }
        for side in [0, 1] {
            for index in 0..self.oracle.recordings[side].visits.len() {
                let visit = self.oracle.recordings[side].visits[index];
                let Some(entry) = self.plan(visit.func, side).points[visit.point as usize].entry
                else {
                    continue;
                };
                let key = (visit.func, side, entry);
                match self.fire(key, &visit) {
                    Ok(()) => self.go_on(key, index, &visit),
                    Err(difference) => self.diverge(Some((key, visit.number)), difference),
                }
            }
        }
    }

    /// A point that one of the runs visited twice in this gap, and the side.
    fn ambiguous(&self) -> Option<(usize, Func, u32)> {
        let at = |side: usize| {
            self.oracle.recordings[side].ambiguous.map(|(func, point)| (side, func, point))
        };
        at(0).or(at(1))
    }

    fn plan(&self, func: Func, side: usize) -> &super::plan::SidePlan {
        plan_of(&self.oracle.plans, func, side)
    }

    /// Runs an entry on what was recorded at its source and compares with what the other run
    /// recorded at its target. Leaves the values provided in `self.provided`.
    fn fire(&mut self, key: Key, visit: &Visit) -> Result<(), Difference> {
        let (func, side, index) = key;
        let oracle = &mut *self.oracle;
        let entry = &plan_of(&oracle.plans, func, side).entries[index as usize];
        if let Some(fault) = &entry.fault {
            return Err(Difference::Entry(fault.clone()));
        }
        let (source, target) = (&oracle.recordings[side], &oracle.recordings[1 - side]);
        let Some(partner) = target.visit_of(func, entry.target) else {
            return Err(Difference::NoPartner);
        };
        let recorded = source.values_from(visit);
        run_steps(&entry.steps, recorded, &mut self.results)?;
        let expected = target.values_from(partner);
        provide(entry, recorded, expected, &self.results, &mut self.provided)?;
        if visit.effects != partner.effects {
            return Err(Difference::Effects);
        }
        if visit.after_stores != Some(partner.memory) {
            return Err(Difference::Memory);
        }
        let counts = oracle.report.counts_mut(Side::BOTH[side]);
        counts.transitions += 1;
        counts.with_code += u64::from(entry.has_code);
        counts.in_loops += u64::from(entry.in_loop);
        counts.compared += entry.assigns.len() as u64;
        oracle.fired[func.as_u32() as usize][side].insert(index as usize);
        Ok(())
    }

    /// If the run was copied at this visit, makes the transition there and runs to the end.
    fn go_on(&mut self, key: Key, visit_index: usize, visit: &Visit) {
        let (func, side, index) = key;
        let wanted = |c: &Copied<H>| c.side == side && c.visit == visit_index;
        let Some(at) = self.copied.iter().position(wanted) else { return };
        let Copied { mut machine, mut host, .. } = self.copied.swap_remove(at);
        let entry = &self.plan(func, side).entries[index as usize];
        let target = self.plan(func, 1 - side).points[entry.target as usize].point;
        let to = self.oracle.versions[func.as_u32() as usize]
            .expect("a planned function has versions")[1 - side];
        let moved = match &entry.stores {
            Some(entry) => {
                let view = machine.view().expect("the run was copied while it was paused");
                let point = Point::before(view.inst());
                let keys = (machine.code(view.version()).key(), machine.code(to).key());
                let fired = machine.fire(to, CheckedEntry::unproved(keys, point, entry));
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
        let outcome = loop {
            if let Run::Done(outcome) = machine.run(&mut host, &mut NoObserver) {
                break outcome;
            }
        };
        let counts = self.oracle.report.counts_mut(Side::BOTH[side]);
        counts.going_on += 1;
        if is_exhausted(&outcome) {
            counts.going_on_exhausted += 1;
            return;
        }
        self.went_on.push(WentOn {
            entry: key,
            visit: visit.number,
            end: End::of(&machine, outcome),
        });
    }

    fn compare_end(&mut self, went_on: &WentOn, reference: &End) {
        if !went_on.end.same(reference) {
            let (expected, found) = (reference.text(), went_on.end.text());
            self.diverge(
                Some((went_on.entry, went_on.visit)),
                Difference::GoingOn { expected, found },
            );
        }
    }

    fn stop_text(&self, stop: Advance) -> Stop {
        match stop {
            Advance::Ended(outcome) => Stop::Ended(outcome.to_string()),
            Advance::Stopped(stop) => Stop::Anchor {
                function: self.oracle.module.funcs[stop.func].name.clone(),
                point: Point::before(stop.inst),
                activation: stop.activation,
            },
        }
    }

    /// Counts a divergence, and keeps the first of each entry.
    fn diverge(&mut self, entry: Option<(Key, u64)>, difference: Difference) {
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

fn plan_of(plans: &Plans, func: Func, side: usize) -> &super::plan::SidePlan {
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

/// Collects what the entry provides, and compares it with what the other run recorded at the
/// target: bit by bit, floats too (`a_nan_of_other_bits_is_found`).
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
fn fetch(place: Place, recorded: &[u64], results: &[u64]) -> u64 {
    match place {
        Place::Recorded(index) => recorded[index as usize],
        Place::Step(index) => results[index as usize],
    }
}
