//! Runs of the bases of a program in a machine whose code comes and goes. Each run must end as the
//! interpreter's ends, with the same state.

use super::compare::{FollowEnd, compare_state, ended_alike, is_exhausted};
use super::trial::Trial;
use interp::{Machine, NoObserver, Options, Outcome, Program, TraceLevel};
use ir::Func;
use jit::{RunError, Vm};

/// A machine with native code, and one of the interpreter beside it.
pub(super) struct BaseTwins<'v> {
    pub(super) vm: &'v mut Vm,
    base: Machine,
    /// The kind of the code, for messages.
    what: &'static str,
    /// Whether the code leaves inlined code: its frames need more room than inlined code, and
    /// effects are compared from outside, whose order of inner calls is another.
    leaves_inlined: bool,
}

impl<'v> BaseTwins<'v> {
    pub(super) fn new(
        trial: &Trial<'_>,
        vm: &'v mut Vm,
        what: &'static str,
    ) -> Result<BaseTwins<'v>, String> {
        let trace = if vm.engine().config().trace { TraceLevel::Digest } else { TraceLevel::Off };
        let options = Options { poison: true, track_memory: false, trace };
        let mut base =
            Machine::with_options(&Program::new(vm.module()), trial.case.hop_limits(), options)
                .map_err(|error| error.to_string())?;
        base.stress_collector(trial.case.options.stress_gc);
        Ok(BaseTwins { vm, base, what, leaves_inlined: false })
    }

    /// The same for code that leaves inlined code.
    pub(super) fn leaving_inlined_code(self) -> BaseTwins<'v> {
        BaseTwins { leaves_inlined: true, ..self }
    }

    /// Runs the start function, and in each round the entry function on every input. `before` comes
    /// before each run, with the number of its round.
    ///
    /// # Errors
    /// A difference between native code and the interpreter.
    pub(super) fn runs(
        &mut self,
        trial: &mut Trial<'_>,
        rounds: usize,
        before: &mut dyn FnMut(&mut Vm, Func, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let case = trial.case;
        let start = self.base.start_function().map(|start| (start, &[][..], 0));
        let inputs = (0..rounds).flat_map(|round| case.arguments.iter().map(move |a| (round, a)));
        let calls = start.into_iter().chain(inputs.map(|(round, a)| (case.entry, &a[..], round)));
        for (func, args, round) in calls {
            before(self.vm, func, round)?;
            if !self.run(trial, func, args)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes one run in both machines. Returns false if a limit ended the run: the machines then
    /// differ.
    fn run(&mut self, trial: &mut Trial<'_>, func: Func, args: &[u64]) -> Result<bool, String> {
        let case = trial.case;
        trial.figures.runs += 1;
        self.base.set_fuel(case.fuel);
        let expected = self.base.invoke(func, args, &mut case.world.clone(), &mut NoObserver);
        if is_exhausted(&expected) {
            trial.figures.exhausted += 1;
            return Ok(false);
        }
        self.vm.machine_mut().set_fuel(u64::MAX / 4);
        let found = match self.vm.invoke(func, args, &mut case.world.clone()) {
            Ok(found) => found,
            Err(RunError::StackOverflow { .. }) if self.leaves_inlined => {
                trial.figures.exhausted += 1;
                return Ok(false);
            }
            Err(error) => return Err(trial.described(self.vm, args, &error.to_string())),
        };
        if is_exhausted(&found) {
            trial.figures.exhausted += 1;
            return Ok(false);
        }
        trial.figures.trapped += u64::from(expected.trap().is_some());
        match self.difference(&found, &expected) {
            Some(why) => Err(trial.described(self.vm, args, &why)),
            None => Ok(true),
        }
    }

    fn difference(&self, found: &Outcome, expected: &Outcome) -> Option<String> {
        let what = self.what;
        if !ended_alike(found, expected) {
            return Some(format!("{what} ends with {found}, the base with {expected}"));
        }
        if self.leaves_inlined {
            let (found, expected) = (self.vm.machine(), &self.base);
            if found.trace().outer_digest() != expected.trace().outer_digest() {
                return Some("the outer effects differ".to_owned());
            }
            return (!found.same_memory(expected)).then(|| "memory or globals differ".to_owned());
        }
        let place = || format!("at the end of a run of {what}");
        match compare_state(self.vm.machine(), &self.base, &place) {
            Ok(()) => None,
            Err(FollowEnd::Finding(text)) => Some(text),
            Err(FollowEnd::Limit) => None,
        }
    }
}
