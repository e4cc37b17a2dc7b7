//! The plans of the frame oracle: the original of each instruction of a version, and the points at
//! which runs are compared.

use super::InlinedPair;
use super::watch::UpWatcher;
use check::CheckedEntry;
use interp::{
    FireError, FrameView, Host, Machine, NoObserver, Outcome, Run, TransferError, VersionId, View,
};
use ir::{Func, Inst, Module, Point, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
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
    /// The operand and the bits, for an assumption.
    pub(super) assumed: Option<(Value, u64)>,
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
    /// The versions with inlined code, by function, on the second machine.
    pub(super) optimized: BTreeMap<Func, VersionId>,
    /// For each function that both machines run in its base: the terminators, where the runs meet.
    plain: BTreeMap<Func, BTreeSet<Inst>>,
}

/// Why a machine made no transition.
pub(super) enum NotFired {
    /// No room for the frames.
    NoRoom((Func, Point)),
    Wrong((Func, Point), String),
}

/// The result of a run that was to go up again.
pub(super) enum GoneUp {
    Up,
    /// It found no room, or left again before.
    Stayed,
    Ended(Outcome),
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
        let (mut by_func, mut optimized) = (BTreeMap::new(), BTreeMap::new());
        for pair in pairs {
            let plan = FunctionPlan::new(module, *pair);
            let version = machines[1].add_version(module, pair.func, pair.optimized);
            machines[1].set_current(pair.func, version);
            machines[1].set_sites(version, Arc::new(pair.copies.sites()));
            machines[1].mark(version, plan.insts.keys().copied());
            // Runs that have left go up from here.
            let up = pair.up.entries().map(|(point, _)| point.inst());
            machines[1].mark(bases[&pair.func], up.collect::<Vec<_>>());
            by_func.insert(pair.func, plan);
            optimized.insert(pair.func, version);
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
        FramePlans { by_func, bases, optimized, plain }
    }

    /// Each function with inlined code, with its base and its version.
    pub(super) fn versions(&self) -> impl Iterator<Item = (Func, VersionId, VersionId)> {
        self.optimized.iter().map(|(func, version)| (*func, self.bases[func], *version))
    }

    /// The activations that an entry at a point leads to; 0 for one into the version with inlined
    /// code. `None` for a point without an entry.
    pub(super) fn way_at(&self, view: &View<'_>, inst: Inst) -> Option<usize> {
        let (func, point) = (view.func(), Point::before(inst));
        let pair = &self.by_func.get(&func)?.pair;
        match view.version() == self.optimized[&func] {
            true => pair.down.entry(point).map(|entry| entry.activations()),
            false => pair.up.entry(point).map(|_| 0),
        }
    }

    /// The same where a machine is paused.
    pub(super) fn way(&self, machine: &Machine) -> Option<usize> {
        let view = machine.view().expect("the machine is paused");
        self.way_at(&view, view.inst())
    }

    /// The activations that a waiting activation stands for.
    pub(super) fn stands_for(&self, frame: &FrameView<'_>) -> usize {
        let (func, version) = (frame.func(), frame.version());
        match self.optimized.get(&func) {
            Some(optimized) if *optimized == version => self.by_func[&func].waiting(frame.inst()),
            _ => 1,
        }
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
        let down = self.by_func.get(&func).map(|plan| plan.pair.down);
        let Some((down, entry)) = down.and_then(|down| Some((down, down.entry(point)?))) else {
            return Err(NotFired::Wrong(key, "the assumption has no exit".to_owned()));
        };
        let landings = entry.landings(func, down.target());
        let to: Vec<VersionId> =
            landings.filter_map(|landing| self.bases.get(&landing.func).copied()).collect();
        let (from, base) = (machine.code(view.version()).key(), down.target());
        match machine.fire(&to, CheckedEntry::unproved(from, base, point, entry)) {
            Ok(_) => Ok(key),
            Err(FireError::Transfer(TransferError::StackOverflow)) => Err(NotFired::NoRoom(key)),
            Err(error) => Err(NotFired::Wrong(key, error.to_string())),
        }
    }

    /// Runs a machine, which has just left the version of a function, to a later visit of an entry
    /// up from an activation of its base, and makes that transition.
    pub(super) fn go_up(
        &self,
        machine: &mut Machine,
        host: &mut dyn Host,
        func: Func,
        skip: u32,
    ) -> Result<GoneUp, NotFired> {
        let (up, base) = (self.by_func[&func].pair.up, self.bases[&func]);
        let mut watcher = UpWatcher { base, up, skip };
        match machine.run(host, &mut watcher) {
            Run::Paused => {}
            Run::Done(outcome) => return Ok(GoneUp::Ended(outcome)),
            // Frames of another function's version have the values of other mappings.
            Run::Failed { .. } => return self.fire(machine).map(|_| GoneUp::Stayed),
            Run::Called { .. } => unreachable!("no function is external"),
        }
        let view = machine.view().expect("it is paused");
        let (point, source) = (Point::before(view.inst()), machine.code(base).key());
        let entry = up.entry(point).expect("the watcher pauses at entries");
        let to = self.optimized[&func];
        let target = machine.code(to).key();
        match machine.fire(to, CheckedEntry::unproved(source, target, point, entry)) {
            Ok(_) => Ok(GoneUp::Up),
            Err(FireError::Transfer(TransferError::StackOverflow)) => Ok(GoneUp::Stayed),
            Err(error) => Err(NotFired::Wrong((func, point), format!("up again: {error}"))),
        }
    }

    /// Runs a machine to the end of its run, and leaves where assumptions fail. `None` if a
    /// transition finds no room for its frames.
    pub(super) fn finish(&self, machine: &mut Machine, host: &mut dyn Host) -> Option<Outcome> {
        loop {
            match machine.run(host, &mut NoObserver) {
                Run::Done(outcome) => return Some(outcome),
                Run::Failed { reason } => match self.fire(machine) {
                    Ok(_) => {}
                    Err(NotFired::NoRoom(_)) => return None,
                    // An end that no base run has.
                    Err(NotFired::Wrong(..)) => return Some(machine.fail(reason)),
                },
                Run::Paused | Run::Called { .. } => {
                    unreachable!("nothing pauses the run, and no function is external")
                }
            }
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
            plan.assumed = optimized.inst(inst).assumed();
            let Some((id, at)) = copies.origin(inst) else { continue };
            let count = copies.stack(id, at).count();
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
