//! One call in the interpreter and natively, and everything visible compared.
//!
//! How the two may differ is written here and nowhere else; [`jit::Vm`] tells users the same.

use interp::{Effect, Host, Limits, Machine, NoObserver, Options, Outcome, Program, Trace};
use ir::{Func, Module, TrapKind};
use jit::{
    Bounds, Config, Effort, Engine, Interruption, RunError, Tier, Tiering, TransitionKind, Vm,
};
use osier::native::{self, Tiered};
use passes::Pipeline;
use std::sync::{Arc, LazyLock};

/// A way to compile, all checks of Cranelift on and with the trace.
pub(crate) struct Setting {
    /// What a failure is told with.
    pub(crate) name: &'static str,
    /// Compiles so.
    pub(crate) engine: Engine,
}

/// Both ways to keep accesses within their memory, both efforts, and all ways to end a run from
/// outside.
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

/// All of them.
pub(crate) fn settings() -> &'static [Setting] {
    &SETTINGS
}

/// Which functions have native code; the others are interpreted, and a run mixes frames of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Share {
    /// All.
    All,
    /// Those with an even number.
    Even,
    /// Those with an odd number.
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

/// Compiles a share of the functions as they are called.
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

/// One program twice: in a machine of the interpreter and in one that runs natively.
pub(crate) struct Twins<'a> {
    module: &'a Arc<Module>,
    machine: Machine,
    vm: Vm,
    /// What a failure is told with.
    name: String,
    /// Whether native code pays as the interpreter does.
    fueled: bool,
    /// Whether optimized versions take part, which pay less and trap at other places of the
    /// function.
    optimized: bool,
    /// Whether a run has come to a limit, so that the two may differ.
    apart: bool,
}

impl<'a> Twins<'a> {
    /// Two instances. Start functions are not run.
    pub(crate) fn new(
        module: &'a Arc<Module>,
        (limits, options): (Limits, Options),
        setting: &Setting,
        share: Share,
    ) -> Result<Twins<'a>, String> {
        let name = format!("natively ({}, {share:?})", setting.name);
        Twins::made(module, (limits, options), setting, name, Box::new(Shared(share)))
    }

    /// Two instances, one of which begins in the interpreter and optimizes and compiles what is
    /// called or repeated `threshold` times.
    pub(crate) fn tiered(
        module: &'a Arc<Module>,
        (limits, options): (Limits, Options),
        setting: &Setting,
        (threshold, pipeline): (u32, &Pipeline),
        observer: impl native::Observer + Send + 'static,
    ) -> Result<Twins<'a>, String> {
        let name = format!("tiered ({}, from {threshold} on)", setting.name);
        let tiering = Tiered::new(threshold, pipeline.clone(), observer);
        let twins = Twins::made(module, (limits, options), setting, name, Box::new(tiering))?;
        Ok(Twins { optimized: true, ..twins })
    }

    fn made(
        module: &'a Arc<Module>,
        (limits, options): (Limits, Options),
        setting: &Setting,
        name: String,
        tiering: Box<dyn Tiering + Send>,
    ) -> Result<Twins<'a>, String> {
        let machine = Machine::with_options(&Program::new(module), limits, options)
            .map_err(|e| e.to_string())?;
        let mut vm = Vm::new(&setting.engine, module, limits, options)
            .map_err(|error| format!("{name}: {error}"))?;
        vm.set_tiering(tiering);
        let fueled = setting.engine.config().interruption == Interruption::Fuel;
        Ok(Twins { module, machine, vm, name, fueled, optimized: false, apart: false })
    }

    /// The transitions that native code and interpreter have made, by kind.
    pub(crate) fn transitions(&mut self, kind: TransitionKind) -> u64 {
        self.vm.transitions().iter().filter(|made| made.kind == kind).map(|made| made.count).sum()
    }

    /// The machine of the interpreter.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Changes both machines.
    pub(crate) fn each(&mut self, change: impl Fn(&mut Machine)) {
        change(&mut self.machine);
        change(self.vm.machine_mut());
    }

    /// Calls a function of both. How the interpreter's run ended.
    ///
    /// # Errors
    /// In which the native run differs.
    pub(crate) fn call(
        &mut self,
        func: Func,
        args: &[u64],
        hosts: [&mut dyn Host; 2],
    ) -> Result<Outcome, String> {
        let before = self.fuel();
        let wanted = self.machine.invoke(func, args, hosts[0], &mut NoObserver);
        let found = match self.optimized {
            // What is optimized is for the policy to say.
            true => self.vm.invoke(func, args, hosts[1]),
            false => native::invoke(&mut self.vm, func, args, hosts[1]),
        };
        let found = found.map_err(|e| self.told(&e.to_string()))?;
        self.apart |= is_limit(&wanted) || is_limit(&found);
        let differs = if self.apart {
            self.limit_difference(&wanted, &found)
        } else {
            self.end_difference(&wanted, &found, before)
        };
        differs.map_or(Ok(wanted), |what| Err(self.told(&what)))
    }

    /// The fuel left of both, the native machine's first.
    fn fuel(&self) -> [u64; 2] {
        [self.vm.machine(), &self.machine].map(Machine::fuel)
    }

    /// In which a native run differs that has come to no limit.
    fn end_difference(
        &self,
        wanted: &Outcome,
        found: &Outcome,
        before: [u64; 2],
    ) -> Option<String> {
        let is_alike = found == wanted
            || is_trap_of_another_access(wanted, found)
            || self.optimized && is_trap_of_the_same_function(wanted, found);
        if !is_alike {
            return Some(format!("{found}, and interpreted: {wanted}"));
        }
        // Whole blocks were executed if the run returned, and then all is paid for that the
        // interpreter pays.
        let used = [0, 1].map(|i| before[i] - self.fuel()[i]);
        let differs =
            self.fueled && !self.optimized && found.returned().is_some() && used[0] != used[1];
        differs.then(|| format!("{} of fuel used, and interpreted {}", used[0], used[1]))
    }

    /// The same, where one of the runs has come to a limit.
    fn limit_difference(&self, wanted: &Outcome, found: &Outcome) -> Option<String> {
        // Without fuel nothing ends a run for want of it.
        let endless = matches!(wanted, Outcome::OutOfFuel(_)) && !self.fueled;
        // A block that the run does not come to the end of has been paid for, too.
        let early =
            matches!(found, Outcome::OutOfFuel(_)) && self.fueled && wanted.returned().is_none();
        if std::mem::discriminant(wanted) != std::mem::discriminant(found) && !endless && !early {
            return Some(format!("{found}, and interpreted: {wanted}"));
        }
        // What was done is the same as far as both came.
        first_difference(
            [self.vm.machine(), &self.machine].map(|machine| machine.trace().effects()),
        )
    }

    fn told(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    /// Compares everything that calls have left behind. There is nothing to compare once a run has
    /// come to a limit.
    ///
    /// # Errors
    /// In which the two differ.
    pub(crate) fn compare(&self) -> Result<(), String> {
        if self.apart {
            return Ok(());
        }
        let native = self.vm.machine();
        let traces = [native, &self.machine].map(Machine::trace);
        if let Some(what) = first_difference(traces.map(Trace::effects)) {
            return Err(self.told(&what));
        }
        if traces[0].digest() != traces[1].digest() || traces[0].count() != traces[1].count() {
            return Err(self.told("the effects differ"));
        }
        if !native.same_memory(&self.machine) {
            return Err(self.told("memories, tables, globals or dropped segments differ"));
        }
        if native.memory_digest() != native.computed_memory_digest() {
            return Err(
                self.told("the digest of memories and globals is not that of their contents")
            );
        }
        Ok(())
    }
}

