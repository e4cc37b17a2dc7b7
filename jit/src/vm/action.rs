//! Actions: the targets of OSR points, and the reasons why a machine rejects one.

use crate::code::MachineCode;
use crate::version::{Continuation, Version};
use check::Checked;
use ir::{FrameStates, Func, Inst, Point, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
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
    /// The version stands for a landing point alone, or for the code behind one, or leaves
    /// assumptions untested, so calls may not run it ([`Engine::probe`](crate::Engine::probe),
    /// [`VersionSpec::behind_landing`](crate::VersionSpec::behind_landing),
    /// [`VersionSpec::untested`](crate::VersionSpec::untested)).
    NotCallable,
    /// The code of the version calls a function for this import at its address
    /// ([`crate::VersionSpec::calling`]), but the machine has not bound this function, or it
    /// records a trace of calls.
    NotBound(Func),
    /// The function has no base version yet, since its body is missing.
    AwaitsBody(Func),
    /// The version has no cell for this call ([`crate::VersionSpec::dispatching`]).
    NoSuchCall(Inst),
    /// The proof is about another call, or another version of the callee, or does not cover the
    /// assumptions that the callee leaves untested.
    OtherCall(Inst),
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
            LinkError::NotBound(func) => {
                write!(f, "the version calls a function for {func} that is not bound here")
            }
            LinkError::NotCallable => f.write_str(
                "the version begins at a landing point or assumes untested: no call runs it",
            ),
            LinkError::NoSuchCall(inst) => write!(f, "the version has no cell for a call {inst}"),
            LinkError::OtherCall(inst) => {
                write!(f, "the call {inst} is not proved to make true what the version assumes")
            }
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
