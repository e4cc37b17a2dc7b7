//! The interpreter, doing what native code should: firing the same points at the same visits.

use super::Stayed;
use super::plan::Plan;
use crate::case::World;
use interp::{Control, Machine, Observer, Outcome, Run, Scope, View};
use ir::{Func, Inst};
use jit::Condition;
use resume::Truth;
use std::collections::HashMap;

/// Where a point fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The place of the function in the plan.
    pub(super) function: usize,
    pub(super) side: usize,
    pub(super) point: usize,
}

/// The shadow of a native run.
pub(super) struct Shadow {
    pub(super) machine: Machine,
    pub(super) world: World,
    /// By activation: how often each of its points that count down was visited since its code was
    /// entered. Code is entered by a call and by a transition. Never iterated.
    visits: HashMap<u64, Vec<(usize, u64)>>,
    /// Anchors executed since the last transition, for the stress switches.
    pub(super) passed: bool,
}

impl Shadow {
    pub(super) fn new(machine: Machine, world: World) -> Shadow {
        Shadow { machine, world, visits: HashMap::new(), passed: true }
    }

    /// How a run ends from here without transitions; `None` when a limit ends it.
    pub(super) fn stayed(&self, func: Func, args: &[u64], fuel: u64) -> Option<Stayed> {
        let mut machine = self.machine.clone();
        machine.set_fuel(fuel);
        let stayed = Stayed::of(machine, self.world.clone(), func, args);
        (!matches!(stayed.outcome, Outcome::OutOfFuel(_) | Outcome::StackOverflow(_)))
            .then_some(stayed)
    }

    pub(super) fn start(&mut self, func: Func, args: &[u64]) {
        self.visits.clear();
        self.passed = true;
        self.machine.set_fuel(u64::MAX / 4);
        self.machine.start(func, args);
    }

    /// Runs up to the next point that should fire, or to the end.
    pub(super) fn advance(&mut self, plan: &Plan) -> Result<Place, Outcome> {
        let mut watcher =
            Watcher { plan, visits: &mut self.visits, passed: &mut self.passed, fires: None };
        match self.machine.run(&mut self.world, &mut watcher) {
            Run::Done(outcome) => Err(outcome),
            Run::Paused => Ok(watcher.fires.expect("the watcher pauses where a point fires")),
            Run::Called { func, .. } => {
                unreachable!("{func} runs elsewhere, and the shadow was told of none")
            }
        }
    }

    /// The innermost activation has changed its code.
    pub(super) fn entered(&mut self) {
        let view = self.machine.view().expect("a transition is made in an activation");
        self.visits.remove(&view.activation());
    }
}

/// Pauses where a point fires.
struct Watcher<'s> {
    plan: &'s Plan,
    visits: &'s mut HashMap<u64, Vec<(usize, u64)>>,
    passed: &'s mut bool,
    fires: Option<Place>,
}

impl Watcher<'_> {
    fn fires(&mut self, view: &View<'_>, Place { function, side, point }: Place) -> bool {
        let half = &self.plan.functions[function].sides[side];
        match half.points[point].condition {
            Condition::Flag => half.armed[point],
            Condition::Always => true,
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

impl Observer for Watcher<'_> {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control {
        let Some((function, side)) = self.plan.of(view.version()) else { return Control::Continue };
        let half = &self.plan.functions[function].sides[side];
        let place = half.point_at(inst).map(|point| Place { function, side, point });
        let fires = place.filter(|place| self.fires(view, *place));
        if fires.is_none() {
            *self.passed |= half.is_anchor(inst);
            return Control::Continue;
        }
        self.fires = fires;
        Control::Pause
    }
}
