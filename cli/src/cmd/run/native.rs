//! `osier run --engine jit` and `--engine tiered`: runs a program in native code and collects
//! figures about its compilation and transitions.

use super::interrupts::SignalWatch;
use super::speculation::{self, AssumptionRecord};
use super::tiers::{self, TierRecord};
use super::tools::Tools;
use super::{Args, Call, Executed, HOT, RunEngine};
use crate::cmd::failure::CommandFailure;
use crate::cmd::stopwatch::Stopwatch;
use interp::{Host, Options, Outcome};
use ir::{Func, Inst, Module, Point};
use jit::{Bounds, Config, FailedPoint, Interruption, Nans, RunError, TransitionKind, Vm, VmError};
use osier::check::KnownCallFault;
use osier::driver::{Observer as _, Step};
use osier::inlining::{ModuleSites, PassPlan};
use osier::landing::LandingRow;
use osier::listing;
use osier::schema::{CompiledCode, MadeTransition, RunStats};
use osier::speculate::{Assumption, SpeculateError, Speculative};
use osier::tiers::{
    Compiled, CompiledKind, Costs, Eager, Observer, TierListener, Tiered, native_profile,
};
use passes::Pipeline;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Stack in bytes of the thread that runs the program: 512 MiB. The system commits pages on first
/// use.
const STACK: usize = 512 << 20;

/// Records each compiled piece of code, the times of compiling it, and the fate of assumptions.
#[derive(Clone)]
struct Log {
    started: Instant,
    module: Arc<Module>,
    begun: Option<Instant>,
    made: Arc<Mutex<CompileRecord>>,
}

/// The compiled code so far, the time of optimizing it, and the assumptions made.
struct CompileRecord {
    code: Vec<CompiledCode>,
    optimizing: Stopwatch,
    assumptions: AssumptionRecord,
    tiers: TierRecord,
}

impl Log {
    fn made(&self) -> MutexGuard<'_, CompileRecord> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn name(&self, func: Func) -> &str {
        &self.module.funcs[func].name
    }

    /// Notes the steps of tiering with their times.
    fn listener(&self) -> TierListener {
        let log = self.clone();
        Arc::new(move |event| {
            let now = log.started.elapsed().as_secs_f64();
            log.made().tiers.note(&log.module, now, event);
        })
    }
}

impl Observer for Log {
    fn step(&mut self, step: Option<Step>) {
        self.made().optimizing.begin(step);
    }

    fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    fn speculated(&mut self, _func: Func, made: &Speculative) {
        self.made().assumptions.speculated(made);
    }

    fn refused(&mut self, func: Func, error: &SpeculateError) {
        let what = format!("{}: {error}", self.module.funcs[func].name);
        self.made().assumptions.figures.refused.push(what);
    }

    fn row(&mut self, func: Func, at: Point, made: &LandingRow) {
        self.made().assumptions.row(&self.module, func, at, made);
    }

    fn linked(&mut self, exit: FailedPoint<'_>, at: Point, row: usize) {
        let now = self.started.elapsed().as_secs_f64();
        let mut made = self.made();
        let told = made.assumptions.linked(&self.module, exit, at, row, now);
        made.tiers.tell("links", self.name(exit.version.func()), now, told);
    }

    fn in_context(&mut self, func: Func, facts: &[Assumption], made: &Speculative) {
        self.made().assumptions.in_context(&self.module, func, facts, made);
    }

    fn without_link(&mut self, func: Func, _call: Inst, fault: KnownCallFault) {
        let what = format!("{}: {fault}", self.module.funcs[func].name);
        self.made().assumptions.figures.refused.push(what);
    }

    fn out_of_context(&mut self, func: Func, facts: &[Assumption]) {
        self.made().assumptions.out_of_context(&self.module, func, facts);
    }

    fn failed(&mut self, at: FailedPoint<'_>) {
        let now = self.started.elapsed().as_secs_f64();
        let mut made = self.made();
        let told = made.assumptions.failed(&self.module, at, now);
        // A storm has few lines.
        let told = told.filter(|_| at.count.is_power_of_two());
        made.tiers.tell("fails", self.name(at.version.func()), now, told);
    }

    fn abandoned(&mut self, func: Func, assumption: &Assumption) {
        let now = self.started.elapsed().as_secs_f64();
        let mut made = self.made();
        let told = made.assumptions.abandoned(&self.module, func, assumption);
        made.tiers.tell("omits", self.name(func), now, Some(told));
    }

