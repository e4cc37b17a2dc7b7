//! Hop chains through frames: a run goes into versions with inlined code and out of them into
//! several activations, again and again.
//!
//! A chain starts with each function in its version with inlined code, or in its base, by seed. At
//! random visits of points with entries it fires one. An entry out of a version leaves the run in
//! bases. The innermost base frame continues, and may enter the version of *its* function in turn;
//! so may each waiting frame, once the calls above it have returned. Where an assumption fails, the
//! run leaves in any case.
//!
//! A second machine runs the bases alone. The state behind each way out, and before each way in,
//! must be a state of this run. The comparison covers the virtual depth, the activations made or
//! left with their given values, memory and outer effects. If several states match, any of them
//! will do: states that are equal in all live values have equal rests. The search continues from
//! the last state that it met, then starts once more from the beginning. A transition may land a
//! few instructions before the place that the base run has reached. At the end of the chain,
//! results, memory and outer effects are compared.
//!
//! An activation of another function lands in a base whose own ways in were accepted apart from the
//! entry that made it. Such a way in may read a value that is dead where the activation landed. A
//! chain does not take it then, as no embedder may. In all other activations, including inner
//! activations of a function inlined into itself, such a value is a divergence.

use super::gap::{ComputedFrame, ComputedFrames, difference};
use super::plan::{FramePlans, NotFired};
use super::{FrameEnd, FrameOracle};
use crate::end::is_exhausted;
use crate::prng::Prng;
use check::CheckedEntry;
use interp::{Control, Host, Machine, NoObserver, Observer, Outcome, Run, Scope, View};
use ir::{Func, Inst, Point};
use std::collections::BTreeSet;
use std::fmt::Write;
use transition::VersionKey;
use transition::frames::FramePlace;

/// The most hops of a chain; hops at failing assumptions do not count.
const MOST_HOPS: u32 = 24;

/// The figures of hop chains through frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FrameChains {
    /// The chains.
    pub chains: u64,
    /// The transitions into versions with inlined code.
    pub into: u64,
    /// The transitions out of versions: into one activation, and into several.
    pub out: [u64; 2],
    /// The chains with two transitions into several activations or more.
    pub several: u64,
    /// The transitions whose state the run of the bases came to.
    pub states: u64,
    /// The ways in that a chain did not take, because a value was not there that only entries
    /// accepted apart need.
    pub apart: u64,
    /// The chains that a limit ended.
    pub exhausted: u64,
}

impl FrameChains {
    /// All transitions.
    pub fn hops(&self) -> u64 {
        self.into + self.out.iter().sum::<u64>()
    }

    /// Adds other figures.
    pub fn add(&mut self, other: &FrameChains) {
        self.chains += other.chains;
        self.into += other.into;
        self.out.iter_mut().zip(other.out).for_each(|(sum, more)| *sum += more);
        self.several += other.several;
        self.states += other.states;
        self.apart += other.apart;
        self.exhausted += other.exhausted;
    }
}

/// A chain that found a difference: the entry that it is blamed on, and the text.
type ChainFault = (Option<(Func, Point)>, String);

impl FrameOracle<'_> {
    /// Runs the chains of an input.
    pub(super) fn chains<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let prng = Prng::new(self.options.seed ^ 0x63_68_61_69).fork(self.report.runs);
        let bases = BaseRun { machine: self.pristine[0].clone(), host: host.clone() };
        for number in 0..self.options.chains {
            let mut figures = FrameChains { chains: 1, ..FrameChains::default() };
            let chain = FrameChain {
                plans: &self.plans,
                machine: self.hopper.clone(),
                host: host.clone(),
                bases: bases.clone(),
                begun: bases.clone(),
                bases_ended: None,
                apart: BTreeSet::new(),
                trail: String::new(),
                prng: prng.fork(u64::from(number)),
                figures: &mut figures,
            };
            let ended = chain.run(func, args);
            figures.several = u64::from(figures.out[1] >= 2);
            self.report.chains.add(&figures);
            if let Err((entry, what)) = ended {
                self.diverge(args, entry, what);
            }
        }
    }
}

