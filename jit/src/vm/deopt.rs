//! Deoptimization into an interpreter of the embedder.

use super::embedder::{
    CallbackCause, DeoptFrame, HandedActivation, HandedContent, HandedLocal, Slot, stuck,
};
use super::osr_exit::reader;
use super::state::RunAccess;
use super::stop::{RunError, RunStop};
use crate::version::Version;
use check::Checked;
use ir::{FrameStates, Func, Inst, Local, LocalContent, Module, Point, Type, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use transition::frames::{FramePlace, Landing};
use transition::mapping::Mapping;

/// Resumes the function of a point in the embedder, where an entry lands, and returns the results
/// of the function.
pub(super) fn hand(
    access: &mut RunAccess<'_>,
    version: &Arc<Version>,
    number: usize,
    mapping: &Checked<Mapping>,
    states: &BTreeMap<Func, Arc<FrameStates>>,
    values: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let func = version.func;
    let entry = mapping
        .entry(version.points[number].at)
        .expect("jit: an action was checked when it was linked");
    let state = access.state();
    let assigned = state.compensate(func, entry, reader(version, number, values))?;
    let module = Arc::clone(&state.modules.current);
    let mut activations = Vec::new();
    for (landing, assigned) in entry.landings(func, mapping.target()).zip(assigned) {
        let landed = Landed::of(&module, landing).expect("jit: an action was checked");
        landed.activations(&states[&landing.func], &assigned, &mut activations);
    }
    resumed(access, func, number, &activations)
}

/// A frame that a run lands in.
#[derive(Clone, Copy)]
pub(super) struct Landed<'m> {
    module: &'m Module,
    func: Func,
    /// The point with the frame state.
    pub(super) at: Point,
    /// The call within which the frame waits.
    call: Option<Inst>,
}

impl<'m> Landed<'m> {
    /// The place of a frame in a base. `None` if the function has no such place.
    pub(super) fn of(module: &'m Module, landing: Landing<'_>) -> Option<Landed<'m>> {
        let (func, base) = (landing.func, module.body(landing.func)?);
        let (at, call) = match landing.at {
            FramePlace::Before(point) => (point, None),
            FramePlace::Within(call) => (Point::before(base.next_inst(call)?), Some(call)),
        };
        base.has_inst(at.inst()).then_some(Landed { module, func, at, call })
    }

    /// The index of a value among the results of the call within which the frame waits.
    pub(super) fn result(self, value: Value) -> Option<u32> {
        let base = self.module.body(self.func)?;
        let results = &base.inst(self.call?).results;
        results.iter().position(|result| *result == value).map(|index| index as u32)
    }

    /// Appends the activations of the frame's state, with the values that an entry has assigned, in
    /// ascending order.
    fn activations(
        self,
        states: &FrameStates,
        assigned: &[(Value, u64)],
        activations: &mut Vec<HandedActivation>,
    ) {
        let base = self.module.body(self.func).expect("jit: the base of a version has a body");
        let state = states.get(self.at).expect("jit: an action was checked when it was linked");
        let bits = |value: Value| {
            let index = assigned.binary_search_by_key(&value, |(value, _)| *value);
            let index = index.expect("jit: an action was checked when it was linked");
            HandedContent::Bits(Slot { ty: base.value_type(value), bits: assigned[index].1 })
        };
        let handed = |local: &Local| {
            let content = match local.content {
                LocalContent::Constant(ty, bits) => {
                    HandedContent::Bits(Slot { ty, bits: bits & ty.mask() })
                }
                LocalContent::Value(value) => match self.result(value) {
                    Some(index) => HandedContent::Result(index),
                    None => bits(value),
                },
            };
            HandedLocal { slot: local.slot, content, representation: local.representation }
        };
        activations.extend(state.activations().map(|state| HandedActivation {
            func: self.func,
            at: self.at,
            function: state.function,
            pc: state.pc,
            locals: state.locals.iter().map(handed).collect(),
        }));
    }
}

/// Runs the embedder in activations. Returns the results of `left`, the function that has left
/// native code.
fn resumed(
    access: &mut RunAccess<'_>,
    left: Func,
    number: usize,
    activations: &[HandedActivation],
) -> Result<Vec<u64>, RunStop> {
    let resumed = access.ask_embedder(|embedder, access| {
        let mut frame = DeoptFrame { activations, left: (left, number), access };
        // A panic of the interpreter is an error of the run, since no code of the program can have
        // caught it (`a_panic_below_a_handler_leaves_nothing_behind`).
        catch_unwind(AssertUnwindSafe(|| embedder.resume(&mut frame)))
    });
    // The embedder may have ignored the end of a nested run.
    if let Some(stop) = access.run().ended.clone() {
        return Err(*stop);
    }
    let state = access.state();
    match resumed {
        None => Err(stuck(left, number)),
        Some(Ok(Ok(given))) => {
            checked(left, &given, &state.modules.current.signature(left).results)
        }
        Some(Ok(Err(end))) => Err(match end.into_cause() {
            CallbackCause::Stop(stop) => stop,
            CallbackCause::Host(error) => {
                let first = activations.first().expect("jit: an entry lands somewhere");
                let site = state.machine.site(first.func, Some(first.at.inst()));
                let end = state.machine.end_in_native(interp::EarlyEnd::Host(error), site);
                RunStop::Outcome(end)
            }
        }),
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
