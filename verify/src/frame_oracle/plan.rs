//! The plans of the frame oracle: what each instruction of a version stands for, and the points at
//! which runs are looked at.

use super::InlinedPair;
use check::CheckedFrameEntry;
use interp::{FireError, Machine, TransferError, VersionId};
use ir::{Func, Inst, Module, Point, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use transition::VersionKey;
use transition::copy::InstanceId;

/// An instruction of a version with inlined code.
#[derive(Debug, Default)]
pub(super) struct InstPlan {
    /// The activations that an activation of the version stands for here, itself included, and the
    /// function and instruction of the innermost. `None` for an instruction that the copy lacks.
    pub(super) origin: Option<(usize, Func, Inst)>,
    pub(super) is_event: bool,
    /// Whether an entry leads out from here.
    pub(super) leaves: bool,
    /// The values that entries into the version provide here.
    pub(super) provided: Vec<Value>,
    /// Whether one lands here.
    pub(super) is_landing: bool,
}

/// The plan of one function with inlined code.
pub(super) struct FunctionPlan<'a> {
    pub(super) pair: InlinedPair<'a>,
    pub(super) insts: HashMap<Inst, InstPlan>,
    /// By instance and call of its original: the instance of the callee.
    pub(super) inlined: BTreeMap<(InstanceId, Inst), InstanceId>,
    /// The instructions of originals that are events.
    pub(super) events: BTreeSet<(InstanceId, Inst)>,
}

/// The plans of all functions.
pub(super) struct FramePlans<'a> {
    pub(super) by_func: BTreeMap<Func, FunctionPlan<'a>>,
    /// The bases, by function.
    bases: BTreeMap<Func, VersionId>,
    /// By function that both machines run in its base: its terminators, where the runs meet.
    plain: BTreeMap<Func, BTreeSet<Inst>>,
}

/// Why a machine made no transition.
pub(super) enum NotFired {
    /// No room for the frames.
    NoRoom((Func, Point)),
    Wrong((Func, Point), String),
}

impl<'a> FramePlans<'a> {
    /// Adds the versions to the second of two machines, and marks the instructions at which both
    /// are looked at.
    pub(super) fn new(
        module: &Module,
        pairs: &[InlinedPair<'a>],
        machines: &mut [Machine; 2],
    ) -> FramePlans<'a> {
        let bases: BTreeMap<Func, VersionId> = module
            .defined()
            .filter_map(|(func, _)| Some((func, machines[0].current(func)?)))
            .collect();
        let mut by_func = BTreeMap::new();
        for pair in pairs {
            let plan = FunctionPlan::new(module, *pair);
            let version = machines[1].add_version(module, pair.func, pair.optimized);
            machines[1].set_current(pair.func, version);
            machines[1].mark(version, plan.insts.keys().copied());
            by_func.insert(pair.func, plan);
        }
        let mut plain = BTreeMap::new();
        for (func, body) in module.defined() {
            // Any instruction of a base may be where a frame lands.
            machines[0].mark(bases[&func], body.all_insts());
            if !by_func.contains_key(&func) {
                let ends: BTreeSet<Inst> =
                    body.blocks().map(|block| body.terminator(block)).collect();
                machines[1].mark(bases[&func], ends.iter().copied());
                plain.insert(func, ends);
            }
        }
        FramePlans { by_func, bases, plain }
    }

    /// Whether runs meet at an instruction of a function that both run in its base.
    pub(super) fn is_plain_event(&self, func: Func, inst: Inst) -> bool {
        self.plain.get(&func).is_some_and(|ends| ends.contains(&inst))
    }

    /// Makes the transition out of inlined code where a machine is paused. Returns the entry.
    pub(super) fn fire(&self, machine: &mut Machine) -> Result<(Func, Point), NotFired> {
        let view = machine.view().expect("the machine is paused");
        let (func, point) = (view.func(), Point::before(view.inst()));
        let key = (func, point);
        let entry = self.by_func.get(&func).and_then(|plan| plan.pair.down.entry(point));
        let entry = entry.expect("an entry starts at a sampled visit");
        let to: Vec<VersionId> = (entry.frames.iter())
            .filter_map(|frame| self.bases.get(&frame.func).copied())
            .collect();
        let source: VersionKey = machine.code(view.version()).key();
        match machine.fire_frames(&to, CheckedFrameEntry::unproved(source, point, entry)) {
            Ok(()) => Ok(key),
            Err(FireError::Transfer(TransferError::StackOverflow)) => Err(NotFired::NoRoom(key)),
            Err(error) => Err(NotFired::Wrong(key, error.to_string())),
        }
    }
}

impl<'a> FunctionPlan<'a> {
    fn new(module: &Module, pair: InlinedPair<'a>) -> FunctionPlan<'a> {
        let InlinedPair { func, optimized, copies, events, up, down } = pair;
        let mut insts: HashMap<Inst, InstPlan> = HashMap::new();
        let mut event_places = BTreeSet::new();
        let base = module.body(func).expect("the function has a body");
        for inst in optimized.all_insts() {
            let plan = insts.entry(inst).or_default();
            plan.leaves = down.entry(Point::before(inst)).is_some();
            let Some((id, at)) = copies.origin(inst) else { continue };
            let count = copies.stack((id, at)).count();
            plan.origin = Some((count, copies.instances()[id].func, at));
            if events.contains(&inst) && (id != 0 || base.has_inst(at)) {
                plan.is_event = true;
                event_places.insert((id, at));
            }
        }
        for (_, entry) in up.entries() {
            let plan = insts.entry(entry.target.inst()).or_default();
            plan.is_landing = true;
            let new: Vec<Value> =
                entry.provides().filter(|value| !plan.provided.contains(value)).collect();
            plan.provided.extend(new);
        }
        let instances = copies.instances().iter().enumerate();
        let inlined = instances.filter_map(|(id, one)| Some((one.caller?, id))).collect();
        FunctionPlan { pair, insts, inlined, events: event_places }
    }

    /// The activations that an activation of the version stands for while it waits within a call.
    pub(super) fn waiting(&self, call: Inst) -> usize {
        let origin = self.insts.get(&call).and_then(|plan| plan.origin);
        origin.map_or(1, |(count, ..)| count)
    }
}
