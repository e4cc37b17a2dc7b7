//! The frame oracle: runs a program with and without inlined code, and compares every transition
//! between the two with the activations that it claims to reach.
//!
//! Two machines run the same program on the same input. On the first machine, every function is in
//! its base; on the second, functions are in versions with inlined code. An activation of such a
//! version stands for several activations of the first machine: its *virtual frames* at an
//! instruction. The copy that the version was optimized from lists them ([`check::Copies`]). Depths
//! are therefore *virtual*: they count virtual frames.
//!
//! Both runs advance to the next *event*: an instruction that both runs execute, in the same order,
//! however optimized. Between two events, each run comes to points at which entries start or land:
//!
//! - An entry out of inlined code computes the frames that it leads to, from the state of the
//!   optimized run. The base run has to come to these activations, at this virtual depth, and each
//!   assigned value has to have the same contents there, in the frames that wait, too.
//! - An entry into the version computes values of the optimized version from the state of the base
//!   run, and is compared with the optimized run where it lands.
//!
//! Compared besides: memory after replays, and the digest of outer effects. For a sample of visits,
//! a copy of the optimized machine makes the transition and continues to the end. This end must
//! equal the end of the base run. On the way, half of these runs go up again, from an activation of
//! the function that they left. The oracle also compares the activations that the transition made
//! with the activations that the entry computes. A transition that finds no room must leave the run
//! as it was.
//!
//! Where an assumption of the version fails, the optimized run leaves over the entry there, and its
//! activations are compared with the frames that the entry computes. From there on both machines
//! execute base versions below, so the runs continue to their ends, which are compared.
//!
//! Besides, hop chains go through versions and frames in turn ([`FrameChains`]).
//!
//! Fuel and the depth of the stack are no observables: a run that exhausts them proves nothing.

mod chains;
mod gap;
mod plan;
mod watch;

use crate::end::{ended_alike, is_exhausted};
use crate::prng::Prng;
pub use chains::FrameChains;

use check::Copies;
use gap::{ContinuedRun, EventGap, difference};
use interp::{Host, InstantiateError, Limits, Machine, Options, Outcome, Program, Run, TraceLevel};
use ir::{Func, Function, Inst, Module, Point};
use plan::{FramePlans, GoneUp};
use std::collections::BTreeSet;
use transition::mapping::Mapping;
use watch::{BaseWatcher, EventStop, InlinedWatcher};

/// A function, its version with inlined code, and the mappings between its base and that version.
#[derive(Clone, Copy, Debug)]
pub struct InlinedPair<'a> {
    /// The function.
    pub func: Func,
    /// The optimized version with inlined code.
    pub optimized: &'a Function,
    /// The code that its copy consists of.
    pub copies: &'a Copies,
    /// Synchronization points: instructions of the optimized version that its run and the base run
    /// both execute, in the same order.
    pub events: &'a BTreeSet<Inst>,
    /// From the base into the version.
    pub up: &'a Mapping,
    /// From the version into frames of bases.
    pub down: &'a Mapping,
}

/// The settings of a [`FrameOracle`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameOptions {
    /// The limits of each machine.
    pub limits: Limits,
    /// The largest number of transitions compared, over all runs.
    pub transitions: u64,
    /// One visit in this many continues in a copy behind its transition; 0 for no copies.
    pub going_on_one_in: u32,
    /// The most visits of a run from which a copy continues.
    pub going_on: u32,
    /// The number of hop chains for each input.
    pub chains: u32,
    /// The largest number of divergences kept. All are counted.
    pub divergences: usize,
    /// Seed of all samples.
    pub seed: u64,
}

impl Default for FrameOptions {
    /// 10^7 instructions a run; copies that continue from one visit in 50, up to 8 in a run; a
    /// chain for each input; 16 divergences.
    fn default() -> FrameOptions {
        FrameOptions {
            limits: Limits { fuel: 10_000_000, ..Limits::default() },
            transitions: u64::MAX,
            going_on_one_in: 50,
            going_on: 8,
            chains: 1,
            divergences: 16,
            seed: 0,
        }
    }
}

