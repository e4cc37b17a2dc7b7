//! Checks an entry against its two versions, and finds the types of the values it requires.

use super::ContinuationError;
use ir::place::Place;
use ir::{Function, Type, Value};
use smallvec::SmallVec;
use transition::certificate::is_well_typed;
use transition::mapping::{Entry, Operand};

/// An entry whose operands all exist and have fitting types.
pub(super) struct PlannedEntry<'e> {
    pub(super) target: &'e Function,
    pub(super) entry: &'e Entry,
    /// The types of the values required, in order.
    pub(super) params: SmallVec<[Type; 16]>,
    /// The values required, ascending, each with its index among them.
    places: SmallVec<[(Value, usize); 16]>,
}

impl<'e> PlannedEntry<'e> {
    /// Checks an entry. Cost: linear in the entry, times the logarithm of the number of values
    /// required.
    ///
    /// # Errors
    /// The first part of the entry that does not exist or fit: see [`ContinuationError`].
    pub(super) fn new(
        source: &Function,
        target: &'e Function,
        entry: &'e Entry,
    ) -> Result<PlannedEntry<'e>, ContinuationError> {
        if !target.has_inst(entry.target.inst()) {
            return Err(ContinuationError::NoSuchPoint(entry.target));
        }
        // Entries of any origin reach this code, so the values need not ascend.
        let mut places: SmallVec<_> = entry.requires.iter().copied().zip(0..).collect();
        places.sort_unstable();
        let mut plan = PlannedEntry { target, entry, params: SmallVec::new(), places };
        for &value in &entry.requires {
            if !source.has_value(value) {
                return Err(ContinuationError::NotInSource(value));
            }
            plan.params.push(source.value_type(value));
        }
        plan.check_steps()?;
        plan.check_replays()?;
        plan.check_assigns()?;
        Ok(plan)
    }

    /// The index of a value among the required values.
    pub(super) fn param(&self, value: Value) -> Result<usize, ContinuationError> {
        let found = self.places.binary_search_by_key(&value, |(value, _)| *value);
        found.map(|at| self.places[at].1).map_err(|_| ContinuationError::NotRequired(value))
    }

    /// The type of an operand that is read after the first `done` steps.
    fn ty(&self, operand: Operand, done: usize) -> Result<Type, ContinuationError> {
        match operand {
            Operand::Source(value) => self.param(value).map(|at| self.params[at]),
            Operand::Step(index) if (index as usize) < done => {
                let step = &self.entry.steps[index as usize];
                let ty = step.opcode.result_type(step.ty);
                ty.ok_or(ContinuationError::MalformedStep { index: index as usize })
            }
            Operand::Step(index) => Err(ContinuationError::NoSuchStep { index }),
        }
    }

    fn check_steps(&self) -> Result<(), ContinuationError> {
        // A step sees the steps before it, so that a cycle of steps is an error too.
        for (index, step) in self.entry.steps.iter().enumerate() {
            if step.allocator().is_some() {
                return Err(ContinuationError::MakesObject { index });
            }
            let types: SmallVec<[Type; 3]> =
                step.args.iter().map(|a| self.ty(*a, index)).collect::<Result<_, _>>()?;
            if !step.opcode.allows_type(step.ty) || !step.accepts(&types) {
                return Err(ContinuationError::MalformedStep { index });
            }
        }
        Ok(())
    }

    fn check_replays(&self) -> Result<(), ContinuationError> {
        for replay in &self.entry.replays {
            let all = self.entry.steps.len();
            // The memory is the last operand of a write, and has no type.
            let types = replay.args.iter().map(|a| self.ty(*a, all).map(Some)).chain([Ok(None)]);
            let types: SmallVec<[Option<Type>; 3]> = types.collect::<Result<_, _>>()?;
            let is_store = Place::written(replay.opcode, replay.ty, &replay.imm).is_some();
            let fits = is_store && replay.opcode.allows_type(replay.ty);
            if !fits || !is_well_typed(replay.opcode, replay.ty, &replay.imm, &types) {
                return Err(ContinuationError::MalformedReplay { inst: replay.inst });
            }
        }
        Ok(())
    }

    fn check_assigns(&self) -> Result<(), ContinuationError> {
        for assign in &self.entry.assigns {
            let value = assign.value;
            if !self.target.has_value(value) {
                return Err(ContinuationError::NotInTarget(value));
            }
            let (ty, given) =
                (self.target.value_type(value), self.ty(assign.from, self.entry.steps.len())?);
            if ty != given {
                return Err(ContinuationError::WrongType { value, ty, given });
            }
        }
        Ok(())
    }
}
