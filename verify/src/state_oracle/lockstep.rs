//! Lockstep: both versions run from anchor to anchor, and the records of each gap are compared.

use super::Oracle;
use super::plan::{PairPlan, Plans, SidePlan};
use super::record::{AnchorStop, Partner, Sampler, Visit};
use super::report::{Difference, StopText};
use super::watch::GapWatcher;
use crate::end::{RunEnd, ended_alike, is_exhausted};
use crate::prng::Prng;
use interp::{Host, Machine, Outcome, Run};
use ir::{Func, Inst, Point};
use transition::{Pair, Side};

/// The end of an advance.
pub(super) enum Advance {
    /// Before an anchor.
    Stopped(AnchorStop),
    Ended(Outcome),
    /// The run left inlined code for the versions before, and is at no anchor.
    Left,
    /// At a failing assumption whose exit did not fire. The failure is reported, or there is no
    /// room for the activations.
    Stuck,
}

impl Advance {
    /// Whether a limit of the machine ended the run. Such an end says nothing about the program.
    fn is_exhausted(&self) -> bool {
        matches!(self, Advance::Ended(outcome) if is_exhausted(outcome))
    }

    /// Whether the run may lack points that the other run still comes to: it has trapped early, or
    /// has left its version.
    fn is_cut_short(&self) -> bool {
        match self {
            Advance::Ended(outcome) => outcome.trap().is_some(),
            Advance::Left | Advance::Stuck => true,
            Advance::Stopped(_) => false,
        }
    }
}

/// A copy of a machine that made the transition of a visit in this gap.
pub(super) struct Continued {
    pub(super) side: Side,
    /// The index of the visit in the records of its side.
    pub(super) visit: usize,
    /// Its end, `None` if it has none to compare; or how the transition went wrong.
    pub(super) end: Result<Option<RunEnd>, Difference>,
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
    /// Runs with a transition in this gap.
    pub(super) continued: Vec<Continued>,
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
    /// Of inlined code: whether the run of a side may lack the partner of a visit in this gap.
    pub(super) cut_short: Pair<bool>,
}

/// Implements [`Oracle::run`].
pub(super) fn run<H: Host + Clone>(oracle: &mut Oracle<'_>, func: Func, args: &[u64], host: &H) {
    let start = oracle.pristine.before.start_function();
    for side in Side::BOTH {
        let sampler = sampler(oracle, side);
        oracle.recordings[side].restart(sampler);
    }
    oracle.report.runs += 1;
    let machines = oracle.pristine.clone();
    let hosts = Pair::from_fn(|_| host.clone());
    let mut lockstep = Lockstep {
        oracle,
        machines,
        hosts,
        args,
        before: None,
        continued: Vec::new(),
        went_on: Vec::new(),
        left: None,
        left_in_gap: false,
        compared: false,
        lacks_memory: false,
        cut_short: Pair::new(false, false),
    };
    // A start function that does not return ends the program before the call.
    if start.is_none_or(|start| lockstep.call(start, &[])) {
        lockstep.call(func, args);
    }
}

/// The sampler of a run. The number of the run goes into the seed, so that each run takes other
/// samples. Ways into inlined code have chains instead.
fn sampler(oracle: &Oracle<'_>, side: Side) -> Sampler {
    let prng = Prng::new(oracle.options.seed);
    let (runs, limit) = (oracle.report.runs, oracle.options.going_on);
    let (prng, limit) = match (oracle.has_inlined(), side) {
        (false, _) => (prng.fork(2 + runs).fork(side as u64), limit),
        (true, Side::Before) => (prng, 0),
        (true, Side::After) => (prng.fork(runs), limit),
    };
    Sampler::new(prng, limit, oracle.options.going_on_one_in)
}