/// The most frames that are counted apart.
pub const DEPTHS: usize = 5;

/// The comparisons of a [`FrameOracle`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameReport {
    /// The runs.
    pub runs: u64,
    /// The runs that a limit ended.
    pub exhausted: u64,
    /// The runs that trapped.
    pub trapped: u64,
    /// The transitions out of inlined versions, by the number of their frames less one; the last
    /// counts all with more.
    pub down: [u64; DEPTHS],
    /// The transitions into inlined versions.
    pub up: u64,
    /// The values compared.
    pub values: u64,
    /// The runs that continued behind a transition, to their end.
    pub going_on: u64,
    /// The transitions of such runs up again, from an activation that the first one made.
    pub up_again: u64,
    /// The transitions at assumptions that held, and at assumptions that failed.
    pub at_assumptions: [u64; 2],
    /// The transitions that found no room for their frames.
    pub without_room: u64,
    /// The visits whose landing point the other run came to more than once between two events, so
    /// that the oracle cannot tell which one is meant.
    pub ambiguous: u64,
    /// The figures of hop chains.
    pub chains: FrameChains,
    /// The number of divergences.
    pub divergence_count: u64,
    /// The first divergences.
    pub divergences: Vec<FrameDivergence>,
}

impl FrameReport {
    /// The transitions with several frames.
    pub fn with_frames(&self) -> u64 {
        self.down[1..].iter().sum()
    }

    /// All transitions.
    pub fn transitions(&self) -> u64 {
        self.up + self.down.iter().sum::<u64>()
    }

    /// Adds the figures of another report, without its divergences.
    pub fn add(&mut self, other: &FrameReport) {
        self.runs += other.runs;
        self.exhausted += other.exhausted;
        self.trapped += other.trapped;
        self.down.iter_mut().zip(other.down).for_each(|(sum, more)| *sum += more);
        self.up += other.up;
        self.values += other.values;
        self.going_on += other.going_on;
        self.up_again += other.up_again;
        self.at_assumptions.iter_mut().zip(other.at_assumptions).for_each(|(a, b)| *a += b);
        self.without_room += other.without_room;
        self.ambiguous += other.ambiguous;
        self.chains.add(&other.chains);
        self.divergence_count += other.divergence_count;
    }
}

/// A transition that led elsewhere than it claims, or runs that differ without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameDivergence {
    /// The arguments of the run.
    pub args: Vec<u64>,
    /// The function and the source point of the entry; `None` if the versions themselves differ.
    pub entry: Option<(Func, Point)>,
    /// The difference, for people.
    pub difference: String,
}

/// Compares versions with inlined code with the bases that they are made of.
pub struct FrameOracle<'a> {
    plans: FramePlans<'a>,
    /// Machines that have run nothing: in the bases, and in the versions with inlined code.
    pristine: [Machine; 2],
    /// The second machine, with the ways into versions marked.
    hopper: Machine,
    options: FrameOptions,
    report: FrameReport,
}

impl<'a> FrameOracle<'a> {
    /// An oracle for a verified module and verified versions. Cost: near linear in the module, the
    /// versions and the mappings.
    ///
    /// # Errors
    /// When the module cannot be instantiated.
    pub fn new(
        module: &'a Module,
        pairs: &[InlinedPair<'a>],
        options: FrameOptions,
    ) -> Result<FrameOracle<'a>, InstantiateError> {
        let program = Program::new(module);
        let settings = Options { trace: TraceLevel::Digest, poison: true, track_memory: true };
        let machine = || Machine::with_options(&program, options.limits, settings);
        let mut pristine = [machine()?, machine()?];
        pristine.iter_mut().for_each(|machine| machine.stress_collector(true));
        let plans = FramePlans::new(module, pairs, &mut pristine);
        let hopper = pristine[1].clone();
        Ok(FrameOracle { plans, pristine, hopper, options, report: FrameReport::default() })
    }

