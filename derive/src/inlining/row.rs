//! The versions up to the copy.

use super::{InlinePlan, LeftOut, NotInlined, StatePlaces};
use crate::driver::{
    Observer, Recipe, StatePoints, Step, Vigilance, derive_waiting, derive_within,
};
use crate::speculate::{Plan, Speculative, speculate};
use check::{Checked, Copies};
use ir::edit::{Fuel, apply};
use ir::{FrameStates, Func, Function, Imm, Inst, Module, Point};
use osr::{Level, Version, VersionTree};
use passes::Callers;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::VersionKey;
use transition::copy::{CopyClaim, InstanceId};
use transition::frames::FramePlace;

/// The versions from the base to the copy.
pub(super) struct InliningRow {
    pub(super) func: Func,
    pub(super) tree: VersionTree,
    /// The version that was inlined into.
    pub(super) cleaned: Version,
    pub(super) copy: Version,
    pub(super) claim: CopyClaim,
    /// The calls removed that make objects.
    pub(super) removed: usize,
    /// The assumptions made before the inlining, if there are any.
    pub(super) assumed: Option<Speculative>,
    /// By function: the frame states of its base.
    pub(super) states: BTreeMap<Func, Arc<FrameStates>>,
    /// The number of rewrites before the inlining that were left out.
    pub(super) refused: u64,
}

impl InliningRow {
    pub(super) fn new(
        callers: &Callers<'_>,
        func: Func,
        base: Function,
        plan: &InlinePlan,
        left_out: &LeftOut,
        observer: &mut dyn Observer,
    ) -> Result<InliningRow, NotInlined> {
        let module = callers.module();
        if !plan.removes_objects() && !plan.may_inline_in(callers, func, &base) {
            return Err(NotInlined::NoCall);
        }
        let mut tree = VersionTree::new(base);
        tree.set_module(module);
        if let Some(states) = plan.states.get(&func) {
            let fits = tree.arm_states(VersionTree::BASE, states);
            fits.map_err(|error| NotInlined::States { func, error })?;
        }
        let (cleaned, assumed, refused) =
            cleaned(callers, func, &mut tree, plan, left_out, observer)?;
        observer.begin(Some(Step::Optimize));
        let original = tree.function(cleaned);
        let pass = plan.pass(callers, func);
        let (copy, log) = apply(original, &pass, &mut Fuel::UNLIMITED.clone()).into_parts();
        observer.begin(None);
        if log.is_empty() && !plan.removes_objects() {
            return Err(NotInlined::NoCall);
        }
        let claim = osr::copy_claim(func, original, &log).expect("the pass inlines alone");
        let copy = tree.add(cleaned, copy, log).expect("the log leads to the version");
        let states = plan.states.clone();
        Ok(InliningRow { func, tree, cleaned, copy, claim, removed: 0, assumed, states, refused })
    }

    /// Lets runs land in inlined code, and in front of inlined calls, only where all activations
    /// have frame states. Example: the jump in place of a call corresponds to the call itself,
    /// which the interpreter would make; without a state there, the entry of the callee is the
    /// place to land (`an_exit_without_a_state_to_land_at_is_given_up`). With places of a plan
    /// that assumes nothing, runs land in code of the function itself at its exits alone: the
    /// passes before the inlining keep entries there, and nowhere else
    /// (`no_exit_of_random_inlined_code_is_lost_for_want_of_a_value`).
    pub(super) fn land_at_states(&mut self, module: &Module, copies: &Copies, plan: &InlinePlan) {
        if self.states.is_empty() {
            return;
        }
        let instances = copies.instances();
        let waits = |mut id: InstanceId| {
            while let Some((caller, call)) = instances[id].caller {
                if !self.has_state(module, instances[caller].func, FramePlace::Within(call)) {
                    return false;
                }
                id = caller;
            }
            true
        };
        let is_call = |at: Inst| instances.iter().any(|one| one.caller == Some((0, at)));
        let has_state = |id: InstanceId, at: Inst| {
            let place = FramePlace::Before(Point::before(at));
            self.has_state(module, instances[id].func, place)
        };
        let places = plan.places.get(&self.func).filter(|_| plan.assume.is_empty());
        let may = |inst: &Inst| match copies.origin(*inst) {
            Some((0, origin)) => match places {
                Some(places) => places.exits.contains(&Point::before(origin)),
                None => !is_call(origin) || has_state(0, origin),
            },
            Some((id, origin)) => has_state(id, origin) && waits(id),
            None => true,
        };
        let points = self.copy().all_insts().filter(may).map(Point::before).collect();
        self.tree.land_at(self.copy, points);
    }

