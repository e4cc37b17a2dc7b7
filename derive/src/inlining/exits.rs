//! Exits of bases in code that is inlined: the points at which a run leaves for good.
//!
//! Example: `@callee` branches to `trap user0` where a register is no int32, and a frame state
//! stands in front of the trap. Inlined twice, the trap stands in the copy twice. Each needs an
//! entry into two frames, and so the values that the states of both functions name: of the callee
//! at its trap, and of the caller behind its call. To the passes behind the inlining, the copy is
//! the base of an embedder ([`crate::driver::derive_with_states`]), whose states name the values
//! of all frames.

use super::row::InliningRow;
use super::{InlinePlan, NotInlined, StatePlaces};
use crate::driver::{StatePointError, StatePoints, kept_sources};
use check::Copies;
use ir::cfg::Cfg;
use ir::decided::Decided;
use ir::dom::DomTree;
use ir::liveness::{LiveSet, Liveness};
use ir::{
    FrameState, FrameStates, Func, Function, Inst, Local, LocalContent, Module, Opcode, Point,
    Value,
};
use osr::VersionTree;
use std::collections::{BTreeMap, BTreeSet};
use transition::copy::InstanceId;

/// Whether a function of a copy has places.
pub(super) fn has_places(copies: &Copies, plan: &InlinePlan) -> bool {
    copies.instances().iter().any(|one| plan.places.contains_key(&one.func))
}

/// Checks that the states and places of a plan fit the functions of a copy. Cost: linear in both.
pub(super) fn check_places(
    module: &Module,
    copies: &Copies,
    plan: &InlinePlan,
) -> Result<(), NotInlined> {
    let funcs: BTreeSet<Func> = copies.instances().iter().map(|one| one.func).collect();
    for func in funcs {
        let base = module.body(func).expect("code of the function is inlined, or inlined into");
        let states = plan.states.get(&func);
        if let Some(error) = states.and_then(|states| states.check(base).err()) {
            return Err(NotInlined::States { func, error });
        }
        let Some(StatePlaces { entrances, exits }) = plan.places.get(&func) else { continue };
        let refused = |error| NotInlined::Places { func, error };
        let states = states.ok_or(refused(StatePointError::NoStates))?;
        StatePoints { states, entrances, exits }.check(base).map_err(refused)?;
        let inlined = |at: &Point| {
            let is_return = base.inst(at.inst()).opcode == Opcode::Return;
            copies.instances().iter().any(|one| {
                let is_call = one.caller.is_some_and(|(caller, call)| {
                    call == at.inst() && copies.instances()[caller].func == func
                });
                is_call || is_return && one.func == func && one.caller.is_some()
            })
        };
        if let Some(at) = exits.iter().find(|at| inlined(at)) {
            return Err(refused(StatePointError::Inlined(*at)));
        }
    }
    Ok(())
}

/// The points of the copy at which runs land, with the values that the states of all frames name,
/// and the exits of the plan among them. In code of the function itself, these are its exits.
pub(super) fn copied_states(
    module: &Module,
    row: &InliningRow,
    copies: &Copies,
    plan: &InlinePlan,
) -> (FrameStates, BTreeSet<Point>) {
    let copy = row.copy();
    let dom = DomTree::new(copy, &Cfg::new(copy));
    let frames = NamedByFrames { module, row, copies, plan };
    let (mut states, mut exits) = (FrameStates::new(), BTreeSet::new());
    for inst in copy.all_insts() {
        let (at, is_exit) = (Point::before(inst), is_exit(inst, copies, plan));
        let lands = |(id, _): &(InstanceId, Inst)| *id != 0 || is_exit;
        let origin = copies.origin(inst).filter(lands);
        let Some(named) = origin.and_then(|(id, of)| frames.named(inst, id, of)) else { continue };
        let there = named.into_iter().filter(|value| dom.available_at(copy, *value, at));
        let local =
            |(slot, value)| Local { slot, content: LocalContent::Value(value), representation: 0 };
        states.set(at, FrameState::new(0, 0, (0..).zip(there).map(local).collect()));
        if is_exit {
            exits.insert(at);
        }
    }
    (states, exits)
}

/// By exit of the copy: the values that the states of all frames name, and those that are live in
/// frames that wait (`objects_of_inlined_code_are_made_at_exits`).
pub(super) fn taken_out(
    module: &Module,
    row: &InliningRow,
    copies: &Copies,
    plan: &InlinePlan,
) -> BTreeMap<Inst, BTreeSet<Value>> {
    let (states, exits) = copied_states(module, row, copies, plan);
    let frames = NamedByFrames { module, row, copies, plan };
    let mut live = BTreeMap::new();
    let mut taken = |at: Point| {
        let named = states.get(at).into_iter().flat_map(FrameState::all_values);
        named.chain(frames.waiting(at.inst(), &mut live)).collect()
    };
    exits.into_iter().map(|at| (at.inst(), taken(at))).collect()
}

