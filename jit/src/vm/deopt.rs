//! Deoptimization into an interpreter of the embedder.

use super::leave::reader;
use super::native;
use super::state::State;
use super::stop::{RunError, Stop};
use crate::version::Version;
use check::Checked;
use interp::{HostError, Memories};
use ir::{Func, Point, Type, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
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
    /// A layout that gives each value one slot. Values that are never live at the same time may
    /// share a slot.
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

/// The frame in which a handler resumes a function.
#[derive(Debug)]
pub struct DeoptFrame<'a> {
    /// The function.
    pub func: Func,
    /// The point of the base version at which the handler resumes.
    pub point: Point,
    /// The slots of the layout. `None` where no value is live.
    pub slots: &'a [Option<Slot>],
    state: *mut State,
}

impl DeoptFrame<'_> {
    /// The memories of the program.
    pub fn memories(&mut self) -> &mut Memories {
        // SAFETY: `hand` made the frame for a live state, and holds no reference to it until the
        // handler returns; native code below waits. The returned reference borrows the frame, so
        // neither `globals` nor `call` can run while it is alive.
        unsafe { &mut *self.state }.machine.memories_mut()
    }

    /// The bits of the globals, in order.
    pub fn globals(&self) -> &[u64] {
        // SAFETY: `hand` made the frame for a live state, and holds no reference to it until the
        // handler returns. The returned reference borrows the frame, so neither `memories` nor
        // `call` can change the state while it is alive.
        unsafe { &*self.state }.machine.globals()
    }

    /// Calls a function of the program, natively if it has code.
    ///
    /// # Errors
    /// If the function did not return. The handler must pass the error on.
    ///
    /// # Panics
    /// If the number of arguments is not that of the function's parameters.
    pub fn call(&mut self, func: Func, args: &[u64]) -> Result<Vec<u64>, HandlerEnd> {
        // SAFETY: the state is live and has a host, since its run waits for the handler. `hand`
        // holds no reference to it meanwhile, and `&mut self` excludes references from `memories`
        // and `globals`.
        unsafe { native::run_called(self.state, func, args) }
            .map_err(|stop| HandlerEnd(End::Stop(stop)))
    }
}

/// The reason why a handler returns no results.
#[derive(Debug)]
pub struct HandlerEnd(End);

#[derive(Debug)]
enum End {
    Stop(Stop),
    Host(HostError),
}

impl HandlerEnd {
    /// The program traps or exits, or the handler cannot continue.
    pub fn new(error: HostError) -> HandlerEnd {
        HandlerEnd(End::Host(error))
    }
}

impl From<HostError> for HandlerEnd {
    fn from(error: HostError) -> HandlerEnd {
        HandlerEnd::new(error)
    }
}

/// An interpreter of the embedder. It resumes a function at a point of its base version, and runs
/// it to its end. It has one frame at a time: an exit to the handler fails in a function that the
/// handler itself has called ([`RunError::HandlerBusy`]).
pub trait Handler {
    /// Resumes a frame, and runs it until the function returns. Returns the results of the
    /// function.
    ///
    /// # Errors
    /// If the run ends before.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, HandlerEnd>;
}

/// Resumes the function of a point in the handler, and returns the results of the function.
///
/// # Safety
/// `vm` fulfills the contract of [`native::run`].
pub(super) unsafe fn hand(
    vm: *mut State,
    version: &Arc<Version>,
    number: usize,
    mapping: &Checked<Mapping>,
    layout: &SlotLayout,
    values: &[u64],
) -> Result<Vec<u64>, Stop> {
    let func = version.func;
    let entry = mapping
        .entry(version.points[number].at)
        .expect("jit: an action was checked when it was linked");
    let (slots, handler, wanted) = {
        // SAFETY: the caller guarantees a live state without other references. This reference ends
        // with the block, before the handler runs.
        let state = unsafe { &mut *vm };
        let assigned = state.compensate(func, entry, reader(version, number, values))?;
        let module = Arc::clone(&state.module);
        let base = module.body(func).expect("jit: the base of a version has a body");
        let mut slots = vec![None; layout.len()];
        for (value, bits) in assigned {
            let slot = layout.slot(value).expect("jit: a layout was checked when it was linked");
            slots[slot] = Some(Slot { ty: base.value_type(value), bits });
        }
        let handler = state.handler.take();
        state.is_handling |= handler.is_some();
        (slots, handler, base.signature().results.to_vec())
    };
    let Some(mut handler) = handler else {
        // SAFETY: the reference of the block above has ended, no handler has run, and the caller
        // guarantees that there is no other reference.
        let busy = unsafe { &*vm }.is_handling;
        return Err(Stop::Failed(match busy {
            true => RunError::HandlerBusy { func, point: number },
            false => RunError::Stuck { func, point: number },
        }));
    };
    let mut frame = DeoptFrame { func, point: entry.target, slots: &slots, state: vm };
    // A panic must not skip the lines below, which put the handler back.
    let ended = catch_unwind(AssertUnwindSafe(|| handler.resume(&mut frame)));
    // SAFETY: the handler has returned or panicked, so the references that it got through the frame
    // have ended. The caller guarantees that there is no other.
    let state = unsafe { &mut *vm };
    state.handler.get_or_insert(handler);
    state.is_handling = false;
    let given = match ended {
        Ok(Ok(given)) => given,
        Ok(Err(HandlerEnd(End::Stop(stop)))) => return Err(stop),
        Ok(Err(HandlerEnd(End::Host(error)))) => {
            let site = state.machine.site(func, Some(entry.target.inst()));
            return Err(Stop::Outcome(
                state.machine.end_in_native(interp::EarlyEnd::Host(error), site),
            ));
        }
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let what =
                text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
            return Err(Stop::Failed(RunError::HandlerPanicked { func, what }));
        }
    };
    checked(func, &given, &wanted)
}

/// Checks that the results of a handler have the types of the function's results, and returns their
/// bits.
fn checked(func: Func, given: &[Slot], wanted: &[Type]) -> Result<Vec<u64>, Stop> {
    let wrong = |what: String| Err(Stop::Failed(RunError::WrongResults { func, what }));
    if given.len() != wanted.len() {
        return wrong(format!("{} results, and it has {}", given.len(), wanted.len()));
    }
    for (at, (slot, ty)) in given.iter().zip(wanted).enumerate() {
        if slot.ty != *ty || slot.bits & !ty.mask() != 0 {
            return wrong(format!(
                "{:#x} of type {} as result {at}, which has type {ty}",
                slot.bits, slot.ty
            ));
        }
    }
    Ok(given.iter().map(|slot| slot.bits).collect())
}
