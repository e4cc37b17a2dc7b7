//! The state oracle in native code: transitions that compiled code makes, each compared with the
//! interpreter's.
//!
//! Two versions of each function are compiled with an OSR point at every mapped point, and run in
//! one [`jit::Vm`]. Beside it a machine of the interpreter, the *shadow*, runs the same versions.
//! Each point that fires asks ([`jit::Action::Ask`]): the shadow then runs up to the next point
//! that should fire by the conditions of the points ([`shadow`]), which has to be that one, and its
//! values, memories, tables, globals and effects are compared bit by bit with what native code has
//! left. Then both make the transition. In most, a *probe* ([`jit::Engine::probe`]) shows what the
//! compiled compensation code provides at the landing; that is compared too, and the run goes on
//! behind the landing. In the others it goes on in the continuation itself. At the end, outcome,
//! effects and memory are compared with the shadow's, and with those of a run of the interpreter
//! without transitions.
//!
//! A run must not move to and fro within a gap between anchors forever. So points other than
//! anchors fire in one of the two versions alone, chosen by seed for each function; anchors fire in
//! both, and behind an anchor the run goes on.
//!
//! One instance runs on all inputs, one after the other; so does the shadow.
//!
//! Trusts what the state oracle trusts, and that the mappings are right: a wrong one is followed by
//! both alike, and shows in the end of the run at best.

mod figures;
mod follow;
mod plan;
mod shadow;

pub use figures::NativeFigures;

use super::case::Case;
use super::judge::{Judged, hop_limits, judged_by, module_of, pairs_of};
use super::oracle::{Finding, Oracle};
use super::versions::{derive, map};
use follow::{Follower, Following, Stop};
use interp::{Machine, NoObserver, Options, Outcome, Program, TraceLevel};
use ir::{Func, Module};
use jit::{Action, Bounds, Config, Engine, Interruption, RunError, Vm, VmError};
use plan::Plan;
use shadow::Shadow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use verify::prng::Prng;
use verify::state_oracle::FunctionPair;

/// How often the inputs are gone through, with other flags each time: running takes little time,
/// compiling much.
const ROUNDS: usize = 6;

/// How much less fuel than it needs by the interpreter a program gets that must not come to its
/// end.
const STARVE: u64 = 16;

/// Tells the time since some moment: the library reads no clock.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Puts a case to the native state oracle. A wrong piece of native code may end the process: that
/// is for whoever started it to notice.
pub fn judge_native(case: &Case, clock: &Clock) -> Judged {
    judged_by(case, |figures| {
        let families = derive(case, figures).map_err(|finding| vec![finding])?;
        let mapped = map(&families, case.level, None, figures).map_err(|finding| vec![finding])?;
        for versions in pairs_of(case.versions()) {
            let pairs: Vec<FunctionPair<'_>> =
                mapped.iter().filter_map(|m| m.pair(versions)).collect();
            if !pairs.is_empty() {
                let module = module_of(&case.module, &families, versions.0);
                let mut trial = Trial { case, versions, clock, figures: NativeFigures::default() };
                let ended = trial.judge(&Arc::new(module), &pairs);
                figures.armed += trial.figures.points;
                figures.fired += trial.figures.fired;
                figures.native.add(&trial.figures);
                ended.map_err(|message| {
                    vec![Finding { oracle: Oracle::Native, versions, message }]
                })?;
            }
        }
        Ok(())
    })
}

/// Two versions of a program.
struct Trial<'c> {
    case: &'c Case,
    versions: (usize, usize),
    clock: &'c Clock,
    figures: NativeFigures,
}

