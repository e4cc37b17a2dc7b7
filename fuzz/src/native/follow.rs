//! Follows a native run from transition to transition and compares it with the shadow.

use super::clock::Clock;
use super::compare::{FollowEnd, compare_state, ended_alike, finding};
use super::nans::agree;
use super::plan::{Half, NativePlan, Way};
use super::shadow::{PlannedPoint, Shadow, Stayed};
use crate::case::Case;
use crate::figures::NativeFigures;
use crate::stress::Stress;
use check::CheckedEntry;
use interp::{Machine, Outcome};
use ir::Value;
use jit::{
    Action, Condition, Continuation, Engine, FailedPoint, Nans, Onward, OpenPoint, RunError, Tier,
    Tiering, Version,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use transition::VersionKey;
use transition::mapping::{Assign, Entry, Operand};
use verify::prng::Prng;

/// After this many transitions of a run, all flags are cleared so that the run reaches its end.
const SOFT_LIMIT: u64 = 4_000;
/// After this many transitions, the run is abandoned. Points without flags can keep firing.
const HARD_LIMIT: u64 = 3 * SOFT_LIMIT;
/// The budget of continuations for one pair of versions of a program. After it is spent, only
/// points that already have a continuation keep their flags: compiling one takes far longer than a
/// transition.
const CONTINUATIONS: u32 = 24;

/// The error that ends a run when the oracle stops it. The reason is in [`Following`].
pub(super) const ENDED: RunError = RunError::Interrupted;

/// The compiled code of a transition.
enum CompiledTransition {
    /// One continuation, which runs the compensation code and then the target version.
    Plain(Arc<Continuation>),
    /// A probe, which runs the compensation code and stops at the landing point, and the
    /// continuation from there.
    Probed(Arc<Continuation>, Arc<Continuation>),
}

/// The state that follows the runs of one instance.
pub(super) struct Following {
    pub(super) plan: NativePlan,
    pub(super) shadow: Shadow,
    pub(super) stopped: Option<FollowEnd>,
    pub(super) figures: NativeFigures,
    nans: Nans,
    clock: Clock,
    prng: Prng,
    stress: Stress,
    /// The transition to the other version, by function, side and point. Never iterated.
    made: HashMap<(usize, usize, usize), CompiledTransition>,
    /// The continuation in the same version, by function, side and point. Never iterated.
    stays: HashMap<(usize, usize, usize), Arc<Continuation>>,
    /// The continuation at each failed assumption of [`Way::Enter`], by function, side and point.
    /// Never iterated.
    pub(super) entered: HashMap<(usize, usize, usize), Arc<Continuation>>,
    /// The source point of each probe, by the address of the probe's target version. Never
    /// iterated.
    probes: HashMap<usize, PlannedPoint>,
    continuations: u32,
    /// Whether the budget [`CONTINUATIONS`] is spent.
    spent: bool,
    /// The number of transitions of the run so far.
    hops: u64,
    /// The number of fired points of the run so far, for the stress switches.
    visits: u64,
    offset: u64,
}

/// The tiering policy that passes each fired point to [`Following`].
pub(super) struct Follower(pub(super) Arc<Mutex<Following>>);

impl Tiering for Follower {
    fn open(&mut self, tier: &mut Tier<'_>, at: OpenPoint<'_>) -> Result<Onward, RunError> {
        let mut following = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match following.probes.get(&address(at.version)).copied() {
            Some(place) => following.landed(tier, at, place),
            None => following.fired(tier, at),
        };
        next.map(Onward::Enter).map_err(|stop| {
            following.stopped = Some(stop);
            ENDED
        })
    }

    fn failed(&mut self, tier: &mut Tier<'_>, at: FailedPoint<'_>) -> Result<Onward, RunError> {
        let mut following = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        following.failed(tier, at).map_err(|stop| {
            following.stopped = Some(stop);
            ENDED
        })
    }
}

fn address(version: &Arc<Version>) -> usize {
    Arc::as_ptr(version).addr()
}

impl Following {
    pub(super) fn new(
        plan: NativePlan,
        shadow: Shadow,
        case: &Case,
        clock: Clock,
        prng: Prng,
    ) -> Following {
        Following {
            plan,
            shadow,
            stopped: None,
            figures: NativeFigures::default(),
            nans: case.options.nans,
            clock,
            prng,
            stress: case.options.stress,
            made: HashMap::new(),
            stays: HashMap::new(),
            entered: HashMap::new(),
            probes: HashMap::new(),
            continuations: 0,
            spent: false,
            hops: 0,
            visits: 0,
            offset: 0,
        }
    }

    /// Makes calls in the shadow run the same versions as calls in native code.
    pub(super) fn begin(&mut self) {
        for function in &self.plan.functions {
            self.shadow.machine.set_current(function.func, function.ids[function.start]);
        }
    }

    /// Sets the flags for a run. The density cycles from run to run between all flags and few;
    /// under a stress switch all flags are set.
    pub(super) fn arm(&mut self, run: u64, stress: Stress, prng: &mut Prng) {
        (self.hops, self.visits, self.offset) = (0, 0, stress.offset(run));
        let densities = if self.plan.whole { [1, 2, 8, 24] } else { [1, 1, 2, 4] };
        let one_in = if stress.is_on() { 1 } else { densities[run as usize % densities.len()] };
        for (place, function) in self.plan.functions.iter_mut().enumerate() {
            for side in [0, 1] {
                let half = &mut function.sides[side];
                let active = stress.is_on() || side == function.active;
                let wanted = half.wanted(active, one_in, prng);
                let version = Arc::clone(half.version.as_ref().expect("the plan was compiled"));
                for (point, wanted) in wanted.into_iter().enumerate() {
                    let wanted =
                        wanted && (!self.spent || self.made.contains_key(&(place, side, point)));
                    if wanted != std::mem::replace(&mut half.armed[point], wanted) {
                        if wanted { version.arm(point) } else { version.disarm(point) }
                    }
                }
            }
        }
    }

    /// Clears all flags between runs.
    pub(super) fn disarm_all(&mut self) {
        for half in self.plan.functions.iter_mut().flat_map(|function| &mut function.sides) {
            let version = half.version.as_ref().expect("the plan was compiled");
            for (point, armed) in half.armed.iter_mut().enumerate() {
                if std::mem::take(armed) {
                    version.disarm(point);
                }
            }
        }
    }

    /// Clears flags during a run: all flags, or only the flags of points without a transition.
    fn disarm(&mut self, all: bool) {
        for (place, function) in self.plan.functions.iter_mut().enumerate() {
            for (side, half) in function.sides.iter_mut().enumerate() {
                let version = half.version.as_ref().expect("the plan was compiled");
                for point in 0..half.armed.len() {
                    let down = half.armed[point]
                        && (all || !self.made.contains_key(&(place, side, point)));
                    if down {
                        half.armed[point] = false;
                        version.disarm(point);
                    }
                }
            }
        }
    }

    pub(super) fn half(&self, place: PlannedPoint) -> &Half {
        &self.plan.functions[place.function].sides[place.side]
    }

    pub(super) fn version(&self, function: usize, side: usize) -> &Arc<Version> {
        self.plan.functions[function].sides[side].version.as_ref().expect("the plan was compiled")
    }

    /// Handles a fired point: advances the shadow, compares the states, and returns the code to
    /// continue with.
    ///
    /// # Errors
    /// If the shadow fires another point or ends, or if values, memory or effects differ.
    fn fired(
        &mut self,
        tier: &mut Tier<'_>,
        at: OpenPoint<'_>,
    ) -> Result<Arc<Continuation>, FollowEnd> {
        let place = self.place_of(at.version, at.number);
        self.advance_to(tier, place)?;
        // Compare before the transition: it replaces the frame of the source version.
        let leaves = || format!("{} fires", self.text(place));
        self.figures.nans += self.compare_values(&at, &leaves)?;
        self.figures.compared += at.values.len() as u64;
        self.visits += 1;
        if self.stays(place) {
            return self.stay(tier, place);
        }
        self.cross(tier, place)
    }

    /// Advances the shadow to the point that native code has reached, and compares the state except
    /// values there.
    ///
    /// # Errors
    /// If another point is due or the shadow ends, or if memory or effects differ.
    pub(super) fn advance_to(
        &mut self,
        tier: &Tier<'_>,
        place: PlannedPoint,
    ) -> Result<(), FollowEnd> {
        let due = self.advance()?;
        if due != Ok(place) {
            let due = match due {
                Ok(due) => format!("{} is due", self.text(due)),
                Err(outcome) => format!("the run ends ({outcome})"),
            };
            return finding(format!(
                "{} fired in native code, but in the interpreter {due}",
                self.text(place)
            ));
        }
        compare_state(tier.machine(), &self.shadow.machine, &|| {
            format!("{} fires", self.text(place))
        })?;
        self.note_fired(place);
        Ok(())
    }

    /// Runs the shadow to the next point at which native code makes a request. Takes the exits of
    /// [`Way::Link`] on the way.
    ///
    /// # Errors
    /// If the interpreter rejects such an exit.
    fn advance(&mut self) -> Result<Result<PlannedPoint, Outcome>, FollowEnd> {
        loop {
            match self.shadow.advance(&self.plan) {
                Ok(place) if self.half(place).ways[place.point] == Way::Link => {
                    self.take_link(place)?;
                }
                due => return Ok(due),
            }
        }
    }

    /// Counts a point that has fired.
    pub(super) fn note_fired(&mut self, place: PlannedPoint) {
        let half = &mut self.plan.functions[place.function].sides[place.side];
        let is_first = !std::mem::replace(&mut half.fired[place.point], true);
        self.figures.points_fired += u64::from(is_first);
        if half.points[place.point].condition == Condition::Failing {
            half.left[place.point] += 1;
            self.figures.exits += 1;
            self.figures.assumptions_failing += u64::from(is_first);
        }
    }

    /// The place of a fired point in the plan.
    pub(super) fn place_of(&self, version: &Arc<Version>, number: usize) -> PlannedPoint {
        let function = self
            .plan
            .place(version.func())
            .expect("points are compiled into planned functions alone");
        let is = |side: &usize| address(self.version(function, *side)) == address(version);
        let side =
            [0, 1].into_iter().find(is).expect("points are compiled into planned versions alone");
        PlannedPoint { function, side, point: number }
    }

    /// Whether the stress switches demand no transition here. After a transition, an anchor must
    /// come before the next one, or a run could alternate within a gap forever.
    fn stays(&self, place: PlannedPoint) -> bool {
        let number = self.half(place).numbers[place.point];
        self.stress.is_on()
            && !(self.shadow.passed && self.stress.fires(self.visits, number, self.offset))
    }

    fn stay(
        &mut self,
        tier: &mut Tier<'_>,
        place: PlannedPoint,
    ) -> Result<Arc<Continuation>, FollowEnd> {
        self.figures.stays += 1;
        let half = self.half(place);
        let (at, values) = (half.points[place.point].at, half.points[place.point].values.clone());
        let passed = half.is_anchor(at.inst());
        // The continuation executes the instruction at the point next, so an anchor there counts.
        // Its code is entered anew, which restarts the countdowns.
        self.shadow.passed |= passed;
        self.shadow.entered();
        let key = (place.function, place.side, place.point);
        if let Some(known) = self.stays.get(&key) {
            return Ok(Arc::clone(known));
        }
        let made = going_on(tier.engine(), self.half(place), at, &values)?;
        self.figures.compiled_functions += 1;
        self.stays.insert(key, Arc::clone(&made));
        Ok(made)
    }

    /// Makes the transition to the other version, first in the shadow.
    fn cross(
        &mut self,
        tier: &mut Tier<'_>,
        place: PlannedPoint,
    ) -> Result<Arc<Continuation>, FollowEnd> {
        self.fire_shadow(place)?;
        self.figures.transitions += 1;
        self.figures.forward += u64::from(place.side == 0);
        self.figures.backward += u64::from(place.side == 1);
        self.count_hop()?;
        let key = (place.function, place.side, place.point);
        if !self.made.contains_key(&key) {
            let made = self.make(tier, place)?;
            self.made.insert(key, made);
            // A stress switch names its points, so the budget must not remove a point.
            if !self.spent && self.continuations >= CONTINUATIONS && !self.stress.is_on() {
                self.spent = true;
                self.disarm(false);
            }
        }
        Ok(match &self.made[&key] {
            CompiledTransition::Plain(continuation) => Arc::clone(continuation),
            CompiledTransition::Probed(probe, _) => Arc::clone(probe),
        })
    }

    /// Counts a transition that native code reports, and clears all flags at [`SOFT_LIMIT`].
    ///
    /// # Errors
    /// [`FollowEnd::Limit`] at [`HARD_LIMIT`].
    pub(super) fn count_hop(&mut self) -> Result<(), FollowEnd> {
        self.hops += 1;
        if self.hops >= HARD_LIMIT {
            return Err(FollowEnd::Limit);
        }
        if self.hops == SOFT_LIMIT {
            self.disarm(true);
        }
        Ok(())
    }

    /// Makes the transition of a point in the shadow.
    pub(super) fn fire_shadow(&mut self, place: PlannedPoint) -> Result<(), FollowEnd> {
        let function = &self.plan.functions[place.function];
        let to = function.ids[1 - place.side];
        let entry = function.sides[place.side].entry(place.point);
        if let Err(error) = self.shadow.machine.fire(to, entry) {
            return finding(format!(
                "the interpreter rejects the transition at {}: {error}",
                self.text(place)
            ));
        }
        let other = &function.sides[1 - place.side];
        self.shadow.passed = other.is_anchor(entry.entry().target.inst());
        self.shadow.entered();
        Ok(())
    }

    /// Handles the landing of a probe: compares the provided values, memory and effects.
    fn landed(
        &mut self,
        tier: &mut Tier<'_>,
        at: OpenPoint<'_>,
        place: PlannedPoint,
    ) -> Result<Arc<Continuation>, FollowEnd> {
        let lands = || {
            format!(
                "the transition at {} landed at {}",
                self.text(place),
                at.version.points()[0].at.inst()
            )
        };
        let nans = self.compare_values(&at, &lands)?;
        compare_state(tier.machine(), &self.shadow.machine, &lands)?;
        self.figures.nans += nans;
        self.figures.compared += at.values.len() as u64;
        self.figures.probed += 1;
        match &self.made[&(place.function, place.side, place.point)] {
            CompiledTransition::Probed(_, going_on) => Ok(Arc::clone(going_on)),
            CompiledTransition::Plain(_) => {
                unreachable!("only probes lead to a version of their own")
            }
        }
    }

    /// Compiles a transition: one in three as a continuation, the others as a probe.
    fn make(
        &mut self,
        tier: &mut Tier<'_>,
        place: PlannedPoint,
    ) -> Result<CompiledTransition, FollowEnd> {
        let function = &self.plan.functions[place.function];
        let (half, other) = (&function.sides[place.side], &function.sides[1 - place.side]);
        let entry = half.entry(place.point);
        let begun = (self.clock)();
        let failed = |error: jit::ContinueError| {
            FollowEnd::Finding(format!("the compiler rejects the transition: {error}"))
        };
        let made = if self.prng.below(3) == 0 {
            let target = other.version.as_ref().expect("the plan was compiled");
            let made = tier.engine().continuation(&half.function, entry, target);
            CompiledTransition::Plain(made.map_err(failed)?)
        } else {
            let engine = tier.engine();
            let target = other.version.as_ref().expect("the plan was compiled");
            let probe = engine.probe(function.func, &half.function, entry, target);
            let probe = probe.map_err(failed)?;
            let landing = &probe.target().points()[0];
            let (point, values) = (landing.at, landing.values.clone());
            let taken = tier.adopt(probe.target(), vec![Action::Ask]);
            taken.map_err(|error| {
                FollowEnd::Finding(format!("the machine rejects the probe: {error}"))
            })?;
            self.probes.insert(address(probe.target()), place);
            let going_on = going_on(tier.engine(), other, point, &values)?;
            self.figures.compiled_functions += 1;
            CompiledTransition::Probed(probe, going_on)
        };
        self.figures.compile_time += (self.clock)().saturating_sub(begun);
        self.figures.compiled_functions += 1;
        self.continuations += 1;
        Ok(made)
    }

    /// Compares the values that a point shows with the values of the shadow, which has paused
    /// there. Returns how many agree except for the bits of NaNs.
    fn compare_values(
        &self,
        at: &OpenPoint<'_>,
        place: &dyn Fn() -> String,
    ) -> Result<u64, FollowEnd> {
        let view = self.shadow.machine.view().expect("the shadow is paused");
        let mut nans = 0;
        for (value, found) in at.version.points()[at.number].values.iter().zip(at.values) {
            let (expected, ty) = (view.value(*value), at.version.function().value_type(*value));
            if !agree(self.nans, ty, [*found, expected]) {
                let place = place();
                return finding(format!(
                    "{place}: {value} is {found:#x} in native code, {expected:#x} in the interpreter"
                ));
            }
            nans += u64::from(expected != *found);
        }
        Ok(nans)
    }

    /// Handles the end of the native run: runs the shadow to its end and compares both ends, and
    /// then with the run without transitions. Returns a difference, or the limit that prevented the
    /// comparison.
    pub(super) fn ended(
        &mut self,
        machine: &Machine,
        native: &Outcome,
        stayed: &Stayed,
    ) -> Option<FollowEnd> {
        let end = match self.advance() {
            Err(stop) => return Some(stop),
            Ok(Ok(place)) => {
                let due = self.text(place);
                return Some(FollowEnd::Finding(format!(
                    "the native run ends ({native}) where {due} is due"
                )));
            }
            Ok(Err(end)) => end,
        };
        let at_end = || format!("the native run ends ({native})");
        if !ended_alike(native, &end) {
            return Some(FollowEnd::Finding(format!("{}; in the interpreter: {end}", at_end())));
        }
        if let Err(stop) = compare_state(machine, &self.shadow.machine, &at_end) {
            return Some(stop);
        }
        let same = native.returned() == stayed.outcome.returned()
            && native.trap() == stayed.outcome.trap();
        if !same {
            let text = format!("{}; without transitions: {}", at_end(), stayed.outcome);
            return Some(FollowEnd::Finding(text));
        }
        let without = || format!("{}, compared with the run without transitions", at_end());
        compare_state(machine, &stayed.machine, &without).err()
    }

    pub(super) fn text(&self, place: PlannedPoint) -> String {
        let function = &self.plan.functions[place.function];
        let half = &function.sides[place.side];
        let spec = &half.points[place.point];
        let side = if place.side == 0 { "before" } else { "after" };
        let condition = match spec.condition {
            Condition::Flag => "flag".to_owned(),
            Condition::Always => "always".to_owned(),
            Condition::Failing => "when it fails".to_owned(),
            Condition::Countdown(visits) => format!("visit {visits}"),
            Condition::Guard { value, when } => format!("{value} {when:?}"),
        };
        format!(
            "the point at {} of @{} ({side}, {condition})",
            spec.at.inst(),
            half.function.name()
        )
    }

    /// The figures so far.
    pub(super) fn figures(&self) -> NativeFigures {
        NativeFigures { held: self.shadow.held, ..self.figures }
    }
}

/// The entry from a point of a version to the same point, which keeps the given values.
fn same(at: ir::Point, values: &[Value]) -> Entry {
    let mut requires = values.to_vec();
    requires.sort_unstable();
    requires.dedup();
    let assigns = requires
        .iter()
        .map(|value| Assign { value: *value, from: Operand::Source(*value) })
        .collect();
    Entry {
        target: at,
        steps: Vec::new(),
        replays: Vec::new(),
        assigns,
        requires,
        kept: Vec::new(),
        inner: Box::default(),
    }
}

/// Compiles the continuation of a version from one of its points, given these values.
fn going_on(
    engine: &Engine,
    half: &Half,
    at: ir::Point,
    values: &[Value],
) -> Result<Arc<Continuation>, FollowEnd> {
    let key = VersionKey::of(&half.function);
    let same = same(at, values);
    let entry = CheckedEntry::unproved(key, key, at, &same);
    let target = half.version.as_ref().expect("the plan was compiled");
    let made = engine.continuation(&half.function, entry, target);
    made.map_err(|error| {
        FollowEnd::Finding(format!(
            "the compiler rejects the continuation from {}: {error}",
            at.inst()
        ))
    })
}
