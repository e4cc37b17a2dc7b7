//! Deoptimization into an interpreter of the embedder.

use super::access::RunAccess;
use super::embedder::{Callback, CallbackCause, CallbackEnd, stuck};
use super::leave::reader;
use super::stop::{RunError, RunStop};
use crate::version::Version;
use check::Checked;
use ir::{Func, Function, Inst, Point, Type, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use transition::frames::FrameMapping;
use transition::mapping::Mapping;

/// A value with its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The type.
    pub ty: Type,
    /// The bits; those above the type's width are zero.
    pub bits: u64,
}

/// Maps the values of a base version to slots of the embedder's frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotLayout {
    slots: BTreeMap<Value, usize>,
    length: usize,
}

impl SlotLayout {
    /// A layout that gives each value one slot. Values that no entry provides together may share a
    /// slot; for others, linking an action fails with [`super::LinkError::SharedSlot`]. That they
    /// are never live at the same time is not enough: an entry also provides values that are live
    /// nowhere but in entries which a run may take next.
    pub fn new(slots: impl IntoIterator<Item = (Value, usize)>) -> SlotLayout {
        let slots: BTreeMap<Value, usize> = slots.into_iter().collect();
        let length = slots.values().max().map_or(0, |last| last + 1);
        SlotLayout { slots, length }
    }

    /// The slot of a value.
    pub fn slot(&self, value: Value) -> Option<usize> {
        self.slots.get(&value).copied()
    }

    /// The number of slots of a frame.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether frames have no slots.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The frame in which the embedder resumes a function ([`super::Embedder::resume`]).
#[derive(Debug)]
pub struct DeoptFrame<'a> {
    /// The function.
    pub func: Func,
    /// The point of the base version at which it resumes.
    pub point: Point,
    /// The slots of the layout. `None` where the entry assigns no value.
    pub slots: &'a [Option<Slot>],
    /// The activations that wait for the function, the one that called it first. Empty unless the
    /// run leaves inlined code ([`super::Action::HandFrames`]). The embedder runs the function
    /// to its end, then each of these behind its call, and returns the results of the last.
    pub callers: &'a [CallerFrame],
    /// The function that has left native code, and the number of its point.
    left: (Func, usize),
    access: RunAccess<'a>,
}

/// An activation that waits for the results of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallerFrame {
    /// The function.
    pub func: Func,
    /// The call, in its base version. The embedder goes on behind it, with its results.
    pub call: Inst,
    /// As [`DeoptFrame::slots`]. The results of the call have no value yet.
    pub slots: Vec<Option<Slot>>,
}

impl DeoptFrame<'_> {
    /// The machine, for calls of functions of the program.
    pub fn back(&mut self) -> Callback<'_> {
        Callback::new(self.access.reborrow())
    }

    /// The end of the run for an embedder that has no interpreter.
    pub(super) fn stuck(&self) -> CallbackEnd {
        let (func, point) = self.left;
        stuck(func, point).into()
    }
}

/// Resumes the function of a point in the embedder, and returns the results of the function.
pub(super) fn hand(
    access: &mut RunAccess<'_>,
    (version, number): (&Arc<Version>, usize),
    mapping: &Checked<Mapping>,
    layout: &SlotLayout,
    values: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let func = version.func;
    let entry = mapping
        .entry(version.points[number].at)
        .expect("jit: an action was checked when it was linked");
    let state = access.state();
    let assigned = state.compensate(func, entry, reader(version, number, values))?;
    let module = Arc::clone(&state.modules.current);
    let base = module.body(func).expect("jit: the base of a version has a body");
    let slots = slots_of(layout, base, assigned);
    let place = (func, entry.target, &slots[..]);
    resumed(access, (func, number), place, &[])
}

