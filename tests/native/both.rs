//! Runs one call in the interpreter and natively, and compares everything observable.
//!
//! This module defines how the two may differ; [`jit::Vm`] documents the same for users.

use interp::{Effect, Host, Limits, Machine, NoObserver, Options, Outcome, Program, Trace};
use ir::eval::{canonical_nan, is_nan};
use ir::{Func, Function, Module, TrapKind, Type};
use jit::{
    Bounds, Config, Effort, Engine, Interruption, Nans, RunError, Tier, Tiering, TransitionKind, Vm,
};
use osier::tiers;
use std::sync::{Arc, LazyLock};

/// A configuration of the compiler, with all checks of Cranelift and with the trace.
pub(crate) struct Setting {
    /// The name that failure messages use.
    pub(crate) name: &'static str,
    /// An engine with this configuration.
    pub(crate) engine: Engine,
}

/// Together they cover both ways to check bounds, both efforts, and all kinds of interruption.
static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let settings = [
        ("guarded, most, never ended", Bounds::Guarded, Effort::Most, Interruption::Never),
        ("guarded, least, fuel", Bounds::Guarded, Effort::Least, Interruption::Fuel),
        ("checked, most, fuel", Bounds::Checked, Effort::Most, Interruption::Fuel),
        ("checked, least, signals", Bounds::Checked, Effort::Least, Interruption::Signal),
    ];
    let made = settings.map(|(name, bounds, effort, interruption)| {
        let config = Config {
            bounds,
            effort,
            interruption,
            trace: true,
            checked: true,
            ..Config::default()
        };
        Setting {
            name,
            engine: Engine::new(config).expect("native code is supported where it is tested"),
        }
    });
    made.into()
});

/// All settings.
pub(crate) fn settings() -> &'static [Setting] {
    &SETTINGS
}

/// A setting with the NaNs of the processor. Calls compare results modulo the bits of NaNs.
pub(crate) static PLATFORM: LazyLock<Setting> = LazyLock::new(|| {
    let config = Config { nans: Nans::Platform, checked: true, ..Config::default() };
    let engine = Engine::new(config).expect("native code is supported where it is tested");
    Setting { name: "NaNs of the processor", engine }
});

/// The functions that have native code. The interpreter runs the other functions, so that a run
/// mixes frames of both engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// All.
    All,
    /// Functions with an even index.
    Even,
    /// Functions with an odd index.
    Odd,
}

impl Share {
    pub(crate) const EVERY: [Share; 3] = [Share::All, Share::Even, Share::Odd];

    fn has(self, func: Func) -> bool {
        match self {
            Share::All => true,
            Share::Even => func.as_u32().is_multiple_of(2),
            Share::Odd => !func.as_u32().is_multiple_of(2),
        }
    }
}

/// A policy that compiles a share of the functions when they are called.
#[derive(Debug)]
struct Shared(Share);

impl Tiering for Shared {
    fn called(&mut self, tier: &mut Tier<'_>, func: Func) -> Result<(), RunError> {
        let module = Arc::clone(tier.module());
        let Some(body) = module.body(func).filter(|_| self.0.has(func)) else { return Ok(()) };
        let version = tier.engine().version(&module, func, body, &[]).map_err(RunError::Compile)?;
        tier.install(&version, Vec::new()).map_err(RunError::Link)
    }
}

/// One program in two machines: one of the interpreter and one with native code.
pub(crate) struct Twins<'a> {
    module: &'a Arc<Module>,
    machine: Machine,
    vm: Vm,
    /// The name that failure messages use.
    name: String,
    /// Whether native code pays fuel as the interpreter does.
    fueled: bool,
    /// The NaNs of native code.
    nans: Nans,
    /// Whether optimized versions take part. They pay less fuel, and may trap at other instructions
    /// of the function.
    optimized: bool,
    /// Whether a run has reached a limit, after which the two may differ.
    apart: bool,
}

