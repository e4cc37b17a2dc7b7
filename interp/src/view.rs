//! Observers of runs, and the state they see.

use super::activations::{ActivationFrame, Activations};
use super::globals::{Globals, execute};
use super::memory::{Memories, OutOfBounds};
use super::op::ExactOpCode;
use super::trace::Trace;
use super::version::{MachineVersion, VersionId};
use crate::limits::poison;
use ir::entity::{Func, Inst, Value};
use transition::mapping::Write;

/// The instructions before which an observer is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// No instruction. Costs nothing.
    Nothing,
    /// The instructions marked with [`super::Machine::mark`]. Costs one test at every other
    /// instruction.
    Marked,
    /// Every instruction. Costs one call per instruction.
    Everything,
}

/// The decision of an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Execute the instruction.
    Continue,
    /// Pause the run before the instruction.
    Pause,
}

/// Observes a run. Cost: the overhead of its scope, plus one call per instruction in scope.
pub trait Observer {
    /// The instructions before which [`Observer::before`] is called.
    const SCOPE: Scope;

    /// Called before an instruction, terminators included, if fuel for it is left. Not called again
    /// for the instruction at which a run paused, nor for the landing point of a transfer.
    fn before(&mut self, view: &View<'_>, inst: Inst) -> Control;
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    const SCOPE: Scope = Scope::Nothing;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        Control::Continue
    }
}

/// Pauses before every instruction, for stepping.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseAlways;

impl Observer for PauseAlways {
    const SCOPE: Scope = Scope::Everything;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        Control::Pause
    }
}

/// Pauses before every marked instruction.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseAtMarks;

impl Observer for PauseAtMarks {
    const SCOPE: Scope = Scope::Marked;

    fn before(&mut self, _view: &View<'_>, _inst: Inst) -> Control {
        Control::Pause
    }
}

/// The state of a machine between two instructions. "The activation" is the innermost activation.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(super) versions: &'a [MachineVersion],
    pub(super) activations: &'a Activations,
    pub(super) memories: &'a Memories,
    pub(super) globals: &'a Globals,
    pub(super) trace: &'a Trace,
    pub(super) fuel: u64,
}

impl<'a> View<'a> {
    /// The instruction about to be executed.
    pub fn inst(&self) -> Inst {
        let frame = self.activations.top();
        let code = &self.versions[frame.version as usize].code;
        code.inst_near(frame.pc).expect("interp: the pc of an activation is at an instruction")
    }

    /// The function of the activation.
    pub fn func(&self) -> Func {
        self.versions[self.activations.top().version as usize].func
    }

    /// The version that the activation executes.
    pub fn version(&self) -> VersionId {
        VersionId::from_u32(self.activations.top().version)
    }

    /// The number of the activation. Activations are numbered from 0 over the life of the machine,
    /// and a transfer keeps the number.
    pub fn activation(&self) -> u64 {
        self.activations.top().activation
    }

    /// The number of activations, at least 1; activations of suspended runs count.
    pub fn depth(&self) -> usize {
        self.activations.depth()
    }

    /// The contents of the slot of a value. They are the value where its definition dominates the
    /// point, and arbitrary elsewhere.
    ///
    /// # Panics
    /// When the version lacks the value.
    pub fn value(&self, value: Value) -> u64 {
        self.try_value(value).unwrap_or_else(|| panic!("interp: the version has no {value}"))
    }

    /// Whether the fast loop has executed the innermost activation, which loses dead values.
    pub(crate) fn is_settled(&self) -> bool {
        self.activations.top().settled
    }

    /// Whether the next instruction is an assumption.
    pub(crate) fn is_at_assumption(&self) -> bool {
        let frame = self.activations.top();
        let code = &self.versions[frame.version as usize].code;
        code.ops.get(frame.pc as usize).is_some_and(|op| op.code == ExactOpCode::Assume)
    }

    /// Whether a transition began the innermost activation without assigning a value, and no
    /// instruction has computed the value since. Its slot then holds the poison of that slot. A
    /// value that a program computed with these very bits counts as undefined too.
    pub fn is_undefined(&self, value: Value) -> bool {
        let frame = self.activations.top();
        if !frame.landed {
            return false;
        }
        let slot = self.versions[frame.version as usize].code.slot_of(value);
        slot.is_some_and(|slot| self.activations.stack[frame.base + slot as usize] == poison(slot))
    }

    /// As [`View::value`]; `None` when the version lacks the value.
    pub fn try_value(&self, value: Value) -> Option<u64> {
        let frame = self.activations.top();
        let slot = self.versions[frame.version as usize].code.slot_of(value)?;
        Some(self.activations.stack[frame.base + slot as usize])
    }

    /// The activations of the current run, the innermost first.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = FrameView<'a>> + use<'a> {
        let View { versions, activations, .. } = *self;
        activations.of_run().iter().rev().map(|frame| FrameView { versions, activations, frame })
    }

    /// The memories.
    pub fn memories(&self) -> &'a Memories {
        self.memories
    }

    /// The bits of the globals, in order of declaration.
    pub fn globals(&self) -> &'a [u64] {
        self.globals.values()
    }

    /// A digest of memories, their sizes, globals, tables and dropped segments. Cost: constant
    /// where memory is tracked ([`super::Options::track_memory`]), else the size of memories and
    /// tables.
    pub fn memory_digest(&self) -> u64 {
        self.memories.digest().wrapping_add(self.globals.digest())
    }

    /// The digest that the state would have after some writes. The writes are not executed. Cost:
    /// the size of memories and tables.
    ///
    /// # Errors
    /// When a write is out of bounds.
    pub fn memory_digest_after(&self, writes: &[Write]) -> Result<u64, OutOfBounds> {
        let (mut memories, mut globals) = (self.memories.clone(), self.globals.clone());
        writes.iter().try_for_each(|write| execute(&mut memories, &mut globals, write))?;
        Ok(memories.digest().wrapping_add(globals.digest()))
    }

    /// The effects so far.
    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The fuel left.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }
}

/// One activation of a run. See [`View::frames`].
#[derive(Clone, Copy)]
pub struct FrameView<'a> {
    versions: &'a [MachineVersion],
    activations: &'a Activations,
    frame: &'a ActivationFrame,
}

impl FrameView<'_> {
    /// The function.
    pub fn func(&self) -> Func {
        self.versions[self.frame.version as usize].func
    }

    /// The version.
    pub fn version(&self) -> VersionId {
        VersionId::from_u32(self.frame.version)
    }

    /// As [`View::activation`].
    pub fn activation(&self) -> u64 {
        self.frame.activation
    }

    /// The instruction about to be executed; for an activation that waits, its call.
    pub fn inst(&self) -> Inst {
        let code = &self.versions[self.frame.version as usize].code;
        code.inst_near(self.frame.pc).expect("interp: the pc of an activation is at an instruction")
    }

    /// As [`View::try_value`].
    pub fn try_value(&self, value: Value) -> Option<u64> {
        let slot = self.versions[self.frame.version as usize].code.slot_of(value)?;
        Some(self.activations.stack[self.frame.base + slot as usize])
    }
}
