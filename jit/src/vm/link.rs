//! Links: the targets of OSR points, and the checks that an action fits its point.

use super::deopt::SlotLayout;
use super::state::State;
use crate::code::Code;
use crate::version::{Continuation, Version};
use check::Checked;
use ir::{Func, Inst, Point, Value};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use transition::VersionKey;
use transition::mapping::Mapping;

/// The reaction to an OSR point that fires.
#[derive(Clone, Debug)]
pub enum Action {
    /// *Resolved*: control continues in this continuation. Native code jumps to it.
    Continue(Arc<Continuation>),
    /// *Open*: the run asks [`super::Tiering::open`] for a continuation.
    Ask,
    /// The interpreter continues in the base version, by the entry of this mapping.
    Interpret(Arc<Checked<Mapping>>),
    /// The embedder's [`super::Handler`] continues at the landing point of this mapping's entry,
    /// with the values in slots.
    Hand(Arc<Checked<Mapping>>, Arc<SlotLayout>),
}

/// The reason why a machine rejects a version or an action.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// A machine has adopted the version before: another one, or this one.
    Claimed,
    /// Another engine compiled the version, or its module is none of the machine's.
    OtherProgram,
    /// The machine has not adopted the version.
    NotAdopted,
    /// The version stands for a landing point alone, so calls may not run it
    /// ([`Engine::probe`](crate::Engine::probe)).
    NotCallable,
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
    /// The point hands over the values that the continuation takes, but further values too, or in
    /// another order.
    Order {
        /// The point.
        number: usize,
    },
    /// The layout has no slot for a value that the entry provides.
    NoSlot {
        /// The point.
        number: usize,
        /// The value of the base version.
        value: Value,
    },
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Claimed => f.write_str("the version was taken up already, here or by another machine"),
            LinkError::OtherProgram => {
                f.write_str("the version was compiled by another engine or for another module than the machine's")
            }
            LinkError::NotAdopted => f.write_str("the version was not taken up by this machine"),
            LinkError::NotCallable => f.write_str("what stands for a landing alone cannot be called"),
            LinkError::Actions { points, actions } => write!(f, "{actions} actions are given for {points} OSR points"),
            LinkError::NoSuchPoint(number) => write!(f, "the version has no OSR point {number}"),
            LinkError::OtherVersion { number } => {
                write!(f, "what OSR point {number} is to do was made for another version of the function")
            }
            LinkError::NotToBase { number } => {
                write!(f, "the mapping of OSR point {number} does not lead to the base version")
            }
            LinkError::NoEntry { number } => write!(f, "there is no entry for OSR point {number}"),
            LinkError::Missing { number, value } => write!(f, "OSR point {number} does not keep {value}"),
            LinkError::Order { number } => {
                write!(
                    f,
                    "the values of OSR point {number} are not just those that its continuation takes, in their order"
                )
            }
            LinkError::NoSlot { number, value } => write!(f, "{value}, which OSR point {number} provides, has no slot"),
        }
    }
}

impl std::error::Error for LinkError {}

/// The target of one OSR point.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) version: Arc<Version>,
    pub(super) number: usize,
    pub(super) action: Action,
}

impl Link {
    /// The code that the link leads from and to, stubs included.
    pub(super) fn codes(&self) -> impl Iterator<Item = &Arc<Code>> {
        let target = match &self.action {
            Action::Continue(continuation) => Some([&continuation.code, &continuation.target.code]),
            Action::Ask | Action::Interpret(_) | Action::Hand(..) => None,
        };
        let stubs = self.version.stubs.iter().flat_map(|stubs| [&stubs.leave, &stubs.back]);
        std::iter::once(&self.version.code).chain(target.into_iter().flatten()).chain(stubs)
    }
}

/// A kind of transition that runs have made, and how often.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Transition {
    /// The function.
    pub func: Func,
    /// The source point.
    pub at: Inst,
    /// The source version.
    pub from: VersionKey,
    /// The target version. `None` for an open point, whose target may differ each time.
    pub to: Option<VersionKey>,
    /// The engines between which the transition leads.
    pub kind: TransitionKind,
    /// The number of transitions.
    pub count: u64,
}

/// The engines before and after a transition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransitionKind {
    /// From the interpreter to native code.
    Up,
    /// From native code to native code.
    Across,
    /// From native code to the interpreter.
    Down,
    /// From native code to an interpreter of the embedder.
    Out,
}

impl State {
    pub(super) fn install(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        if !version.callable {
            return Err(LinkError::NotCallable);
        }
        self.adopt(version, actions)?;
        let func = version.func();
        let code = self.kept(&version.code);
        self.machine.set_external(func, true);
        self.point_at(func, code);
        self.installed.insert(func, Arc::clone(version));
        self.sweep();
        Ok(())
    }

