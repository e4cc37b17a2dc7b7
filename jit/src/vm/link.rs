//! Links: the checks that an action fits its point, and the points that lead to their targets.

use super::action::{Action, CallsFrom, LinkError, PointLink};
use super::deopt::Landed;
use super::state::VmState;
use crate::version::{Beginning, Continuation, Version};
use check::Checked;
use ir::{FrameState, FrameStates, Func, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use transition::VersionKey;
use transition::frames::Landing;
use transition::mapping::Mapping;

/// The actions of all points of a version, with mappings that have the entries at these points
/// alone. A mapping has an entry at most points of its source, and most versions leave at a few.
/// Actions with one mapping have one afterwards
/// (`a_machine_keeps_the_entries_at_the_points_of_a_version`).
fn with_own_entries(version: &Version, mut actions: Vec<Action>) -> Vec<Action> {
    fn mapping(action: &mut Action) -> Option<&mut Arc<Checked<Mapping>>> {
        match action {
            Action::Interpret(mapping) | Action::Hand(mapping, _) => Some(mapping),
            Action::Continue(_) | Action::Ask => None,
        }
    }
    // By the address of the mapping, since a comparison of contents is linear. All mappings live
    // until the end of the function, so no two have one address.
    let mut points: BTreeMap<*const Checked<Mapping>, Vec<Point>> = BTreeMap::new();
    for (action, point) in actions.iter_mut().zip(&version.points) {
        if let Some(mapping) = mapping(action) {
            points.entry(Arc::as_ptr(mapping)).or_default().push(point.at);
        }
    }
    let mut own: BTreeMap<*const Checked<Mapping>, [Arc<Checked<Mapping>>; 2]> = BTreeMap::new();
    for mapping in actions.iter_mut().filter_map(mapping) {
        let key = Arc::as_ptr(mapping);
        let [_, few] = own.entry(key).or_insert_with(|| {
            let whole = Arc::clone(mapping);
            let few = Arc::new(whole.only_at(&points[&key]));
            [whole, few]
        });
        *mapping = Arc::clone(few);
    }
    actions
}

impl VmState {
    pub(super) fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
        calls: CallsFrom,
    ) -> Result<(), LinkError> {
        if version.begins != Beginning::Calls {
            return Err(LinkError::NotCallable);
        }
        let func = version.func();
        self.adopt(version, actions)?;
        self.table.install(version);
        self.machine.set_external(func, calls == CallsFrom::Anywhere);
        self.point_at_current(func);
        self.sweep();
        Ok(())
    }

    pub(super) fn adopt(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        if !self.modules.fits(version) {
            return Err(LinkError::OtherProgram);
        }
        if let Some(func) = self.not_bound(version) {
            return Err(LinkError::NotBound(func));
        }
        if self.machine.awaits_body(version.func()) {
            return Err(LinkError::AwaitsBody(version.func()));
        }
        let (points, given) = (version.points.len(), actions.len());
        if points != given {
            return Err(LinkError::Actions { points, actions: given });
        }
        // All checks come before the claim and the first link, so a rejected version stays as it
        // was.
        for (number, action) in actions.iter().enumerate() {
            self.check(version, number, action)?;
        }
        let is_claimed = points > 0 || version.counters.is_some() || !version.calls().is_empty();
        // A version without points may be adopted again, and has its calls then.
        let is_again = points == 0 && version.counters.is_none() && self.has_calls(version);
        if is_claimed && !is_again && !version.claim(self.view.interrupts()) {
            return Err(LinkError::Claimed);
        }
        for (number, action) in with_own_entries(version, actions).into_iter().enumerate() {
            self.link(version, number, action);
        }
        self.adopt_calls(version);
        Ok(())
    }

    pub(super) fn relink(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        action: Action,
    ) -> Result<(), LinkError> {
        let cell = version.cells.get(number).ok_or(LinkError::NoSuchPoint(number))?;
        let at = std::ptr::from_ref(cell).addr();
        if self.table.link(at).is_none() {
            return Err(LinkError::NotAdopted);
        }
        self.check(version, number, &action)?;
        self.link(version, number, action);
        Ok(())
    }

    pub(super) fn uninstall(&mut self, func: Func) {
        if self.table.uninstall(func) {
            self.point_at_current(func);
            self.machine.set_external(func, false);
            self.sweep();
        }
    }

    pub(super) fn release(&mut self, version: &Arc<Version>) {
        let installed = self.table.installed(version.func());
        if installed.is_some_and(|installed| Arc::ptr_eq(installed, version)) {
            self.uninstall(version.func());
        }
        self.release_row(version);
        let Some(stubs) = &version.stubs else { return self.sweep() };
        for (number, cell) in version.cells.iter().enumerate() {
            self.counts.note_fired(&self.table, version, number);
            if self.table.unlink(std::ptr::from_ref(cell).addr()) {
                // A frame of the version, or a continuation into it, may still reach the point.
                // Without a link, the run then ends with `RunError::Released`.
                cell.lead_to(stubs.leave.entry());
            }
        }
        self.sweep();
    }

    /// Makes a point lead to the target of an action. The caller has checked the action.
    fn link(&mut self, version: &Arc<Version>, number: usize, action: Action) {
        self.counts.note_fired(&self.table, version, number);
        let stub = &version.stubs.as_ref().expect("jit: a version with points has stubs").leave;
        let code = match &action {
            Action::Continue(continuation) => self.table.keep(&continuation.code),
            Action::Ask | Action::Interpret(_) | Action::Hand(..) => self.table.pin(stub),
        };
        let cell = &version.cells[number];
        cell.lead_to(code);
        let link = PointLink { version: Arc::clone(version), number, action };
        self.table.set_link(std::ptr::from_ref(cell).addr(), link);
    }

    /// Checks that a run of this machine may enter a continuation: its target fits the machine and
    /// the functions that are bound here, and this machine has linked the points of the target.
    ///
    /// # Errors
    /// [`LinkError::NotAdopted`] or [`LinkError::NotBound`].
    pub(super) fn may_enter(&self, continuation: &Continuation) -> Result<(), LinkError> {
        let target = &continuation.target;
        if !self.modules.fits(target) || !self.table.has_linked(continuation) {
            return Err(LinkError::NotAdopted);
        }
        match self.not_bound(target) {
            Some(func) => Err(LinkError::NotBound(func)),
            None => Ok(()),
        }
    }

    /// Checks that an action fits a point of a version.
    ///
    /// # Errors
    /// The [`LinkError`] that names the misfit.
    fn check(
        &self,
        version: &Arc<Version>,
        number: usize,
        action: &Action,
    ) -> Result<(), LinkError> {
        if let Action::Continue(continuation) = action {
            // The exit leaves the point's values in the buffer in the order of the point. The
            // continuation reads them in the order of its entry, so the two orders must be equal.
            self.check_once(version, number, action)?;
            let point = &version.points[number];
            let is_in_order = point.values == continuation.requires;
            return if is_in_order { Ok(()) } else { Err(LinkError::Order { number }) };
        }
        self.check_once(version, number, action)
    }

    /// Checks that an action fits a point, whose values are at hand in any order.
    ///
    /// # Errors
    /// The difference.
    pub(super) fn check_once(
        &self,
        version: &Arc<Version>,
        number: usize,
        action: &Action,
    ) -> Result<(), LinkError> {
        let point = version.points.get(number).ok_or(LinkError::NoSuchPoint(number))?;
        let at = point.at;
        let missing =
            |reads: &[Value]| match reads.iter().find(|value| !point.values.contains(value)) {
                Some(value) => Err(LinkError::Missing { number, value: *value }),
                None => Ok(()),
            };
        match action {
            Action::Ask => Ok(()),
            Action::Continue(continuation) => {
                if continuation.source.ne(&version.key) || continuation.target.func != version.func
                {
                    return Err(LinkError::OtherVersion { number });
                }
                if continuation.at != at {
                    return Err(LinkError::NoEntry { number });
                }
                missing(&continuation.requires)?;
                self.may_enter(continuation)
            }
            Action::Interpret(mapping) => self.check_landings(version, number, mapping, None),
            Action::Hand(mapping, states) => {
                self.check_landings(version, number, mapping, Some(states))
            }
        }
    }

    /// Checks that the entry of a mapping fits a point, and that it lands in bases. Frame states
    /// are checked if the embedder continues.
    fn check_landings(
        &self,
        version: &Arc<Version>,
        number: usize,
        mapping: &Checked<Mapping>,
        states: Option<&BTreeMap<Func, Arc<FrameStates>>>,
    ) -> Result<(), LinkError> {
        let point = &version.points[number];
        let is_base = |func: Func, key: VersionKey| {
            self.modules.current.body(func).map(VersionKey::of) == Some(key)
        };
        if mapping.source() != version.key {
            return Err(LinkError::OtherVersion { number });
        }
        if !is_base(version.func, mapping.target()) {
            return Err(LinkError::NotToBase { number });
        }
        let entry = mapping.entry(point.at).ok_or(LinkError::NoEntry { number })?;
        if let Some(value) = entry.requires.iter().find(|value| !point.values.contains(value)) {
            return Err(LinkError::Missing { number, value: *value });
        }
        if let Some(frame) = entry.inner.iter().find(|frame| !is_base(frame.func, frame.version)) {
            return Err(LinkError::NotInBase { number, func: frame.func });
        }
        let Some(states) = states else { return Ok(()) };
        for landing in entry.landings(version.func, mapping.target()) {
            let Landing { func, assigns, .. } = landing;
            let landed = Landed::of(&self.modules.current, landing);
            let landed = landed.ok_or(LinkError::NotInBase { number, func })?;
            let state = states.get(&func).and_then(|states| states.get(landed.at));
            let state = state.ok_or(LinkError::NoState { number, func, at: landed.at })?;
            let assigned = |value| assigns.binary_search_by_key(&value, |a| a.value).is_ok();
            check_state(number, func, state, |value, is_innermost| match landed.result(value) {
                // The activation that waits for the call alone gets its results
                // (`a_result_of_a_call_is_of_the_activation_within_it`).
                Some(_) => is_innermost,
                None => assigned(value),
            })?;
        }
        Ok(())
    }
}

/// Checks that a frame state names provided values alone, and no slot of an activation twice.
/// `is_provided` also gets whether the activation is the innermost one of the state.
fn check_state(
    number: usize,
    func: Func,
    state: &FrameState,
    is_provided: impl Fn(Value, bool) -> bool,
) -> Result<(), LinkError> {
    for (depth, activation) in state.activations().enumerate() {
        let mut named = activation.values();
        if let Some(value) = named.find(|value| !is_provided(*value, depth == 0)) {
            return Err(LinkError::NotProvided { number, func, value });
        }
        let mut named = BTreeSet::new();
        if let Some(twice) = activation.locals.iter().find(|local| !named.insert(local.slot)) {
            return Err(LinkError::SharedSlot { number, slot: twice.slot });
        }
    }
    Ok(())
}
