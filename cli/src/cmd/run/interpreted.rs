//! `osier run --engine interp`: runs a program in the interpreter.

use super::interrupts::SignalWatch;
use super::{Args, Call, Executed};
use crate::cmd::failure::CommandFailure;
use interp::{Host, InstantiateError, Machine, NoObserver, Options, Outcome, Program};
use ir::{Func, Module};
use jit::{Bounds, Config, Engine, Interruption, RunError, Vm, VmError};
use osier::inlining::ModuleSites;
use osier::profile::Profile;
use osier::schema::RunStats;
use std::sync::Arc;
use std::time::Instant;

/// A machine that interprets.
enum Interpreter {
    /// Nothing ends a run before the program does.
    Plain(Box<Machine>),
    /// A machine without native code. Its loop headers and function entries heed signals.
    Watched(Box<Vm>),
}

impl Interpreter {
    /// # Errors
    /// If the module cannot be instantiated.
    fn new(args: &Args, module: &Arc<Module>) -> Result<Interpreter, InstantiateError> {
        let (limits, options) = (args.run_limits.limits(), Options::default());
        if args.writes_figures() {
            let config = Config {
                bounds: Bounds::Checked,
                interruption: Interruption::Signal,
                ..Config::default()
            };
            // A host without native code has no engine. There, a signal ends the process.
            let made = Engine::new(config).ok();
            match made.map(|engine| Vm::new(&engine, module, limits, options)) {
                Some(Ok(vm)) => return Ok(Interpreter::Watched(Box::new(vm))),
                Some(Err(VmError::Instantiate(error))) => return Err(error),
                Some(Err(_)) | None => {}
            }
        }
        let program = Program::on_demand(module);
        Ok(Interpreter::Plain(Box::new(Machine::with_options(&program, limits, options)?)))
    }

    fn machine(&mut self) -> &mut Machine {
        match self {
            Interpreter::Plain(machine) => machine,
            Interpreter::Watched(vm) => vm.machine_mut(),
        }
    }

    fn invoke(
        &mut self,
        func: Func,
        args: &[u64],
        host: &mut dyn Host,
    ) -> Result<Outcome, RunError> {
        match self {
            Interpreter::Plain(machine) => Ok(machine.invoke(func, args, host, &mut NoObserver)),
            Interpreter::Watched(vm) => vm.invoke(func, args, host),
        }
    }

    /// Runs the start function, then the call if that returned.
    fn run(&mut self, call: &Call, host: &mut dyn Host) -> Result<Outcome, RunError> {
        if let Some(start) = self.machine().start_function() {
            let outcome = self.invoke(start, &[], host)?;
            if outcome.returned().is_none() {
                return Ok(outcome);
            }
        }
        self.invoke(call.func, &call.args, host)
    }
}

/// Instantiates the module in the interpreter and calls its start function, then the function of
/// `call`.
///
/// # Errors
/// If the module cannot be instantiated.
pub(super) fn execute(
    args: &Args,
    module: &Arc<Module>,
    sites: &ModuleSites,
    call: &Call,
    stats: &mut RunStats,
) -> Result<Executed, CommandFailure> {
    let started = Instant::now();
    let made = Interpreter::new(args, module);
    let mut interpreter =
        made.map_err(|e| CommandFailure::input(format!("{}: {e}", call.words.file.display())))?;
    let mut host = args.surroundings.host(&call.words)?;
    let machine = interpreter.machine();
    for (func, sites) in sites {
        if let Some(version) = machine.current(*func) {
            machine.set_sites(version, Arc::clone(sites));
        }
    }
    if args.profile.is_some() {
        machine.count();
    }
    let signals = match &interpreter {
        Interpreter::Plain(_) => None,
        Interpreter::Watched(vm) => Some(SignalWatch::start(vm.interrupt())?),
    };
    let outcome = interpreter.run(call, &mut host);
    signals.into_iter().for_each(SignalWatch::end);
    let machine = interpreter.machine();
    stats.instructions = Some(args.run_limits.limits().fuel - machine.fuel());
    stats.seconds.execute = started.elapsed().as_secs_f64();
    let profile = args.profile.is_some().then(|| Profile::collect(module, machine));
    Ok(Executed { ended: outcome.map_err(CommandFailure::of_run), profile })
}
