//! For engines: functions that run elsewhere, and runs within runs.
//!
//! A run of the interpreter stops where it calls a function that an engine runs
//! ([`Run::Called`](super::Run::Called)), or where the engine takes over its innermost activation
//! ([`Machine::leave_activation`]); it then waits for results ([`Machine::return_from_call`]).
//! While it waits, native code may have functions interpreted: in a nested run, which begins with
//! an activation of its own on the stack of the suspended one and ends with it. Runs nest to any
//! depth; limits count over all.
//!
//! Who makes a call records it in the trace, and its return: the interpreter does for calls of
//! external functions (in [`Machine::return_from_call`] for the return), and a nested run for all
//! but the activation it begins with. Native code that calls that one uses [`Machine::trace_call`]
//! and [`Machine::trace_return`]; who answers [`Run::Called`](super::Run::Called) by a nested run
//! has nothing to record.

use super::calls::Values;
use super::exec::observed_digest;
use super::fire::{FireError, TransferError};
use super::machine::{Machine, VersionId};
use super::outcome::Site;
use check::CheckedEntry;
use ir::entity::{Func, Value};
use smallvec::SmallVec;

/// What a machine knows of the run under way besides its activations.
#[derive(Clone, Debug, Default)]
pub(super) struct RunState {
    /// Whether the observer was already asked about the instruction at which the run goes on: it is
    /// paused.
    pub(super) asked: bool,
    /// The function that could not be started for want of stack.
    pub(super) refused: Option<Func>,
    /// Whether the run goes on exactly, whoever watches: it was transferred, and has values that
    /// fast code would not miss if the transfer forgot them; or it reached a function that has no
    /// fast code.
    pub(super) exact: bool,
    /// Whether the values of its activations are where fast code has them.
    pub(super) fast: bool,
    /// What it waits for.
    pub(super) waiting: Option<Waiting>,
}

/// A call that a run waits for. The activation on top made it; when the run has none, it ends with
/// the results.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) func: Func,
    /// The arguments of a function that the run was started with, until the engine is told.
    pub(super) args: Option<Vec<u64>>,
}

/// A run that waits below a nested one.
#[derive(Clone, Debug)]
pub(super) struct Suspended {
    state: RunState,
    floor: usize,
}

/// A nested run that was begun and has to be ended: [`Machine::end_nested`].
#[must_use = "the run below stays suspended until the nested one is ended"]
#[derive(Debug)]
pub struct Nested {
    /// The number of runs suspended below.
    level: usize,
}

/// What became of a run whose call returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resumed {
    /// The caller has the results; [`Machine::run`] goes on behind the call.
    InCaller,
    /// There is no caller in the run: it ended and returned these.
    Ended(Vec<u64>),
}

impl Machine {
    /// Whether a run is suspended below the one under way.
    pub(super) fn is_nested(&self) -> bool {
        !self.suspended.is_empty()
    }

    /// The function whose results the run waits for, and the place of the call: for the outcome if
    /// it does not return. `None` when the run does not wait. Where the engine took over an
    /// activation, the place is that of the call of its function; without a caller in the run, the
    /// function itself.
    pub fn awaited(&self) -> Option<(Func, Site)> {
        let func = self.state.waiting.as_ref()?.func;
        let site = self.activations.of_run().last().map(|caller| {
            let version = &self.versions[caller.version as usize];
            self.site(version.func, version.code.inst_near(caller.pc))
        });
        Some((func, site.unwrap_or_else(|| self.site(func, None))))
    }

    /// Hands a run the results of the function it waits for, without bits outside their types; the
    /// return goes to the trace. Cost: the results, and what the digests cost
    /// ([`Machine::refresh_digests`]).
    ///
    /// # Panics
    /// When the run waits for none, or the number of results is not that of the function.
    pub fn return_from_call(&mut self, results: &[u64]) -> Resumed {
        let waiting = self.state.waiting.take().filter(|waiting| waiting.args.is_none());
        let func = waiting.expect("interp: a run waits for the results of a call").func;
        let types = &self.program.declarations().signature(func).results;
        assert_eq!(types.len(), results.len(), "interp: results of {func}");
        let results: Values =
            results.iter().zip(types).map(|(bits, ty)| bits & ty.mask()).collect();
        self.take_back();
        let caller = self.activations.of_run().last().copied();
        if caller.is_some() || !self.is_nested() {
            self.trace.ret(&results, observed_digest(&self.memories, &self.globals));
        }
        let Some(caller) = caller else {
            self.state = RunState::default();
            return Resumed::Ended(results.to_vec());
        };
        let code = &self.versions[caller.version as usize].code;
        let frame = &mut self.activations.stack[caller.base..];
        match &code.fast {
            Some(fast) if self.state.fast => {
                let slots = fast.results_of(caller.pc as usize, results.len());
                slots
                    .iter()
                    .zip(&results)
                    .for_each(|(slot, bits)| frame[usize::from(*slot)] = *bits);
            }
            _ => {
                let slots = &code.pool[code.results_at(caller.pc) as usize..];
                slots.iter().zip(&results).for_each(|(slot, bits)| frame[*slot as usize] = *bits);
            }
        }
        self.activations.top_mut().pc += 1;
        Resumed::InCaller
    }

