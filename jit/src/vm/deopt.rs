//! Going on in an interpreter of the embedder's.

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

/// A value of a known type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its type.
    pub ty: Type,
    /// Its bits, the others zero.
    pub bits: u64,
}

/// In which slots of a frame of the embedder's the values of a base version stand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotLayout {
    slots: BTreeMap<Value, usize>,
    length: usize,
}

impl SlotLayout {
    /// A layout of these values. A value may have one slot; several may share one if they never
    /// live at the same time.
    pub fn new(slots: impl IntoIterator<Item = (Value, usize)>) -> SlotLayout {
        let slots: BTreeMap<Value, usize> = slots.into_iter().collect();
        let length = slots.values().max().map_or(0, |last| last + 1);
        SlotLayout { slots, length }
    }

    /// The slot of a value.
    pub fn slot(&self, value: Value) -> Option<usize> {
        self.slots.get(&value).copied()
    }

    /// Slots of a frame.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether frames have no slots.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// What a handler gets: a frame to go on with.
#[derive(Debug)]
pub struct DeoptFrame<'a> {
    /// The function.
    pub func: Func,
    /// The point of the base version at which it goes on.
    pub point: Point,
    /// The slots as the layout says; `None` where nothing is live.
    pub slots: &'a [Option<Slot>],
    state: *mut State,
}

impl DeoptFrame<'_> {
    /// The memories of the program.
    pub fn memories(&mut self) -> &mut Memories {
        // SAFETY: the state waits for the handler, and the borrow of `self` keeps others away.
        unsafe { &mut *self.state }.machine.memories_mut()
    }

    /// The bits of the globals, in order.
    pub fn globals(&self) -> &[u64] {
        // SAFETY: as above.
        unsafe { &*self.state }.machine.globals()
    }

    /// Calls a function of the program, natively if it has code.
    ///
    /// # Errors
    /// When it did not return: the handler is to give this error on.
    ///
    /// # Panics
    /// When the number of arguments is not that of its parameters.
    pub fn call(&mut self, func: Func, args: &[u64]) -> Result<Vec<u64>, HandlerEnd> {
        // SAFETY: the state waits for the handler, and the borrow of `self` keeps others away.
        unsafe { native::run_called(self.state, func, args) }
            .map_err(|stop| HandlerEnd(End::Stop(stop)))
    }
}

/// Why a handler does not give results.
#[derive(Debug)]
pub struct HandlerEnd(End);

#[derive(Debug)]
enum End {
    Stop(Stop),
    Host(HostError),
}

impl HandlerEnd {
    /// The program traps or exits, or the handler cannot go on.
    pub fn new(error: HostError) -> HandlerEnd {
        HandlerEnd(End::Host(error))
    }
}

impl From<HostError> for HandlerEnd {
    fn from(error: HostError) -> HandlerEnd {
        HandlerEnd::new(error)
    }
}

/// An interpreter of the embedder's, one frame at a time: a function that it has called cannot be
/// handed to it ([`RunError::HandlerBusy`]). Runs a function from a point of its base version to
/// its end.
pub trait Handler {
    /// Goes on with a frame until the function returns; its results.
    ///
    /// # Errors
    /// When the run ends before.
    fn resume(&mut self, frame: &mut DeoptFrame<'_>) -> Result<Vec<Slot>, HandlerEnd>;
}

/// Hands a frame to the handler; the results of the function.
///
/// # Safety
/// As [`native::run`].
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
        // SAFETY: nobody else has a reference, and this one ends before the handler runs.
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
        // SAFETY: as above.
        let busy = unsafe { &*vm }.is_handling;
        return Err(Stop::Failed(match busy {
            true => RunError::HandlerBusy { func, point: number },
            false => RunError::Stuck { func, point: number },
        }));
    };
    let mut frame = DeoptFrame { func, point: entry.target, slots: &slots, state: vm };
    let ended = catch_unwind(AssertUnwindSafe(|| handler.resume(&mut frame)));
    // SAFETY: the handler has returned.
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

/// The results of a handler, if they are those of the function.
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
