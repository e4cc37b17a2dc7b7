//! Leaving native code through an OSR point that asks where to go on.

use super::interpret::{self, Ended};
use super::link::{Action, Link};
use super::state::State;
use super::stop::{RunError, Stop};
use super::tiering::OpenPoint;
use crate::version::{Continuation, Version};
use check::Checked;
use ir::Value;
use std::sync::Arc;
use transition::mapping::Mapping;

/// An OSR point has fired; its values are in the buffer. Gives the address of the code to go on in,
/// which takes what it needs from the buffer.
///
/// # Safety
/// As [`super::native::run`].
pub(super) unsafe fn leave(vm: *mut State, cell: usize) -> Result<u64, Stop> {
    let (version, number, action, values) = {
        // SAFETY: nobody else has a reference, and this one ends before anything runs.
        let state = unsafe { &mut *vm };
        let Some(link) = state.links.get(&cell) else {
            return Err(Stop::Failed(RunError::Released));
        };
        (
            Arc::clone(&link.version),
            link.number,
            link.action.clone(),
            handed_over(link, &state.buffer),
        )
    };
    match action {
        // SAFETY: as above.
        Action::Continue(continuation) => {
            Ok(unsafe { &mut *vm }.kept(&continuation.code).addr() as u64)
        }
        // SAFETY: as above.
        Action::Ask => unsafe { &mut *vm }.open(&version, number, &values),
        // SAFETY: as above.
        Action::Interpret(mapping) => unsafe { descend(vm, &version, number, &mapping, &values) },
        Action::Hand(mapping, layout) => {
            // SAFETY: as above.
            let results =
                unsafe { super::deopt::hand(vm, &version, number, &mapping, &layout, &values) }?;
            // SAFETY: the handler is done.
            Ok(unsafe { &mut *vm }.give_back(&version, &results))
        }
    }
}

/// What an OSR point has left in the buffer. Beside a narrow value its word may hold anything.
fn handed_over(link: &Link, buffer: &[u64]) -> Vec<u64> {
    let function = &link.version.function;
    let values = &link.version.points[link.number].values;
    values
        .iter()
        .zip(buffer)
        .map(|(value, word)| word & function.value_type(*value).mask())
        .collect()
}

/// Goes on in the interpreter, until the function returns or goes on natively again.
///
/// # Safety
/// As [`super::native::run`].
unsafe fn descend(
    vm: *mut State,
    version: &Arc<Version>,
    number: usize,
    mapping: &Arc<Checked<Mapping>>,
    values: &[u64],
) -> Result<u64, Stop> {
    let entry = mapping
        .checked_entry(version.points[number].at)
        .expect("jit: an action was checked when it was linked");
    // SAFETY: nobody else has a reference, and this one ends before anything runs.
    let nested =
        unsafe { &mut *vm }.descend(version.func, entry, reader(version, number, values))?;
    // SAFETY: nobody has a reference.
    match unsafe { interpret::go_on(vm, nested) }? {
        // SAFETY: the run has ended.
        Ended::Returned(results) => Ok(unsafe { &mut *vm }.give_back(version, &results)),
        Ended::Ascends(ascent) => Ok(ascent.code.entry().addr() as u64),
    }
}

/// The contents of a value, from those of a point.
pub(super) fn reader<'a>(
    version: &'a Version,
    number: usize,
    values: &'a [u64],
) -> impl Fn(Value) -> u64 + 'a {
    let kept = &version.points[number].values;
    move |value| {
        let at = kept.iter().position(|v| *v == value);
        values[at.expect("jit: what an action reads was checked when it was linked")]
    }
}

impl State {
    /// Makes native code return these results.
    fn give_back(&mut self, version: &Version, results: &[u64]) -> u64 {
        self.buffer[..results.len()].copy_from_slice(results);
        let stubs = version.stubs.as_ref().expect("jit: a version with points has stubs");
        self.kept(&stubs.back).addr() as u64
    }

    fn open(&mut self, version: &Arc<Version>, number: usize, values: &[u64]) -> Result<u64, Stop> {
        let continuation =
            self.ask(|tiering, tier| tiering.open(tier, OpenPoint { version, number, values }))?;
        self.enterable(version, number, &continuation)?;
        let read = reader(version, number, values);
        let taken: Vec<u64> = continuation.requires.iter().map(|value| read(*value)).collect();
        self.buffer[..taken.len()].copy_from_slice(&taken);
        Ok(self.kept(&continuation.code).addr() as u64)
    }

    /// Whether the answer to an open point fits.
    fn enterable(
        &self,
        version: &Version,
        number: usize,
        continuation: &Continuation,
    ) -> Result<(), Stop> {
        let point = &version.points[number];
        let refused = |error| Err(Stop::Failed(RunError::Link(error)));
        if continuation.source() != (version.key, point.at)
            || continuation.target.func != version.func
        {
            return refused(super::LinkError::OtherVersion { number });
        }
        if let Some(value) =
            continuation.requires.iter().find(|value| !point.values.contains(value))
        {
            return refused(super::LinkError::Missing { number, value: *value });
        }
        if self.may_enter(continuation) { Ok(()) } else { refused(super::LinkError::NotAdopted) }
    }
}
