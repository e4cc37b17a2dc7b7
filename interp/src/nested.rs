//! Runs that an engine and the interpreter execute together: external functions and nested runs.
//!
//! A run of the interpreter stops when it calls a function that an engine executes
//! ([`Run::Called`](super::Run::Called)). It also stops when the engine takes over its innermost
//! activation ([`Machine::leave_activation`]). The run then waits for results
//! ([`Machine::return_from_call`]).
//!
//! While a run waits, native code may call functions that are to be interpreted. Each such call is
//! a nested run. The current run is suspended, and the nested run begins and ends with an
//! activation of its own on the same stack. Runs nest to any depth, and limits count over all of
//! them.
//!
//! The caller of a function records the call and the return in the trace. The interpreter records
//! calls of external functions (and the return in [`Machine::return_from_call`]). A nested run
//! records all calls except the call of its first activation. Native code that calls this
//! activation uses [`Machine::trace_call`] and [`Machine::trace_return`]. An engine that answers
//! [`Run::Called`](super::Run::Called) with a nested run must record nothing, because the
//! interpreter does. Imported functions record themselves ([`Machine::enter_imported`]).

use super::calls::ValueList;
use super::fast;
use super::fire::{FireError, TransferError};
use super::frames::AssignedValues;
use super::globals::observed_digest;
use super::machine::Machine;
use super::outcome::Site;
use super::state::{AwaitedCall, RunState, Suspended};
use super::version::VersionId;
use check::CheckedEntry;
use cranelift_entity::EntityRef;
use ir::entity::{Func, Point, Value};
use transition::VersionKey;

/// A nested run, which must be ended with [`Machine::end_nested`].
#[must_use = "the suspended run resumes only after `end_nested`"]
#[derive(Debug)]
pub struct Nested {
    /// The number of runs suspended below it.
    level: usize,
    /// As [`Nested::first_depth`].
    first_depth: usize,
}

impl Nested {
    /// The depth of its first activation ([`View::depth`](super::View::depth)). A run that began in
    /// several frames ([`Machine::begin_nested_at`]) is deeper from the start.
    pub fn first_depth(&self) -> usize {
        self.first_depth
    }
}

/// The state of a run after [`Machine::return_from_call`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Resumed {
    /// The caller has the results; [`Machine::run`] continues after the call.
    InCaller,
    /// The run had no caller: it ended and returned these values.
    Ended(Vec<u64>),
}

impl Machine {
    /// Whether a run is suspended below the current one.
    pub(super) fn is_nested(&self) -> bool {
        !self.suspended.is_empty()
    }

    /// The function whose results the run waits for, and the site to report if that function does
    /// not return. `None` when the run does not wait. The site is the call in the caller, also
    /// where the engine took over an activation. Without a caller in the run, the site is the
    /// function itself.
    pub fn awaited(&self) -> Option<(Func, Site)> {
        let func = self.state.waiting.as_ref()?.func;
        let site = self.activations.of_run().last().map(|caller| {
            let (func, inst) = self.versions[caller.version as usize].site(caller.pc);
            self.site(func, inst)
        });
        Some((func, site.unwrap_or_else(|| self.site(func, None))))
    }

