//! Assumptions around inlining: assumptions about inlined functions, in terms of the copy.

use super::{InlinePlan, NotInlined};
use crate::speculate::{Assumption, Dropped, error};
use check::Copies;
use ir::{Function, Inst, Module, Point, Value};
use std::collections::BTreeMap;
use transition::copy::InstanceId;

/// An assumption about the function of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedAssumption {
    /// The instance, by its index in [`Copies::instances`]; 0 is the function with the inlined
    /// code.
    pub instance: InstanceId,
    /// The assumption, in terms of the base of the function of that instance.
    pub assumption: Assumption,
}

/// An assumption of a version with inlined code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InlinedExit {
    /// Its instruction.
    pub inst: Inst,
    /// The assumption of the plan. `None` for one that the base makes.
    pub assumption: Option<PlacedAssumption>,
    /// The values that it keeps as operands: of the base, or of the copy, whichever it was added
    /// to.
    pub pins: Vec<Value>,
}

/// The outcome of the assumptions of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InlinedAssumptions {
    /// The assumptions of the optimized version. Each has an exit.
    pub exits: Vec<InlinedExit>,
    /// The assumptions that a pass has proved, or has removed with unreachable code.
    pub settled: Vec<PlacedAssumption>,
    /// The assumptions left out.
    pub dropped: Vec<(PlacedAssumption, Dropped)>,
}

/// The assumptions of a plan about inlined functions, in terms of the copy.
pub(super) struct CopiedAssumptions {
    /// In terms of the copy, and of the bases.
    pub(super) made: Vec<(Assumption, PlacedAssumption)>,
    pub(super) dropped: Vec<(PlacedAssumption, Dropped)>,
}

/// The originals of a copy.
struct Originals<'a> {
    module: &'a Module,
    copies: &'a Copies,
    inlined_into: &'a Function,
}

impl Originals<'_> {
    /// The bits of a value that is a constant in an instance, or an argument that is one in its
    /// caller. Cost: linear in the depth.
    fn constant(&self, instance: InstanceId, value: Value) -> Option<u64> {
        let original = self.original(instance)?;
        let number = original.arguments().iter().position(|argument| *argument == value);
        let caller = self.copies.instances()[instance].caller;
        let (Some(number), Some((caller, call))) = (number, caller) else {
            return original.constant(value);
        };
        self.constant(caller, self.original(caller)?.inst(call).args[number])
    }

    fn original(&self, instance: InstanceId) -> Option<&Function> {
        match instance {
            0 => Some(self.inlined_into),
            _ => self.module.body(self.copies.instances()[instance].func),
        }
    }
}

impl CopiedAssumptions {
    pub(super) fn new(
        module: &Module,
        [inlined_into, copy]: [&Function; 2],
        copies: &Copies,
        plan: &InlinePlan,
    ) -> Result<CopiedAssumptions, NotInlined> {
        let mut copied = CopiedAssumptions { made: Vec::new(), dropped: Vec::new() };
        let inlined = || copies.instances().iter().enumerate().skip(1);
        if inlined().all(|(_, one)| !plan.assume.contains_key(&one.func)) {
            return Ok(copied);
        }
        let originals = Originals { module, copies, inlined_into };
        let places = copy.all_insts().filter_map(|inst| Some((copies.origin(inst)?, inst)));
        let places: BTreeMap<(InstanceId, Inst), Inst> = places.collect();
        for (instance, one) in inlined() {
            let (Some(assume), Some(base)) = (plan.assume.get(&one.func), module.body(one.func))
            else {
                continue;
            };
            let refused = |error| NotInlined::Refused { func: one.func, error };
            error::check_all(module, base, assume).map_err(refused)?;
            for assumption in assume {
                let placed = PlacedAssumption { instance, assumption: *assumption };
                let at = places.get(&(instance, assumption.at.inst()));
                let value = one.values.get(&assumption.value).copied();
                let (Some(at), Some(value)) = (at.copied(), value) else {
                    copied.dropped.push((placed, Dropped::NeverReached));
                    continue;
                };
                let known = originals.constant(instance, assumption.value);
                if known.is_some_and(|bits| !assumption.expected.holds(bits)) {
                    copied.dropped.push((placed, Dropped::NeverHolds));
                    continue;
                }
                let made = Assumption { at: Point::before(at), value, ..*assumption };
                copied.made.push((made, placed));
            }
        }
        let func = copies.instances()[0].func;
        error::check_all(module, copy, &copied.list())
            .map_err(|error| NotInlined::Refused { func, error })?;
        Ok(copied)
    }

    /// The assumptions in terms of the copy.
    pub(super) fn list(&self) -> Vec<Assumption> {
        self.made.iter().map(|(made, _)| *made).collect()
    }

    /// The assumption of the plan behind one of the copy.
    pub(super) fn placed(&self, made: &Assumption) -> Option<PlacedAssumption> {
        self.made.iter().find(|(other, _)| other == made).map(|(_, placed)| *placed)
    }
}