impl<'a, H: Host + Clone> Lockstep<'_, 'a, H> {
    /// Runs a function in both versions, and compares them. Returns whether both returned.
    fn call(&mut self, func: Func, args: &[u64]) -> bool {
        self.went_on.clear();
        (self.before, self.left, self.lacks_memory) = (None, None, false);
        self.machines.as_mut().into_iter().for_each(|m| m.start(func, args));
        loop {
            let (before, after) = self.gap();
            // First: a limit may end one version earlier than the other, and that is no difference
            // of the versions.
            if before.is_exhausted() || after.is_exhausted() {
                self.oracle.report.exhausted += 1;
                return false;
            }
            if matches!(after, Advance::Stuck) {
                self.compare_gap();
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
                (Advance::Stopped(_), Advance::Left) => return self.left(None),
                (Advance::Ended(a), Advance::Left) => return self.left(Some(a)),
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
        self.begin_gap();
        // Both runs must record the same gaps. The gate decides at the first watched point of the
        // version before, and the version after follows.
        let spent = self.oracle.report.total().transitions >= self.oracle.options.transitions;
        self.oracle.recordings.before.next_gap(spent.then_some(false));
        let before = self.advance(Side::Before);
        self.cut_short.before = before.is_cut_short();
        let decided = self.oracle.recordings.before.on;
        // If the version before met no watched point, there was no decision. The version after then
        // records, so that an entry whose target point is in another gap is found.
        self.oracle.recordings.after.next_gap(Some(decided.unwrap_or(true)));
        let after = self.advance(Side::After);
        self.cut_short.after = after.is_cut_short();
        (before, after)
    }

    fn begin_gap(&mut self) {
        self.oracle.report.gaps += 1;
        self.continued.clear();
        (self.left_in_gap, self.compared) = (false, false);
        self.cut_short = Pair::new(false, false);
    }

    /// Advances one run to its next anchor or its end.
    fn advance(&mut self, side: Side) -> Advance {
        loop {
            let oracle = &mut *self.oracle;
            let mut watcher = GapWatcher {
                plans: &oracle.plans,
                versions: &oracle.versions,
                scope: oracle.scope,
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
            // The machine pauses at a sampled visit, too.
            let (sampled, stop) = (recording.sampled.take(), recording.stop);
            if let Some(visit) = sampled {
                self.go_on(side, visit);
            }
            if let Some(stop) = stop {
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
    /// and `compare_gap` reports it. Behind inlined code, anchors are too rare for this, and
    /// nothing is recorded. Always returns `false`.
    fn trapped_early(&mut self, mut ends: Pair<Option<Outcome>>) -> bool {
        self.compare_gap();
        let late = if ends.before.is_some() { Side::After } else { Side::Before };
        let is_recorded = !self.oracle.has_inlined();
        while ends[late].is_none() {
            self.begin_gap();
            // The records of the run that has ended are emptied in each gap, too. An old record
            // could else be taken for the partner of an entry.
            for recording in self.oracle.recordings.as_mut() {
                recording.next_gap(Some(is_recorded));
            }
            match self.advance(late) {
                Advance::Stopped(stop) => self.before = Some((stop.func, stop.inst)),
                Advance::Ended(outcome) => ends[late] = Some(outcome),
                Advance::Left => match self.finished(late) {
                    Some(outcome) => ends[late] = Some(outcome),
                    None => return false,
                },
                Advance::Stuck => return false,
            }
            self.compare_gap();
        }
        let Pair { before: Some(a), after: Some(b) } = ends else {
            unreachable!("the loop ends when both runs have ended")
        };
        self.both_ended(a, b);
        false
    }

    /// The run has left inlined code, and both runs continue to their ends. Returns whether both
    /// returned.
    fn left(&mut self, before: Option<Outcome>) -> bool {
        let before = before.or_else(|| self.finished(Side::Before));
        match (before, self.finished(Side::After)) {
            (Some(a), Some(b)) => self.both_ended(a, b),
            _ => false,
        }
    }

    /// Runs one run to its end. `None` if there is no room for the activations of an exit.
    fn finished(&mut self, side: Side) -> Option<Outcome> {
        let ended = self.oracle.finish(&mut self.machines[side], &mut self.hosts[side]);
        self.oracle.report.exhausted += u64::from(ended.is_none());
        ended.map(|(outcome, _)| outcome)
    }

    /// Compares the ends of both runs. Returns whether they returned alike.
    fn both_ended(&mut self, a: Outcome, b: Outcome) -> bool {
        if is_exhausted(&a) || is_exhausted(&b) {
            self.oracle.report.exhausted += 1;
            return false;
        }
        if ended_alike(&a, &b) {
            return self.ended(a, b);
        }
        let [before, after] = [a, b].map(|end| self.stop_text(Advance::Ended(end)));
        self.diverge(self.left, Difference::Stops { before, after });
        false
    }

    /// Compares the ends of both runs, and of the runs that continued. Returns whether the runs
    /// returned.
    fn ended(&mut self, a: Outcome, b: Outcome) -> bool {
        self.oracle.report.trapped += u64::from(a.trap().is_some());
        let returned = a.returned().is_some();
        let scope = self.oracle.scope;
        let a = RunEnd::of(&self.machines.before, a, scope);
        let b = RunEnd::of(&self.machines.after, b, scope);
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
        for WentOn { entry, visit, end } in std::mem::take(&mut self.went_on) {
            self.oracle.report.counts_mut(entry.side).ends += 1;
            if !end.same(&a) {
                self.diverge(Some((entry, visit)), Difference::going_on(&a, &end));
            }
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
                // A wrong entry would be reported twice.
                match self.fire(key, &visit) {
                    Ok(()) => self.settle(key, index, &visit),
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

    pub(super) fn plan(&self, func: Func, side: Side) -> &SidePlan<'a> {
        plan_of(&self.oracle.plans, func, side)
    }

    /// Runs an entry on the record of its source point, and compares the result with the record of
    /// the other run where the entry lands.
    fn fire(&mut self, key: EntryKey, visit: &Visit) -> Result<(), Difference> {
        let EntryKey { func, side, index } = key;
        let oracle = &mut *self.oracle;
        let entry = &plan_of(&oracle.plans, func, side).entries[index as usize];
        if let Some(fault) = &entry.fault {
            return Err(Difference::Entry(fault.clone()));
        }
        let (source, target) = (&oracle.recordings[side], &oracle.recordings[side.other()]);
        let partner = match target.visit_of(func, entry.landing, visit.activation) {
            Partner::One(partner) => partner,
            // Between two anchors that inlined code shares, there may be a loop.
            Partner::Several => {
                oracle.report.ambiguous += 1;
                return Ok(());
            }
            Partner::None if self.cut_short[side.other()] && oracle.has_inlined() => return Ok(()),
            // The other version did not visit the landing point between the same anchors.
            Partner::None => return Err(Difference::NoPartner),
        };
        let recorded = source.values_from(visit);
        let (seen, mut at, mut wrong) = (target.values_from(partner), 0, None);
        // All bits count, for floats too (`a_nan_of_other_bits_is_found`).
        entry.run(recorded, |frame, value, found| {
            let expected = seen[entry.expected[at] as usize];
            at += 1;
            if found != expected && wrong.is_none() {
                wrong = Some((frame, value, expected, found));
            }
        })?;
        if let Some((frame, value, expected, found)) = wrong {
            return Err(Difference::Value { frame, value, expected, found });
        }
        if visit.effects != partner.effects {
            return Err(Difference::Effects);
        }
        // Memory at the source point, after the stores that the entry replays.
        if visit.after_stores != Some(partner.memory) {
            return Err(Difference::Memory);
        }
        let counts = oracle.report.counts_mut(side);
        counts.transitions += 1;
        counts.by_depth[entry.depth] += 1;
        counts.with_code += u64::from(entry.has_code);
        counts.in_loops += u64::from(entry.in_loop);
        counts.compared += entry.expected.len() as u64;
        counts.holding += u64::from(visit.holds == Some(true));
        counts.failing += u64::from(visit.holds == Some(false));
        oracle.fired[func.as_u32() as usize][side].insert(index as usize);
        if visit.holds == Some(false) {
            oracle.failing[func.as_u32() as usize][side].insert(index as usize);
        }
        Ok(())
    }

    /// If a copy continued from this visit, keeps its end.
    fn settle(&mut self, key: EntryKey, index: usize, visit: &Visit) {
        let wanted = |one: &Continued| (one.side, one.visit) == (key.side, index);
        let Some(at) = self.continued.iter().position(wanted) else { return };
        let end = match self.continued.swap_remove(at).end {
            Ok(Some(end)) => end,
            Ok(None) => return,
            Err(difference) => return self.diverge(Some((key, visit.number)), difference),
        };
        let counts = self.oracle.report.counts_mut(key.side);
        counts.going_on += 1;
        // A run that a limit ended has no end to compare.
        match is_exhausted(&end.outcome) {
            true => counts.going_on_exhausted += 1,
            false => self.went_on.push(WentOn { entry: key, visit: visit.number, end }),
        }
    }

    fn stop_text(&self, stop: Advance) -> StopText {
        match stop {
            Advance::Stuck => StopText::Ended("an exit did not fire".to_owned()),
            Advance::Left => StopText::Ended("an exit out of inlined code".to_owned()),
            Advance::Ended(outcome) => StopText::Ended(outcome.to_string()),
            Advance::Stopped(stop) => StopText::Anchor {
                function: self.oracle.module.funcs[stop.func].name.clone(),
                point: Point::before(stop.inst),
                activation: stop.activation,
            },
        }
    }

    /// Counts a divergence of this run.
    pub(super) fn diverge(&mut self, entry: Option<(EntryKey, u64)>, difference: Difference) {
        let entry = entry.map(|(key, visit)| (key, Some(visit)));
        self.oracle.diverge(self.args, entry, difference);
    }
}

fn plan_of<'p, 'a>(plans: &'p Plans<'a>, func: Func, side: Side) -> &'p SidePlan<'a> {
    let plan: &PairPlan<'a> = plans[func.as_u32() as usize].as_ref().expect("it is planned");
    &plan.sides[side]
}