/// As [`hand`], in the frames of an entry.
pub(super) fn hand_frames(
    access: &mut RunAccess<'_>,
    (version, number): (&Arc<Version>, usize),
    mapping: &Checked<FrameMapping>,
    layouts: &BTreeMap<Func, SlotLayout>,
    values: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let entry = mapping
        .entry(version.points[number].at)
        .expect("jit: an action was checked when it was linked");
    let state = access.state();
    let assigned = state.compensate_frames(version.func, entry, reader(version, number, values))?;
    let module = Arc::clone(&state.modules.current);
    let mut frames = entry.frames.iter().zip(assigned).map(|(frame, assigned)| {
        let base = module.body(frame.func).expect("jit: the base of a version has a body");
        // Frames without values need no layout (`a_frame_without_values_is_handed`).
        let slots = layouts.get(&frame.func).map(|layout| slots_of(layout, base, assigned));
        let slots = slots.unwrap_or_default();
        CallerFrame { func: frame.func, call: frame.at.inst(), slots }
    });
    let innermost = frames.next().expect("jit: an entry has a frame");
    let callers: Vec<CallerFrame> = frames.collect();
    let place = (innermost.func, Point::before(innermost.call), &innermost.slots[..]);
    resumed(access, (version.func, number), place, &callers)
}

/// The assigned values in slots.
fn slots_of(
    layout: &SlotLayout,
    base: &Function,
    assigned: Vec<(Value, u64)>,
) -> Vec<Option<Slot>> {
    let mut slots = vec![None; layout.len()];
    for (value, bits) in assigned {
        let slot = layout.slot(value).expect("jit: a layout was checked when it was linked");
        slots[slot] = Some(Slot { ty: base.value_type(value), bits });
    }
    slots
}

/// Runs the embedder at a place, with the activations that wait for it. Returns the results of
/// `left`, the function that has left native code.
fn resumed(
    access: &mut RunAccess<'_>,
    (left, number): (Func, usize),
    (func, point, slots): (Func, Point, &[Option<Slot>]),
    callers: &[CallerFrame],
) -> Result<Vec<u64>, RunStop> {
    let resumed = access.ask_embedder(|embedder, access| {
        let mut frame = DeoptFrame { func, point, slots, callers, left: (left, number), access };
        // A panic of the interpreter is an error of the run, since no code of the program can have
        // caught it (`a_panic_below_a_handler_leaves_nothing_behind`).
        catch_unwind(AssertUnwindSafe(|| embedder.resume(&mut frame)))
    });
    // The embedder may have ignored the end of a nested run.
    if let Some(stop) = access.run().ended.clone() {
        return Err(stop);
    }
    let state = access.state();
    match resumed {
        None => Err(stuck(left, number)),
        Some(Ok(Ok(given))) => {
            checked(left, &given, &state.modules.current.signature(left).results)
        }
        Some(Ok(Err(CallbackEnd(CallbackCause::Stop(stop))))) => Err(stop),
        Some(Ok(Err(CallbackEnd(CallbackCause::Host(error))))) => {
            let site = state.machine.site(func, Some(point.inst()));
            let end = state.machine.end_in_native(interp::EarlyEnd::Host(error), site);
            Err(RunStop::Outcome(end))
        }
        Some(Err(payload)) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let what =
                text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
            Err(RunStop::Failed(RunError::HandlerPanicked { func: left, what }))
        }
    }
}

/// Checks that the results of the embedder have the types of the function's results, and returns
/// their bits.
fn checked(func: Func, given: &[Slot], wanted: &[Type]) -> Result<Vec<u64>, RunStop> {
    let wrong = |what: String| Err(RunStop::Failed(RunError::WrongResults { func, what }));
    if given.len() != wanted.len() {
        return wrong(format!("{} results instead of {}", given.len(), wanted.len()));
    }
    for (at, (slot, ty)) in given.iter().zip(wanted).enumerate() {
        if slot.ty != *ty || slot.bits & !ty.mask() != 0 {
            return wrong(format!(
                "{:#x} of type {} as result {at} of type {ty}",
                slot.bits, slot.ty
            ));
        }
    }
    Ok(given.iter().map(|slot| slot.bits).collect())
}
