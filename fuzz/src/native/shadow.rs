//! The shadow of a native run: the interpreter, which fires the same points at the same visits.

use super::compare::is_exhausted;
use super::plan::NativePlan;
use crate::case::World;
use interp::{Control, Machine, NoObserver, Observer, Outcome, Run, Scope, VersionId, View};
use ir::{Func, Inst};
use jit::Condition;
use resume::Truth;
use std::collections::{HashMap, HashSet};

/// A point in the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlannedPoint {
    /// The index of the function in the plan.
    pub(super) function: usize,
    pub(super) side: usize,
    pub(super) point: usize,
}

/// The outcome of a run of the interpreter without transitions, and its machine afterwards.
pub(super) struct Stayed {
    pub(super) outcome: Outcome,
    pub(super) machine: Machine,
}

impl Stayed {
    fn of(mut machine: Machine, mut world: World, func: Func, args: &[u64]) -> Stayed {
        let outcome = machine.invoke(func, args, &mut world, &mut NoObserver);
        Stayed { outcome, machine }
    }
}

/// The machine that shadows a native run.
pub(super) struct Shadow {
    pub(super) machine: Machine,
    pub(super) world: World,
    /// The visits of each countdown point since its activation entered its current code, by
    /// activation. A call or a transition enters code. Never iterated.
    visits: HashMap<u64, Vec<(usize, u64)>>,
    /// The activations without points: native code has left them for the interpreter. Never
    /// iterated.
    interpreted: HashSet<u64>,
    /// The number of visits of assumptions that held.
    pub(super) held: u64,
    /// Whether the run has executed an anchor since the last transition, for the stress switches.
    pub(super) passed: bool,
}

impl Shadow {
    pub(super) fn new(machine: Machine, world: World) -> Shadow {
        Shadow {
            machine,
            world,
            visits: HashMap::new(),
            interpreted: HashSet::new(),
            held: 0,
            passed: true,
        }
    }

    /// The end of a run from here without transitions, with calls that run `current`. `None` if a
    /// limit ends it.
    pub(super) fn stayed(
        &self,
        current: impl Iterator<Item = (Func, VersionId)>,
        func: Func,
        args: &[u64],
        fuel: u64,
    ) -> Option<Stayed> {
        let mut machine = self.machine.clone();
        current.for_each(|(func, version)| machine.set_current(func, version));
        machine.set_fuel(fuel);
        let stayed = Stayed::of(machine, self.world.clone(), func, args);
        (!is_exhausted(&stayed.outcome)).then_some(stayed)
    }

    pub(super) fn start(&mut self, func: Func, args: &[u64]) {
        self.visits.clear();
        self.interpreted.clear();
        self.passed = true;
        self.machine.set_fuel(u64::MAX / 4);
        self.machine.start(func, args);
    }

    /// Runs to the next point that should fire.
    ///
    /// # Errors
    /// The outcome, if the run ends first.
    pub(super) fn advance(&mut self, plan: &NativePlan) -> Result<PlannedPoint, Outcome> {
        let mut watcher = ShadowWatcher {
            plan,
            visits: &mut self.visits,
            interpreted: &self.interpreted,
            held: &mut self.held,
            passed: &mut self.passed,
            fires: None,
        };
        match self.machine.run(&mut self.world, &mut watcher) {
            Run::Done(outcome) => Err(outcome),
            Run::Paused => Ok(watcher.fires.expect("the watcher pauses where a point fires")),
            Run::Failed { reason } => Err(self.machine.fail(reason)),
            Run::Called { func, .. } => {
                unreachable!("{func} runs elsewhere, but the shadow has no such function")
            }
        }
    }

    /// Resets the countdowns of the innermost activation, which has entered other code.
    pub(super) fn entered(&mut self) {
        let view = self.machine.view().expect("a transition is made in an activation");
        self.visits.remove(&view.activation());
    }

    /// Lets the innermost activation run to its end without points, as the interpreter runs it.
    pub(super) fn interprets(&mut self) {
        let view = self.machine.view().expect("a transition is made in an activation");
        self.interpreted.insert(view.activation());
    }
}

/// An observer that pauses the run where a point fires.
struct ShadowWatcher<'s> {
    plan: &'s NativePlan,
    visits: &'s mut HashMap<u64, Vec<(usize, u64)>>,
    interpreted: &'s HashSet<u64>,
    held: &'s mut u64,
    passed: &'s mut bool,
    fires: Option<PlannedPoint>,
}

impl ShadowWatcher<'_> {
    fn fires(
        &mut self,
        view: &View<'_>,
        PlannedPoint { function, side, point }: PlannedPoint,
    ) -> bool {
        let half = &self.plan.functions[function].sides[side];
        match half.points[point].condition {
            Condition::Flag => half.armed[point],
            Condition::Always => true,
            Condition::Failing => {
                let inst = half.points[point].at.inst();
                let assumed = half.function.inst(inst).assumed();
                let fails = assumed.is_some_and(|(value, bits)| view.value(value) != bits);
                *self.held += u64::from(!fails);
                fails
            }
            Condition::Guard { value, when } => (view.value(value) == 0) == (when == Truth::Zero),
            Condition::Countdown(most) => {
                let counts = self.visits.entry(view.activation()).or_default();
                let at = counts.iter().position(|(of, _)| *of == point).unwrap_or_else(|| {
                    counts.push((point, 0));
                    counts.len() - 1
                });
                counts[at].1 += 1;
                counts[at].1 == most
            }
        }
    }
}

impl Observer for ShadowWatcher<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let Some((function, side)) = self.plan.of(view.version()) else { return Control::Continue };
        if self.interpreted.contains(&view.activation()) {
            return Control::Continue;
        }
        let half = &self.plan.functions[function].sides[side];
        let place = half.point_at(inst).map(|point| PlannedPoint { function, side, point });
        let fires = place.filter(|place| self.fires(view, *place));
        if fires.is_none() {
            *self.passed |= half.is_anchor(inst);
            return Control::Continue;
        }
        self.fires = fires;
        Control::Pause
    }
}
