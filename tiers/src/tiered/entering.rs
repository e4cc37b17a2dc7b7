//! Which runs may enter the middle of a loop: an entry may take values that are dead there.

use super::{Goal, Tiered};
use crate::Observer;
use crate::handing::HandedStates;
use ir::{Module, Value};
use jit::{Continuation, Tier};
use std::sync::Arc;

/// Whether the frame state at the loop of a goal names these values of the base, so that an
/// interpreter of the embedder's own gives them; constants need no name. Cost: the slots of the
/// state, for each value.
pub(super) fn names(states: &HandedStates, module: &Module, goal: Goal, values: &[Value]) -> bool {
    let (Some(at), Some(body)) = (goal.point(), module.body(goal.func())) else { return false };
    let state = states.get(&goal.func()).and_then(|states| states.get(at));
    let is_constant = |value: Value| {
        body.defining_inst(value).is_some_and(|inst| body.inst(inst).constant().is_some())
    };
    let is_named = |value: Value| state.is_some_and(|state| state.slot_of(value).is_some());
    values.iter().all(|value| is_named(*value) || is_constant(*value))
}

impl<O: Observer> Tiered<O> {
    /// A continuation that was made, if the run that asks gives the values that it requires.
    /// Another run may have asked for it: Osier's interpreter and one of the embedder's own may
    /// execute one function.
    pub(super) fn given(
        tier: &Tier<'_>,
        goal: Goal,
        made: Option<Arc<Continuation>>,
    ) -> Option<Arc<Continuation>> {
        made.filter(|made| !made.keeps_values() || tier.gives(goal.func(), made.requires()))
    }
}