    /// Ends the innermost activation of a paused run without a return, because native code goes on
    /// in its place, and returns its function; the run then waits for its results. `None`, and
    /// nothing done, when no run is paused.
    pub fn leave_activation(&mut self) -> Option<Func> {
        if !self.state.asked {
            return None;
        }
        let left = self.activations.pop();
        let func = self.versions[left.version as usize].func;
        self.state.asked = false;
        self.state.waiting = Some(Waiting { func, args: None });
        Some(func)
    }

    /// Gives the run under way up, because native code that it called ended it, and that was
    /// recorded already ([`Machine::end_in_native`] in a run within). Runs suspended below stay as
    /// they are. Cost: its activations.
    pub fn abandon(&mut self) {
        self.activations.drop_run();
        self.state = RunState::default();
    }

    /// Suspends the run under way, if there is one, whatever its state, and begins one within it:
    /// native code calls a function that is to be interpreted, external or not. [`Machine::run`]
    /// then runs that one, until its first activation returns or it ends otherwise. Bits of
    /// arguments outside their types are dropped. The trace hears of neither the call nor the
    /// return. Cost: constant, the arguments, and what the digests cost.
    ///
    /// # Errors
    /// [`TransferError::StackOverflow`] when there is no room for the activation; nothing is
    /// changed then.
    ///
    /// # Panics
    /// When the function is imported, or the number of arguments is not that of its parameters.
    pub fn begin_nested(&mut self, func: Func, args: &[u64]) -> Result<Nested, TransferError> {
        let version = self
            .current(func)
            .unwrap_or_else(|| panic!("interp: {func} is imported and cannot be started"));
        let args = self.clean_args(func, args);
        let nested = self.suspend();
        if self.begin(version, &args) {
            return Ok(nested);
        }
        self.end_nested(nested);
        Err(TransferError::StackOverflow)
    }

    /// As [`Machine::begin_nested`], in the middle: the activation begins at the landing point of an
    /// entry into a version, with the values that its compensation code computes; all others are
    /// [`super::poison`]. Native code that cannot go on exits to the interpreter so. `read` gives the
    /// contents of a value of the source version, which runs elsewhere. The stores that the entry
    /// replays are executed. The run is paused at the landing point: the observer is not asked about
    /// its instruction. Cost: the code, the frame, and what the digests cost.
    ///
    /// # Errors
    /// See [`FireError`]; the run suspended stays as it was, and a store may have been executed.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn begin_nested_at(
        &mut self,
        version: VersionId,
        entry: CheckedEntry<'_>,
        read: impl Fn(Value) -> u64,
    ) -> Result<Nested, FireError> {
        if entry.target() != self.code(version).key() {
            return Err(FireError::OtherTarget);
        }
        let entry = entry.entry();
        let mut assigned: SmallVec<[(Value, u64); 16]> = SmallVec::new();
        let ran = entry.run(read, |value, bits| assigned.push((value, bits)));
        let writes = ran.map_err(FireError::Code)?;
        let refused = FireError::Transfer;
        let pc = self.landing(version, entry.target, &assigned).map_err(refused)?;
        writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)?;
        let nested = self.suspend();
        if !self.begin(version, &[]) {
            self.end_nested(nested);
            return Err(refused(TransferError::StackOverflow));
        }
        self.land(version, pc, &assigned);
        self.state.asked = true;
        Ok(nested)
    }

    fn suspend(&mut self) -> Nested {
        self.take_back();
        let (state, floor) = (std::mem::take(&mut self.state), self.activations.floor());
        self.suspended.push(Suspended { state, floor });
        self.activations.set_floor(self.activations.depth());
        Nested { level: self.suspended.len() }
    }

    /// Ends a nested run, which is given up if it has not ended, and goes back to the one suspended
    /// below.
    ///
    /// # Panics
    /// When it is not the one begun last of those that were not ended, or was given up by
    /// [`Machine::start`].
    pub fn end_nested(&mut self, nested: Nested) {
        assert_eq!(
            nested.level,
            self.suspended.len(),
            "interp: nested runs end in the opposite order"
        );
        self.abandon();
        let below = self.suspended.pop().expect("interp: a nested run has one below");
        self.state = below.state;
        self.activations.set_floor(below.floor);
    }
}
