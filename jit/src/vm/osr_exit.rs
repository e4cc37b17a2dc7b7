//! Exits through OSR points without a resolved target: a helper decides where control continues.

use super::action::{Action, LinkError, PointLink};
use super::interpret::{self, NestedEnd};
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use super::tiering::{FailedPoint, Onward, OpenPoint};
use crate::version::{Continuation, Version};
use check::Checked;
use ir::Value;
use resume::Condition;
use std::cell::Cell;
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
        let count = state.fired(&version, number);
        let at = FailedPoint { version: &version, number, count, values: &values };
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
    let find = finder(&version.points[number].values);
    move |value| values[find(value).expect("jit: an action reads values of its point alone")]
}

/// Finds values in a list. Each search begins behind the value found last, so values in the order
/// of the list cost linear time together. Points and continuations list values in ascending order,
/// if the embedder chooses no other.
fn finder(list: &[Value]) -> impl Fn(Value) -> Option<usize> + '_ {
    let next = Cell::new(0);
    move |value| {
        let (before, behind) = list.split_at(next.get());
        let is = |other: &Value| *other == value;
        let ahead = behind.iter().position(is).map(|at| before.len() + at);
        let at = ahead.or_else(|| before.iter().position(is))?;
        next.set(at + 1);
        Some(at)
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
        let inputs = self.inputs(version, number, continuation, values);
        let inputs = inputs.map_err(|error| RunStop::Failed(RunError::Link(error)))?;
        self.keep_target(continuation);
        self.view.fill_buffer(&inputs);
        Ok(self.table.keep(&continuation.code).addr() as u64)
    }

    /// Keeps the code that a passage to the start of a version jumps to.
    pub(super) fn keep_target(&mut self, continuation: &Continuation) {
        if continuation.target.is_entered_at_start() {
            self.table.keep(&continuation.target.code);
        }
    }

    /// The inputs of the continuation given for an open point.
    ///
    /// # Errors
    /// The misfit, if the continuation does not fit the point and this machine.
    fn inputs(
        &self,
        version: &Version,
        number: usize,
        continuation: &Continuation,
        values: &[u64],
    ) -> Result<Vec<u64>, LinkError> {
        let point = &version.points[number];
        if continuation.source() != (version.key, point.at)
            || continuation.target.func != version.func
        {
            return Err(LinkError::OtherVersion { number });
        }
        let find = finder(&point.values);
        let input = |value: &Value| match find(*value) {
            Some(at) => Ok(values[at]),
            None => Err(LinkError::Missing { number, value: *value }),
        };
        let inputs = continuation.requires.iter().map(input).collect::<Result<_, _>>()?;
        self.may_enter(continuation)?;
        Ok(inputs)
    }
}