/// Why a chain stopped.
enum ChainStop {
    Hop,
    Ended(Outcome),
    /// An assumption fails, and there is no room for the frames.
    Lost,
}

/// A run of the bases.
#[derive(Clone)]
struct BaseRun<H> {
    machine: Machine,
    host: H,
}

impl<H: Host> BaseRun<H> {
    /// Runs to a state. Returns the end of the run if it never is there.
    fn search(&mut self, search: &mut StateSearch<'_>) -> Option<Outcome> {
        match self.machine.run(&mut self.host, search) {
            Run::Done(outcome) => Some(outcome),
            Run::Failed { reason } => Some(self.machine.fail(reason)),
            Run::Paused | Run::Called { .. } => None,
        }
    }
}

struct FrameChain<'c, 'a, H> {
    plans: &'c FramePlans<'a>,
    machine: Machine,
    host: H,
    /// The run of the bases, and the same at its start.
    bases: BaseRun<H>,
    begun: BaseRun<H>,
    bases_ended: Option<Outcome>,
    /// The activations that landed in a base whose own ways in were accepted apart.
    apart: BTreeSet<u64>,
    /// The hops so far, for people.
    trail: String,
    prng: Prng,
    figures: &'c mut FrameChains,
}

impl<H: Host + Clone> FrameChain<'_, '_, H> {
    fn run(mut self, func: Func, args: &[u64]) -> Result<(), ChainFault> {
        if let Some(start) = self.machine.start_function() {
            self.machine.start(start, &[]);
            let ended = self.plans.finish(&mut self.machine, &mut self.host);
            let BaseRun { machine, host } = &mut self.bases;
            let plain = machine.invoke(start, &[], host, &mut NoObserver);
            if ended.is_none_or(|end| end.returned().is_none()) || plain.returned().is_none() {
                return Ok(());
            }
        }
        for (func, base, _) in self.plans.versions() {
            if self.prng.chance(25) {
                self.machine.set_current(func, base);
            }
        }
        let visits = self.visits(func, args);
        self.machine.start(func, args);
        self.bases.machine.start(func, args);
        self.begun = self.bases.clone();
        let mut left = self.prng.between(4, MOST_HOPS);
        let share = 1 + visits / u64::from(left);
        let mut has_landed = false;
        loop {
            let wants_frames = self.prng.chance(60);
            let here = has_landed && left > 0 && self.prng.chance(25);
            let stop = match here && self.plans.way(&self.machine).is_some() {
                true => ChainStop::Hop,
                false if left == 0 => self.advance(&mut NoObserver)?,
                false => {
                    let wait = u64::from(self.prng.below(u32::try_from(share).unwrap_or(u32::MAX)));
                    let plans = self.plans;
                    self.advance(&mut ChainWatch { plans, left: wait, wants_frames })?
                }
            };
            match stop {
                ChainStop::Hop => {
                    left -= 1;
                    has_landed = self.hop()?;
                }
                ChainStop::Ended(outcome) => return self.ended(outcome),
                ChainStop::Lost => {
                    self.figures.exhausted += 1;
                    return Ok(());
                }
            }
        }
    }

    /// The number of visits of points with entries, in a run without hops.
    fn visits(&self, func: Func, args: &[u64]) -> u64 {
        let (mut machine, mut host) = (self.machine.clone(), self.host.clone());
        let mut visits = CountedVisits { plans: self.plans, count: 0 };
        machine.start(func, args);
        machine.run(&mut host, &mut visits);
        visits.count
    }

    /// Runs to the pause of the observer or to the end, and leaves where assumptions fail.
    fn advance(&mut self, observer: &mut impl Observer) -> Result<ChainStop, ChainFault> {
        loop {
            match self.machine.run(&mut self.host, observer) {
                Run::Done(outcome) => return Ok(ChainStop::Ended(outcome)),
                Run::Paused => return Ok(ChainStop::Hop),
                Run::Failed { .. } => {
                    if !self.leave()? {
                        return Ok(ChainStop::Lost);
                    }
                }
                Run::Called { .. } => unreachable!("no function is external"),
            }
        }
    }