impl<'a> Twins<'a> {
    /// Creates both instances without running start functions.
    pub(crate) fn new(
        module: &'a Arc<Module>,
        limits: Limits,
        options: Options,
        setting: &Setting,
        share: Share,
    ) -> Result<Twins<'a>, String> {
        let name = format!("natively ({}, {share:?})", setting.name);
        Twins::made(module, limits, options, setting, name, Box::new(Shared(share)))
    }

    /// Creates both instances. The native one starts in the interpreter, and optimizes and compiles
    /// a function after `threshold` calls or iterations, by a policy.
    pub(crate) fn tiered(
        module: &'a Arc<Module>,
        limits: Limits,
        options: Options,
        setting: &Setting,
        threshold: u32,
        tiering: Box<dyn Tiering + Send>,
    ) -> Result<Twins<'a>, String> {
        let name = format!("tiered ({}, from {threshold} on)", setting.name);
        let twins = Twins::made(module, limits, options, setting, name, tiering)?;
        Ok(Twins { optimized: true, ..twins })
    }

    fn made(
        module: &'a Arc<Module>,
        limits: Limits,
        options: Options,
        setting: &Setting,
        name: String,
        tiering: Box<dyn Tiering + Send>,
    ) -> Result<Twins<'a>, String> {
        let mut machine = Machine::with_options(&Program::new(module), limits, options)
            .map_err(|e| e.to_string())?;
        let mut vm = Vm::new(&setting.engine, module, limits, options)
            .map_err(|error| format!("{name}: {error}"))?;
        vm.set_tiering(tiering);
        if has_references(module) {
            // Code that keeps words of references across a call shows it.
            machine.stress_collector(true);
            vm.machine_mut().stress_collector(true);
        }
        let fueled = setting.engine.config().interruption == Interruption::Fuel;
        let nans = setting.engine.config().nans;
        Ok(Twins { module, machine, vm, name, fueled, nans, optimized: false, apart: false })
    }

    /// The number of transitions of this kind between native code and the interpreter.
    pub(crate) fn transitions(&mut self, kind: TransitionKind) -> u64 {
        self.vm.transitions().iter().filter(|made| made.kind == kind).map(|made| made.count).sum()
    }

    /// The machine of the interpreter.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The machine with native code.
    pub(crate) fn native(&self) -> &Machine {
        self.vm.machine()
    }

    /// Applies a change to both machines.
    pub(crate) fn each(&mut self, change: impl Fn(&mut Machine)) {
        change(&mut self.machine);
        change(self.vm.machine_mut());
    }

    /// Calls a function in both. Returns the outcome in the interpreter.
    ///
    /// # Errors
    /// If the native run differs; the error describes the difference.
    pub(crate) fn call(
        &mut self,
        func: Func,
        args: &[u64],
        hosts: [&mut dyn Host; 2],
    ) -> Result<Outcome, String> {
        let before = self.fuel();
        let wanted = self.machine.invoke(func, args, hosts[0], &mut NoObserver);
        let found = match self.optimized {
            // The policy selects the functions to optimize and to compile.
            true => self.vm.invoke(func, args, hosts[1]),
            false => tiers::invoke(&mut self.vm, func, args, hosts[1]),
        };
        let found = found.map_err(|e| self.tag(&e.to_string()))?;
        self.apart |= is_limit(&wanted) || is_limit(&found);
        let differs = if self.apart {
            self.limit_difference(&wanted, &found)
        } else {
            self.end_difference(&self.rounded(func, &wanted), &self.rounded(func, &found), before)
        };
        differs.map_or(Ok(wanted), |what| Err(self.tag(&what)))
    }

    /// The outcome; with the NaNs of the processor, each float result that is a NaN becomes the
    /// canonical one.
    fn rounded(&self, func: Func, outcome: &Outcome) -> Outcome {
        let mut rounded = outcome.clone();
        if let (Outcome::Returned(values), Nans::Platform) = (&mut rounded, self.nans) {
            for (bits, ty) in values.iter_mut().zip(&self.module.signature(func).results) {
                if is_nan(*ty, *bits) {
                    *bits = canonical_nan(*ty);
                }
            }
        }
        rounded
    }

    /// The remaining fuel of both, the native machine's first.
    fn fuel(&self) -> [u64; 2] {
        [self.vm.machine(), &self.machine].map(Machine::fuel)
    }

    /// The difference of a native run that has reached no limit.
    fn end_difference(
        &self,
        wanted: &Outcome,
        found: &Outcome,
        before: [u64; 2],
    ) -> Option<String> {
        let is_alike = found == wanted
            || self.is_trap_of_another_access(wanted, found)
            || self.optimized && is_trap_of_the_same_function(wanted, found);
        if !is_alike {
            return Some(format!("native: {found}; interpreted: {wanted}"));
        }
        // A run that returned has executed whole blocks, so it has paid as much as the interpreter.
        let used = [0, 1].map(|i| before[i] - self.fuel()[i]);
        let differs =
            self.fueled && !self.optimized && found.returned().is_some() && used[0] != used[1];
        differs.then(|| format!("fuel used: native {}, interpreted {}", used[0], used[1]))
    }

    /// Whether both runs trap out of bounds in the same function, the native one at an instruction
    /// that can. Cranelift removes redundant accesses, such as a store that a later store covers,
    /// or a second load of the same place. If both accesses lie outside their memory, the remaining
    /// one traps: the same trap with the same state, at another place of the function.
    fn is_trap_of_another_access(&self, wanted: &Outcome, found: &Outcome) -> bool {
        let place = |outcome: &Outcome| {
            let traps = outcome.trap() == Some(TrapKind::MemoryOutOfBounds);
            outcome.site().filter(|_| traps).map(|site| site.func)
        };
        let can_trap = found.site().is_some_and(|site| {
            let function = self.module.body(site.func);
            let traps = |(body, inst): (&Function, _)| body.inst(inst).opcode.can_trap();
            self.optimized || function.zip(site.inst).is_some_and(traps)
        });
        place(wanted).is_some() && place(wanted) == place(found) && can_trap
    }

    /// The difference if one of the runs has reached a limit.
    fn limit_difference(&self, wanted: &Outcome, found: &Outcome) -> Option<String> {
        // A native run that does not count fuel never runs out of fuel.
        let endless = matches!(wanted, Outcome::OutOfFuel(_)) && !self.fueled;
        // Native code pays for a block at its start, even if the run does not reach the block's
        // end.
        let early =
            matches!(found, Outcome::OutOfFuel(_)) && self.fueled && wanted.returned().is_none();
        if std::mem::discriminant(wanted) != std::mem::discriminant(found) && !endless && !early {
            return Some(format!("native: {found}; interpreted: {wanted}"));
        }
        // The effects are equal as far as both runs reached.
        first_difference(
            [self.vm.machine(), &self.machine].map(|machine| machine.trace().effects()),
        )
    }

    fn tag(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    /// Compares the state that calls have left behind. Returns `Ok` without a comparison once a run
    /// has reached a limit.
    ///
    /// # Errors
    /// If the two differ; the error describes the difference.
    pub(crate) fn compare(&self) -> Result<(), String> {
        if self.apart {
            return Ok(());
        }
        let native = self.vm.machine();
        let traces = [native, &self.machine].map(Machine::trace);
        if let Some(what) = first_difference(traces.map(Trace::effects)) {
            return Err(self.tag(&what));
        }
        if traces[0].digest() != traces[1].digest() || traces[0].count() != traces[1].count() {
            return Err(self.tag("the effects differ"));
        }
        if !native.same_memory(&self.machine) {
            return Err(self.tag("memories, tables, globals or dropped segments differ"));
        }
        if native.memory_digest() != native.computed_memory_digest() {
            return Err(self.tag("the digest does not match the contents of memories and globals"));
        }
        Ok(())
    }
}

