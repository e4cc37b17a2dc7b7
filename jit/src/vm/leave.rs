//! Exits through OSR points whose target is not resolved: the helper behind them decides where
//! control continues.

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

/// Decides where control continues after the point of a cell has fired, with its values in the
/// buffer. Returns the address of code that reads its inputs from the buffer.
///
/// # Safety
/// `vm` fulfills the contract of [`super::native::run`].
pub(super) unsafe fn leave(vm: *mut State, cell: usize) -> Result<u64, Stop> {
    let (version, number, action, values) = {
        // SAFETY: the caller guarantees a live state without other references. This reference ends
        // with the block, before any code runs.
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
        // SAFETY: the reference of the block above has ended, and the caller guarantees that there
        // is no other. This one ends with the statement.
        Action::Continue(continuation) => {
            Ok(unsafe { &mut *vm }.kept(&continuation.code).addr() as u64)
        }
        // SAFETY: the reference of the block above has ended, and the caller guarantees that there
        // is no other. A tiering gets the state through this reference and cannot start a run.
        Action::Ask => unsafe { &mut *vm }.open(&version, number, &values),
        // SAFETY: the reference of the block above has ended, so the caller's guarantee for `vm`
        // holds for `descend`.
        Action::Interpret(mapping) => unsafe { descend(vm, &version, number, &mapping, &values) },
        Action::Hand(mapping, layout) => {
            // SAFETY: the reference of the block above has ended, so the caller's guarantee for
            // `vm` holds for `hand`.
            let results =
                unsafe { super::deopt::hand(vm, &version, number, &mapping, &layout, &values) }?;
            // SAFETY: the handler has returned, and the references that its frame gave out have
            // ended. This one ends with the statement.
            Ok(unsafe { &mut *vm }.give_back(&version, &results))
        }
    }
}

/// The values that an OSR point has left in the buffer. Masks the upper bits of narrow values,
/// which are unspecified.
fn handed_over(link: &Link, buffer: &[u64]) -> Vec<u64> {
    let function = &link.version.function;
    let values = &link.version.points[link.number].values;
    values
        .iter()
        .zip(buffer)
        .map(|(value, word)| word & function.value_type(*value).mask())
        .collect()
}

/// Continues in the interpreter, until the function returns or continues natively. Returns the
/// address of the code to go to.
///
/// # Safety
/// `vm` fulfills the contract of [`super::native::run`].
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
    // SAFETY: the caller guarantees a live state without other references. This reference ends with
    // the statement, before the interpreter runs.
    let nested =
        unsafe { &mut *vm }.descend(version.func, entry, reader(version, number, values))?;
    // SAFETY: the reference above has ended, so the caller's guarantee for `vm` holds for `go_on`.
    match unsafe { interpret::go_on(vm, nested) }? {
        // SAFETY: the interpreter has returned and keeps no reference. This one ends with the
        // statement.
        Ended::Returned(results) => Ok(unsafe { &mut *vm }.give_back(version, &results)),
        Ended::Ascends(ascent) => Ok(ascent.code.entry().addr() as u64),
    }
}

/// Reads values of a point out of the values that it handed over.
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
    /// Puts results into the buffer. Returns the address of the stub that returns them.
    fn give_back(&mut self, version: &Version, results: &[u64]) -> u64 {
        self.buffer[..results.len()].copy_from_slice(results);
        let stubs = version.stubs.as_ref().expect("jit: a version with points has stubs");
        self.kept(&stubs.back).addr() as u64
    }

    /// Asks for a continuation from an open point. Stores its inputs to the buffer, and returns its
    /// address.
    fn open(&mut self, version: &Arc<Version>, number: usize, values: &[u64]) -> Result<u64, Stop> {
        let continuation =
            self.ask(|tiering, tier| tiering.open(tier, OpenPoint { version, number, values }))?;
        self.enterable(version, number, &continuation)?;
        let read = reader(version, number, values);
        let taken: Vec<u64> = continuation.requires.iter().map(|value| read(*value)).collect();
        self.buffer[..taken.len()].copy_from_slice(&taken);
        Ok(self.kept(&continuation.code).addr() as u64)
    }

    /// Checks that the continuation given for an open point fits the point and this machine.
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