    /// Runs the start function of the module, if there is one, then a function, with and without
    /// inlined code, and compares them; then the same in hop chains. Each machine gets a clone of
    /// the host. Cost: both runs, plus the values that each transition assigns.
    ///
    /// # Panics
    /// If the function is imported or takes another number of arguments.
    pub fn run<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let prng = Prng::new(self.options.seed).fork(self.report.runs);
        self.report.runs += 1;
        let machines = self.pristine.clone();
        let start = machines[0].start_function();
        let hosts = [host.clone(), host.clone()];
        let gap = EventGap::new(prng, self.options);
        let mut run = FrameRun { oracle: self, machines, hosts, args: args.to_vec(), gap };
        if start.is_none_or(|start| run.call(start, &[])) {
            run.call(func, args);
        }
        self.chains(func, args, host);
    }

    fn diverge(&mut self, args: &[u64], entry: Option<(Func, Point)>, difference: String) {
        let report = &mut self.report;
        report.divergence_count += 1;
        if report.divergences.len() < self.options.divergences {
            report.divergences.push(FrameDivergence { args: args.to_vec(), entry, difference });
        }
    }

    /// The comparisons so far.
    pub fn report(&self) -> &FrameReport {
        &self.report
    }
}

/// How an advance of one run ended.
enum FrameAdvance {
    Stopped(EventStop),
    Ended(Outcome),
    /// The run left where an assumption failed.
    Left((Func, Point)),
    /// The run cannot continue: no room for the frames, or no exit, which is reported already.
    Lost,
}

/// The run of one input on both machines: bases first.
struct FrameRun<'o, 'a, H> {
    oracle: &'o mut FrameOracle<'a>,
    machines: [Machine; 2],
    hosts: [H; 2],
    args: Vec<u64>,
    gap: EventGap<H>,
}

impl<H: Host + Clone> FrameRun<'_, '_, H> {
    /// Runs a function on both machines. Returns whether both returned.
    fn call(&mut self, func: Func, args: &[u64]) -> bool {
        self.gap.went_on.clear();
        self.machines.iter_mut().for_each(|machine| machine.start(func, args));
        loop {
            self.gap.clear();
            // The optimized run first: it says where the base run is to be looked at.
            let inlined = self.advance_inlined();
            let base = self.advance_base();
            for end in [&base, &inlined] {
                if matches!(end, FrameAdvance::Ended(outcome) if is_exhausted(outcome)) {
                    self.oracle.report.exhausted += 1;
                    return false;
                }
            }
            // Where one run has trapped, the other run may still come to points, and traps later.
            // After the optimized run has left, it reaches no point of its version any more.
            let trapped = [&base, &inlined].map(|one| match one {
                FrameAdvance::Ended(end) => end.trap().is_some(),
                FrameAdvance::Left(_) | FrameAdvance::Lost => true,
                FrameAdvance::Stopped(_) => false,
            });
            for (entry, difference) in self.gap.compare(trapped, &mut self.oracle.report) {
                self.diverge(Some(entry), difference);
            }
            match (base, inlined) {
                (FrameAdvance::Stopped(a), FrameAdvance::Stopped(b)) if a == b => {}
                (FrameAdvance::Ended(a), FrameAdvance::Ended(b)) => return self.ended(&a, &b),
                (base, FrameAdvance::Left((func, point))) => return self.left(base, func, point),
                (_, FrameAdvance::Lost) => return false,
                (FrameAdvance::Ended(end), FrameAdvance::Stopped(_)) if end.trap().is_some() => {
                    return self.trapped_early(end, 1);
                }
                (FrameAdvance::Stopped(_), FrameAdvance::Ended(end)) if end.trap().is_some() => {
                    return self.trapped_early(end, 0);
                }
                (base, inlined) => {
                    let text = |advance| match advance {
                        FrameAdvance::Stopped(stop) => format!("{stop:?}"),
                        FrameAdvance::Ended(outcome) => outcome.to_string(),
                        FrameAdvance::Left(_) | FrameAdvance::Lost => "left".to_owned(),
                    };
                    let what = format!("bases: {}; inlined: {}", text(base), text(inlined));
                    self.diverge(None, what);
                    return false;
                }
            }
        }
    }

