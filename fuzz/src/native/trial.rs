//! The trial of two versions of a program: compiles both with points, runs every input in native
//! code, and follows each transition.

use super::clock::Clock;
use super::compare::FollowEnd;
use super::follow::{Follower, Following};
use super::plan::{self, NativePlan};
use super::shadow::Shadow;
use crate::case::Case;
use crate::figures::{AddUp, Figures, NativeFigures};
use crate::oracle::{FuzzFinding, FuzzOracle};
use interp::{Machine, Options, Outcome, Program, TraceLevel};
use ir::{Func, Module};
use jit::{Bounds, Condition, Config, Engine, Interruption, RunError, VersionSpec, Vm, VmError};
use std::sync::{Arc, Mutex, PoisonError};
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// The number of passes over the inputs, with other flags in each. Compiling takes far longer than
/// running, so compiled code should run often.
const ROUNDS: usize = 6;

/// The divisor of fuel for a run that must not reach its end: it gets a sixteenth of the fuel that
/// the interpreter needs.
const STARVE: u64 = 16;

/// A call of a function from outside, and the number of the run that it starts.
struct NumberedCall<'c> {
    func: Func,
    args: &'c [u64],
    number: u64,
}

/// The trial of two versions of a program.
pub(super) struct Trial<'c> {
    pub(super) case: &'c Case,
    pub(super) versions: [usize; 2],
    /// Sets the samples of this trial apart from those of others.
    pub(super) tag: u64,
    pub(super) clock: &'c Clock,
    pub(super) figures: NativeFigures,
}

