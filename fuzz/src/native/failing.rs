//! Follows the exits of native code at assumptions that fail.

use super::compare::{FollowEnd, finding};
use super::follow::Following;
use super::plan::Way;
use super::shadow::{PlannedPoint, Stayed};
use ir::Func;
use jit::{Action, Condition, Continuation, Engine, FailedPoint, Onward, Tier, Vm};
use std::sync::Arc;
use transition::VersionKey;
use transition::mapping::Mapping;

impl Following {
    /// The end of a run from here without assumptions and transitions. `None` if a limit ends the
    /// run.
    pub(super) fn stayed(&self, func: Func, args: &[u64], fuel: u64) -> Option<Stayed> {
        let bases = self.plan.assuming().map(|function| (function.func, function.ids[0]));
        self.shadow.stayed(bases, func, args, fuel)
    }

    /// The actions of the points of a version. Continuations for [`Way::Link`] are linked once both
    /// versions are adopted ([`Following::link`]).
    pub(super) fn actions(ways: &[Way], mapping: &Arc<check::Checked<Mapping>>) -> Vec<Action> {
        let action = |way: &Way| match way {
            Way::Interpret => Action::Interpret(Arc::clone(mapping)),
            Way::Ask | Way::Enter | Way::Link => Action::Ask,
        };
        ways.iter().map(action).collect()
    }

    /// Handles a failed assumption: advances the shadow, compares the state except values, and
    /// decides how native code continues. If native code requests a continuation next, that request
    /// shows the values, too.
    ///
    /// # Errors
    /// If the shadow fires another point or ends, or if memory, effects or counts differ.
    pub(super) fn failed(
        &mut self,
        tier: &mut Tier<'_>,
        at: FailedPoint<'_>,
    ) -> Result<Onward, FollowEnd> {
        let place = self.place_of(at.version, at.number);
        let half = self.half(place);
        let (way, count) = (half.ways[place.point], half.left[place.point] + 1);
        if at.count != count {
            return finding(format!(
                "{} fires for the {count}. time, native code counts {}",
                self.text(place),
                at.count
            ));
        }
        if way == Way::Ask {
            return Ok(Onward::Linked);
        }
        self.advance_to(tier, place)?;
        self.fire_shadow(place)?;
        self.count_hop()?;
        match way {
            Way::Ask | Way::Link => {
                finding(format!("{} asks, although it is linked", self.text(place)))
            }
            Way::Interpret => {
                self.shadow.interprets();
                self.figures.exits_interpreted += 1;
                Ok(Onward::Linked)
            }
            Way::Enter => {
                let known = self.entered.get(&(place.function, place.side, place.point));
                if let Some(known) = known {
                    return Ok(Onward::Enter(Arc::clone(known)));
                }
                let made = self.exit(tier.engine(), place)?;
                let key = (place.function, place.side, place.point);
                self.entered.insert(key, Arc::clone(&made));
                Ok(Onward::Enter(made))
            }
        }
    }

    /// Follows an exit that native code takes without a request.
    ///
    /// # Errors
    /// If the interpreter rejects it.
    pub(super) fn take_link(&mut self, place: PlannedPoint) -> Result<(), FollowEnd> {
        self.note_fired(place);
        self.figures.exits_linked += 1;
        self.fire_shadow(place)
    }

    /// Compiles the continuation of the other version from a point.
    fn exit(
        &mut self,
        engine: &Engine,
        place: PlannedPoint,
    ) -> Result<Arc<Continuation>, FollowEnd> {
        let half = self.half(place);
        let target = self.version(place.function, 1 - place.side);
        let made = engine.continuation(&half.function, half.entry(place.point), target);
        let made = made.map_err(|error| {
            FollowEnd::Finding(format!("the compiler rejects the exit: {error}"))
        })?;
        self.figures.compiled_functions += 1;
        Ok(made)
    }

    /// Links the points of [`Way::Link`] to their continuations.
    ///
    /// # Errors
    /// If a continuation cannot be compiled, or the machine rejects it.
    pub(super) fn link(&mut self, vm: &mut Vm) -> Result<(), FollowEnd> {
        let engine = vm.engine().clone();
        for function in 0..self.plan.functions.len() {
            let half = &self.plan.functions[function].sides[1];
            let linked = (0..half.ways.len()).filter(|point| half.ways[*point] == Way::Link);
            for point in linked.collect::<Vec<usize>>() {
                let place = PlannedPoint { function, side: 1, point };
                let made = self.exit(&engine, place)?;
                let version = Arc::clone(self.version(function, 1));
                vm.relink(&version, point, Action::Continue(made)).map_err(|error| {
                    FollowEnd::Finding(format!("the machine rejects the exit: {error}"))
                })?;
            }
        }
        Ok(())
    }

    /// Compares how often native code and the shadow have left at each assumption. Called after
    /// both have ended their runs.
    ///
    /// # Errors
    /// A description of the difference.
    pub(super) fn compare_counts(&self, vm: &mut Vm) -> Result<(), String> {
        let made = vm.transitions();
        for function in self.plan.assuming() {
            let half = &function.sides[1];
            let key = VersionKey::of(&half.function);
            for (spec, left) in half.points.iter().zip(&half.left) {
                let at = (function.func, spec.at.inst(), key);
                let of_point = made.iter().filter(|one| (one.func, one.at, one.from) == at);
                let found: u64 = of_point.map(|one| one.count).sum();
                if spec.condition == Condition::Failing && found != *left {
                    return Err(format!(
                        "the assumption at {} of @{} failed {left} times, native code counts {found}",
                        spec.at.inst(),
                        half.function.name()
                    ));
                }
            }
        }
        Ok(())
    }
}