    fn advance_inlined(&mut self) -> FrameAdvance {
        loop {
            let mut watcher = InlinedWatcher { plans: &self.oracle.plans, gap: &mut self.gap };
            match self.machines[1].run(&mut self.hosts[1], &mut watcher) {
                Run::Paused => {}
                Run::Failed { .. } => return self.leave(),
                Run::Done(outcome) => return FrameAdvance::Ended(outcome),
                Run::Called { .. } => unreachable!("no function is external"),
            }
            // The machine pauses at a sampled visit, too.
            if self.gap.sampled.take().is_some() {
                self.go_on();
            }
            if let Some(stop) = self.gap.stop.take() {
                return FrameAdvance::Stopped(stop);
            }
        }
    }

    fn advance_base(&mut self) -> FrameAdvance {
        let mut watcher = BaseWatcher { plans: &self.oracle.plans, gap: &mut self.gap };
        match self.machines[0].run(&mut self.hosts[0], &mut watcher) {
            Run::Failed { reason } => FrameAdvance::Ended(self.machines[0].fail(reason)),
            Run::Done(outcome) => FrameAdvance::Ended(outcome),
            _ => FrameAdvance::Stopped(self.gap.stop.take().expect("it paused at an event")),
        }
    }

    /// Makes the transition at a failing assumption, and compares the activations made with the
    /// activations that the entry computes.
    fn leave(&mut self) -> FrameAdvance {
        match self.oracle.plans.fire(&mut self.machines[1]) {
            Ok(entry) => {
                let made = self.machines[1].view().zip(self.gap.frames.last());
                if let Some(what) = made.and_then(|(view, computed)| difference(computed, &view)) {
                    self.diverge(Some(entry), format!("activations made: {what}"));
                }
                FrameAdvance::Left(entry)
            }
            Err(plan::NotFired::NoRoom(_)) => {
                self.oracle.report.without_room += 1;
                FrameAdvance::Lost
            }
            Err(plan::NotFired::Wrong(entry, why)) => {
                self.diverge(Some(entry), why);
                FrameAdvance::Lost
            }
        }
    }

    /// The optimized run has left where an assumption failed: both runs continue to their ends.
    fn left(&mut self, base: FrameAdvance, func: Func, point: Point) -> bool {
        let base = match base {
            FrameAdvance::Ended(outcome) => Some(outcome),
            _ => self.oracle.plans.finish(&mut self.machines[0], &mut self.hosts[0]),
        };
        let inlined = self.oracle.plans.finish(&mut self.machines[1], &mut self.hosts[1]);
        match base.zip(inlined) {
            Some((base, inlined)) if !is_exhausted(&base) && !is_exhausted(&inlined) => {
                self.gap.left = Some((func, point));
                self.ended(&base, &inlined)
            }
            _ => {
                self.oracle.report.exhausted += 1;
                false
            }
        }
    }

    /// Makes the transition on a copy of the paused machine, and runs the copy to its end.
    fn go_on(&mut self) {
        let (mut machine, mut host) = (self.machines[1].clone(), self.hosts[1].clone());
        match self.oracle.plans.fire(&mut machine) {
            Ok(entry) => {
                let made = machine.view().zip(self.gap.frames.last());
                let wrong = made.and_then(|(view, computed)| difference(computed, &view));
                if let Some(what) = wrong {
                    self.diverge(Some(entry), format!("activations made: {what}"));
                }
                // Without room for frames at an assumption that fails later, there is no end.
                if let Some(outcome) = self.end_of(&mut machine, &mut host, entry.0) {
                    let end = FrameEnd::of(&machine, outcome);
                    self.gap.went_on.push(ContinuedRun { entry, end });
                }
            }
            Err(plan::NotFired::NoRoom((func, point))) => self.stay(func, point, machine, host),
            Err(plan::NotFired::Wrong(entry, why)) => self.diverge(Some(entry), why),
        }
    }

