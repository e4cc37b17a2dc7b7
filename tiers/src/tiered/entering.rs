//! Which runs may enter the middle of a loop: an entry may take values that are dead there.

use super::{Goal, Tiered, Workplace};
use crate::Observer;
use crate::speculating::HandedStates;
use ir::{Function, Module, Value};
use jit::{Continuation, HotLoop, RunError, Tier};
use std::sync::Arc;
use transition::mapping::Entry;

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

    /// The continuation of a loop of the base in the speculative version. `None` without an entry:
    /// no entry lands behind an assumption.
    ///
    /// # Errors
    /// If code cannot be compiled or linked.
    pub(super) fn enter_speculative(
        &mut self,
        tier: &mut Tier<'_>,
        at: HotLoop,
        base: &Function,
    ) -> Result<Option<Arc<Continuation>>, RunError> {
        let Tiered { speculations, pipeline, observer, workplace, .. } = self;
        let Workplace::Here(compiler) = workplace else { return Ok(None) };
        let one = speculations.version(tier, at.func, pipeline, observer)?;
        let entry = one.and_then(|one| Some((one.made.forward.checked_entry(at.at)?, one)));
        let may = |entry: &Entry| entry.kept.is_empty() || tier.gives(at.func, &entry.kept);
        let entry = entry.filter(|(entry, _)| may(entry.entry()));
        let Some((entry, one)) = entry else { return Ok(None) };
        compiler.continuation(tier.engine(), base, entry, &one.version).map(Some)
    }
}