    fn compiled(&mut self, made: Compiled) {
        let begun = self.begun.take().unwrap_or(self.started);
        self.made().assumptions.compiled(made.version, made.bytes);
        let kind = match made.kind {
            CompiledKind::Version => "version",
            CompiledKind::Continuation => "continuation",
            CompiledKind::Row => "row",
        };
        let made = CompiledCode {
            function: self.module.funcs[made.func].name.clone(),
            kind,
            instructions: made.instructions,
            bytes: made.bytes,
            at: begun.duration_since(self.started).as_secs_f64(),
            seconds: begun.elapsed().as_secs_f64(),
        };
        self.made().code.push(made);
    }
}

/// Instantiates the module and makes the call in native code, in a thread with a large stack.
///
/// # Errors
/// If the thread cannot be started or the module cannot be instantiated.
pub(super) fn execute(
    args: &Args,
    engine: RunEngine,
    module: &Arc<Module>,
    sites: ModuleSites,
    call: &Call,
    stats: &mut RunStats,
) -> Result<Executed, CommandFailure> {
    std::thread::scope(|scope| {
        let run = || run(args, engine, module, sites, call, stats);
        let thread = std::thread::Builder::new()
            .name("program".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, run);
        let thread = thread.map_err(|error| {
            CommandFailure::input(format!("no thread for the program: {error}"))
        })?;
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

fn run(
    args: &Args,
    engine: RunEngine,
    module: &Arc<Module>,
    sites: ModuleSites,
    call: &Call,
    stats: &mut RunStats,
) -> Result<Executed, CommandFailure> {
    let started = Instant::now();
    let tools = args.tools.open()?;
    let mut vm = instance(args, call, module, &tools)?;
    let record = CompileRecord {
        code: Vec::new(),
        optimizing: Stopwatch::new(),
        assumptions: AssumptionRecord::default(),
        tiers: TierRecord::default(),
    };
    let made = Arc::new(Mutex::new(record));
    let log = Log { started, module: Arc::clone(module), begun: None, made: Arc::clone(&made) };
    match engine {
        RunEngine::Tiered => {
            let tiered = policy(args, log);
            let tiered = speculation::speculating(args, module, &mut vm, tiered)?;
            let tiered = if waits(args) { tiered } else { tiered.in_background() };
            vm.set_tiering(Box::new(tiered));
        }
        RunEngine::Jit | RunEngine::Interp => {
            let eager = Eager::new(log).with_sites(sites);
            let eager = if args.profile.is_some() { eager.counting() } else { eager };
            vm.set_tiering(Box::new(eager));
        }
    }
    let mut host = args.surroundings.host(&call.words)?;
    let signals = match args.interruption() {
        Interruption::Signal => Some(SignalWatch::start(vm.interrupt())?),
        _ => None,
    };
    let outcome = invoke(&mut vm, engine, call, &mut host);
    signals.into_iter().for_each(SignalWatch::end);
    stats.seconds.execute = started.elapsed().as_secs_f64();
    let profile = args.profile.is_some().then(|| native_profile(module, &vm));
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    // Only tiered runs optimize during execution. With `--pipeline` the times before the run count
    // too.
    if engine == RunEngine::Tiered {
        let hot: f64 = Step::ALL.into_iter().map(|step| made.optimizing.seconds(step)).sum();
        stats.seconds.optimize = Some(stats.seconds.optimize.unwrap_or(0.0) + hot);
    }
    stats.seconds.compile = Some(made.code.iter().map(|code| code.seconds).sum());
    stats.compiled = Some(std::mem::take(&mut made.code));
    if args.trace_tiers {
        made.tiers.show(module);
    }
    if engine == RunEngine::Tiered {
        let mut figures = std::mem::take(&mut made.tiers.figures);
        // This finds the loops of all functions.
        if args.stats.is_some() {
            figures.visits = tiers::visits(module, vm.visits());
        }
        stats.tiering = Some(figures);
    }
    let all = transitions(module, &mut vm);
    let exits = |is_to_row: bool| -> u64 {
        let taken = all.iter().filter(|made| made.from == "native");
        let taken = taken.filter(|made| (made.to == "native") == is_to_row);
        taken.map(|made| made.count).sum()
    };
    let (out, to_rows, seconds) = (exits(false), exits(true), stats.seconds.execute);
    stats.transitions = Some(all);
    let record = &mut made.assumptions;
    stats.speculation = args.speculate.as_ref().map(|_| record.finish(out, to_rows, seconds));
    tools.finish()?;
    Ok(Executed { ended: outcome.map_err(CommandFailure::of_run), profile })
}

/// Runs the start function, then the call if that returned.
fn invoke(
    vm: &mut Vm,
    engine: RunEngine,
    call: &Call,
    host: &mut dyn Host,
) -> Result<Outcome, RunError> {
    let mut run = |vm: &mut Vm, func, args: &[u64]| match engine {
        RunEngine::Jit => osier::tiers::invoke(vm, func, args, host),
        RunEngine::Interp | RunEngine::Tiered => vm.invoke(func, args, host),
    };
    if let Some(start) = vm.module().start {
        let outcome = run(vm, start, &[])?;
        if !matches!(outcome, Outcome::Returned(_)) {
            return Ok(outcome);
        }
    }
    run(vm, call.func, &call.args)
}

/// The policy that the options select.
fn policy(args: &Args, log: Log) -> Tiered<Log> {
    let pipeline = match &args.pipeline {
        Some(PassPlan::Passes(pipeline)) => pipeline.clone(),
        _ => Pipeline::default(),
    };
    // Only optimized code uses assumptions, and suggestions need some visits.
    let hot = args.hot.or_else(|| args.speculate.is_some().then_some(HOT));
    let listener = log.listener();
    let policy = match hot {
        Some(hot) => Tiered::new_observed(hot, pipeline, log),
        None => Tiered::by_costs_observed(Costs::MEASURED, pipeline, log),
    };
    // Do not record steps without a reader: the record would grow with the run.
    match args.trace_tiers || args.stats.is_some() {
        true => policy.listening(listener),
        false => policy,
    }
}

/// Whether the run waits for code. It waits with fuel, because the place where fuel ends depends on
/// the versions that ran. It waits on one processor, because a second thread would only take its
/// time.
fn waits(args: &Args) -> bool {
    let is_alone = std::thread::available_parallelism().is_ok_and(|threads| threads.get() == 1);
    args.on_the_spot || args.run_limits.limits().fuel != u64::MAX || is_alone
}

/// A machine with guarded memories. If the address space does not suffice for guards, a machine
/// with bounds checks.
///
/// # Errors
/// If the module cannot be instantiated, or the address space does not suffice for its memories.
fn instance(
    args: &Args,
    call: &Call,
    module: &Arc<Module>,
    tools: &Tools,
) -> Result<Vm, CommandFailure> {
    let limits = args.run_limits.limits();
    let interruption = args.interruption();
    let nans = args.nans.map_or_else(Nans::default, Nans::from);
    let options = Options::default();
    let made = |bounds| {
        let config = Config { bounds, interruption, nans, ..Config::default() };
        let engine = jit::Engine::observed(config, tools.observers());
        let engine = engine.map_err(CommandFailure::input)?;
        match Vm::new(&engine, module, limits, options) {
            Err(VmError::NoAddressSpace { .. }) if bounds == Bounds::Guarded => Ok(None),
            Ok(vm) => Ok(Some(vm)),
            Err(error) => {
                Err(CommandFailure::input(format!("{}: {error}", call.words.file.display())))
            }
        }
    };
    match made(Bounds::Guarded)? {
        Some(vm) => Ok(vm),
        None => made(Bounds::Checked)?.ok_or_else(|| {
            CommandFailure::input("the address space does not suffice for the memories")
        }),
    }
}

/// The transitions that the machine made, with the place of each point in the base. A point of
/// another version shows its id.
fn transitions(module: &Module, vm: &mut Vm) -> Vec<MadeTransition> {
    let made = vm.transitions().into_iter().map(|made| {
        let body = module.body(made.func);
        let known = body.filter(|body| body.has_inst(made.at));
        let point = known.map(|body| listing::place(module, body, ir::Point::before(made.at)));
        let (from, to) = match made.kind {
            TransitionKind::Up => ("interpreter", "native"),
            TransitionKind::Across => ("native", "native"),
            TransitionKind::Down => ("native", "interpreter"),
            TransitionKind::Out => ("native", "embedder"),
        };
        let function = module.funcs[made.func].name.clone();
        MadeTransition {
            function,
            point: point.unwrap_or_else(|| made.at.to_string()),
            from,
            to,
            count: made.count,
        }
    });
    made.collect()
}
