//! The interpreter's part of a run: from a call or a transition until its function ends or
//! continues in native code.

use super::entrance::Ascent;
use super::state::RunAccess;
use super::state::VmState;
use super::stop::{RunError, RunStop};
use super::{call, imports, lazy_bodies, native};
use crate::error::ContinueError;
use check::CheckedEntry;
use interp::{
    EarlyEnd, FireError, Nested, NoHost, Outcome, Resumed, Run, TransferError, VersionId,
};
use ir::{Func, Point, Value};
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use transition::VersionKey;
use transition::mapping::Entry;

/// The end of a nested run of the interpreter.
pub(super) enum NestedEnd {
    /// The function returned these values.
    Returned(Vec<u64>),
    /// The function continues in native code, whose inputs are in the buffer. The interpreter has
    /// removed its frame.
    Ascends(Ascent),
}

/// Interprets a function. If a loop of it turns hot, native code finishes it. Returns its results.
pub(super) fn invoke(
    access: &mut RunAccess<'_>,
    func: Func,
    args: &[u64],
) -> Result<Vec<u64>, RunStop> {
    let machine = &mut access.state().machine;
    let Ok(nested) = machine.begin_nested(func, args) else {
        let site = machine.site(func, None);
        return Err(RunStop::Outcome(machine.end_in_native(EarlyEnd::StackOverflow, site)));
    };
    match go_on(access, nested)? {
        NestedEnd::Returned(values) => Ok(values),
        NestedEnd::Ascends(ascent) => native::resume(access, &ascent),
    }
}