impl Trial<'_> {
    fn judge(&mut self, module: &Arc<Module>, pairs: &[FunctionPair<'_>]) -> Result<(), String> {
        let tag = 0x6e61_7469 + ((self.versions.0 as u64) << 32) + ((self.versions.1 as u64) << 40);
        let mut prng = Prng::new(self.case.seed).fork(tag);
        let config = plan::config(&mut prng);
        let (mut machine, ids) = self.machine(module, pairs)?;
        let mut plan = Plan::new(pairs, &ids, self.case.stress.is_on(), &mut prng);
        plan.mark(&mut machine);
        let mut vm = self.instance(module, config)?;
        let engine = vm.engine().clone();
        self.compile(&mut vm, &engine, module, &mut plan, &mut prng)?;
        let shadow = Shadow::new(machine, self.case.world.clone());
        let following =
            Following::new(plan, shadow, Arc::clone(self.clock), prng.fork(7), self.case.stress);
        let following = Arc::new(Mutex::new(following));
        vm.set_tiering(Box::new(Follower(Arc::clone(&following))));
        let ended = self.runs(&mut vm, &following, &mut prng);
        let following = following.lock().unwrap_or_else(PoisonError::into_inner);
        self.figures.add(&following.figures());
        ended
    }

    /// The interpreter's machine, with both versions of every pair; new activations run the version
    /// before.
    fn machine(
        &self,
        module: &Module,
        pairs: &[FunctionPair<'_>],
    ) -> Result<(Machine, Vec<[interp::VersionId; 2]>), String> {
        let options = Options { poison: true, track_memory: false, trace: TraceLevel::Digest };
        let program = Program::new(module);
        let mut machine = Machine::with_options(&program, hop_limits(self.case), options)
            .map_err(|e| e.to_string())?;
        let ids = pairs.iter().map(|pair| {
            [pair.before, pair.after].map(|v| machine.add_version(module, pair.func, v))
        });
        let ids = ids.collect();
        Ok((machine, ids))
    }

    /// The machine that runs natively. Where the process has no address space for guards, because
    /// of its own limit or of the many memories of the program, accesses are checked instead: that
    /// says nothing about the program. Such pairs of versions are counted.
    fn instance(&mut self, module: &Arc<Module>, config: Config) -> Result<Vm, String> {
        let options = Options { poison: false, track_memory: false, trace: TraceLevel::Digest };
        let limits = hop_limits(self.case);
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
        vm.map_err(|e| e.to_string())
    }

    /// Compiles both versions of every pair, and most of the other functions: the rest stays in the
    /// interpreter.
    fn compile(
        &mut self,
        vm: &mut Vm,
        engine: &Engine,
        module: &Arc<Module>,
        plan: &mut Plan,
        prng: &mut Prng,
    ) -> Result<(), String> {
        let begun = (self.clock)();
        for function in &mut plan.functions {
            let start = usize::from(prng.chance(50));
            function.start = start;
            for side in [1 - start, start] {
                let half = &mut function.sides[side];
                let version = engine.version(module, function.func, &half.function, &half.points);
                let version = version.map_err(|e| e.to_string())?;
                let actions = vec![Action::Ask; half.points.len()];
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

    /// Runs the start function and then the entry on every input.
    fn runs(
        &mut self,
        vm: &mut Vm,
        following: &Mutex<Following>,
        prng: &mut Prng,
    ) -> Result<(), String> {
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        lock().begin();
        let start = vm.machine().start_function();
        if let Some(start) = start
            && !self.run(vm, following, (start, &[], 0), prng)?
        {
            return Ok(());
        }
        let inputs = std::iter::repeat_n(&self.case.arguments, ROUNDS).flatten();
        for (number, args) in (1..).zip(inputs) {
            if !self.run(vm, following, (self.case.entry, args, number), prng)? {
                return Ok(());
            }
        }
        self.starve(vm, following)
    }

    /// Runs once more with half the fuel that the interpreter needs, where native code pays for
    /// what it does. Versions may need less than that, but not by so much, unless there is hardly
    /// anything to do.
    fn starve(&mut self, vm: &mut Vm, following: &Mutex<Following>) -> Result<(), String> {
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        let mut following = lock();
        let args = self
            .case
            .arguments
            .first()
            .filter(|_| vm.engine().config().interruption == Interruption::Fuel);
        let Some(args) = args else { return Ok(()) };
        following.disarm_all(vm);
        let stayed = following.shadow.stayed(self.case.entry, args, self.case.fuel);
        let Some(needed) = stayed.map(|stayed| self.case.fuel - stayed.machine.fuel()) else {
            return Ok(());
        };
        let mut world = following.shadow.world.clone();
        // Points without a flag fire all the same.
        following.shadow.start(self.case.entry, args);
        drop(following);
        vm.machine_mut().set_fuel(needed / STARVE);
        let ended = vm.invoke(self.case.entry, args, &mut world);
        let stopped = lock().stopped.take();
        match starved(stopped, ended, needed) {
            Ok(()) => Ok(()),
            Err(Stop::Limit) => {
                self.figures.exhausted += 1;
                Ok(())
            }
            Err(Stop::Finding(text)) => Err(self.told(vm, args, &text)),
        }
    }

    /// One run; whether another one can follow on the same instance.
    fn run(
        &mut self,
        vm: &mut Vm,
        following: &Mutex<Following>,
        (func, args, number): (Func, &[u64], u64),
        prng: &mut Prng,
    ) -> Result<bool, String> {
        let lock = || following.lock().unwrap_or_else(PoisonError::into_inner);
        let stress = self.case.stress;
        // Without transitions, and with a limit: native code may have none.
        let Some(stayed) = lock().shadow.stayed(func, args, self.case.fuel) else {
            self.figures.exhausted += 1;
            return Ok(true);
        };
        lock().arm(vm, number, stress, prng);
        lock().shadow.start(func, args);
        self.figures.runs += 1;
        vm.machine_mut().set_fuel(u64::MAX / 4);
        let mut world = lock().shadow.world.clone();
        let ended = vm.invoke(func, args, &mut world);
        let mut following = lock();
        let compared = came_to(following.stopped.take(), ended).and_then(|outcome| {
            self.figures.trapped += u64::from(outcome.trap().is_some());
            following.ended(vm.machine(), &outcome, &stayed).map_or(Ok(()), Err)
        });
        match compared {
            Ok(()) => Ok(true),
            Err(Stop::Limit) => {
                self.figures.exhausted += 1;
                Ok(false)
            }
            Err(Stop::Finding(text)) => Err(self.told(vm, args, &text)),
        }
    }

    fn told(&self, vm: &Vm, args: &[u64], text: &str) -> String {
        let args: Vec<String> = args.iter().map(|bits| format!("{bits:#x}")).collect();
        format!(
            "  {text}\n  on input ({}), compiled with {:?}",
            args.join(", "),
            vm.engine().config()
        )
    }
}

/// Why a run of the oracle is ended: [`follow`] says why.
const ENDED: RunError = RunError::Interrupted;

/// The end of a native run that came to one of the program's own.
fn came_to(stopped: Option<Stop>, ended: Result<Outcome, RunError>) -> Result<Outcome, Stop> {
    match (stopped, ended) {
        (Some(stop), _) => Err(stop),
        (None, Err(error)) => Err(Stop::Finding(format!("the native run failed: {error}"))),
        (None, Ok(Outcome::StackOverflow(_))) => Err(Stop::Limit),
        (None, Ok(outcome)) => Ok(outcome),
    }
}

/// Whether a run may end so that had a part of the fuel `needed`: for want of fuel, and otherwise
/// where so little is needed that the versions may have done with less.
fn starved(
    stopped: Option<Stop>,
    ended: Result<Outcome, RunError>,
    needed: u64,
) -> Result<(), Stop> {
    match came_to(stopped, ended)? {
        Outcome::OutOfFuel(_) => Ok(()),
        _ if needed < 100 * STARVE => Ok(()),
        outcome => Err(Stop::Finding(format!(
            "the run ends with a {STARVE}th of the fuel it needs ({outcome})"
        ))),
    }
}

/// What ended a run of the interpreter without transitions.
struct Stayed {
    outcome: Outcome,
    machine: Machine,
}

impl Stayed {
    fn of(mut machine: Machine, mut world: super::case::World, func: Func, args: &[u64]) -> Stayed {
        let outcome = machine.invoke(func, args, &mut world, &mut NoObserver);
        Stayed { outcome, machine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interp::Site;

    /// Enough for a run to be expected to end for want of fuel.
    const MUCH: u64 = 100 * STARVE;

    fn site() -> Site {
        Site { func: Func::from_u32(0), function: "f".to_owned(), inst: None }
    }

    fn is_finding(ended: Result<(), Stop>) -> bool {
        matches!(ended, Err(Stop::Finding(_)))
    }

    #[test]
    fn a_starved_run_that_fails_is_a_finding_however_little_it_needs() {
        for error in [
            RunError::Lost,
            RunError::WildAccess { address: 16 },
            RunError::Interrupted,
            RunError::Released,
        ] {
            for needed in [1, MUCH] {
                assert!(is_finding(starved(None, Err(error.clone()), needed)), "{error}, {needed}");
            }
        }
    }

    #[test]
    fn what_a_point_shows_in_a_starved_run_is_a_finding() {
        let shown = || Some(Stop::Finding("values differ".to_owned()));
        assert!(is_finding(starved(shown(), Err(ENDED), 1)));
        assert!(is_finding(starved(shown(), Ok(Outcome::OutOfFuel(site())), MUCH)));
        assert!(matches!(starved(Some(Stop::Limit), Err(ENDED), MUCH), Err(Stop::Limit)));
    }

    #[test]
    fn a_starved_run_ends_for_want_of_fuel_or_needs_hardly_any() {
        let ends = [
            Outcome::Returned(Vec::new()),
            Outcome::Exited(0),
            Outcome::Trapped { kind: ir::TrapKind::Unreachable, site: site() },
        ];
        for end in ends {
            assert!(is_finding(starved(None, Ok(end.clone()), MUCH)), "{end}");
            assert!(starved(None, Ok(end), MUCH - 1).is_ok());
        }
        assert!(starved(None, Ok(Outcome::OutOfFuel(site())), MUCH).is_ok());
        assert!(matches!(
            starved(None, Ok(Outcome::StackOverflow(site())), MUCH),
            Err(Stop::Limit)
        ));
    }
}