    /// Makes the transition at the point where the run is paused. Returns whether it did.
    fn hop(&mut self) -> Result<bool, ChainFault> {
        match self.plans.way(&self.machine).expect("the run paused at an entry") {
            0 => self.enter(),
            _ => self.leave(),
        }
    }

    /// Goes from a base into the version with inlined code.
    fn enter(&mut self) -> Result<bool, ChainFault> {
        let view = self.machine.view().expect("the run is paused");
        let (func, point) = (view.func(), Point::before(view.inst()));
        let plan = &self.plans.by_func[&func];
        let entry = plan.pair.up.entry(point).expect("the run paused at an entry");
        let undefined = entry.requires.iter().find(|value| view.is_undefined(**value));
        if let Some(value) = undefined {
            if self.apart.contains(&view.activation()) {
                self.figures.apart += 1;
                return Ok(false);
            }
            let what = format!("a way in reads {value}, which nothing provided");
            return Err(self.fault(func, point, &what));
        }
        let values = entry.requires.iter().map(|value| (*value, view.value(*value))).collect();
        let frame = ComputedFrame { func, inst: point.inst(), waits: false, values };
        let state = self.state(func, point, vec![frame], &view);
        let source = self.machine.code(view.version()).key();
        let target = VersionKey::of(plan.pair.optimized);
        self.note("in", func, point, 1);
        self.meet(&state)?;
        let to = self.plans.optimized[&func];
        let claimed = CheckedEntry::unproved(source, target, point, entry);
        let fired = self.machine.fire(to, claimed);
        fired.map_err(|error| self.fault(func, point, &error.to_string()))?;
        self.figures.into += 1;
        Ok(true)
    }

    /// Goes from a version with inlined code into activations of bases. Returns `false` if there is
    /// no room for these.
    fn leave(&mut self) -> Result<bool, ChainFault> {
        let (func, point) = match self.plans.fire(&mut self.machine) {
            Ok(key) => key,
            Err(NotFired::NoRoom(_)) => return Ok(false),
            Err(NotFired::Wrong((func, point), why)) => return Err(self.fault(func, point, &why)),
        };
        let down = self.plans.by_func[&func].pair.down;
        let entry = down.entry(point).expect("it was fired");
        let landings = entry.landings(func, down.target());
        let view = self.machine.view().expect("the run is paused");
        let mut frames = Vec::new();
        for (at, (real, frame)) in view.frames().zip(landings).enumerate() {
            let bits = |value| real.try_value(value).unwrap_or_default();
            frames.push(ComputedFrame {
                func: frame.func,
                inst: frame.at.inst(),
                waits: matches!(frame.at, FramePlace::Within(_)),
                values: frame.assigns.iter().map(|one| (one.value, bits(one.value))).collect(),
            });
            if at < entry.inner.len() && frame.func != func {
                self.apart.insert(real.activation());
            }
        }
        let count = frames.len();
        let state = self.state(func, point, frames, &view);
        self.note("out", func, point, count);
        self.meet(&state)?;
        self.figures.out[usize::from(count > 1)] += 1;
        Ok(true)
    }

    /// The state of the chain, with the innermost activations.
    fn state(
        &self,
        func: Func,
        point: Point,
        frames: Vec<ComputedFrame>,
        view: &View<'_>,
    ) -> ComputedFrames {
        let of = |frame: interp::FrameView<'_>| self.plans.stands_for(&frame);
        let depth = frames.len() + view.frames().skip(frames.len()).map(of).sum::<usize>();
        ComputedFrames {
            entry: (func, point),
            depth,
            frames: frames.into(),
            memory: Some(view.memory_digest()),
            outer: view.trace().outer_digest(),
            fault: None,
            holds: None,
            met: 0,
            wrong: None,
        }
    }