/// The exits of the plan that runs of a version derived from the copy reach.
pub(super) fn reached(f: &Function, copies: &Copies, plan: &InlinePlan) -> BTreeSet<Point> {
    if !has_places(copies, plan) {
        return BTreeSet::new();
    }
    let decided = Decided::new(f);
    let insts = decided.cfg().rpo().iter().flat_map(|block| f.block_insts(*block));
    insts.filter(|inst| is_exit(*inst, copies, plan)).map(Point::before).collect()
}

/// Whether the original of an instruction is behind an exit of the plan.
fn is_exit(inst: Inst, copies: &Copies, plan: &InlinePlan) -> bool {
    let Some((id, of)) = copies.origin(inst) else { return false };
    let places = plan.places.get(&copies.instances()[id].func);
    places.is_some_and(|places| places.exits.contains(&Point::before(of)))
}

/// Finds the values that the states of frames name.
struct NamedByFrames<'a> {
    module: &'a Module,
    row: &'a InliningRow,
    copies: &'a Copies,
    plan: &'a InlinePlan,
}

impl NamedByFrames<'_> {
    /// The values of the copy that the states name where an instruction of an instance is about to
    /// be executed: its own state, and the states behind the calls around it. `None` without one of
    /// them.
    fn named(&self, inst: Inst, mut id: InstanceId, of: Inst) -> Option<BTreeSet<Value>> {
        let mut named = BTreeSet::new();
        let mut at = of;
        loop {
            let instance = &self.copies.instances()[id];
            let state = self.plan.states.get(&instance.func)?.get(Point::before(at))?;
            named.extend(self.in_copy(inst, id, state.all_values()));
            let Some((caller, call)) = instance.caller else { return Some(named) };
            let base = self.module.body(self.copies.instances()[caller].func)?;
            at = base.has_inst(call).then(|| base.next_inst(call)).flatten()?;
            id = caller;
        }
    }

    /// The values of the copy from which an entry makes the values that are live behind the calls
    /// around an instruction. `known` keeps what is live by call.
    fn waiting(&self, inst: Inst, known: &mut BTreeMap<(Func, Inst), LiveSet>) -> BTreeSet<Value> {
        let mut waiting = BTreeSet::new();
        let mut at = self.copies.origin(inst).map(|(id, _)| id);
        while let Some((caller, call)) = at.and_then(|id| self.copies.instances()[id].caller) {
            let func = self.copies.instances()[caller].func;
            let live = known.entry((func, call)).or_insert_with(|| self.live_behind(func, call));
            waiting.extend(self.in_copy(inst, caller, live.iter()));
            at = Some(caller);
        }
        waiting
    }

    /// The values live behind a call of a base, with what its states name. Cost: as
    /// [`Liveness::new`].
    fn live_behind(&self, func: Func, call: Inst) -> LiveSet {
        let base = self.module.body(func).filter(|base| base.has_inst(call));
        let Some((base, next)) = base.and_then(|base| Some((base, base.next_inst(call)?))) else {
            return LiveSet::default();
        };
        let states = self.plan.states.get(&func);
        let named = states.into_iter().flat_map(|states| states.required(base));
        let named = named.map(|(at, values)| (at.inst(), values.into_iter().collect())).collect();
        let live = Liveness::with_extra_uses(base, &Cfg::new(base), &named);
        live.live_before(base, Point::before(next))
    }

    /// The values of the copy from which an entry makes values that an original's base has.
    fn in_copy(
        &self,
        inst: Inst,
        id: InstanceId,
        named: impl Iterator<Item = Value>,
    ) -> BTreeSet<Value> {
        let of_original = match id {
            0 => {
                let base = self.row.tree.function(VersionTree::BASE);
                kept_sources(base, self.row.inlined_into(), named)
            }
            _ => named.collect(),
        };
        of_original.into_iter().flat_map(|value| self.held(inst, id, value)).collect()
    }

    /// The values of the copy that hold a value of an original before an instruction: its name, or
    /// the fields of the object that it is a form of, but for constants.
    fn held(&self, inst: Inst, id: InstanceId, value: Value) -> impl Iterator<Item = Value> {
        let states = self.copies.objects(inst).iter();
        let of = states.filter(move |state| state.forms.contains_key(&(id, value)));
        let name = self.copies.instances()[id].values.get(&value).copied();
        let fields = of.flat_map(|state| state.fields.values().copied());
        name.into_iter().chain(fields.filter(|field| self.row.copy().constant(*field).is_none()))
    }
}