    /// Whether the frame states of a function have one where an activation stands. True for a
    /// function without states.
    pub(super) fn has_state(&self, module: &Module, func: Func, place: FramePlace) -> bool {
        let Some(states) = self.states.get(&func) else { return true };
        let at = match place {
            FramePlace::Before(point) => Some(point),
            FramePlace::Within(call) => {
                let base = module.body(func).filter(|base| base.has_inst(call));
                base.and_then(|base| base.next_inst(call)).map(Point::before)
            }
        };
        at.is_some_and(|at| states.get(at).is_some())
    }

    /// The version that was inlined into.
    pub(super) fn inlined_into(&self) -> &Function {
        self.tree.function(self.cleaned)
    }

    /// The copy.
    pub(super) fn copy(&self) -> &Function {
        self.tree.function(self.copy)
    }

    /// The checker's word on the copy.
    pub(super) fn judged(&self, module: &Module) -> Result<Checked<Copies>, NotInlined> {
        let cleaned = self.inlined_into();
        let own = VersionKey::of(cleaned);
        let is_own = |of, key| of == self.func && key == own;
        let original = |of, key| if is_own(of, key) { Some(cleaned) } else { module.body(of) };
        let (copy, claim) = (self.copy(), self.claim.clone());
        check::copy_without_objects(copy, self.func, original, claim, Some(module))
            .map_err(NotInlined::NoCopy)
    }
}

/// The version to inline into, the assumptions that it makes, and the number of rewrites left out.
fn cleaned(
    callers: &Callers<'_>,
    func: Func,
    tree: &mut VersionTree,
    plan: &InlinePlan,
    left_out: &LeftOut,
    observer: &mut dyn Observer,
) -> Result<(Version, Option<Speculative>, u64), NotInlined> {
    let module = callers.module();
    let places = plan.places.get(&func);
    if let Some(StatePlaces { entrances, .. }) = places {
        tree.leave_at(VersionTree::BASE, entrances.clone());
    }
    let assume = plan.assume.get(&func).filter(|own| !own.is_empty());
    if let Some(assume) = assume {
        let (pins, work) = (plan.pins, plan.work);
        let speculation = Plan { pins, work, ..Plan::new(assume, &plan.first) };
        let made = speculate(module, tree, VersionTree::BASE, &speculation);
        let made = made.map_err(|error| NotInlined::Refused { func, error })?;
        return Ok((made.optimized, Some(made), 0));
    }
    if let (Some(states), Some(places)) = (plan.states.get(&func), places) {
        let StatePlaces { entrances, exits } = places;
        let points = StatePoints { states, entrances, exits };
        let base = tree.function(VersionTree::BASE);
        let recipe = Recipe { retry: plan.retry, ..Recipe::new(&plan.first, &[Level::Avail]) };
        let waits = waits(callers, plan, states, base);
        let made = derive_waiting(module, base, points, &waits, &recipe, observer);
        let made = made.map_err(|error| NotInlined::Places { func, error })?;
        let first = made.derived;
        let cleaned = tree.add_replayed(VersionTree::BASE, first.function, first.log);
        return Ok((cleaned, None, made.retried.refused));
    }
    let base = tree.function(VersionTree::BASE);
    let mut fuel = Fuel::UNLIMITED.without(left_out.before.iter().cloned());
    let first = derive_within(module, base, &plan.first, Vigilance::On, &mut fuel, observer);
    let cleaned = tree.add_replayed(VersionTree::BASE, first.function, first.log);
    Ok((cleaned, None, fuel.refused()))
}

/// The points behind calls that a plan may inline, where the function has a state to wait at.
fn waits(
    callers: &Callers<'_>,
    plan: &InlinePlan,
    states: &FrameStates,
    base: &Function,
) -> BTreeSet<Point> {
    let may = |call: &Inst| match base.inst(*call).imm {
        Imm::Func(callee) => plan.may_inline(callers, callee),
        _ => false,
    };
    let behind = base.all_insts().filter(may).filter_map(|call| base.next_inst(call));
    behind.map(Point::before).filter(|at| states.get(*at).is_some()).collect()
}