/// Whether a run came to a limit, which comes sooner or later natively. The stack: frames of native
/// code are of another size than those of the interpreter, and it is the callee that finds no room
/// for its own. Fuel: native code pays for a block before it executes it.
fn is_limit(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::StackOverflow(_) | Outcome::OutOfFuel(_))
}

/// Cranelift leaves out accesses that others make superfluous: a store that a later one covers, a
/// load of what was loaded. Where both lie outside their memory, the other one traps in its stead:
/// the same trap, with the same state, at another place of the function.
fn is_trap_of_another_access(wanted: &Outcome, found: &Outcome) -> bool {
    let place = |outcome: &Outcome| {
        let traps = outcome.trap() == Some(TrapKind::MemoryOutOfBounds);
        outcome.site().filter(|_| traps).map(|site| site.func)
    };
    place(wanted).is_some() && place(wanted) == place(found)
}

/// An optimized version may come to the same trap at another of its instructions.
fn is_trap_of_the_same_function(wanted: &Outcome, found: &Outcome) -> bool {
    let place = |outcome: &Outcome| Some((outcome.trap()?, outcome.site()?.func));
    place(wanted).is_some() && place(wanted) == place(found)
}

/// Where two lists of effects differ, as far as both go.
fn first_difference(lists: [&[(Effect, u64)]; 2]) -> Option<String> {
    let at = lists[0].iter().zip(lists[1]).position(|(a, b)| a != b)?;
    Some(format!("effect {at} is {:x?}, and interpreted {:x?}", lists[0][at], lists[1][at]))
}

/// Runs something on a thread with a large stack: native code takes as much of the stack as it
/// needs.
pub(crate) fn on_a_large_stack<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, body);
        let thread = thread.expect("a thread can be made");
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    })
}

/// Enough for as many activations as the interpreter allows, of functions of usual size.
const STACK: usize = 64 << 20;