    /// Delivers the results of the function that the run waits for. Bits outside their types are
    /// cleared. The trace records the return, unless it ends a nested run without a caller. Cost:
    /// the number of results, plus the cost of the digests ([`Machine::refresh_digests`]).
    ///
    /// # Panics
    /// When the run waits for no results, or their number is wrong.
    pub fn return_from_call(&mut self, results: &[u64]) -> Resumed {
        let waiting = self.state.waiting.take().filter(|waiting| waiting.args.is_none());
        let func = waiting.expect("interp: no run waits for the results of a call").func;
        let types = &self.program.declarations().signature(func).results;
        assert_eq!(types.len(), results.len(), "interp: wrong number of results for {func}");
        let results: ValueList =
            results.iter().zip(types).map(|(bits, ty)| bits & ty.mask()).collect();
        self.take_back();
        let caller = self.activations.of_run().last().copied();
        // An imported function has recorded its return itself ([`Machine::leave_imported`]).
        if !self.is_imported(func) && (caller.is_some() || !self.is_nested()) {
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

    /// Lets the run itself execute the function for whose results it waits: a function without a
    /// body at the call, whose body has come since ([`Machine::take_up`]). `args` are the arguments
    /// with which the run stopped. Returns false, and changes nothing, when a limit forbids another
    /// activation. Cost: the frame.
    ///
    /// # Panics
    /// When the run waits for no results, or the function has no version.
    pub fn enter_called(&mut self, args: &[u64]) -> bool {
        let waiting = self.state.waiting.as_ref().filter(|waiting| waiting.args.is_none());
        let func = waiting.expect("interp: no run waits for the results of a call").func;
        let version = self.current(func).expect("interp: the function has a version");
        if self.versions[version.index()].code.fast.is_none() {
            fast::exec::leave(self);
        }
        let callee = &self.versions[version.index()].code;
        // Fast code finds its results by the call itself.
        let caller = self.activations.of_run().last().filter(|_| !self.state.fast);
        let results_at = caller
            .map_or(0, |caller| self.versions[caller.version as usize].code.results_at(caller.pc));
        let Some(base) = self.activations.push(version.as_u32(), callee, results_at) else {
            return false;
        };
        self.activations.stack[base..][..args.len()].copy_from_slice(args);
        if let Some(fast) = callee.fast.as_ref().filter(|_| self.state.fast) {
            fast.fill_consts(&mut self.activations.stack, base);
        }
        self.state.waiting = None;
        self.count_first_call(version, args);
        true
    }

    /// Drops the innermost activation of a paused run, because native code continues in its place.
    /// Returns its function, for whose results the run then waits. Returns `None`, and changes
    /// nothing, when no run is paused.
    pub fn leave_activation(&mut self) -> Option<Func> {
        if !self.state.asked {
            return None;
        }
        let left = self.activations.pop();
        let func = self.versions[left.version as usize].func;
        self.state.asked = false;
        self.state.waiting = Some(AwaitedCall { func, args: None });
        Some(func)
    }

    /// Drops the current run after native code ended it and the end was recorded already
    /// ([`Machine::end_in_native`] in a nested run). Suspended runs stay as they are. Cost: the
    /// number of activations dropped.
    pub fn abandon(&mut self) {
        self.activations.drop_run();
        self.state = RunState::default();
    }

    /// Begins a nested run, because native code calls a function that is to be interpreted,
    /// external or not. Suspends the current run, if there is one, in any state. [`Machine::run`]
    /// then executes the nested run until its first activation returns or it ends otherwise. Bits
    /// of arguments outside their types are cleared. The trace records neither the call nor the
    /// return of the first activation. Cost: the number of arguments, plus the cost of the digests.
    ///
    /// # Errors
    /// [`TransferError::StackOverflow`] when a limit has no room for the activation; the machine is
    /// unchanged then.
    ///
    /// # Panics
    /// When the function is imported or awaits its body, or the number of arguments is wrong.
    pub fn begin_nested(&mut self, func: Func, args: &[u64]) -> Result<Nested, TransferError> {
        let version = self.startable(func);
        let args = self.clean_args(func, args);
        let nested = self.suspend();
        if self.begin(version, &args) {
            self.count_first_call(version, &args);
            return Ok(nested);
        }
        self.end_nested(nested);
        Err(TransferError::StackOverflow)
    }

    /// As [`Machine::begin_nested`], but the run begins where an entry into the versions `to` lands
    /// ([`Machine::fire`]), with the values that the compensation code computes; all others are
    /// [`super::poison`]. The outermost activation is the first of the nested run. This is how
    /// native code side-exits to the interpreter: `read` gives the contents of a value of the
    /// source version, which ran elsewhere. The machine executes the stores that the entry replays.
    /// The run is paused at the landing point, so the observer does not see the instruction there.
    /// Cost: the compensation code, the frames, and the digests.
    ///
    /// The source version runs elsewhere, so the machine cannot look at it. `from` and `at` are the
    /// version and the point that the engine leaves, and the engine vouches for them and for the
    /// contents.
    ///
    /// # Errors
    /// When the entry leads to another version or starts elsewhere than `at`, and as
    /// [`FireError`] says. The suspended run stays as it was; stores may have been executed.
    ///
    /// # Panics
    /// When the machine has no such version.
    pub fn begin_nested_at(
        &mut self,
        to: impl AsRef<[VersionId]>,
        entry: CheckedEntry<'_>,
        from: VersionKey,
        at: Point,
        read: impl Fn(Value) -> u64,
    ) -> Result<Nested, FireError> {
        let to = to.as_ref();
        if entry.source() != from {
            return Err(FireError::OtherSource);
        }
        if entry.point() != at {
            return Err(FireError::OtherPoint(at));
        }
        self.require_versions(to, &entry)?;
        let entry = entry.entry();
        let mut assigned = AssignedValues::new();
        let objects = self.objects_of(entry).map_err(FireError::Code)?;
        let assign = |_, value, bits| assigned.push((value, bits));
        let ran = entry.run_with(&objects, read, assign);
        let writes = ran.map_err(FireError::Code)?;
        let refused = FireError::Transfer;
        let landings = self.landings(to, entry, &assigned).map_err(refused)?;
        let nested = self.suspend();
        // The frames take the place of the activation that begins here.
        let entered = match landings.last() {
            Some(outermost) if self.begin(outermost.version, &[]) => self.land_in(&landings),
            _ => Err(TransferError::StackOverflow),
        };
        let written = entered.map_err(refused).and_then(|()| {
            writes.iter().try_for_each(|write| self.write(write)).map_err(FireError::Store)
        });
        if let Err(error) = written {
            self.end_nested(nested);
            return Err(error);
        }
        self.state.asked = true;
        Ok(nested)
    }

    fn suspend(&mut self) -> Nested {
        self.take_back();
        let (state, floor) = (std::mem::take(&mut self.state), self.activations.floor());
        self.suspended.push(Suspended { state, floor });
        let below = self.activations.depth();
        self.activations.set_floor(below);
        Nested { level: self.suspended.len(), first_depth: below + 1 }
    }

    /// Ends a nested run and returns to the run suspended below. A nested run that has not ended is
    /// dropped.
    ///
    /// # Panics
    /// When `nested` is not the innermost nested run, or [`Machine::start`] has dropped it.
    pub fn end_nested(&mut self, nested: Nested) {
        assert_eq!(
            nested.level,
            self.suspended.len(),
            "interp: only the innermost nested run can end"
        );
        self.abandon();
        let below =
            self.suspended.pop().expect("interp: a nested run has a suspended run below it");
        self.state = below.state;
        self.activations.set_floor(below.floor);
    }
}