/// Continues a nested run until its function ends or continues in native code.
pub(super) fn go_on(access: &mut RunAccess<'_>, nested: Nested) -> Result<NestedEnd, RunStop> {
    // Not the current depth: a run that began in frames has outer frames that wait for results
    // (`a_hot_loop_of_an_inner_frame_ends_no_outer_frame`).
    let outermost = nested.first_depth();
    // A panic of the host passes on. It must not skip the lines below, since a handler further up
    // may catch it and leave the machine in use (`a_panic_below_a_handler_leaves_nothing_behind`).
    let ended = catch_unwind(AssertUnwindSafe(|| until_end(access, outermost)));
    let machine = &mut access.state().machine;
    if !matches!(ended, Ok(Ok(_))) {
        machine.abandon();
    }
    machine.end_nested(nested);
    ended.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Runs the interpreter until the activation at depth `outermost` has ended.
fn until_end(access: &mut RunAccess<'_>, outermost: usize) -> Result<NestedEnd, RunStop> {
    loop {
        match access.state().run_interpreter() {
            Run::Done(Outcome::Returned(values)) => return Ok(NestedEnd::Returned(values)),
            Run::Done(outcome) => return Err(RunStop::Outcome(outcome)),
            Run::Failed { reason } => {
                return Err(RunStop::Outcome(access.state().machine.fail(reason)));
            }
            Run::Called { func, args } => {
                if enters(access, func, &args)? {
                    continue;
                }
                let results = called(access, func, &args)?;
                if let Resumed::Ended(values) = access.state().machine.return_from_call(&results) {
                    return Ok(NestedEnd::Returned(values));
                }
            }
            Run::Paused => {
                if let Some(ended) = ascend(access, outermost)? {
                    return Ok(ended);
                }
            }
        }
    }
}

/// Whether the interpreter itself executes a call at which it has stopped because the body of the
/// callee was missing. The call then needs no Rust frame, so first calls may nest as deep as others
/// (`first_calls_are_as_deep_as_others`).
fn enters(access: &mut RunAccess<'_>, func: Func, args: &[u64]) -> Result<bool, RunStop> {
    let state = access.state();
    let Some((_, site)) = state.machine.awaited().filter(|_| state.machine.awaits_body(func))
    else {
        return Ok(false);
    };
    lazy_bodies::provide(access, func, &site)?;
    let state = access.state();
    if state.table.installed(func).is_some() {
        return Ok(false);
    }
    if state.machine.enter_called(args) {
        return Ok(true);
    }
    let end = state.machine.end_in_native(EarlyEnd::StackOverflow, site);
    Err(RunStop::Outcome(end))
}

/// Runs a function at whose call the interpreter has stopped: one with native code, or an imported
/// one. Returns its results.
fn called(access: &mut RunAccess<'_>, func: Func, args: &[u64]) -> Result<Vec<u64>, RunStop> {
    let state = access.state();
    match state.machine.awaited() {
        Some((_, site)) if state.modules.is_imported(func) => {
            imports::call_at(access, func, args, site)
        }
        _ => call::run_called(access, func, args),
    }
}

/// Continues a hot loop in native code, if the embedder has a continuation for it. Returns `None`
/// if the interpreter continues.
fn ascend(access: &mut RunAccess<'_>, outermost: usize) -> Result<Option<NestedEnd>, RunStop> {
    let state = access.state();
    let Some(ascent) = state.ascent()? else { return Ok(None) };
    let depth = state.machine.view().map_or(0, |view| view.depth());
    state.machine.leave_activation();
    // The outermost activation of the nested run has no caller in the interpreter. Its native code
    // may take the place of the code that called, without another entry.
    if depth == outermost {
        return Ok(Some(NestedEnd::Ascends(ascent)));
    }
    let values = native::resume(access, &ascent)?;
    match access.state().machine.return_from_call(&values) {
        Resumed::Ended(values) => Ok(Some(NestedEnd::Returned(values))),
        Resumed::InCaller => Ok(None),
    }
}

impl VmState {
    fn run_interpreter(&mut self) -> Run {
        let mut none = NoHost;
        let run = self.run.as_mut().expect("jit: a run has a host");
        // With an embedder, the interpreter stops at imported functions, and calls no host.
        let host = run.host().unwrap_or(&mut none);
        let watch = &self.policy.watch;
        if watch.counts() {
            self.machine.run_to_visit(host, watch.attention())
        } else {
            self.machine.run(host, &mut interp::NoObserver)
        }
    }

    /// Runs the compensation code of an entry from a version of `func`, and executes its replayed
    /// stores. Returns the values that it assigns to each activation, the innermost first.
    pub(super) fn compensate(
        &mut self,
        func: Func,
        entry: &Entry,
        read: impl Fn(Value) -> u64,
    ) -> Result<Vec<Vec<(Value, u64)>>, RunStop> {
        let mut assigned = vec![Vec::new(); entry.activations()];
        let objects = self.machine.objects_of(entry);
        let objects = objects.map_err(|fault| self.refused(func, fault.to_string()))?;
        let assign = |frame: usize, value, bits| assigned[frame].push((value, bits));
        let writes = entry.run_with(&objects, read, assign);
        let writes = writes.map_err(|fault| self.refused(func, fault.to_string()))?;
        for write in &writes {
            self.machine.write(write).map_err(|_| store_failed(func, entry))?;
        }
        Ok(assigned)
    }

    /// Starts the bases of functions where an entry from a version of `func` lands.
    pub(super) fn descend(
        &mut self,
        func: Func,
        entry: CheckedEntry<'_>,
        from: VersionKey,
        at: Point,
        read: impl Fn(Value) -> u64,
    ) -> Result<Nested, RunStop> {
        let mut bases: SmallVec<[VersionId; 1]> = SmallVec::new();
        for landing in entry.landings(func) {
            let base = self.modules.base(landing.func);
            let base = base.ok_or_else(|| self.refused(func, "it has no body".to_owned()))?;
            self.count_places_of(landing.func, base)?;
            bases.push(base);
        }
        let nested = self.machine.begin_nested_at(&bases, entry, from, at, read);
        nested.map_err(|error| match error {
            FireError::Transfer(TransferError::StackOverflow) => {
                RunStop::Failed(RunError::StackOverflow { func })
            }
            FireError::Store(_) => store_failed(func, entry.entry()),
            error => self.refused(func, error.to_string()),
        })
    }

    fn refused(&self, func: Func, what: String) -> RunStop {
        let function = self.modules.current.funcs[func].name.clone();
        RunStop::Failed(RunError::Continue(ContinueError::NotBuilt { function, what }))
    }
}

/// A store of an entry from a version of `func` is out of bounds.
fn store_failed(func: Func, entry: &Entry) -> RunStop {
    let target = entry.places().next().map_or(entry.target.inst(), |place| place.inst());
    RunStop::Failed(RunError::Store { func, target })
}
