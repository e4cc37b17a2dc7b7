//! Exits through OSR points without a resolved target: a helper decides where control continues.

use super::action::{Action, PointLink};
use super::interpret::{self, NestedEnd};
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use super::tiering::{FailedPoint, Onward, OpenPoint};
use crate::version::{Continuation, Version};
use check::Checked;
use ir::Value;
use resume::Condition;
use std::sync::Arc;
use transition::mapping::Mapping;

/// Decides where control continues after the point of a cell has fired, with its values in the
/// buffer. Returns the address of code that reads its inputs from the buffer.
pub(super) fn leave(access: &mut RunAccess<'_>, cell: usize) -> Result<u64, RunStop> {
    let state = access.state();
    let Some(link) = state.table.link(cell) else {
        return Err(RunStop::Failed(RunError::Released));
    };
    let (version, number, mut action) =
        (Arc::clone(&link.version), link.number, link.action.clone());
    let values = handed_over(link, &state.view.buffer);
    let mut onward = Onward::Linked;
    if version.points[number].condition == Condition::Failing {
        let at = FailedPoint { version: &version, number, count: state.fired(&version, number) };
        onward = state.ask(|tiering, tier| tiering.failed(tier, at))?;
        // The policy may have changed the action. If it has released the version, the exit takes
        // its old action (`a_policy_may_release_the_version_that_fails`).
        if let Some(link) = state.table.link(cell) {
            action = link.action.clone();
        }
    }
    if let (Onward::Linked, Action::Ask) = (&onward, &action) {
        let at = OpenPoint { version: &version, number, values: &values };
        onward = state.ask(|tiering, tier| tiering.open(tier, at))?;
    }
    let action = match onward {
        Onward::Enter(continuation) => {
            return state.enter(&version, number, &continuation, &values);
        }
        Onward::Take(action) => {
            let checked = state.check_once(&version, number, &action);
            checked.map_err(|error| RunStop::Failed(RunError::Link(error)))?;
            action
        }
        Onward::Linked => action,
    };
    if version.points[number].condition == Condition::Failing
        && let Some(base) = state.modules.base(version.func)
    {
        state.policy.watch.ask_again(&mut state.machine, base);
    }
    take(access, &version, number, &action, &values)
}

/// Performs a checked action. Returns the address of code that reads its inputs from the buffer.
fn take(
    access: &mut RunAccess<'_>,
    version: &Arc<Version>,
    number: usize,
    action: &Action,
    values: &[u64],
) -> Result<u64, RunStop> {
    match action {
        Action::Continue(continuation) => {
            access.state().enter(version, number, continuation, values)
        }
        Action::Ask => Err(RunStop::Failed(RunError::Stuck { func: version.func, point: number })),
        Action::Interpret(mapping) => descend(access, version, number, mapping, values),
        Action::Hand(mapping, states) => {
            let results = super::deopt::hand(access, version, number, mapping, states, values)?;
            Ok(access.state().give_back(version, &results))
        }
    }
}

/// The values that an OSR point has left in the buffer. Masks the upper bits of narrow values,
/// which are unspecified.
fn handed_over(link: &PointLink, buffer: &[u64]) -> Vec<u64> {
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
fn descend(
    access: &mut RunAccess<'_>,
    version: &Arc<Version>,
    number: usize,
    mapping: &Arc<Checked<Mapping>>,
    values: &[u64],
) -> Result<u64, RunStop> {
    let at = version.points[number].at;
    let entry = mapping.checked_entry(at).expect("jit: an action was checked when it was linked");
    let read = reader(version, number, values);
    let nested = access.state().descend(version.func, entry, version.key, at, read)?;
    match interpret::go_on(access, nested)? {
        NestedEnd::Returned(results) => Ok(access.state().give_back(version, &results)),
        NestedEnd::Ascends(ascent) => Ok(ascent.code().entry().addr() as u64),
    }
}

/// Reads values of a point from the values that it handed over.
pub(super) fn reader<'a>(
    version: &'a Version,
    number: usize,
    values: &'a [u64],
) -> impl Fn(Value) -> u64 + 'a {
    let kept = &version.points[number].values;
    move |value| {
        let at = kept.iter().position(|v| *v == value);
        values[at.expect("jit: an action reads values of its point alone")]
    }
}

impl VmState {
    /// How often a point has fired.
    fn fired(&mut self, version: &Version, number: usize) -> u64 {
        self.counts.note_fired(&self.table, version, number);
        self.counts.of_point(version, number)
    }

    /// Puts results into the buffer. Returns the address of the stub that returns them.
    fn give_back(&mut self, version: &Version, results: &[u64]) -> u64 {
        self.view.fill_buffer(results);
        let stubs = version.stubs.as_ref().expect("jit: a version with points has stubs");
        self.table.pin(&stubs.back).addr() as u64
    }

    /// Stores the inputs of a continuation of a point to the buffer, and returns its address.
    fn enter(
        &mut self,
        version: &Arc<Version>,
        number: usize,
        continuation: &Arc<Continuation>,
        values: &[u64],
    ) -> Result<u64, RunStop> {
        self.enterable(version, number, continuation)?;
        let read = reader(version, number, values);
        let taken: Vec<u64> = continuation.requires.iter().map(|value| read(*value)).collect();
        self.view.fill_buffer(&taken);
        Ok(self.table.keep(&continuation.code).addr() as u64)
    }

    /// Checks that the continuation given for an open point fits the point and this machine.
    fn enterable(
        &self,
        version: &Version,
        number: usize,
        continuation: &Continuation,
    ) -> Result<(), RunStop> {
        let point = &version.points[number];
        let refused = |error| Err(RunStop::Failed(RunError::Link(error)));
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
