//! Running: the calls that start and continue runs, and the choice of the tier that executes them.

use super::calls::call_host;
use super::exec::{self, InstWatcher, LoopStop, run_observed};
use super::fast;
use super::host::Host;
use super::machine::Machine;
use super::outcome::{EarlyEnd, Outcome, Site};
use super::state::{AwaitedCall, RunState};
use super::view::{Observer, Scope};
use super::visits::Attention;
use ir::entity::Func;

/// The state of a run after a call of [`Machine::run`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run {
    /// The observer paused the run before an instruction; [`Machine::run`] continues it.
    Paused,
    /// The run called an external function ([`Machine::set_external`]) and waits for its results.
    /// [`Machine::return_from_call`] delivers them.
    Called {
        /// The function called.
        func: Func,
        /// Its arguments.
        args: Vec<u64>,
    },
    /// An assumption failed, and the run is paused before the instruction. An entry takes the run
    /// to a version without it ([`Machine::fire`]), or [`Machine::fail`] ends the run. To continue
    /// it as it is makes the assumption fail again.
    Failed {
        /// The reason that the instruction names.
        reason: u32,
    },
    /// The run ended.
    Done(Outcome),
}

impl Machine {
    /// Continues the current run until it ends, calls an external function, or the observer pauses
    /// it.
    ///
    /// # Panics
    /// When no run is in progress, or when the run waits for the results of a call.
    pub fn run<O: Observer>(&mut self, host: &mut dyn Host, observer: &mut O) -> Run {
        self.answer_at_once().unwrap_or_else(|| {
            execute(self, host, O::SCOPE, &mut |view, inst| observer.before(view, inst))
        })
    }

    /// The answer of a run that cannot continue: its first activation was refused, or it waits for
    /// the results of a call.
    ///
    /// # Panics
    /// As [`Machine::run`].
    fn answer_at_once(&mut self) -> Option<Run> {
        if let Some(func) = self.state.refused.take() {
            return Some(Run::Done(Outcome::StackOverflow(self.site(func, None))));
        }
        if let Some(AwaitedCall { func, args }) = &mut self.state.waiting {
            let (func, args) = (*func, args.take());
            let args =
                args.unwrap_or_else(|| panic!("interp: the run waits for the results of {func}"));
            return Some(Run::Called { func, args });
        }
        assert!(!self.activations.of_run().is_empty(), "interp: no run is in progress");
        None
    }

    /// Ends a run whose assumption failed. Returns the outcome, which has the reason and the site.
    ///
    /// # Panics
    /// When no run is in progress.
    pub fn fail(&mut self, reason: u32) -> Outcome {
        let site = top_site(self);
        self.end_early(EarlyEnd::Failed(reason), site)
    }

    /// Runs a function to its end, and resumes the run whenever the observer pauses it. A failing
    /// assumption ends the run, and so does a call of a function whose body has not come. An
    /// imported function is called directly.
    ///
    /// # Panics
    /// When the number of arguments is wrong, or when the run calls an external function.
    pub fn invoke<O: Observer>(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
        observer: &mut O,
    ) -> Outcome {
        if self.awaits_body(func) {
            return self.host_outcome(self.body_missing(func), self.site(func, None));
        }
        if self.is_imported(func) {
            return self.invoke_import(func, args, host);
        }
        self.start(func, args);
        self.finish(host, observer)
    }

    /// Continues the current run to its end, as [`Machine::invoke`] does.
    ///
    /// # Panics
    /// When no run is in progress, or when the run calls an external function.
    pub fn finish<O: Observer>(&mut self, host: &mut dyn Host, observer: &mut O) -> Outcome {
        loop {
            match self.run(host, observer) {
                Run::Done(outcome) => return outcome,
                Run::Paused => {}
                Run::Failed { reason } => return self.fail(reason),
                Run::Called { func, .. } if self.awaits_body(func) => {
                    let (_, site) = self.awaited().expect("interp: a run waits for its call");
                    let end = EarlyEnd::Host(self.body_missing(func));
                    return self.end_early(end, site);
                }
                Run::Called { func, .. } => {
                    panic!("interp: a run to its end cannot run {func}, which is external")
                }
            }
        }
    }

    /// Makes the live values of the innermost activation readable ([`Machine::view`]) after
    /// [`Machine::run_to_visit`] has paused. The fast loop has live values in places of its own
    /// until then, and loses dead values. Cost: linear in the code of the version.
    pub fn show_live_values(&mut self) {
        fast::exec::show_top(self);
    }