    /// Lets the bases run to a state.
    fn meet(&mut self, state: &ComputedFrames) -> Result<(), ChainFault> {
        let mut search = StateSearch { state, nearest: None };
        let mut found = false;
        if self.bases_ended.is_none() {
            let view = self.bases.machine.view().expect("the run has not ended");
            found = search.is_here(&view) || self.bases.search(&mut search).is_none();
        }
        if !found {
            let mut again = self.begun.clone();
            let view = again.machine.view().expect("the run has begun");
            let ended = if search.is_here(&view) { None } else { again.search(&mut search) };
            (self.bases, self.bases_ended) = (again, ended);
        }
        match &self.bases_ended {
            None => self.figures.states += 1,
            // Where the bases trap, the version may still come to points, and traps later.
            Some(end) if end.trap().is_some() || is_exhausted(end) => {}
            Some(_) => {
                let never = "they never are where it leads";
                let why = search.nearest.unwrap_or_else(|| never.to_owned());
                let (func, point) = state.entry;
                return Err(self.fault(func, point, &format!("bases: {why}")));
            }
        }
        Ok(())
    }

    /// Compares the ends.
    fn ended(mut self, outcome: Outcome) -> Result<(), ChainFault> {
        let plain = match self.bases_ended.take() {
            Some(outcome) => Some(outcome),
            None => self.plans.finish(&mut self.bases.machine, &mut self.bases.host),
        };
        let plain = plain.filter(|end| !is_exhausted(end) && !is_exhausted(&outcome));
        let Some(plain) = plain else {
            self.figures.exhausted += 1;
            return Ok(());
        };
        let expected = FrameEnd::of(&self.bases.machine, plain);
        let found = FrameEnd::of(&self.machine, outcome);
        match found.same(&expected) {
            true => Ok(()),
            false => Err((None, format!("bases {expected:?}; chain {found:?};{}", self.trail))),
        }
    }

    fn note(&mut self, way: &str, func: Func, point: Point, frames: usize) {
        write!(self.trail, " {way} of {func} at {} ({frames})", point.inst())
            .expect("writing to a string");
    }

    fn fault(&self, func: Func, point: Point, what: &str) -> ChainFault {
        (Some((func, point)), format!("in a chain: {what};{}", self.trail))
    }
}

/// Lets visits of points with entries pass, then pauses.
struct ChainWatch<'p, 'a> {
    plans: &'p FramePlans<'a>,
    left: u64,
    /// Whether entries out into one activation do not count.
    wants_frames: bool,
}

impl Observer for ChainWatch<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        match self.plans.way_at(view, inst) {
            None => return Control::Continue,
            Some(1) if self.wants_frames => return Control::Continue,
            Some(_) => {}
        }
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Control::Continue
            }
            None => Control::Pause,
        }
    }
}

/// Counts the visits of points with entries.
struct CountedVisits<'p, 'a> {
    plans: &'p FramePlans<'a>,
    count: u64,
}

impl Observer for CountedVisits<'_, '_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        self.count += u64::from(self.plans.way_at(view, inst).is_some());
        Control::Continue
    }
}

/// Pauses the bases in a state.
struct StateSearch<'s> {
    state: &'s ComputedFrames,
    /// How the first state at this place differs.
    nearest: Option<String>,
}

impl StateSearch<'_> {
    fn is_here(&mut self, view: &View<'_>) -> bool {
        let first = &self.state.frames[0];
        let place = (self.state.depth, first.func, first.inst);
        if (view.depth(), view.func(), view.inst()) != place {
            return false;
        }
        let differs = difference(self.state, view);
        let is_it = differs.is_none();
        self.nearest = self.nearest.take().or(differs);
        is_it
    }
}

impl Observer for StateSearch<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, _inst: Inst) -> Control {
        if self.is_here(view) { Control::Pause } else { Control::Continue }
    }
}
