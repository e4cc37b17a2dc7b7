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

use super::Oracle;
use super::leave::{NotFired, WayOut, difference};
use super::lockstep::EntryKey;
use super::report::Difference;
use crate::end::{RunEnd, is_exhausted};
use crate::prng::Prng;
use crate::waiting::Waiting;
use interp::{Control, Host, Machine, NoObserver, Observer, Outcome, Run, Scope, View};
use ir::{Func, Inst, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use transition::Side;

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
type ChainFault = (Option<EntryKey>, String);

impl Oracle<'_> {
    /// Runs the chains of an input, if a version has inlined code.
    pub(super) fn chains<H: Host + Clone>(&mut self, func: Func, args: &[u64], host: &H) {
        let prng = Prng::new(self.options.seed ^ 0x63_68_61_69).fork(self.report.runs);
        let chains = if self.has_inlined() { self.options.chains } else { 0 };
        for number in 0..chains {
            let bases = BaseRun { machine: self.pristine.before.clone(), host: host.clone() };
            let mut figures = FrameChains { chains: 1, ..FrameChains::default() };
            let chain = FrameChain {
                oracle: self,
                machine: self.pristine.after.clone(),
                host: host.clone(),
                begun: bases.clone(),
                bases,
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
                self.diverge(args, entry.map(|key| (key, None)), Difference::Chain(what));
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
    oracle: &'c Oracle<'a>,
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

impl<'a, H: Host + Clone> FrameChain<'_, 'a, H> {
    fn run(mut self, func: Func, args: &[u64]) -> Result<(), ChainFault> {
        if let Some(start) = self.machine.start_function() {
            self.machine.start(start, &[]);
            let ended = self.oracle.finish(&mut self.machine, &mut self.host);
            let BaseRun { machine, host } = &mut self.bases;
            let plain = machine.invoke(start, &[], host, &mut NoObserver);
            if ended.is_none_or(|(end, _)| end.returned().is_none()) || plain.returned().is_none() {
                return Ok(());
            }
        }
        let mut funcs: Vec<Func> = self.oracle.pairs.iter().map(|pair| pair.func).collect();
        funcs.sort_unstable();
        for func in funcs {
            if self.prng.chance(25) {
                let ids = self.oracle.versions[func.as_u32() as usize].expect("a pair");
                self.machine.set_current(func, ids.before);
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
            let stop = match here && self.way().is_some() {
                true => ChainStop::Hop,
                false if left == 0 => self.advance(&mut NoObserver)?,
                false => {
                    let wait = u64::from(self.prng.below(u32::try_from(share).unwrap_or(u32::MAX)));
                    let oracle = self.oracle;
                    // Whether ways out into one activation count.
                    let counts = |view: &View<'_>| {
                        oracle.entry_at(view).is_some_and(|(key, entry)| {
                            !wants_frames || key.side == Side::Before || !entry.inner.is_empty()
                        })
                    };
                    self.advance(&mut Waiting::new(wait, counts))?
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
        let oracle = self.oracle;
        let mut visits = Waiting::counting(|view: &View<'_>| oracle.entry_at(view).is_some());
        machine.start(func, args);
        machine.run(&mut host, &mut visits);
        visits.counted()
    }

    /// Runs to the pause of the observer or to the end, and leaves where assumptions fail.
    fn advance(&mut self, observer: &mut impl Observer) -> Result<ChainStop, ChainFault> {
        loop {
            match self.machine.run(&mut self.host, observer) {
                Run::Done(outcome) => return Ok(ChainStop::Ended(outcome)),
                Run::Paused => return Ok(ChainStop::Hop),
                Run::Failed { reason } => match self.way() {
                    Some(way) if way.key.side == Side::After => {
                        if !self.leave(&way)? {
                            return Ok(ChainStop::Lost);
                        }
                    }
                    _ => return Ok(ChainStop::Ended(self.machine.fail(reason))),
                },
                Run::Called { .. } => unreachable!("no function is external"),
            }
        }
    }

    /// The entry at the point where the run is paused.
    fn way(&self) -> Option<WayOut<'a>> {
        self.oracle.way(&self.machine.view().expect("the run is paused"))
    }

    /// Makes the transition at the point where the run is paused. Returns whether it did.
    fn hop(&mut self) -> Result<bool, ChainFault> {
        let way = self.way().expect("the run paused at an entry");
        match way.key.side {
            Side::Before => self.enter(&way),
            Side::After => self.leave(&way),
        }
    }

    /// Goes from a base into the version with inlined code.
    fn enter(&mut self, way: &WayOut<'a>) -> Result<bool, ChainFault> {
        let view = self.machine.view().expect("the run is paused");
        let undefined = way.entry.requires.iter().find(|value| view.is_undefined(**value));
        if let Some(value) = undefined {
            if self.apart.contains(&view.activation()) {
                self.figures.apart += 1;
                return Ok(false);
            }
            let what = format!("a way in reads {value}, which nothing provided");
            return Err(self.fault(way, &what));
        }
        let values = way.entry.requires.iter().map(|value| (0, *value, view.value(*value)));
        let values = values.collect();
        let (func, inst) = (view.func(), view.inst());
        let state = self.state(&view, vec![(func, inst)], values);
        self.note("in", func, inst, 1);
        self.meet(&state, way)?;
        match way.fire(&mut self.machine) {
            Ok(()) => {}
            Err(NotFired::NoRoom) => return Err(self.fault(way, "there is no room")),
            Err(NotFired::Refused(why)) => return Err(self.fault(way, &why.to_string())),
        }
        self.figures.into += 1;
        Ok(true)
    }

    /// Goes from a version with inlined code into activations of bases. Returns `false` if there is
    /// no room for these.
    fn leave(&mut self, way: &WayOut<'a>) -> Result<bool, ChainFault> {
        let left = self.machine.view().expect("the run is paused").inst();
        match way.fire(&mut self.machine) {
            Ok(()) => {}
            Err(NotFired::NoRoom) => return Ok(false),
            Err(NotFired::Refused(why)) => return Err(self.fault(way, &why.to_string())),
        }
        let view = self.machine.view().expect("the run is paused");
        let places: Vec<(Func, Inst)> = way.places().collect();
        let mut values = Vec::new();
        for (frame, (real, assigns)) in view.frames().zip(way.entry.assign_lists()).enumerate() {
            let bits = |value| real.try_value(value).unwrap_or_default();
            values.extend(assigns.iter().map(|one| (frame, one.value, bits(one.value))));
            if frame + 1 < places.len() && places[frame].0 != way.key.func {
                self.apart.insert(real.activation());
            }
        }
        let count = places.len();
        let state = self.state(&view, places, values);
        self.note("out", way.key.func, left, count);
        self.meet(&state, way)?;
        self.figures.out[usize::from(count > 1)] += 1;
        Ok(true)
    }

    /// The state of the chain, with the innermost activations.
    fn state(
        &self,
        view: &View<'_>,
        frames: Vec<(Func, Inst)>,
        values: Vec<(usize, Value, u64)>,
    ) -> ChainState {
        let below = view.frames().skip(frames.len());
        let depth = frames.len() + below.map(|one| self.oracle.stands_for(&one)).sum::<usize>();
        let (memory, outer) = (view.memory_digest(), view.trace().outer_digest());
        ChainState { depth, frames, values, memory, outer }
    }

    /// Lets the bases run to a state.
    fn meet(&mut self, state: &ChainState, way: &WayOut<'_>) -> Result<(), ChainFault> {
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
                return Err(self.fault(way, &format!("bases: {why}")));
            }
        }
        Ok(())
    }

    /// Compares the ends.
    fn ended(mut self, outcome: Outcome) -> Result<(), ChainFault> {
        let plain = match self.bases_ended.take() {
            Some(outcome) => Some(outcome),
            None => {
                let BaseRun { machine, host } = &mut self.bases;
                self.oracle.finish(machine, host).map(|(outcome, _)| outcome)
            }
        };
        let plain = plain.filter(|end| !is_exhausted(end) && !is_exhausted(&outcome));
        let Some(plain) = plain else {
            self.figures.exhausted += 1;
            return Ok(());
        };
        let expected = RunEnd::of(&self.bases.machine, plain, self.oracle.scope);
        let found = RunEnd::of(&self.machine, outcome, self.oracle.scope);
        match found.same(&expected) {
            true => Ok(()),
            false => {
                let (expected, found) = (expected.text(), found.text());
                Err((None, format!("bases {expected}; chain {found};{}", self.trail)))
            }
        }
    }

    fn note(&mut self, way: &str, func: Func, inst: Inst, frames: usize) {
        write!(self.trail, " {way} of {func} at {inst} ({frames})").expect("writing to a string");
    }

    fn fault(&self, way: &WayOut<'_>, what: &str) -> ChainFault {
        (Some(way.key), format!("{what};{}", self.trail))
    }
}

/// A state that a run of the bases has to come to.
struct ChainState {
    depth: usize,
    /// The function and the place of each innermost activation, the innermost first.
    frames: Vec<(Func, Inst)>,
    /// Their values.
    values: Vec<(usize, Value, u64)>,
    memory: u64,
    outer: u64,
}

/// Pauses the bases in a state.
struct StateSearch<'s> {
    state: &'s ChainState,
    /// How the first state at this place differs.
    nearest: Option<String>,
}

impl StateSearch<'_> {
    fn is_here(&mut self, view: &View<'_>) -> bool {
        let ChainState { depth, frames, values, memory, outer } = self.state;
        if (view.depth(), (view.func(), view.inst())) != (*depth, frames[0]) {
            return false;
        }
        let values = values.iter().copied();
        let differs = match difference(view, frames.iter().copied(), values) {
            Some(difference) => Some(difference.to_string()),
            None if *outer != view.trace().outer_digest() => Some("effects differ".to_owned()),
            None if *memory != view.memory_digest() => Some("memory differs".to_owned()),
            None => None,
        };
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