    /// Whether the innermost activation of a paused run has its dead values, too: the exact loop
    /// alone has executed it.
    pub fn has_dead_values(&self) -> bool {
        let top = self.activations.of_run().last();
        !self.state.fast && top.is_some_and(|top| !top.settled)
    }

    /// Continues the current run until it ends, calls an external function, or pauses: when a
    /// counter reaches zero, or at the next counted visit after a word of `attention` is set. The
    /// pause is before the first instruction of the function or block. The fast loop executes the
    /// run under the conditions under which it executes unobserved runs; a run whose events are
    /// counted ([`Machine::count`]) stays in the exact loop.
    ///
    /// # Panics
    /// As [`Machine::run`].
    pub fn run_to_visit(&mut self, host: &mut dyn Host, attention: Attention<'_>) -> Run {
        self.visits.is_due = false;
        let run = execute_to_visit(self, host, attention);
        self.state.asked |= run == Run::Paused;
        run
    }

    fn invoke_import(&mut self, func: Func, args: &[u64], host: &mut dyn Host) -> Outcome {
        let signature = self.program.declarations().signature(func);
        assert_eq!(
            signature.params.len(),
            args.len(),
            "interp: wrong number of arguments for {func}"
        );
        match call_host(&self.program, func, args, host, &mut self.memories) {
            Ok(results) => Outcome::Returned(results.to_vec()),
            Err(error) => self.host_outcome(error, self.site(func, None)),
        }
    }
}

/// Continues the run of a machine until it ends or pauses.
fn execute(
    machine: &mut Machine,
    host: &mut dyn Host,
    scope: Scope,
    watcher: InstWatcher<'_>,
) -> Run {
    let fast = scope == Scope::Nothing && fast::exec::applies(machine);
    if !fast {
        fast::exec::leave(machine);
    }
    let stop = if fast {
        fast::exec::run(machine, host)
    } else {
        run_observed(machine, host, scope, watcher)
    };
    ended(machine, stop)
}

/// Continues the run of a machine until it ends or a counted visit pauses it
/// ([`Machine::run_to_visit`]).
fn execute_to_visit(machine: &mut Machine, host: &mut dyn Host, attention: Attention<'_>) -> Run {
    if let Some(answer) = machine.answer_at_once() {
        return answer;
    }
    let fast = !machine.counting && fast::exec::applies(machine);
    if !fast {
        fast::exec::leave(machine);
    }
    let run = if fast { fast::exec::run_to_visit } else { exec::run_to_visit };
    let stop = run(machine, host, attention);
    ended(machine, stop)
}

/// The state of a run whose loop has stopped.
fn ended(machine: &mut Machine, stop: LoopStop) -> Run {
    match stop {
        LoopStop::Paused => Run::Paused,
        LoopStop::Failed(reason) => {
            // The run is paused, so that entries can be fired. Should it continue as it is, the
            // assumption fails again, and no observer is asked.
            machine.state.asked = true;
            Run::Failed { reason }
        }
        LoopStop::Called(func, args) => {
            machine.state.waiting = Some(AwaitedCall { func, args: None });
            Run::Called { func, args }
        }
        LoopStop::Returned(values) => {
            machine.state = RunState::default();
            Run::Done(Outcome::Returned(values))
        }
        stop => Run::Done(conclude(machine, stop)),
    }
}

/// Drops the activations of a run that ended without returning, and computes its outcome.
fn conclude(machine: &mut Machine, stop: LoopStop) -> Outcome {
    // The site comes first, because `end_early` drops the activation.
    let site = top_site(machine);
    let end = match stop {
        LoopStop::Trap(kind) => EarlyEnd::Trap { kind, operand: None },
        LoopStop::TrapWith(kind, operand) => EarlyEnd::Trap { kind, operand: Some(operand) },
        LoopStop::Left(point, values) => EarlyEnd::Left(point, values),
        LoopStop::Host(error) => EarlyEnd::Host(error),
        LoopStop::StackOverflow => EarlyEnd::StackOverflow,
        LoopStop::OutOfFuel => EarlyEnd::OutOfFuel,
        LoopStop::Paused
        | LoopStop::Stepped
        | LoopStop::Failed(_)
        | LoopStop::Returned(_)
        | LoopStop::Called(..) => unreachable!("interp: the run did not end early"),
    };
    machine.end_early(end, site)
}

/// The site of the innermost activation.
fn top_site(machine: &Machine) -> Site {
    let top = machine.activations.top();
    let version = &machine.versions[top.version as usize];
    let (func, inst) = version.site(top.pc);
    machine.site(func, inst)
}