    /// The end of a run that has just left the version of a function. Half of these runs go up
    /// again from an activation of the base, whichever frame it landed as: the mappings of a
    /// version were accepted together.
    fn end_of(&mut self, machine: &mut Machine, host: &mut H, func: Func) -> Option<Outcome> {
        if let Some(skip) = self.gap.visits_before_up() {
            match self.oracle.plans.go_up(machine, host, func, skip) {
                Ok(GoneUp::Up) => self.oracle.report.up_again += 1,
                Ok(GoneUp::Stayed) => {}
                Ok(GoneUp::Ended(outcome)) => return Some(outcome),
                Err(plan::NotFired::NoRoom(_)) => return None,
                Err(plan::NotFired::Wrong(entry, why)) => {
                    self.diverge(Some(entry), why);
                    return None;
                }
            }
        }
        self.oracle.plans.finish(machine, host)
    }

    /// A run without room for its frames stays where it is and continues unchanged. The bases may
    /// need more room than there is, so its end is compared with the end of a run without a
    /// transition.
    fn stay(&mut self, func: Func, point: Point, mut machine: Machine, mut host: H) {
        self.oracle.report.without_room += 1;
        let (mut other, mut other_host) = (self.machines[1].clone(), self.hosts[1].clone());
        let ends = [(&mut machine, &mut host), (&mut other, &mut other_host)].map(|(one, host)| {
            let outcome = self.oracle.plans.finish(one, host)?;
            Some(FrameEnd::of(one, outcome))
        });
        let [Some(found), Some(expected)] = ends else { return };
        let are_exhausted = is_exhausted(&found.outcome) && is_exhausted(&expected.outcome);
        if !are_exhausted && !found.same(&expected) {
            let what = format!("without room: {found:?}; without the transition: {expected:?}");
            self.diverge(Some((func, point)), what);
        }
    }

    /// One run has trapped earlier than the other: the late run must end in the same trap.
    fn trapped_early(&mut self, end: Outcome, late: usize) -> bool {
        let other = self.oracle.plans.finish(&mut self.machines[late], &mut self.hosts[late]);
        let Some(other) = other.filter(|end| !is_exhausted(end)) else {
            self.oracle.report.exhausted += 1;
            return false;
        };
        match late {
            0 => self.ended(&other, &end),
            _ => self.ended(&end, &other),
        }
    }

    /// Compares the ends of both runs and of the continued copies. Returns whether the runs
    /// returned.
    fn ended(&mut self, base: &Outcome, inlined: &Outcome) -> bool {
        self.oracle.report.trapped += u64::from(base.trap().is_some());
        let expected = FrameEnd::of(&self.machines[0], base.clone());
        let found = FrameEnd::of(&self.machines[1], inlined.clone());
        if !found.same(&expected) {
            let left = self.gap.left.take();
            self.diverge(left, format!("bases {expected:?}; inlined {found:?}"));
            return false;
        }
        for ContinuedRun { entry, end } in std::mem::take(&mut self.gap.went_on) {
            if is_exhausted(&end.outcome) {
                continue;
            }
            self.oracle.report.going_on += 1;
            if !end.same(&expected) {
                self.diverge(Some(entry), format!("bases {expected:?}; went on {end:?}"));
            }
        }
        base.returned().is_some()
    }

    fn diverge(&mut self, entry: Option<(Func, Point)>, difference: String) {
        self.oracle.diverge(&self.args, entry, difference);
    }
}

/// The end of a run, without the calls that inlining takes away. A trap counts with the function in
/// whose code it stands.
#[derive(Clone, Debug)]
pub(super) struct FrameEnd {
    outcome: Outcome,
    memory: u64,
    outer: u64,
}

impl FrameEnd {
    fn of(machine: &Machine, outcome: Outcome) -> FrameEnd {
        let (memory, outer) = (machine.memory_digest(), machine.trace().outer_digest());
        FrameEnd { outcome, memory, outer }
    }

    fn same(&self, other: &FrameEnd) -> bool {
        // Passes move instructions that trap, but not between functions.
        let place = |end: &FrameEnd| match &end.outcome {
            Outcome::Trapped { site, .. } => Some(site.func),
            _ => None,
        };
        (self.memory, self.outer, place(self)) == (other.memory, other.outer, place(other))
            && ended_alike(&self.outcome, &other.outcome)
    }
}