impl<'c> Trial<'c> {
    pub(super) fn new(case: &'c Case, versions: [usize; 2], clock: &'c Clock) -> Trial<'c> {
        let [first, last] = versions.map(|number| number as u64);
        let tag = 0x6e61_7469 + (first << 32) + (last << 40);
        Trial { case, versions, tag, clock, figures: NativeFigures::default() }
    }

    /// Judges the pairs of versions, and adds the counts.
    ///
    /// # Errors
    /// A difference between native code and the interpreter.
    pub(super) fn judge(
        mut self,
        module: &Arc<Module>,
        pairs: &[FunctionPair<'_>],
        figures: &mut Figures,
    ) -> Result<(), Vec<FuzzFinding>> {
        let ended = self.follow(module, pairs);
        figures.entries_armed += self.figures.points;
        figures.entries_fired += self.figures.points_fired;
        self.finish(ended, figures)
    }

    /// Ends the trial: adds its counts, and turns a difference into a finding.
    ///
    /// # Errors
    /// The finding.
    pub(super) fn finish(
        self,
        ended: Result<(), String>,
        figures: &mut Figures,
    ) -> Result<(), Vec<FuzzFinding>> {
        figures.native.add(&self.figures);
        let (oracle, versions) = (FuzzOracle::Native, self.versions);
        ended.map_err(|message| vec![FuzzFinding { oracle, versions, message }])
    }

    fn follow(&mut self, module: &Arc<Module>, pairs: &[FunctionPair<'_>]) -> Result<(), String> {
        let mut prng = Prng::new(self.case.seed).fork(self.tag);
        let config = plan::config(self.case.options.nans, &mut prng);
        let (mut machine, ids) = self.machine(module, pairs)?;
        let mut plan = NativePlan::new(pairs, &ids, self.case.options.stress.is_on(), &mut prng);
        plan.mark(&mut machine);
        let mut vm = self.instance(module, config)?;
        let engine = vm.engine().clone();
        self.compile(&mut vm, &engine, module, &mut plan, &mut prng)?;
        let shadow = Shadow::new(machine, self.case.world.clone());
        let clock = Arc::clone(self.clock);
        let mut following = Following::new(plan, shadow, self.case, clock, prng.fork(7));
        following.link(&mut vm).map_err(FollowEnd::into_text)?;
        let following = Arc::new(Mutex::new(following));
        vm.set_tiering(Box::new(Follower(Arc::clone(&following))));
        let ended = self.runs(&mut vm, &following, &mut prng);
        let following = following.lock().unwrap_or_else(PoisonError::into_inner);
        self.figures.add(&following.figures());
        ended
    }

    /// The machine of the interpreter with both versions of every pair, and their ids. New
    /// activations run the version before.
    fn machine(
        &self,
        module: &Module,
        pairs: &[FunctionPair<'_>],
    ) -> Result<(Machine, Vec<[interp::VersionId; 2]>), String> {
        let options = Options { poison: true, track_memory: false, trace: TraceLevel::Digest };
        let program = Program::new(module);
        let mut machine = Machine::with_options(&program, self.case.hop_limits(), options)
            .map_err(|e| e.to_string())?;
        machine.stress_collector(self.case.options.stress_gc);
        let ids = pairs.iter().map(|pair| {
            [pair.before, pair.after].map(|v| machine.add_version(module, pair.func, v))
        });
        let ids = ids.collect();
        Ok((machine, ids))
    }

    /// The machine for native code. A limit of the process or many memories may leave too little
    /// address space for guards. The machine then checks bounds instead, and the pair of versions
    /// is counted. That is no fault of the program.
    pub(super) fn instance(&mut self, module: &Arc<Module>, config: Config) -> Result<Vm, String> {
        let trace = if config.trace { TraceLevel::Digest } else { TraceLevel::Off };
        let options = Options { poison: false, track_memory: false, trace };
        let limits = self.case.hop_limits();
        let made = |config| {
            let engine = Engine::new(config).map_err(|e| e.to_string())?;
            Ok::<_, String>(Vm::new(&engine, module, limits, options))
        };
        let vm = match made(config)? {
            Err(VmError::NoAddressSpace { .. }) if config.bounds == Bounds::Guarded => {
                self.figures.unguarded += 1;
                made(Config { bounds: Bounds::Checked, ..config })?
            }
            vm => vm,
        };
        let mut vm = vm.map_err(|e| e.to_string())?;
        vm.machine_mut().stress_collector(self.case.options.stress_gc);
        Ok(vm)
    }

    /// Compiles both versions of every pair, and most other functions. The remaining functions stay
    /// in the interpreter, so that calls between both are exercised.
    fn compile(
        &mut self,
        vm: &mut Vm,
        engine: &Engine,
        module: &Arc<Module>,
        plan: &mut NativePlan,
        prng: &mut Prng,
    ) -> Result<(), String> {
        let begun = (self.clock)();
        for function in &mut plan.functions {
            // Calls mostly run the version that makes assumptions, if one does.
            let start = usize::from(prng.chance(if function.sides[1].assumes() { 85 } else { 50 }));
            function.start = start;
            // Adopt the other version first: the installed version is the one that calls run.
            for side in [1 - start, start] {
                let half = &mut function.sides[side];
                let spec = match half.is_of_assumptions {
                    true => VersionSpec::leaving(&half.function, |_| Some(&half.mapping)),
                    false => Ok(VersionSpec::from(&half.points)),
                };
                let version = spec
                    .and_then(|spec| engine.version(module, function.func, &half.function, spec));
                let version = version.map_err(|e| e.to_string())?;
                let mapping = Arc::new(half.mapping.clone());
                let actions = Following::actions(&half.ways, &mapping);
                let assumed = half.points.iter().filter(|p| p.condition == Condition::Failing);
                let assumed = assumed.count() as u64;
                self.figures.speculative += u64::from(assumed > 0);
                self.figures.assumptions += assumed;
                let taken = if side == start {
                    vm.install(&version, actions)
                } else {
                    vm.adopt(&version, actions)
                };
                taken.map_err(|e| e.to_string())?;
                self.figures.compiled_functions += 1;
                self.figures.points += half.points.len() as u64;
                half.version = Some(version);
            }
        }
        for (func, body) in module.defined() {
            if plan.place(func).is_none() && prng.chance(85) {
                let version = engine.version(module, func, body, &[]).map_err(|e| e.to_string())?;
                vm.install(&version, Vec::new()).map_err(|e| e.to_string())?;
                self.figures.compiled_functions += 1;
            }
        }
        self.figures.compile_time += (self.clock)().saturating_sub(begun);
        Ok(())
    }

    /// Runs the start function, then the entry function on every input.
    fn runs(
        &mut self,
        vm: &mut Vm,
        following: &Mutex<Following>,
        prng: &mut Prng,
    ) -> Result<(), String> {
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        lock().begin();
        let start = vm.machine().start_function();
        let start = start.map(|func| NumberedCall { func, args: &[], number: 0 });
        let inputs = std::iter::repeat_n(&self.case.arguments, ROUNDS).flatten();
        let entry = self.case.entry;
        let calls = (1..).zip(inputs);
        let calls = calls.map(|(number, args)| NumberedCall { func: entry, args, number });
        for call in start.into_iter().chain(calls) {
            if !self.run(vm, following, &call, prng)? {
                return Ok(());
            }
        }
        lock().compare_counts(vm)?;
        self.starve(vm, following)
    }

    /// Runs once more with a sixteenth of the fuel that the interpreter needs, if native code is
    /// compiled to consume fuel. The run must end for lack of fuel. Other versions may need less
    /// fuel than the measured version, but a sixteenth suffices only for programs that do almost
    /// nothing.
    fn starve(&mut self, vm: &mut Vm, following: &Mutex<Following>) -> Result<(), String> {
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        let mut following = lock();
        let args = self
            .case
            .arguments
            .first()
            .filter(|_| vm.engine().config().interruption == Interruption::Fuel);
        let Some(args) = args else { return Ok(()) };
        following.disarm_all();
        let stayed = following.stayed(self.case.entry, args, self.case.fuel);
        let Some(needed) = stayed.map(|stayed| self.case.fuel - stayed.machine.fuel()) else {
            return Ok(());
        };
        let mut world = following.shadow.world.clone();
        // Countdowns and other points without a flag still fire, so the shadow must follow.
        following.shadow.start(self.case.entry, args);
        drop(following);
        vm.machine_mut().set_fuel(needed / STARVE);
        let ended = vm.invoke(self.case.entry, args, &mut world);
        let stopped = lock().stopped.take();
        match starved(stopped, ended, needed) {
            Ok(()) => Ok(()),
            Err(FollowEnd::Limit) => {
                self.figures.exhausted += 1;
                Ok(())
            }
            Err(FollowEnd::Finding(text)) => Err(self.described(vm, args, &text)),
        }
    }

    /// Makes one run and compares it. Returns whether the instance can make another run.
    fn run(
        &mut self,
        vm: &mut Vm,
        following: &Mutex<Following>,
        call: &NumberedCall<'_>,
        prng: &mut Prng,
    ) -> Result<bool, String> {
        let NumberedCall { func, args, number } = *call;
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        let stress = self.case.options.stress;
        // The interpreter runs first, without transitions and with a limit on fuel. Native code may
        // lack a limit, so an endless program must not reach native code.
        let Some(stayed) = lock().stayed(func, args, self.case.fuel) else {
            self.figures.exhausted += 1;
            return Ok(true);
        };
        lock().arm(number, stress, prng);
        lock().shadow.start(func, args);
        self.figures.runs += 1;
        // The oracle's limits on transitions end a run, so fuel must not end it first.
        vm.machine_mut().set_fuel(u64::MAX / 4);
        let mut world = lock().shadow.world.clone();
        let ended = vm.invoke(func, args, &mut world);
        let mut following = lock();
        let compared = outcome_of(following.stopped.take(), ended).and_then(|outcome| {
            self.figures.trapped += u64::from(outcome.trap().is_some());
            following.ended(vm.machine(), &outcome, &stayed).map_or(Ok(()), Err)
        });
        match compared {
            Ok(()) => Ok(true),
            Err(FollowEnd::Limit) => {
                self.figures.exhausted += 1;
                Ok(false)
            }
            Err(FollowEnd::Finding(text)) => Err(self.described(vm, args, &text)),
        }
    }

    pub(super) fn described(&self, vm: &Vm, args: &[u64], text: &str) -> String {
        let args: Vec<String> = args.iter().map(|bits| format!("{bits:#x}")).collect();
        format!(
            "  {text}\n  on input ({}), compiled with {:?}",
            args.join(", "),
            vm.engine().config()
        )
    }
}

/// The outcome of a native run that the program ended itself.
///
/// # Errors
/// The reason of the oracle if it stopped the run, a finding if the run failed, and
/// [`FollowEnd::Limit`] for a stack overflow.
fn outcome_of(
    stopped: Option<FollowEnd>,
    ended: Result<Outcome, RunError>,
) -> Result<Outcome, FollowEnd> {
    match (stopped, ended) {
        (Some(stop), _) => Err(stop),
        (None, Err(error)) => Err(FollowEnd::Finding(format!("the native run failed: {error}"))),
        (None, Ok(Outcome::StackOverflow(_))) => Err(FollowEnd::Limit),
        (None, Ok(outcome)) => Ok(outcome),
    }
}

/// Judges the end of a run that got a part of the fuel `needed`. Any end but exhaustion is a
/// finding, unless the program needs so little fuel that another version may do with the part.
fn starved(
    stopped: Option<FollowEnd>,
    ended: Result<Outcome, RunError>,
    needed: u64,
) -> Result<(), FollowEnd> {
    match outcome_of(stopped, ended)? {
        Outcome::OutOfFuel(_) => Ok(()),
        _ if needed < 100 * STARVE => Ok(()),
        outcome => Err(FollowEnd::Finding(format!(
            "the run reached its end with 1/{STARVE} of the fuel that the interpreter needs ({outcome})"
        ))),
    }
}

#[cfg(test)]
mod tests;