/// Whether a run reached a limit, which native code may reach earlier or later. Native frames have
/// another size than interpreter frames, and the callee checks the room for its frame. Native code
/// pays fuel for a block before executing it.
fn is_limit(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::StackOverflow(_) | Outcome::OutOfFuel(_))
}

/// Whether both runs end with the same trap in the same function. An optimized version may trap at
/// another of its instructions.
fn is_trap_of_the_same_function(wanted: &Outcome, found: &Outcome) -> bool {
    let place = |outcome: &Outcome| Some((outcome.trap()?, outcome.site()?.func));
    place(wanted).is_some() && place(wanted) == place(found)
}

/// The first difference of two lists of effects, as far as both reach.
fn first_difference(lists: [&[(Effect, u64)]; 2]) -> Option<String> {
    let at = lists[0].iter().zip(lists[1]).position(|(a, b)| a != b)?;
    Some(format!("effect {at}: native {:x?}, interpreted {:x?}", lists[0][at], lists[1][at]))
}

/// Runs a closure on a thread with a large stack, since native code uses as much of the stack as it
/// needs.
pub(crate) fn on_a_large_stack<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body);
        let thread = thread.expect("a thread can be made");
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

/// Enough bytes for the interpreter's limit on activations, of functions of usual size.
const STACK: usize = 64 << 20;

/// Whether a module has references that a collector may move.
fn has_references(module: &Module) -> bool {
    let moves = |ty: Type| ty == Type::Ref;
    let in_body = |(_, body): (Func, &Function)| {
        let values = body.blocks().flat_map(|block| {
            let results = body.block_insts(block).flat_map(|i| body.inst(i).results.iter());
            body.block_params(block).iter().chain(results)
        });
        values.into_iter().any(|value| moves(body.value_type(*value)))
    };
    module.globals.values().any(|global| moves(global.ty)) || module.defined().any(in_body)
}
