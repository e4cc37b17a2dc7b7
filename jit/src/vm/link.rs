//! Links: the targets of OSR points, and the checks that an action fits its point.

use super::deopt::Landed;
use super::state::VmState;
use crate::code::MachineCode;
use crate::version::{Continuation, Version};
use check::Checked;
use ir::{FrameState, FrameStates, Func, Point, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use transition::VersionKey;
use transition::frames::Landing;
use transition::mapping::Mapping;

/// The reaction to an OSR point that fires.
#[derive(Clone, Debug)]
pub enum Action {
    /// *Resolved*: control continues in this continuation. Native code jumps to it.
    Continue(Arc<Continuation>),
    /// *Open*: the run asks [`super::Tiering::open`] for a continuation.
    Ask,
    /// The interpreter continues in the base version, by the entry of this mapping, and in the
    /// bases of the inner activations that the entry leads to.
    Interpret(Arc<Checked<Mapping>>),
    /// The [`super::Embedder`] continues where this mapping's entry lands, in the activations of
    /// the frame states there, by function.
    Hand(Arc<Checked<Mapping>>, Arc<BTreeMap<Func, Arc<FrameStates>>>),
}

/// The calls of a function that run its installed version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallsFrom {
    /// Calls from native code, from the interpreter and from the embedder.
    Anywhere,
    /// Calls from native code and from the embedder. The interpreter interprets its own calls: it
    /// executes a small function faster than it enters native code.
    NativeCode,
}

/// The reason why a machine rejects a version or an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// Another machine, or this machine, has already adopted the version.
    Claimed,
    /// Another engine compiled the version, or the version belongs to a foreign module.
    OtherProgram,
    /// The machine has not adopted the version.
    NotAdopted,
    /// The version stands for a landing point alone, so calls may not run it
    /// ([`Engine::probe`](crate::Engine::probe)).
    NotCallable,
    /// The function has no base version yet, since its body is missing.
    AwaitsBody(Func),
    /// The number of actions differs from the number of points.
    Actions {
        /// The points of the version.
        points: usize,
        /// The actions given.
        actions: usize,
    },
    /// The version has no point of this number.
    NoSuchPoint(usize),
    /// The mapping or continuation has another source version than the version of the point. It may
    /// be stale.
    OtherVersion {
        /// The point.
        number: usize,
    },
    /// The target of the mapping is not the base version of the function.
    NotToBase {
        /// The point.
        number: usize,
    },
    /// The mapping has no entry at the point, or the continuation belongs to another point.
    NoEntry {
        /// The point.
        number: usize,
    },
    /// The transition requires a value that the point does not hand over.
    Missing {
        /// The point.
        number: usize,
        /// The value.
        value: Value,
    },
    /// The point hands over the values that the continuation takes, but also further values, or
    /// another order.
    Order {
        /// The point.
        number: usize,
    },
    /// A frame of the entry is in another version than the base of its function.
    NotInBase {
        /// The point.
        number: usize,
        /// The function of the frame.
        func: Func,
    },
    /// A landing frame of the entry has no frame state.
    NoState {
        /// The point.
        number: usize,
        /// The function of the frame.
        func: Func,
        /// The point of its base that lacks a state.
        at: Point,
    },
    /// The frame state of a landing frame names a value that the entry does not provide. Entries
    /// provide the values of those frame states that were armed when the entries were made
    /// (`osr::VersionTree::arm_states`).
    NotProvided {
        /// The point.
        number: usize,
        /// The function of the frame.
        func: Func,
        /// The value of its base.
        value: Value,
    },
    /// An activation of a frame state names a slot twice.
    SharedSlot {
        /// The point.
        number: usize,
        /// The slot.
        slot: u32,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Claimed => f.write_str("a machine has adopted the version before"),
            LinkError::OtherProgram => f.write_str(
                "the version belongs to another engine or another module than the machine",
            ),
            LinkError::NotAdopted => f.write_str("this machine has not adopted the version"),
            LinkError::AwaitsBody(func) => write!(f, "{func} awaits its body"),
            LinkError::NotCallable => f.write_str("the version of a probe cannot be called"),
            LinkError::Actions { points, actions } => {
                write!(f, "{actions} actions given for {points} OSR points")
            }
            LinkError::NoSuchPoint(number) => write!(f, "the version has no OSR point {number}"),
            LinkError::OtherVersion { number } => {
                write!(f, "the action of OSR point {number} has another source version")
            }
            LinkError::NotToBase { number } => {
                write!(f, "the mapping of OSR point {number} does not lead to the base version")
            }
            LinkError::NoEntry { number } => {
                write!(f, "the mapping has no entry at OSR point {number}")
            }
            LinkError::Missing { number, value } => write!(
                f,
                "OSR point {number} does not hand over {value}, which the transition requires"
            ),
            LinkError::Order { number } => write!(
                f,
                "OSR point {number} and its continuation differ in their values or the order \
                 of these"
            ),
            LinkError::NotInBase { number, func } => write!(
                f,
                "the entry of OSR point {number} leads to {func}, not to its base version"
            ),
            LinkError::NoState { number, func, at } => write!(
                f,
                "the entry of OSR point {number} lands in {func} at {}, where no frame state is",
                at.inst()
            ),
            LinkError::NotProvided { number, func, value } => write!(
                f,
                "the frame state where the entry of OSR point {number} lands in {func} names \
                 {value}, which the entry does not provide: arm the states before it is made"
            ),
            LinkError::SharedSlot { number, slot } => write!(
                f,
                "the frame state where the entry of OSR point {number} lands names slot {slot} twice"
            ),
        }
    }
}

impl std::error::Error for LinkError {}

/// The target of one OSR point.
#[derive(Debug)]
pub(super) struct PointLink {
    pub(super) version: Arc<Version>,
    pub(super) number: usize,
    pub(super) action: Action,
}

impl PointLink {
    /// The code that the link leads from and to, without stubs, which the table pins.
    pub(super) fn codes(&self) -> impl Iterator<Item = &Arc<MachineCode>> {
        let target = match &self.action {
            Action::Continue(continuation) => Some([&continuation.code, &continuation.target.code]),
            Action::Ask | Action::Interpret(_) | Action::Hand(..) => None,
        };
        std::iter::once(&self.version.code).chain(target.into_iter().flatten())
    }
}

impl VmState {
    pub(super) fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
        calls: CallsFrom,
    ) -> Result<(), LinkError> {
        if !version.callable {
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
        if (points > 0 || version.counters.is_some()) && !version.claim(self.view.interrupts()) {
            return Err(LinkError::Claimed);
        }
        for (number, action) in actions.into_iter().enumerate() {
            self.link(version, number, action);
        }
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

    /// Whether a run of this machine may enter a continuation: its target fits the machine, and
    /// this machine has linked the points of the target.
    pub(super) fn may_enter(&self, continuation: &Continuation) -> bool {
        self.modules.fits(&continuation.target) && self.table.has_linked(continuation)
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
                if self.may_enter(continuation) { Ok(()) } else { Err(LinkError::NotAdopted) }
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
