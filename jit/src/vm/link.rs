//! Where OSR points lead.

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

/// What happens when an OSR point fires.
#[derive(Clone, Debug)]
pub enum Action {
    /// Control goes on in a version that is known: *resolved*.
    Continue(Arc<Continuation>),
    /// [`super::Tiering::open`] is asked: *open*.
    Ask,
    /// The function goes on in the interpreter, in its base version, by the entry of this mapping.
    Interpret(Arc<Checked<Mapping>>),
    /// The embedder's [`super::Handler`] goes on, at the landing point of this mapping's entry,
    /// with the values in slots.
    Hand(Arc<Checked<Mapping>>, Arc<SlotLayout>),
}

/// Why a version cannot be taken up, or a point not lead there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// Another machine has the version; or this one has, already.
    Claimed,
    /// It was compiled by another engine, or for another module, than the machine's.
    OtherProgram,
    /// The version is not one of this machine's.
    NotAdopted,
    /// What is to be called stands for a landing alone ([`Engine::probe`](crate::Engine::probe)).
    NotCallable,
    /// There are not as many actions as points.
    Actions {
        /// Points of the version.
        points: usize,
        /// Actions given.
        actions: usize,
    },
    /// The version has no point of this number.
    NoSuchPoint(usize),
    /// The mapping or continuation is one of another version than the one the point is in: it may
    /// be stale.
    OtherVersion {
        /// The point.
        number: usize,
    },
    /// The mapping leads to another version than the base of the function.
    NotToBase {
        /// The point.
        number: usize,
    },
    /// The mapping has no entry at the point; or the continuation is one from another point.
    NoEntry {
        /// The point.
        number: usize,
    },
    /// What is to be read on the way is not among the values of the point.
    Missing {
        /// The point.
        number: usize,
        /// The value.
        value: Value,
    },
    /// The values of the point are those the continuation takes, but others too, or in another
    /// order.
    Order {
        /// The point.
        number: usize,
    },
    /// A value that the base needs has no slot.
    NoSlot {
        /// The point.
        number: usize,
        /// The value of the base.
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

/// Where one OSR point leads.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) version: Arc<Version>,
    pub(super) number: usize,
    pub(super) action: Action,
}

impl Link {
    /// The code that it leads from and to.
    pub(super) fn codes(&self) -> impl Iterator<Item = &Arc<Code>> {
        let target = match &self.action {
            Action::Continue(continuation) => Some([&continuation.code, &continuation.target.code]),
            Action::Ask | Action::Interpret(_) | Action::Hand(..) => None,
        };
        let stubs = self.version.stubs.iter().flat_map(|stubs| [&stubs.leave, &stubs.back]);
        std::iter::once(&self.version.code).chain(target.into_iter().flatten()).chain(stubs)
    }
}

/// A transition that was made, so many times.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Transition {
    /// The function.
    pub func: Func,
    /// The source point.
    pub at: Inst,
    /// The version left.
    pub from: VersionKey,
    /// The version gone on in; `None` where the one who was asked decided each time.
    pub to: Option<VersionKey>,
    /// Whether an interpreter was left, or entered.
    pub kind: TransitionKind,
    /// How often.
    pub count: u64,
}

/// Between what a transition leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TransitionKind {
    /// From the interpreter to native code.
    Up,
    /// From native code to native code.
    Across,
    /// From native code to the interpreter.
    Down,
    /// From native code to an interpreter of the embedder's.
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
                // Its frames, if there are any, and continuations into it may still come by: they
                // find nobody (`RunError::Stuck`).
                cell.lead_to(stubs.leave.entry());
            }
        }
        self.sweep();
    }

    /// Makes a point lead somewhere.
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

    /// Moves the count of a point's transitions to those that are told.
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

    fn count(&mut self, made: Transition) {
        let key = Transition { count: 0, ..made };
        *self.transitions.entry(key).or_default() += made.count;
    }

    /// Whether a version was compiled for machines like this one: with its memories, and with what
    /// its instructions name. What a module has that the machine's began as means the same
    /// ([`super::Vm::extend`]).
    fn fits(&self, version: &Version) -> bool {
        let module = Arc::as_ptr(&version.module);
        let mut modules =
            std::iter::once(Arc::as_ptr(&self.module)).chain(self.earlier.iter().map(Weak::as_ptr));
        version.engine.is(&self.engine) && modules.any(|one| one == module)
    }

    /// Whether a run of this machine may go on in a continuation: the points of its target lead
    /// where this machine says.
    pub(super) fn may_enter(&self, continuation: &Continuation) -> bool {
        let cells = &continuation.target.cells;
        self.fits(&continuation.target)
            && cells
                .first()
                .is_none_or(|cell| self.links.contains_key(&std::ptr::from_ref(cell).addr()))
    }

    /// Whether an action fits a point.
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
                // The buffer holds the point's values in their order, which the continuation takes
                // them in.
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