    pub(super) fn adopt(
        &mut self,
        version: &Arc<Version>,
        actions: Vec<Action>,
    ) -> Result<(), LinkError> {
        if !self.fits(version) {
            return Err(LinkError::OtherProgram);
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
        if points > 0 && !version.claim() {
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
        if !self.links.contains_key(&at) {
            return Err(LinkError::NotAdopted);
        }
        self.check(version, number, &action)?;
        self.link(version, number, action);
        Ok(())
    }

    pub(super) fn uninstall(&mut self, func: Func) {
        if self.installed.remove(&func).is_some() {
            self.is_stale = true;
            self.point_at_stub(func);
            self.machine.set_external(func, false);
            self.sweep();
        }
    }

    pub(super) fn release(&mut self, version: &Arc<Version>) {
        if self
            .installed
            .get(&version.func())
            .is_some_and(|installed| Arc::ptr_eq(installed, version))
        {
            self.uninstall(version.func());
        }
        self.is_stale = true;
        let Some(stubs) = &version.stubs else { return self.sweep() };
        for (number, cell) in version.cells.iter().enumerate() {
            self.note_fired(version, number);
            if self.links.remove(&std::ptr::from_ref(cell).addr()).is_some() {
                // A frame of the version, or a continuation into it, may still reach the point.
                // Without a link, the run then ends with `RunError::Released`.
                cell.lead_to(stubs.leave.entry());
            }
        }
        self.sweep();
    }

    /// Makes a point lead to the target of an action. The caller has checked the action.
    fn link(&mut self, version: &Arc<Version>, number: usize, action: Action) {
        self.note_fired(version, number);
        let stub = &version.stubs.as_ref().expect("jit: a version with points has stubs").leave;
        let code = match &action {
            Action::Continue(continuation) => self.kept(&continuation.code),
            Action::Ask | Action::Interpret(_) | Action::Hand(..) => self.kept(stub),
        };
        let cell = &version.cells[number];
        cell.lead_to(code);
        self.is_stale = true;
        self.links.insert(
            std::ptr::from_ref(cell).addr(),
            Link { version: Arc::clone(version), number, action },
        );
    }

    /// Moves the count of a point's firings from its cell to `transitions`, under the current
    /// action. Comes before each change of the action.
    pub(super) fn note_fired(&mut self, version: &Arc<Version>, number: usize) {
        let cell = &version.cells[number];
        let count = cell.fired.swap(0, Ordering::Relaxed);
        let Some(link) = self.links.get(&std::ptr::from_ref(cell).addr()).filter(|_| count > 0)
        else {
            return;
        };
        let (to, kind) = match &link.action {
            Action::Continue(continuation) => {
                (Some(continuation.target.key), TransitionKind::Across)
            }
            Action::Ask => (None, TransitionKind::Across),
            Action::Interpret(mapping) => (Some(mapping.target()), TransitionKind::Down),
            Action::Hand(mapping, _) => (Some(mapping.target()), TransitionKind::Out),
        };
        let at = version.points[number].at.inst();
        let made = Transition { func: version.func, at, from: version.key, to, kind, count };
        self.count(made);
    }

    pub(super) fn note_ascent(&mut self, func: Func, at: Point, continuation: &Continuation) {
        let (from, _) = continuation.source();
        let to = Some(continuation.target.key);
        self.count(Transition {
            func,
            at: at.inst(),
            from,
            to,
            kind: TransitionKind::Up,
            count: 1,
        });
    }

    /// Adds the count of a transition to the count of its kind.
    fn count(&mut self, made: Transition) {
        let key = Transition { count: 0, ..made };
        *self.transitions.entry(key).or_default() += made.count;
    }

    /// Whether the machine can run a version: the same engine compiled it, for the machine's module
    /// or one of the modules before. A declaration of an earlier module means the same in the later
    /// ones ([`super::Vm::extend`]).
    fn fits(&self, version: &Version) -> bool {
        let module = Arc::as_ptr(&version.module);
        let mut modules =
            std::iter::once(Arc::as_ptr(&self.module)).chain(self.earlier.iter().map(Weak::as_ptr));
        version.engine.is(&self.engine) && modules.any(|one| one == module)
    }

    /// Whether a run of this machine may enter a continuation: its target fits the machine, and
    /// this machine has linked the points of the target.
    pub(super) fn may_enter(&self, continuation: &Continuation) -> bool {
        let cells = &continuation.target.cells;
        self.fits(&continuation.target)
            && cells
                .first()
                .is_none_or(|cell| self.links.contains_key(&std::ptr::from_ref(cell).addr()))
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
                // The exit leaves the point's values in the buffer in the order of the point. The
                // continuation reads them in the order of its entry, so the two orders must be
                // equal.
                if continuation.at != at {
                    return Err(LinkError::NoEntry { number });
                }
                missing(&continuation.requires)?;
                if point.values != continuation.requires {
                    return Err(LinkError::Order { number });
                }
                if self.may_enter(continuation) { Ok(()) } else { Err(LinkError::NotAdopted) }
            }
            Action::Interpret(mapping) | Action::Hand(mapping, _) => {
                if mapping.source() != version.key {
                    return Err(LinkError::OtherVersion { number });
                }
                if self.module.body(version.func).map(VersionKey::of) != Some(mapping.target()) {
                    return Err(LinkError::NotToBase { number });
                }
                let entry = mapping.entry(at).ok_or(LinkError::NoEntry { number })?;
                missing(&entry.requires)?;
                if let Action::Hand(_, layout) = action
                    && let Some(value) =
                        entry.provides().find(|value| layout.slot(*value).is_none())
                {
                    return Err(LinkError::NoSlot { number, value });
                }
                Ok(())
            }
        }
    }
}
